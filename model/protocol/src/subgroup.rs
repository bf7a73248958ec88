//! Agreement on a subgroup: a group made of some of a group's ranks (GRP-6).
//!
//! Each rank says in its call record how many ranks it lists, a digest of them in order, and why its list
//! cannot be, if it cannot. A rank that is not in the list says so as any other: only [`Proposal::seat`] tells
//! a rank that it has no part in the subgroup, and it takes the records of all.

use crate::call::{CallRecord, Field, Reason, Refusal, Status, Text, digest, verdict};
use crate::rules::Rules;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// One rank's list of the ranks that are to become a group; the position in it is the new rank.
///
/// ```text
///   new ──▶ leads: make the memory of the group ──▶ record ── exchange of all ranks ──▶ seat
///                       │ failed: unprepared              ▲
///                       └─────────────────────────────────┘
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposal<'a, R> {
    rank: u32,
    ranks: &'a [u32],
    problem: Option<(Reason, Text)>,
    rules: PhantomData<R>,
}

impl<'a, R: Rules> Proposal<'a, R> {
    /// The list of rank `rank` of `world`.
    pub fn new(rank: u32, world: u32, ranks: &'a [u32]) -> Self {
        Self { rank, ranks, problem: problem::<R>(ranks, world), rules: PhantomData }
    }

    /// Whether this rank makes what the subgroup needs before the agreement, since making it can fail.
    pub fn leads(&self) -> bool {
        self.problem.is_none() && self.ranks[0] == self.rank
    }

    /// What this rank was to make could not be made.
    pub fn unprepared(&mut self, why: &str) {
        self.problem = Some((Reason::Unprepared, Text::new(why)));
    }

    /// What this rank says.
    pub fn record(&self) -> CallRecord {
        let bytes: Vec<u8> = R::entries_compared(self.ranks).into_iter().flat_map(u32::to_le_bytes).collect();
        let signature = vec![(Field::Ranks, self.ranks.len() as u64), (Field::RanksDigest, digest(&bytes))];
        let status = match &self.problem {
            None => Status::Ready,
            Some((reason, text)) => Status::Refused { reason: *reason, text: text.clone() },
        };
        CallRecord { status, signature }
    }

    /// This rank's place in the subgroup, or `None` where it has none, once all ranks agree on the list; or
    /// why all refuse.
    pub fn seat(self, records: &[CallRecord]) -> Result<Option<u32>, Refusal> {
        verdict(records)?;
        Ok((0..).zip(self.ranks).find_map(|(seat, rank)| (*rank == self.rank).then_some(seat)))
    }
}

/// Why a list cannot be, with the entry.
fn problem<R: Rules>(ranks: &[u32], world: u32) -> Option<(Reason, Text)> {
    if ranks.is_empty() {
        return Some((Reason::NoRanks, Text::default()));
    }
    (0..ranks.len()).find_map(|at| {
        let reason = R::entry_refused(ranks[at], &ranks[..at], world)?;
        Some((reason, Text::new(&ranks[at].to_string())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Shipped;

    fn gather(lists: [&[u32]; 3]) -> Result<Vec<Option<u32>>, Refusal> {
        let proposals = || (0..).zip(lists).map(|(rank, ranks)| Proposal::<Shipped>::new(rank, 3, ranks));
        let records: Vec<_> = proposals().map(|proposal| proposal.record()).collect();
        proposals().map(|proposal| proposal.seat(&records)).collect()
    }

    #[test]
    fn a_position_in_the_list_is_the_new_rank() {
        assert_eq!(gather([&[2, 0]; 3]), Ok(vec![Some(1), None, Some(0)]));
    }

    #[test]
    fn lists_that_differ_in_order_or_length_are_refused_with_the_ranks() {
        let refusal = gather([&[0, 1], &[1, 0], &[0, 1]]).unwrap_err().to_string();
        assert!(refusal.starts_with("digest of the ranks listed differs by rank: "), "{refusal}");
        assert!(refusal.contains(" on ranks 0 2, ") && refusal.ends_with(" on rank 1"), "{refusal}");
        let refusal = gather([&[0], &[0, 1], &[0, 1]]).unwrap_err().to_string();
        assert_eq!(refusal, "number of ranks listed differs by rank: 1 on rank 0, 2 on ranks 1 2");
    }

    #[test]
    fn a_bad_list_is_refused_with_the_entry_before_a_difference_is() {
        let refusal = gather([&[0, 1], &[0, 3], &[1, 1]]).unwrap_err().to_string();
        let expected = "rank 1: the list of ranks has an entry that is no rank of the group: found \"3\"";
        assert_eq!(refusal, expected);
        let refusal = gather([&[1, 1], &[0], &[]]).unwrap_err().to_string();
        assert_eq!(refusal, "rank 0: the list of ranks has an entry twice: found \"1\"");
        let refusal = gather([&[]; 3]).unwrap_err().to_string();
        assert_eq!(refusal, "rank 0: the list of ranks is empty (expected at least one)");
    }

    #[test]
    fn a_leader_that_could_not_prepare_is_refused_with_the_cause() {
        let list = [1, 0];
        let mut leader = Proposal::<Shipped>::new(1, 2, &list);
        let other = Proposal::<Shipped>::new(0, 2, &list);
        assert!(leader.leads() && !other.leads());
        leader.unprepared("no memory");
        let refusal = other.clone().seat(&[other.record(), leader.record()]).unwrap_err().to_string();
        let expected = "rank 1: memory or address of the subgroup could not be had: found \"no memory\"";
        assert_eq!(refusal, expected);
    }
}
