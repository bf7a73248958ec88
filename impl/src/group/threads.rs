//! The group whose ranks are threads of one process.

use super::region_layout;
use crate::error::GroupError;
use crate::memory::{Mapping, Region};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the ranks of one group share.
#[derive(Debug)]
pub(super) struct Party {
    region: Region,
    /// By rank: whether a handle of it is left.
    present: Vec<AtomicBool>,
    nonce: u64,
    subgroups: Mutex<BTreeMap<Key, Waiting>>,
}

/// Names a subgroup until its ranks have found it: the call that makes it, and the rank that leads it.
pub(super) type Key = (u64, u32);

/// A subgroup, and those of its ranks, as its parent counts them, that have not taken it yet.
#[derive(Debug)]
struct Waiting {
    party: Arc<Party>,
    ranks: BTreeSet<u32>,
}

impl Party {
    /// A group of `world` ranks, all present.
    pub(super) fn new(world: u32, nonce: u64) -> Result<Arc<Party>, GroupError> {
        let layout = region_layout(world);
        let bytes = layout.bytes();
        let mapping =
            Mapping::private(bytes).map_err(|source| GroupError::Memory { bytes: bytes as u64, source })?;
        Ok(Arc::new(Party {
            region: Region::new(mapping, layout),
            present: (0..world).map(|_| AtomicBool::new(true)).collect(),
            nonce,
            subgroups: Mutex::default(),
        }))
    }

    /// The shared memory.
    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    /// Incarnation of the group.
    pub(super) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Whether the last handle of `rank` was dropped.
    pub(super) fn is_gone(&self, rank: u32) -> bool {
        !self.present[rank as usize].load(Ordering::Acquire)
    }

    /// The last handle of `rank` is dropped: it takes no further step, and no subgroup waits for it.
    pub(super) fn leave(&self, rank: u32) {
        self.present[rank as usize].store(false, Ordering::Release);
        self.subgroups().retain(|_, waiting| {
            waiting.ranks.remove(&rank);
            !waiting.ranks.is_empty()
        });
    }

    /// Puts up a subgroup for its ranks to find.
    pub(super) fn offer(&self, key: Key, party: Arc<Party>, ranks: &[u32]) {
        let ranks = ranks.iter().copied().collect();
        self.subgroups().insert(key, Waiting { party, ranks });
    }

    /// Takes a subgroup that was put up, as `rank`; the last of its ranks takes it down.
    pub(super) fn take(&self, key: Key, rank: u32) -> Option<Arc<Party>> {
        let mut subgroups = self.subgroups();
        let waiting = subgroups.get_mut(&key)?;
        waiting.ranks.remove(&rank);
        let party = Arc::clone(&waiting.party);
        if waiting.ranks.is_empty() {
            subgroups.remove(&key);
        }
        Some(party)
    }

    /// Takes a subgroup down that was refused.
    pub(super) fn withdraw(&self, key: Key) {
        self.subgroups().remove(&key);
    }

    fn subgroups(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, Waiting>> {
        self.subgroups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subgroup_is_found_by_each_of_its_ranks_once() {
        let parent = Party::new(3, 1).unwrap();
        parent.offer((1, 0), Party::new(2, 2).unwrap(), &[0, 2]);
        assert_eq!(parent.take((1, 0), 0).unwrap().nonce(), 2);
        assert!(parent.take((1, 1), 2).is_none());
        assert!(parent.take((1, 0), 2).is_some());
        assert!(parent.take((1, 0), 2).is_none());
    }

    #[test]
    fn a_subgroup_waits_for_no_rank_that_left() {
        let parent = Party::new(3, 1).unwrap();
        let party = Party::new(2, 2).unwrap();
        parent.offer((1, 0), Arc::clone(&party), &[0, 2]);
        parent.leave(2);
        assert!(parent.take((1, 0), 0).is_some());
        assert_eq!(Arc::strong_count(&party), 1);
    }

    #[test]
    fn a_rank_is_gone_once_it_left() {
        let party = Party::new(2, 1).unwrap();
        party.leave(1);
        assert!(party.is_gone(1) && !party.is_gone(0));
    }
}
