//! The agreed call: what every rank says before a collective, and the verdict that all draw from it.
//!
//! A rank that cannot or will not take part says so in its record; it never branches before the exchange.
//! The verdict is a pure function of the gathered records, so all ranks reach the same one (AGR-2).

use crate::layout::Dtype;
use crate::legs::Arm;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use siphasher::sip::SipHasher13;

/// Bytes of text that a record carries at most.
pub const TEXT_BYTES_MAX: usize = 48;
/// Fields that a signature has at most.
pub const FIELDS_MAX: usize = 16;

/// The collective that a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Ranks meet for the first time and compare build and policy.
    Join,
    /// A halo exchange.
    Halo,
    /// A barrier: an exchange with nothing to say.
    Barrier,
    /// A group is made of some of the ranks.
    Subgroup,
}

impl Op {
    /// Every op, at the position that is its number in a record.
    pub const ALL: [Op; 4] = [Op::Join, Op::Halo, Op::Barrier, Op::Subgroup];

    /// Name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Join => "join",
            Op::Halo => "halo",
            Op::Barrier => "barrier",
            Op::Subgroup => "subgroup",
        }
    }
}

/// What the environment says of the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Override {
    /// Not set: the policy's rungs decide.
    Unset,
    /// One arm whatever the world.
    Forced(Arm),
    /// Set to nothing.
    Empty,
    /// Set to a word that is no arm.
    Unknown,
}

impl Override {
    /// Reads the value of the override variable; `None` is a variable that is not set.
    pub fn parse(value: Option<&str>) -> Self {
        match value {
            None => Override::Unset,
            Some("") => Override::Empty,
            Some(word) => Arm::from_name(word).map_or(Override::Unknown, Override::Forced),
        }
    }

    /// Number in a signature.
    pub fn code(self) -> u64 {
        match self {
            Override::Unset => 0,
            Override::Empty => 1,
            Override::Unknown => 2,
            Override::Forced(arm) => 16 + arm as u64,
        }
    }

    /// The override with that number.
    pub fn from_code(code: u64) -> Option<Self> {
        [Override::Unset, Override::Empty, Override::Unknown]
            .into_iter()
            .chain(Arm::ALL.map(Override::Forced))
            .find(|candidate| candidate.code() == code)
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Override::Unset => f.write_str("unset"),
            Override::Empty => f.write_str("empty"),
            Override::Unknown => f.write_str("unknown"),
            Override::Forced(arm) => f.write_str(arm.name()),
        }
    }
}

/// A field of a signature: what must be equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Digest of the build.
    Build,
    /// Digest of the policy.
    Policy,
    /// Ranks of the group.
    World,
    /// Override of the arm.
    Override,
    /// T.
    Frames,
    /// W.
    Width,
    /// C.
    Channels,
    /// Element type.
    Dtype,
    /// Entries of a list of ranks.
    Ranks,
    /// Digest of a list of ranks.
    RanksDigest,
    /// Which of a rank's halo contexts on the group.
    Context,
}

impl Field {
    /// Every field, at the position that is its number in a record.
    pub const ALL: [Field; 11] = [
        Field::Build,
        Field::Policy,
        Field::World,
        Field::Override,
        Field::Frames,
        Field::Width,
        Field::Channels,
        Field::Dtype,
        Field::Ranks,
        Field::RanksDigest,
        Field::Context,
    ];

    /// Name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Field::Build => "build",
            Field::Policy => "policy",
            Field::World => "world",
            Field::Override => "override",
            Field::Frames => "frames",
            Field::Width => "width",
            Field::Channels => "channels",
            Field::Dtype => "dtype",
            Field::Ranks => "number of ranks listed",
            Field::RanksDigest => "digest of the ranks listed",
            Field::Context => "context",
        }
    }

    /// `value` as a person reads it.
    pub fn render(self, value: u64) -> String {
        match self {
            Field::Build | Field::Policy | Field::RanksDigest => alloc::format!("{value:016x}"),
            Field::Override => {
                Override::from_code(value).map_or_else(|| value.to_string(), |known| known.to_string())
            }
            Field::Dtype => {
                Dtype::ALL.get(value as usize).map_or_else(|| value.to_string(), |known| known.to_string())
            }
            Field::World | Field::Frames | Field::Width | Field::Channels | Field::Ranks | Field::Context => {
                value.to_string()
            }
        }
    }
}

