//! Each decision that a mutant can break, one default method a decision.
//!
//! The driver uses [`Shipped`] alone. The checker also runs every model with rules of its own in which one
//! method is wrong, and the property named for that mutant must refute it. Shipping code never asks whether
//! it is a mutant.

use crate::call::Reason;
use crate::group::{Axiom, Backend, Cause, CauseKind, Decision, Record, Tag};
use crate::halo::{Sight, Stream};
use crate::legs::{Edge, Leg, Side};
use crate::shared::channel::Header;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

/// The decisions of the protocols. Every method has the shipped answer as its default.
pub trait Rules: Copy + Default + Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// Slots a rank has on the board. Exchange k is written to slot k modulo this many (GRP-4).
    fn board_slots() -> u64 {
        2
    }

    /// Whether exchange `index` is settled, and how, by what the decision word says (GRP-2). `all_posted`
    /// tells that this rank has seen every peer's record announced.
    fn settles(decision: Decision, index: u64, all_posted: bool) -> Option<Result<(), Cause>> {
        let _ = all_posted;
        if decision.completed >= index { Some(Ok(())) } else { decision.cause.map(Err) }
    }

    /// Whether a rank that has seen every record announced still has to win or lose the compare-and-swap
    /// on the decision word before it may call the exchange complete (GRP-2).
    fn completion_is_decided_by_swap() -> bool {
        true
    }

    /// Whether two ranks are in the same exchange (GRP-1).
    fn same_tag(mine: Tag, theirs: Tag) -> bool {
        mine == theirs
    }

    /// Whether a record belongs to this exchange of this incarnation of the group (GRP-4).
    fn record_belongs(record: &Record, nonce: u64, rank: u32, index: u64) -> bool {
        record.nonce == nonce && record.rank == rank && record.index == index
    }

    /// Whether a deadline that passes ends the exchange (GRP-3).
    fn deadline_ends_the_wait() -> bool {
        true
    }

    /// The decision after `cause` is reported, or `None` where the board already holds one that stands
    /// (GRP-3: the first cause wins).
    fn poisoned(decision: Decision, cause: Cause) -> Option<Decision> {
        match decision.cause {
            Some(_) => None,
            None => Some(Decision { cause: Some(cause), ..decision }),
        }
    }

    /// What a backend promises; proofs use no more (GRP-5).
    fn promises(backend: Backend) -> &'static [Axiom] {
        backend.axioms()
    }

    /// What is wrong with an entry of a list of ranks, given those before it (GRP-6).
    fn entry_refused(entry: u32, earlier: &[u32], world: u32) -> Option<Reason> {
        match entry {
            _ if entry >= world => Some(Reason::NoSuchRank),
            _ if earlier.contains(&entry) => Some(Reason::RankTwice),
            _ => None,
        }
    }

    /// The entries of a list of ranks in the order in which ranks compare them (GRP-6).
    fn entries_compared(ranks: &[u32]) -> Vec<u32> {
        ranks.to_vec()
    }

    /// Whether a rank says in its record which arm its environment forces (HAL-1).
    fn override_in_record() -> bool {
        true
    }

    /// Whether a word that is no arm, or no word, is refused as an override (HAL-1).
    fn unknown_override_is_refused() -> bool {
        true
    }

    /// Whether a rank says in its record which policy it goes by (HAL-1).
    fn policy_in_record() -> bool {
        true
    }

    /// Whether a band's buffer is compared with its shape before the call (HAL-12).
    fn band_is_checked() -> bool {
        true
    }

    /// Whether a rank says in its record which of its contexts it calls (HAL-11).
    fn context_in_record() -> bool {
        true
    }

    /// Whether legs of one exchange go in one group (HAL-3).
    fn coalesced(policy: bool) -> bool {
        policy
    }

    /// Whether this rank of a ring sends before it receives (HAL-3).
    fn ring_sends_first(rank: u32) -> bool {
        rank.is_multiple_of(2)
    }

    /// The rank that lies on `side`, which this rank sends an edge to (HAL-2).
    fn sends_to(side: Side, rank: u32, world: u32) -> Option<u32> {
        side.neighbour(rank, world)
    }

    /// The rank that lies on `side`, which this rank receives an edge from (HAL-2).
    fn receives_from(side: Side, rank: u32, world: u32) -> Option<u32> {
        side.neighbour(rank, world)
    }

    /// The slot and edge that fill the pad row on `side`; `None` is zeros (HAL-4, HAL-5).
    fn pad_source(side: Side, rank: u32, world: u32) -> Option<(u32, Edge)> {
        side.neighbour(rank, world).map(|peer| (peer, side.facing_edge()))
    }

    /// Whether a rank without rows is refused (HAL-8).
    fn band_needs_a_row() -> bool {
        true
    }

    /// Edges that a leg adds to the statistics (HAL-9).
    fn edges_counted(leg: &Leg) -> u64 {
        leg.place.edges()
    }

    /// The stream that unpack is launched on, where `waited` is the one ordered after the transport
    /// (HAL-6).
    fn unpack_stream(waited: Stream) -> Stream {
        waited
    }

    /// The stream whose work must end before the handle's buffers are released, where `last` is the last
    /// that uses them; `None` releases them at once (HAL-6).
    fn release_after(last: Stream) -> Option<Stream> {
        Some(last)
    }

    /// Whether an open group is closed when a leg inside it fails (HAL-7).
    fn group_closed_after_error() -> bool {
        true
    }

    /// Whether a rank that fails after the agreement tells the group (HAL-10).
    fn failure_poisons_group() -> bool {
        true
    }

    /// Why the legs that a rank waits for will not end, if what it sees says so (GRP-3, HAL-10). What the group
    /// knows goes before what this rank infers, and what was read before what did not come: a peer that left
    /// because the group had ended is not the cause of the end, and one that is gone is not just late.
    fn lost(sight: Sight) -> Option<Cause> {
        let cause = |kind| move |rank| Cause { kind, rank };
        let gone = sight.gone.map(cause(CauseKind::Gone));
        let late = sight.late.map(cause(CauseKind::Late));
        sight.ended.or(sight.corrupt).or(gone).or(late)
    }

    /// Whether a call whose legs are lost errs (HAL-10).
    fn lost_legs_are_an_error() -> bool {
        true
    }

    /// Whether a rank that cannot read what a peer said ends the group (GRP-2).
    fn unreadable_record_ends_group() -> bool {
        true
    }

    /// Whether the sender of a message looks at how far the receiver has read before it writes over the
    /// ring (CHN-2).
    fn channel_waits_for_room() -> bool {
        true
    }

    /// How far a receiver that has taken `len` of the bytes it claimed moves on (CHN-1).
    fn consumed_after(consumed: u64, len: u64) -> u64 {
        consumed + len
    }

    /// Whether a message that came is the one the receiver waits for (CHN-3).
    fn header_matches(expected: Header, came: Header) -> bool {
        expected == came
    }
}

/// The rules that ship: every default above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shipped;

impl Rules for Shipped {}
