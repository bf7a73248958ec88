//! The control group: how an exchange of records is decided on a board that all ranks share (GRP-1..5).
//!
//! Every agreement of rankwise is one exchange: each rank gives one bounded record and gets all of them, or
//! learns why not. [`Member`] is one rank's side of it, [`Poisoner`] ends the group from any thread. Both ask
//! for one operation on a shared word or slot at a time, so that the checker can put other ranks' operations
//! between any two of them.
//!
//! The board has, for each rank, a word `posted` (exchanges announced, one writer) and
//! [`Rules::board_slots`] record slots, and for all ranks one word `decision`. The decision word is the only
//! decision point (GRP-2): it holds how many exchanges are complete and the first cause of poison, and it
//! changes by compare-and-swap alone.
//!
//! Two slots a rank suffice (GRP-4): a rank writes exchange k+2 after exchange k+1 was complete, so after
//! every rank announced k+1, which each does after it has read the records of k.

use crate::call::Op;
use crate::rules::Rules;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

/// Ranks that a board has at most: what the decision word can name.
pub const WORLD_MAX: u32 = 1 << 12;
/// Exchanges that a group lives for at most: what the decision word can count.
pub const EXCHANGES_MAX: u64 = (1 << 48) - 1;

/// What an exchange is for. All ranks of an exchange must have the same (GRP-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The collective.
    pub op: Op,
    /// The caller's count of that collective.
    pub call: u64,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op.name(), self.call)
    }
}

/// What one rank gives to an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Incarnation of the group: a stranger or a rank of an earlier run has another.
    pub nonce: u64,
    /// Who.
    pub rank: u32,
    /// Which exchange of the group, from 1.
    pub index: u64,
    /// What for.
    pub tag: Tag,
    /// At most [`crate::wire::PAYLOAD_BYTES_MAX`] bytes.
    pub payload: Vec<u8>,
}

/// Why a group ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CauseKind {
    /// The rank had not come when a deadline passed.
    Late,
    /// The rank's process ended, or the rank left the group.
    Gone,
    /// The rank called abort.
    Aborted,
    /// The rank's exchange carried another tag than rank 0's.
    Diverged,
    /// The rank failed between an agreement and the end of its collective.
    Failed,
    /// A record or message of the rank was not as announced.
    Corrupt,
}

impl CauseKind {
    /// Every kind; the position plus one is its number in the decision word.
    pub const ALL: [CauseKind; 6] = [
        CauseKind::Late,
        CauseKind::Gone,
        CauseKind::Aborted,
        CauseKind::Diverged,
        CauseKind::Failed,
        CauseKind::Corrupt,
    ];
}

/// The first cause of a group's end, and the rank it speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cause {
    /// What.
    pub kind: CauseKind,
    /// Whose doing.
    pub rank: u32,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank;
        match self.kind {
            CauseKind::Late => write!(f, "rank {rank} did not come before the deadline"),
            CauseKind::Gone => write!(f, "rank {rank} is gone: its process ended or it left the group"),
            CauseKind::Aborted => write!(f, "rank {rank} aborted"),
            CauseKind::Diverged => write!(f, "rank {rank} made another call than rank 0"),
            CauseKind::Failed => write!(f, "rank {rank} failed inside a collective"),
            CauseKind::Corrupt => write!(f, "rank {rank} sent what it had not announced"),
        }
    }
}

/// The decision word.
///
/// | bits | |
/// | --- | --- |
/// | 0..48 | exchanges complete |
/// | 48..60 | rank of the cause |
/// | 60..64 | kind of the cause, 0 while the group lives |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Exchanges complete.
    pub completed: u64,
    /// Why no further exchange can be.
    pub cause: Option<Cause>,
}

impl Decision {
    /// As it stands in the word.
    pub fn to_word(self) -> u64 {
        let cause = self.cause.map_or(0, |cause| {
            let kind = 1 + cause.kind as u64;
            kind << 60 | u64::from(cause.rank % WORLD_MAX) << 48
        });
        cause | self.completed & EXCHANGES_MAX
    }

    /// Reads the word. A kind that no build writes reads as corrupt.
    pub fn from_word(word: u64) -> Self {
        let rank = (word >> 48) as u32 % WORLD_MAX;
        let cause = match (word >> 60) as usize {
            0 => None,
            kind => {
                let kind = CauseKind::ALL.get(kind - 1).copied().unwrap_or(CauseKind::Corrupt);
                Some(Cause { kind, rank })
            }
        };
        Decision { completed: word & EXCHANGES_MAX, cause }
    }
}

/// What a backend must give for the proofs to hold (GRP-5). The checker's board gives exactly what is listed,
/// and a property falls for each one that is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axiom {
    /// A compare-and-swap on the decision word is one step for all ranks.
    SwapIsAtomic,
    /// What a rank wrote before it announced a record is visible to a rank that has read the announcement.
    AnnounceAfterWrite,
    /// A rank is reported gone only after its last step.
    GoneIsTrue,
}

