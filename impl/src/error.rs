//! Why an operation failed: one enum an operation.

use rankwise_protocol::call::Refusal;
use rankwise_protocol::group::{Cause, Tag, WORLD_MAX};
use std::fmt::Write as _;
use std::io;

/// Why a group could not be made, or an operation of its own gave no result.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// A group has at least one rank and at most [`WORLD_MAX`].
    #[error("world is {found}, expected 1 to {WORLD_MAX}")]
    World {
        /// Ranks asked for.
        found: u32,
    },
    /// What the ranks would share grows with the square of the world, and is bounded.
    #[error("world is {world}: the memory of its group has {bytes} bytes, at most {bytes_max} are taken")]
    WorldMemory {
        /// Ranks asked for.
        world: u32,
        /// Bytes that they would share.
        bytes: u64,
        /// Bytes that a group takes at most.
        bytes_max: u64,
    },
    /// Ranks count from 0 and end before the world.
    #[error("rank is {found}, expected 0 to {} in a world of {world}", world - 1)]
    Rank {
        /// Rank asked for.
        found: u32,
        /// Ranks of the group.
        world: u32,
    },
    /// The name is no address.
    #[error("address is {found:?}, expected 1 to 64 characters of A-Z, a-z, 0-9, '.', '_' and '-'")]
    Address {
        /// The name.
        found: String,
    },
    /// Another group meets at the address now.
    #[error("address {address:?} is in use: a rank 0 already waits there")]
    AddressInUse {
        /// The address.
        address: String,
    },
    /// What waits at the address belongs to another user.
    #[error("address {address:?} belongs to uid {found}, expected {expected}")]
    Stranger {
        /// The address.
        address: String,
        /// Whose it is.
        found: u32,
        /// This process's user.
        expected: u32,
    },
    /// The group at the address is not the one that this rank was told of.
    #[error("{field} of the group at address {address:?} is {found}, expected {expected}")]
    Header {
        /// The address.
        address: String,
        /// What differs.
        field: &'static str,
        /// What the group has.
        found: u64,
        /// What this rank was told.
        expected: u64,
    },
    /// Another process is this rank already.
    #[error("rank {rank} at address {address:?} is taken: another process has claimed it")]
    RankTaken {
        /// The address.
        address: String,
        /// The rank.
        rank: u32,
    },
    /// The group did not meet before the deadline.
    #[error("{} did not come to address {address:?} within {deadline_ms} ms", ranks_in_words(ranks))]
    Missing {
        /// The address.
        address: String,
        /// Who had not come.
        ranks: Vec<u32>,
        /// How long this rank waited.
        deadline_ms: u64,
    },
    /// Memory for the group could not be had.
    #[error("{bytes} bytes of memory for the group could not be had: {source}")]
    Memory {
        /// Bytes asked for.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{call} failed: {source}")]
    System {
        /// Which.
        call: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// All ranks refused, for the reason given.
    #[error("refused by all ranks: {0}")]
    Refused(Refusal),
    /// The group has ended, for the first cause given.
    #[error("the group has ended: {0}")]
    Poisoned(Cause),
    /// Ranks made different calls; the group has ended.
    #[error("the group has ended: ranks made different calls: {}", tags_in_words(tags))]
    Diverged {
        /// Each rank's call, in rank order.
        tags: Vec<Tag>,
    },
    /// This rank can't learn the outcome; the group has ended for it.
    #[error("the group has ended: what was read of rank {rank} is no record of this exchange")]
    Unknown {
        /// Whose record.
        rank: u32,
    },
    /// Another thread of this rank was in a call until the deadline. The group has ended, since peers may be in
    /// the call that this rank did not make.
    #[error(
        "the group has ended: another thread of this rank was in a call until the deadline of {deadline_ms} ms"
    )]
    Busy {
        /// How long this call waited.
        deadline_ms: u64,
    },
    /// The process is a fork of the one that made the group.
    #[error("this process is a fork: process {owner} made the group, this is {found}")]
    Forked {
        /// Process that made the group.
        owner: u32,
        /// This process.
        found: u32,
    },
}

/// Why a halo exchange gave no result.
#[derive(Debug, thiserror::Error)]
pub enum HaloError {
    /// All ranks refused it, for the reason given.
    #[error("halo refused by all ranks: {0}")]
    Refused(Refusal),
    /// The group has ended, for the cause given.
    #[error("halo: the group has ended: {0}")]
    Poisoned(Cause),
    /// Ranks made different calls; the group has ended.
    #[error("halo: the group has ended: ranks made different calls: {}", tags_in_words(tags))]
    Diverged {
        /// Each rank's call, in rank order.
        tags: Vec<Tag>,
    },
    /// What was read of a rank is no record of a halo exchange.
    #[error("halo: what was read of rank {rank} is no record of this exchange")]
    Unknown {
        /// Whose record.
        rank: u32,
    },
    /// The band given to `wait` is not of the shape that was posted. The exchange itself goes on.
    #[error("halo: the band to fill has {found} bytes, expected {expected}")]
    Band {
        /// Bytes given.
        found: u64,
        /// Bytes of the shape with its pad rows.
        expected: u64,
    },
    /// Another thread of this rank was in a call until the deadline. The group has ended, since peers may be in
    /// the call that this rank did not make.
    #[error(
        "halo: the group has ended: \
         another thread of this rank was in a call until the deadline of {deadline_ms} ms"
    )]
    Busy {
        /// How long this call waited.
        deadline_ms: u64,
    },
    /// The process is a fork of the one that made the group.
    #[error("halo: this process is a fork: process {owner} made the group, this is {found}")]
    Forked {
        /// Process that made the group.
        owner: u32,
        /// This process.
        found: u32,
    },
}

/// "rank 3", or "ranks 3 5".
fn ranks_in_words(ranks: &[u32]) -> String {
    let mut words = String::from(if ranks.len() == 1 { "rank" } else { "ranks" });
    for rank in ranks {
        let _ = write!(words, " {rank}");
    }
    words
}

/// "halo 3 on ranks 0 2, barrier 1 on rank 1".
fn tags_in_words(tags: &[Tag]) -> String {
    let mut distinct: Vec<Tag> = Vec::new();
    for tag in tags {
        if !distinct.contains(tag) {
            distinct.push(*tag);
        }
    }
    let on_ranks = |tag: &Tag| {
        let ranks: Vec<u32> = (0..).zip(tags).filter(|(_, other)| *other == tag).map(|(r, _)| r).collect();
        format!("{tag} on {}", ranks_in_words(&ranks))
    };
    distinct.iter().map(on_ranks).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankwise_protocol::call::Op;

    #[test]
    fn different_calls_are_named_with_their_ranks() {
        let tag = |op, call| Tag { op, call };
        let tags = vec![tag(Op::Halo, 3), tag(Op::Barrier, 1), tag(Op::Halo, 3)];
        let error = GroupError::Diverged { tags };
        let expected =
            "the group has ended: ranks made different calls: halo 3 on ranks 0 2, barrier 1 on rank 1";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn missing_ranks_are_named_with_address_and_deadline() {
        let error = GroupError::Missing { address: "job".into(), ranks: vec![1], deadline_ms: 500 };
        assert_eq!(error.to_string(), "rank 1 did not come to address \"job\" within 500 ms");
    }
}