/// What stands in a signature for bytes that are too many for a field: other bytes have the same by a chance
/// of 2^-64, where nobody means harm.
pub fn digest(bytes: &[u8]) -> u64 {
    SipHasher13::new().hash(bytes)
}

/// Fields and values, in one order on all ranks.
pub type Signature = Vec<(Field, u64)>;

/// Why a rank refuses its own call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The override variable is set to a word that is no arm.
    UnknownOverride,
    /// The override variable is set to nothing.
    EmptyOverride,
    /// The band's shape and buffer do not fit.
    Shape,
    /// There are more ranks than rows.
    MoreRanksThanRows,
    /// Buffers could not be allocated.
    OutOfMemory,
    /// The list of ranks is empty.
    NoRanks,
    /// The list of ranks has an entry that is no rank of the group.
    NoSuchRank,
    /// The list of ranks has an entry twice.
    RankTwice,
    /// The rank that leads a subgroup could not make memory and address of it.
    Unprepared,
}

impl Reason {
    /// Every reason, at the position that is its number in a record.
    pub const ALL: [Reason; 9] = [
        Reason::UnknownOverride,
        Reason::EmptyOverride,
        Reason::Shape,
        Reason::MoreRanksThanRows,
        Reason::OutOfMemory,
        Reason::NoRanks,
        Reason::NoSuchRank,
        Reason::RankTwice,
        Reason::Unprepared,
    ];
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::UnknownOverride => "the override is no arm (expected ring or neighbour)",
            Reason::EmptyOverride => "the override is empty (expected ring, neighbour, or unset)",
            Reason::Shape => "shape and buffer do not fit",
            Reason::MoreRanksThanRows => "there are more ranks than rows",
            Reason::OutOfMemory => "buffers could not be allocated",
            Reason::NoRanks => "the list of ranks is empty (expected at least one)",
            Reason::NoSuchRank => "the list of ranks has an entry that is no rank of the group",
            Reason::RankTwice => "the list of ranks has an entry twice",
            Reason::Unprepared => "memory or address of the subgroup could not be had",
        })
    }
}

/// Text of at most [`TEXT_BYTES_MAX`] bytes, cut at a character's end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(String);

impl Text {
    /// The start of `text` that fits.
    pub fn new(text: &str) -> Self {
        let mut end = text.len().min(TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Text(text[..end].to_string())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a rank can take part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Everything that can fail locally has been done.
    Ready,
    /// It cannot, and says why.
    Refused {
        /// Why.
        reason: Reason,
        /// The value that was not as expected.
        text: Text,
    },
}

/// What one rank says of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallRecord {
    /// Whether it can take part.
    pub status: Status,
    /// What must be equal on all ranks.
    pub signature: Signature,
}

/// Why no rank enters the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// A rank said that it cannot take part: the lowest such rank.
    Rank {
        /// Which.
        rank: u32,
        /// Why.
        reason: Reason,
        /// The value that was not as expected.
        text: Text,
    },
    /// Ranks disagree on a field: the first one in signature order.
    Mismatch {
        /// Which.
        field: Field,
        /// Every rank's value.
        values: Vec<u64>,
    },
    /// A rank's signature has other fields than rank 0's: its build speaks of something else.
    Fields {
        /// The lowest such rank.
        rank: u32,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Rank { rank, reason, text } if text.as_str().is_empty() => {
                write!(f, "rank {rank}: {reason}")
            }
            Refusal::Rank { rank, reason, text } => {
                write!(f, "rank {rank}: {reason}: found {:?}", text.as_str())
            }
            Refusal::Mismatch { field, values } => {
                write!(f, "{} differs by rank: ", field.name())?;
                write_ranks_by_value(f, *field, values)
            }
            Refusal::Fields { rank } => write!(f, "rank {rank}: its call has other fields than rank 0's"),
        }
    }
}