impl Axiom {
    /// The axiom in words.
    pub const fn statement(self) -> &'static str {
        match self {
            Axiom::SwapIsAtomic => "compare-and-swap on the decision word is atomic across ranks",
            Axiom::AnnounceAfterWrite => "release store of an announcement, acquire load by its readers",
            Axiom::GoneIsTrue => "a rank is reported gone only after its last step",
        }
    }
}

/// Where a group's board lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Backend {
    /// Ranks are threads of one process.
    Threads,
    /// Ranks are processes of one host with a shared mapping.
    Shm,
}

impl Backend {
    /// Every backend.
    pub const ALL: [Backend; 2] = [Backend::Threads, Backend::Shm];

    /// Name in certificates and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Threads => "threads",
            Backend::Shm => "shm",
        }
    }

    /// What it promises.
    pub const fn axioms(self) -> &'static [Axiom] {
        match self {
            Backend::Threads | Backend::Shm => {
                &[Axiom::SwapIsAtomic, Axiom::AnnounceAfterWrite, Axiom::GoneIsTrue]
            }
        }
    }
}

/// Leave to write one record slot. Only [`Member::operation`] makes one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct WriteClaim {
    rank: u32,
    slot: u64,
}

/// Leave to read one record slot. Only [`Member::operation`] makes one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ReadClaim {
    rank: u32,
    slot: u64,
}

impl WriteClaim {
    /// Whose slot and which.
    pub fn slot(&self) -> (u32, u64) {
        (self.rank, self.slot)
    }
}

impl ReadClaim {
    /// Whose slot and which.
    pub fn slot(&self) -> (u32, u64) {
        (self.rank, self.slot)
    }
}

/// One operation on the board.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Write this rank's record.
    WriteSlot(WriteClaim, Record),
    /// Store `index` to the own `posted` word, after the record.
    Announce {
        /// The exchange.
        index: u64,
    },
    /// Load a peer's `posted` word, before its record is read.
    LoadPosted {
        /// Whose.
        rank: u32,
    },
    /// Load the decision word.
    LoadDecision,
    /// Compare-and-swap the decision word.
    SwapDecision {
        /// What it must hold.
        expected: Decision,
        /// What it holds then.
        new: Decision,
    },
    /// Read a record.
    ReadSlot(ReadClaim),
}

/// What came of an [`Operation`], or what the world says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A record was written or announced.
    Done,
    /// A `posted` word.
    Posted(u64),
    /// The decision word.
    Decision(Decision),
    /// The swap took place, or what the word held instead.
    Swapped(Result<(), Decision>),
    /// A record, or `None` where its bytes are none.
    Record(Option<Record>),
    /// The deadline of the exchange has passed.
    Expired,
    /// A rank will take no further step.
    Gone {
        /// Which.
        rank: u32,
    },
}

/// How an exchange ended for this rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Every rank's record, in rank order.
    Complete(Vec<Record>),
    /// The exchange is complete, but ranks came to it with different tags: all of them, in rank order.
    Diverged(Vec<Tag>),
    /// The exchange will never be complete on any rank.
    Poisoned(Cause),
    /// This rank cannot learn the outcome: what it read of `rank` is no record of this exchange.
    Unknown {
        /// Whose record.
        rank: u32,
    },
}

/// What the driver does next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Step {
    /// Carry out [`Member::operation`].
    Continue,
    /// The peer has not come: carry out [`Member::operation`] and [`Member::glance`] again, or report a
    /// deadline or a rank that is gone.
    Waiting {
        /// Who is waited for.
        peer: u32,
    },
    /// The exchange is over.
    Ended(Outcome),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Writing(Record),
    Announcing,
    Watching { peer: u32 },
    Completing,
    Ending { cause: Cause },
    Reading { gathered: Vec<Record> },
    Telling { cause: Cause, outcome: Outcome, seen: Decision },
}

/// One rank's side of a group's exchanges.
///
/// ```text
///            begin          Done           Done            all posted          Swapped
///      Idle ──────▶ Writing ────▶ Announcing ────▶ Watching ─────────▶ Completing ─────▶ Reading ──▶ Complete
///                                                   │    │                  │               │
///                                  Expired or Gone  │    │ poison seen      │ lost to       │ tags differ,
///                                                   ▼    ▼                  ▼ poison        ▼ no record
///                                                Ending ──────────────▶ Poisoned         Telling ──▶ Diverged,
///                                                   │ lost to completion                             Unknown
///                                                   └──────────▶ Reading
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member<R> {
    rank: u32,
    world: u32,
    nonce: u64,
    /// Exchanges begun.
    index: u64,
    tag: Tag,
    phase: Phase,
    ended: Option<Cause>,
    rules: PhantomData<R>,
}

