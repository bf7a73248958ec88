//! The algorithms on shared words that really run.
//!
//! They are generic over [`Word`]: core atomics and mapped words in the driver, loom's in the checker.
//! Payload goes through traits whose methods take a claim that only a protocol transition makes, so that safe
//! code here cannot touch bytes out of turn.

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
    fn load(&self, ordering: Ordering) -> u64 {
        AtomicU64::load(self, ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        AtomicU64::store(self, value, ordering);
    }

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
