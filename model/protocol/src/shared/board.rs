//! The board of a control group on shared words.
//!
//! | field | who writes | who reads | under |
//! | --- | --- | --- | --- |
//! | `decision` | any rank, by compare-and-swap | all | acquire-release |
//! | `posted(r)` | rank r | all | release store after the record, acquire load before it is read |
//! | slot (r, s) | rank r, with a [`WriteClaim`] | all, with a [`ReadClaim`] | `posted(r)` |

use super::Word;
use crate::group::{Decision, Input, Operation, ReadClaim, WriteClaim};
use crate::wire::{self, RECORD_BYTES};
use core::sync::atomic::Ordering;

/// Order in which a record is announced.
pub const ANNOUNCE: Ordering = Ordering::Release;
/// Order in which an announcement is read.
pub const WATCH: Ordering = Ordering::Acquire;
/// Order in which the decision word is read: it stands for every announcement behind it.
pub const LEARN: Ordering = Ordering::Acquire;
/// Order in which the decision word is swapped: it passes on what this rank has seen announced.
pub const DECIDE: Ordering = Ordering::AcqRel;

/// The shared memory of a board.
pub trait Board {
    /// Its words.
    type Word: Word;

    /// The decision word.
    fn decision(&self) -> &Self::Word;
    /// The `posted` word of a rank.
    fn posted(&self, rank: u32) -> &Self::Word;
    /// Writes a record to the slot of the claim.
    fn write(&self, claim: WriteClaim, record: &[u8; RECORD_BYTES]);
    /// Reads the slot of the claim.
    fn read(&self, claim: ReadClaim) -> [u8; RECORD_BYTES];
}

/// Carries out one operation of rank `rank` on the board.
pub fn perform<B: Board>(board: &B, rank: u32, operation: Operation) -> Input {
    match operation {
        Operation::WriteSlot(claim, record) => {
            board.write(claim, &wire::encode(&record));
            Input::Done
        }
        Operation::Announce { index } => {
            board.posted(rank).store(index, ANNOUNCE);
            Input::Done
        }
        Operation::LoadPosted { rank } => Input::Posted(board.posted(rank).load(WATCH)),
        Operation::LoadDecision => Input::Decision(Decision::from_word(board.decision().load(LEARN))),
        Operation::SwapDecision { expected, new } => {
            let swapped = board.decision().compare_exchange(expected.to_word(), new.to_word(), DECIDE, LEARN);
            Input::Swapped(swapped.map(|_| ()).map_err(Decision::from_word))
        }
        Operation::ReadSlot(claim) => Input::Record(wire::decode(&board.read(claim)).ok()),
    }
}