impl<R: Rules> Member<R> {
    /// Rank `rank` of `world`, before its first exchange.
    pub fn new(rank: u32, world: u32, nonce: u64) -> Self {
        assert!(rank < world && world <= WORLD_MAX, "rank {rank} of {world}");
        let tag = Tag { op: Op::Join, call: 0 };
        Self { rank, world, nonce, index: 0, tag, phase: Phase::Idle, ended: None, rules: PhantomData }
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Exchanges begun.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Begins the next exchange, or gives the cause that ended the group.
    pub fn begin(&mut self, tag: Tag, payload: Vec<u8>) -> Result<(), Cause> {
        assert_eq!(self.phase, Phase::Idle, "one exchange at a time");
        if let Some(cause) = self.ended {
            return Err(cause);
        }
        assert!(self.index < EXCHANGES_MAX, "a group lives for 2^48 exchanges");
        self.index += 1;
        self.tag = tag;
        let record = Record { nonce: self.nonce, rank: self.rank, index: self.index, tag, payload };
        self.phase = Phase::Writing(record);
        Ok(())
    }

    /// The operation to carry out next; `None` between exchanges.
    pub fn operation(&self) -> Option<Operation> {
        let slot = self.index % R::board_slots();
        let before = Decision { completed: self.index - u64::from(self.index > 0), cause: None };
        Some(match &self.phase {
            Phase::Idle => return None,
            Phase::Writing(record) => {
                Operation::WriteSlot(WriteClaim { rank: self.rank, slot }, record.clone())
            }
            Phase::Announcing => Operation::Announce { index: self.index },
            Phase::Watching { peer } => Operation::LoadPosted { rank: *peer },
            Phase::Completing => Operation::SwapDecision {
                expected: before,
                new: Decision { completed: self.index, cause: None },
            },
            Phase::Ending { cause } => Operation::SwapDecision {
                expected: before,
                new: R::poisoned(before, *cause).unwrap_or(before),
            },
            Phase::Reading { gathered } => {
                Operation::ReadSlot(ReadClaim { rank: gathered.len() as u32, slot })
            }
            Phase::Telling { cause, seen, .. } => {
                Operation::SwapDecision { expected: *seen, new: R::poisoned(*seen, *cause).unwrap_or(*seen) }
            }
        })
    }

    /// While a peer is waited for, the other word to look at: the group may have been ended, or the exchange
    /// completed, by another rank.
    pub fn glance(&self) -> Option<Operation> {
        matches!(self.phase, Phase::Watching { .. }).then_some(Operation::LoadDecision)
    }

    /// Takes what came of the last operation, or news of the world.
    pub fn handle(&mut self, input: Input) -> Step {
        match (core::mem::replace(&mut self.phase, Phase::Idle), input) {
            (Phase::Writing(_), Input::Done) => self.go(Phase::Announcing),
            (Phase::Announcing, Input::Done) => self.watch_from(0),
            (Phase::Watching { peer }, Input::Posted(posted)) if posted >= self.index => {
                self.watch_from(peer + 1)
            }
            (Phase::Watching { peer }, Input::Decision(decision)) => {
                match R::settles(decision, self.index, false) {
                    Some(settled) => self.settled(settled),
                    None => self.wait_for(peer),
                }
            }
            (Phase::Watching { peer }, Input::Expired) if R::deadline_ends_the_wait() => {
                self.go(Phase::Ending { cause: Cause { kind: CauseKind::Late, rank: peer } })
            }
            (Phase::Watching { .. }, Input::Gone { rank }) => {
                self.go(Phase::Ending { cause: Cause { kind: CauseKind::Gone, rank } })
            }
            (Phase::Watching { peer }, _) => self.wait_for(peer),
            (Phase::Completing, Input::Swapped(Ok(()))) => self.settled(Ok(())),
            (Phase::Completing, Input::Swapped(Err(found))) => self.settled_by(found, true),
            (Phase::Ending { cause }, Input::Swapped(Ok(()))) => self.settled(Err(cause)),
            (Phase::Ending { .. }, Input::Swapped(Err(found))) => self.settled_by(found, false),
            (Phase::Reading { gathered }, Input::Record(record)) => self.gather(gathered, record),
            (Phase::Telling { cause, outcome, .. }, Input::Swapped(Err(found))) if found.cause.is_none() => {
                self.go(Phase::Telling { cause, outcome, seen: found })
            }
            (Phase::Telling { cause, outcome, .. }, Input::Swapped(swapped)) => {
                let first = swapped.err().and_then(|found| found.cause);
                self.ended = Some(first.unwrap_or(cause));
                Step::Ended(outcome)
            }
            // News that changes nothing in this phase.
            (phase, Input::Expired | Input::Gone { .. }) => self.go(phase),
            (phase, input) => unreachable!("{input:?} does not answer {phase:?}"),
        }
    }

    fn go(&mut self, phase: Phase) -> Step {
        self.phase = phase;
        Step::Continue
    }

    fn wait_for(&mut self, peer: u32) -> Step {
        self.phase = Phase::Watching { peer };
        Step::Waiting { peer }
    }

    /// Watches the first peer from `peer` on, or completes when none is left.
    fn watch_from(&mut self, peer: u32) -> Step {
        let peer = if peer == self.rank { peer + 1 } else { peer };
        if peer < self.world {
            return self.go(Phase::Watching { peer });
        }
        if R::completion_is_decided_by_swap() { self.go(Phase::Completing) } else { self.settled(Ok(())) }
    }

    /// A swap was lost, so the word says how the exchange was decided.
    fn settled_by(&mut self, found: Decision, all_posted: bool) -> Step {
        match R::settles(found, self.index, all_posted) {
            Some(settled) => self.settled(settled),
            // The word is neither decided nor what this rank expected: no build writes that.
            None => {
                let rank = self.rank;
                self.tell(CauseKind::Corrupt, rank, Outcome::Unknown { rank })
            }
        }
    }

    fn settled(&mut self, settled: Result<(), Cause>) -> Step {
        match settled {
            Ok(()) => self.go(Phase::Reading { gathered: Vec::with_capacity(self.world as usize) }),
            Err(cause) => {
                self.ended = Some(cause);
                Step::Ended(Outcome::Poisoned(cause))
            }
        }
    }

    fn gather(&mut self, mut gathered: Vec<Record>, record: Option<Record>) -> Step {
        let rank = gathered.len() as u32;
        match record {
            Some(record) if R::record_belongs(&record, self.nonce, rank, self.index) => gathered.push(record),
            _ => return self.tell(CauseKind::Corrupt, rank, Outcome::Unknown { rank }),
        }
        if gathered.len() < self.world as usize {
            return self.go(Phase::Reading { gathered });
        }
        let first = gathered[0].tag;
        match gathered.iter().find(|record| !R::same_tag(first, record.tag)) {
            Some(other) => {
                let rank = other.rank;
                let tags = gathered.iter().map(|record| record.tag).collect();
                self.tell(CauseKind::Diverged, rank, Outcome::Diverged(tags))
            }
            None => Step::Ended(Outcome::Complete(gathered)),
        }
    }

    /// Ends the group, then reports `outcome`.
    fn tell(&mut self, kind: CauseKind, rank: u32, outcome: Outcome) -> Step {
        let seen = Decision { completed: self.index, cause: None };
        self.go(Phase::Telling { cause: Cause { kind, rank }, outcome, seen })
    }
}

/// Ends a group from any thread: `Group::abort`, a rank that failed inside a
/// collective.
///
/// ```text
///   Looking ──Decision──▶ Swapping ──Swapped(Ok)──▶ done: the cause stands
///                            │  ▲
///               another cause│  └─ an exchange was completed meanwhile: again from what was found
///                            ▼
///                      done: the first cause
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Poisoner<R> {
    cause: Cause,
    seen: Option<Decision>,
    rules: PhantomData<R>,
}

impl<R: Rules> Poisoner<R> {
    /// Will report `cause`.
    pub fn new(cause: Cause) -> Self {
        Self { cause, seen: None, rules: PhantomData }
    }