fn write_ranks_by_value(f: &mut fmt::Formatter<'_>, field: Field, values: &[u64]) -> fmt::Result {
    let mut distinct: Vec<u64> = Vec::new();
    for value in values {
        if !distinct.contains(value) {
            distinct.push(*value);
        }
    }
    for (position, value) in distinct.iter().enumerate() {
        let ranks: Vec<String> =
            (0..values.len()).filter(|&rank| values[rank] == *value).map(|rank| rank.to_string()).collect();
        let plural = if ranks.len() == 1 { "rank" } else { "ranks" };
        let separator = if position == 0 { "" } else { ", " };
        write!(f, "{separator}{} on {plural} {}", field.render(*value), ranks.join(" "))?;
    }
    Ok(())
}

/// The verdict on a call: every rank can take part and says the same of every field, or why all refuse.
///
/// After `Ok` a rank may act on what it said itself, since all said the same.
pub fn verdict(records: &[CallRecord]) -> Result<(), Refusal> {
    let first = &records[0].signature;
    for (rank, record) in records.iter().enumerate() {
        if let Status::Refused { reason, text } = &record.status {
            return Err(Refusal::Rank { rank: rank as u32, reason: *reason, text: text.clone() });
        }
    }
    for (rank, record) in records.iter().enumerate() {
        let same_fields = record.signature.len() == first.len()
            && record.signature.iter().zip(first).all(|(theirs, ours)| theirs.0 == ours.0);
        if !same_fields {
            return Err(Refusal::Fields { rank: rank as u32 });
        }
    }
    for (position, &(field, value)) in first.iter().enumerate() {
        let values: Vec<u64> = records.iter().map(|record| record.signature[position].1).collect();
        if values.iter().any(|&theirs| theirs != value) {
            return Err(Refusal::Mismatch { field, values });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn ready(world: u64, width: u64) -> CallRecord {
        let signature = vec![(Field::World, world), (Field::Width, width)];
        CallRecord { status: Status::Ready, signature }
    }

    #[test]
    fn a_mismatch_names_field_values_and_ranks() {
        let refusal = verdict(&[ready(3, 8), ready(3, 9), ready(3, 8)]).unwrap_err();
        assert_eq!(refusal.to_string(), "width differs by rank: 8 on ranks 0 2, 9 on rank 1");
    }

    #[test]
    fn a_rank_that_refuses_is_named_before_a_mismatch() {
        let mut records = [ready(2, 8), ready(2, 9)];
        let text = Text::new("rng");
        records[1].status = Status::Refused { reason: Reason::UnknownOverride, text };
        let refusal = verdict(&records).unwrap_err();
        let expected = "rank 1: the override is no arm (expected ring or neighbour): found \"rng\"";
        assert_eq!(refusal.to_string(), expected);
    }

    #[test]
    fn other_fields_are_refused() {
        let mut records = [ready(2, 8), ready(2, 8)];
        records[1].signature.pop();
        assert_eq!(verdict(&records), Err(Refusal::Fields { rank: 1 }));
    }

    #[test]
    fn text_is_cut_at_a_character() {
        let long = "é".repeat(40);
        assert_eq!(Text::new(&long).as_str().len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn every_override_survives_its_code() {
        for word in [None, Some(""), Some("rng"), Some("ag"), Some("p2p")] {
            let parsed = Override::parse(word);
            assert_eq!(Override::from_code(parsed.code()), Some(parsed));
        }
    }
}
