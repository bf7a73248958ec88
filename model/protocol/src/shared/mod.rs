//! The algorithms on shared words that really run.
//!
//! They are generic over [`Word`]: core atomics and mapped words in the driver, loom's in the checker.
//! Payload goes through traits whose methods take a claim that only a protocol transition makes. That keeps bytes
//! apart only as long as a region has one `Member` a rank and one `Sender` and one `Receiver` a channel, all of peers
//! that keep to the protocol: the driver sees to the first, and treats what it reads as plain bytes for the rest.

pub mod board;
pub mod channel;

use core::sync::atomic::{AtomicU64, Ordering};

/// A 64-bit word that several ranks share.
pub trait Word {
    /// Loads it.
    fn load(&self, ordering: Ordering) -> u64;
    /// Stores it.
    fn store(&self, value: u64, ordering: Ordering);
    /// Swaps it if it holds `current`; gives what it held otherwise.
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, ordering: Ordering) -> u64 {
        AtomicU64::load(self, ordering)
    }

    #[inline]
    fn store(&self, value: u64, ordering: Ordering) {
        AtomicU64::store(self, value, ordering);
    }

    #[inline]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        AtomicU64::compare_exchange(self, current, new, success, failure)
    }
}