    /// The operation to carry out next.
    pub fn operation(&self) -> Operation {
        match self.seen {
            None => Operation::LoadDecision,
            Some(expected) => Operation::SwapDecision {
                expected,
                new: R::poisoned(expected, self.cause).unwrap_or(expected),
            },
        }
    }

    /// Takes what came of it. `Some` is the cause that stands: the first one.
    pub fn handle(&mut self, input: Input) -> Option<Cause> {
        let found = match input {
            Input::Decision(found) | Input::Swapped(Err(found)) => found,
            Input::Swapped(Ok(())) => return Some(self.cause),
            other => unreachable!("{other:?} does not answer a poisoner"),
        };
        if R::poisoned(found, self.cause).is_none() {
            return found.cause;
        }
        self.seen = Some(found);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decision_survives_its_word() {
        for kind in CauseKind::ALL {
            let cause = Some(Cause { kind, rank: WORLD_MAX - 1 });
            let decision = Decision { completed: EXCHANGES_MAX, cause };
            assert_eq!(Decision::from_word(decision.to_word()), decision);
        }
        assert_eq!(Decision::from_word(0), Decision::default());
    }

    #[test]
    fn a_cause_that_no_build_writes_reads_as_corrupt() {
        let cause = Decision::from_word(15 << 60 | 3 << 48).cause;
        assert_eq!(cause, Some(Cause { kind: CauseKind::Corrupt, rank: 3 }));
    }
}
