//! Events: what a driver logs of one rank, so that `rankwise replay` can run it through the same machines.
//!
//! A log has every input that changed a machine, and each leg that completed. Machines are functions of their
//! inputs, so the log decides what they did; what the driver carried out stands beside it and must agree. Streams
//! are not in it: a log is of a caller with one.
//!
//! One event is one line of words; [`Event`]'s `Display` writes it and [`Event::parse`] reads it.

use crate::call::Op;
use crate::group::{Cause, CauseKind, Decision, Input, Operation, Record, Tag};
use crate::halo::{self, Effect};
use crate::legs::{Direction, Edge, Leg, Place};
use crate::wire;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

/// Something that happened on a rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An exchange of records was begun.
    Begin {
        /// Which.
        index: u64,
        /// What for.
        tag: Tag,
        /// What this rank gave to it.
        payload: Vec<u8>,
    },
    /// The record was written.
    Wrote {
        /// Digest of its bytes.
        digest: u64,
    },
    /// The record was announced.
    Announced,
    /// A peer's announcement was seen.
    Saw {
        /// Whose.
        rank: u32,
    },
    /// The decision word was read while a peer was waited for, and it settles the exchange.
    Decided {
        /// Who was waited for.
        peer: u32,
        /// The word.
        decision: Decision,
    },
    /// The decision word was swapped, or what it held instead.
    Swapped {
        /// What it was to hold.
        new: Decision,
        /// What it held; `None` is that the swap took place.
        found: Option<Decision>,
    },
    /// A record was read.
    Read {
        /// Whose.
        rank: u32,
        /// Digest of its bytes; `None` where they were no record.
        digest: Option<u64>,
    },
    /// The deadline of the exchange passed.
    Expired,
    /// A rank that was waited for is gone.
    Gone {
        /// Which.
        rank: u32,
    },
    /// This rank ended the group, or found it ended.
    Poison {
        /// What for.
        cause: Cause,
        /// The word that was swapped, or the cause that stood there already.
        stood: Result<Decision, Cause>,
    },
    /// What came of an effect of a halo call, or what the caller did with its handle.
    Call {
        /// Which call of this rank, from 0.
        call: u64,
        /// The effect.
        effect: EffectName,
        /// What came of it.
        input: CallInput,
    },
    /// A leg completed.
    Leg {
        /// Of which call.
        call: u64,
        /// The leg.
        leg: Leg,
        /// Count of messages on its channel, from 1.
        sequence: u64,
        /// Bytes moved.
        bytes: u64,
    },
    /// The rank left the group.
    End,
}

/// [`Effect`] without what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of Effect")]
pub enum EffectName {
    Agree,
    Pack,
    Order,
    Open,
    Post,
    Close,
    Hold,
    Unpack,
    Poison,
    Release,
    Return,
}

/// [`halo::Input`] without the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallInput {
    /// The exchange of records is over.
    Agreed,
    /// Carried out.
    Done,
    /// Failed on this rank.
    Raised,
    /// The legs will not end.
    Lost(Cause),
    /// The group has ended, and this was the first cause.
    Poisoned(Cause),
    /// The caller waits.
    Wait,
    /// The caller dropped the handle.
    Dropped,
}

impl EffectName {
    const ALL: [(EffectName, &'static str); 11] = [
        (EffectName::Agree, "agree"),
        (EffectName::Pack, "pack"),
        (EffectName::Order, "order"),
        (EffectName::Open, "open"),
        (EffectName::Post, "post"),
        (EffectName::Close, "close"),
        (EffectName::Hold, "hold"),
        (EffectName::Unpack, "unpack"),
        (EffectName::Poison, "poison"),
        (EffectName::Release, "release"),
        (EffectName::Return, "return"),
    ];

    /// The name of an effect.
    pub fn of(effect: &Effect) -> Self {
        match effect {
            Effect::Agree(_) => EffectName::Agree,
            Effect::Pack(_) => EffectName::Pack,
            Effect::Order { .. } => EffectName::Order,
            Effect::Open => EffectName::Open,
            Effect::Post(_) => EffectName::Post,
            Effect::Close => EffectName::Close,
            Effect::Hold => EffectName::Hold,
            Effect::Unpack(_) => EffectName::Unpack,
            Effect::Poison(_) => EffectName::Poison,
            Effect::Release(_) => EffectName::Release,
            Effect::Return(_) => EffectName::Return,
        }
    }
}

impl CallInput {
    /// What is logged of an input.
    pub fn of(input: &halo::Input) -> Self {
        match input {
            halo::Input::Agreed(_) => CallInput::Agreed,
            halo::Input::Done => CallInput::Done,
            halo::Input::Raised => CallInput::Raised,
            halo::Input::Lost(cause) => CallInput::Lost(*cause),
            halo::Input::Poisoned(cause) => CallInput::Poisoned(*cause),
            halo::Input::Wait(_) => CallInput::Wait,
            halo::Input::Dropped => CallInput::Dropped,
        }
    }
}

impl Event {
    /// What is logged of an operation of `group::Member` and what came of it.
    pub fn of(operation: &Operation, input: &Input) -> Option<Event> {
        Some(match (operation, input) {
            (_, Input::Expired) => Event::Expired,
            (_, Input::Gone { rank }) => Event::Gone { rank: *rank },
            (Operation::WriteSlot(_, record), _) => Event::Wrote { digest: record_digest(record) },
            (Operation::Announce { .. }, _) => Event::Announced,
            (Operation::LoadPosted { rank }, Input::Posted(_)) => Event::Saw { rank: *rank },
            (Operation::LoadPosted { rank }, Input::Decision(decision)) => {
                Event::Decided { peer: *rank, decision: *decision }
            }
            (Operation::SwapDecision { new, .. }, Input::Swapped(swapped)) => {
                Event::Swapped { new: *new, found: swapped.err() }
            }
            (Operation::ReadSlot(claim), Input::Record(record)) => {
                Event::Read { rank: claim.slot().0, digest: record.as_ref().map(record_digest) }
            }
            _ => return None,
        })
    }

    /// Reads a line, exactly as `Display` writes it.
    pub fn parse(line: &str) -> Option<Event> {
        let event = Words(line.split(' ')).event()?;
        (event.to_string() == line).then_some(event)
    }
}

/// What tells one record from another.
pub fn record_digest(record: &Record) -> u64 {
    crate::call::digest(&wire::encode(record))
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Begin { index, tag, payload } => {
                write!(f, "begin {index} {} {} ", tag.op.name(), tag.call)?;
                payload.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                if payload.is_empty() { f.write_str("-") } else { Ok(()) }
            }
            Event::Wrote { digest } => write!(f, "wrote {digest:016x}"),
            Event::Announced => f.write_str("announced"),
            Event::Saw { rank } => write!(f, "saw {rank}"),
            Event::Decided { peer, decision } => write!(f, "decided {peer} {}", Shown(*decision)),
            Event::Swapped { new, found: None } => write!(f, "swapped {} won", Shown(*new)),
            Event::Swapped { new, found: Some(found) } => {
                write!(f, "swapped {} found {}", Shown(*new), Shown(*found))
            }
            Event::Read { rank, digest: Some(digest) } => write!(f, "read {rank} {digest:016x}"),
            Event::Read { rank, digest: None } => write!(f, "read {rank} none"),
            Event::Expired => f.write_str("expired"),
            Event::Gone { rank } => write!(f, "gone {rank}"),
            Event::Poison { cause, stood } => {
                write!(f, "poison {} {} ", cause_name(cause.kind), cause.rank)?;
                match stood {
                    Ok(word) => write!(f, "won {}", Shown(*word)),
                    Err(first) => write!(f, "first {} {}", cause_name(first.kind), first.rank),
                }
            }
            Event::Call { call, effect, input } => {
                let name =
                    EffectName::ALL.iter().find(|(known, _)| known == effect).map_or("", |known| known.1);
                write!(f, "call {call} {name} ")?;
                match input {
                    CallInput::Agreed => f.write_str("agreed"),
                    CallInput::Done => f.write_str("done"),
                    CallInput::Raised => f.write_str("raised"),
                    CallInput::Lost(cause) => write!(f, "lost {} {}", cause_name(cause.kind), cause.rank),
                    CallInput::Poisoned(cause) => {
                        write!(f, "poisoned {} {}", cause_name(cause.kind), cause.rank)
                    }
                    CallInput::Wait => f.write_str("wait"),
                    CallInput::Dropped => f.write_str("dropped"),
                }
            }
            Event::Leg { call, leg, sequence, bytes } => {
                let way = if leg.direction == Direction::Send { "send" } else { "receive" };
                write!(f, "leg {call} {way} {} {} {sequence} {bytes}", leg.peer, PlaceShown(leg.place))
            }
            Event::End => f.write_str("end"),
        }
    }
}

/// A decision as `3 -` or `2 late 1`.
struct Shown(Decision);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.cause {
            None => write!(f, "{} -", self.0.completed),
            Some(cause) => write!(f, "{} {} {}", self.0.completed, cause_name(cause.kind), cause.rank),
        }
    }
}

/// A place as `packed first`, `packed both`, `slot3 last`.
struct PlaceShown(Place);

impl fmt::Display for PlaceShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edge = |edge: Edge| if edge == Edge::First { "first" } else { "last" };
        match self.0 {
            Place::Packed(one) => write!(f, "packed {}", edge(one)),
            Place::PackedBoth => f.write_str("packed both"),
            Place::Slot(slot, one) => write!(f, "slot{slot} {}", edge(one)),
            Place::SlotBoth(slot) => write!(f, "slot{slot} both"),
        }
    }
}

const fn cause_name(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::Late => "late",
        CauseKind::Gone => "gone",
        CauseKind::Aborted => "aborted",
        CauseKind::Diverged => "diverged",
        CauseKind::Failed => "failed",
        CauseKind::Corrupt => "corrupt",
    }
}

/// The words of a line.
struct Words<'a>(core::str::Split<'a, char>);

impl Words<'_> {
    fn event(&mut self) -> Option<Event> {
        Some(match self.0.next()? {
            "begin" => Event::Begin { index: self.number()?, tag: self.tag()?, payload: self.bytes()? },
            "wrote" => Event::Wrote { digest: self.hex()? },
            "announced" => Event::Announced,
            "saw" => Event::Saw { rank: self.rank()? },
            "decided" => Event::Decided { peer: self.rank()?, decision: self.decision()? },
            "swapped" => {
                let new = self.decision()?;
                let found = match self.0.next()? {
                    "won" => None,
                    "found" => Some(self.decision()?),
                    _ => return None,
                };
                Event::Swapped { new, found }
            }
            "read" => Event::Read { rank: self.rank()?, digest: self.digest()? },
            "expired" => Event::Expired,
            "gone" => Event::Gone { rank: self.rank()? },
            "poison" => {
                let cause = self.cause()?;
                let stood = match self.0.next()? {
                    "won" => Ok(self.decision()?),
                    "first" => Err(self.cause()?),
                    _ => return None,
                };
                Event::Poison { cause, stood }
            }
            "call" => Event::Call { call: self.number()?, effect: self.effect()?, input: self.input()? },
            "leg" => {
                let call = self.number()?;
                let leg = self.leg()?;
                Event::Leg { call, leg, sequence: self.number()?, bytes: self.number()? }
            }
            "end" => Event::End,
            _ => return None,
        })
    }

    fn number(&mut self) -> Option<u64> {
        self.0.next()?.parse().ok()
    }

    fn rank(&mut self) -> Option<u32> {
        self.0.next()?.parse().ok()
    }

    fn tag(&mut self) -> Option<Tag> {
        let name = self.0.next()?;
        let op = Op::ALL.into_iter().find(|op| op.name() == name)?;
        Some(Tag { op, call: self.number()? })
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let text = self.0.next()?;
        if text == "-" {
            return Some(Vec::new());
        }
        let whole = text.is_ascii() && text.len().is_multiple_of(2);
        whole.then_some(())?;
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
    }

    fn hex(&mut self) -> Option<u64> {
        u64::from_str_radix(self.0.next()?, 16).ok()
    }

    fn digest(&mut self) -> Option<Option<u64>> {
        if self.0.clone().next() == Some("none") {
            self.0.next();
            return Some(None);
        }
        self.hex().map(Some)
    }

    fn decision(&mut self) -> Option<Decision> {
        let completed = self.number()?;
        let cause = match self.0.next()? {
            "-" => None,
            name => Some(self.cause_named(name)?),
        };
        Some(Decision { completed, cause })
    }

    fn cause(&mut self) -> Option<Cause> {
        let name = self.0.next()?;
        self.cause_named(name)
    }

    fn cause_named(&mut self, name: &str) -> Option<Cause> {
        let kind = CauseKind::ALL.into_iter().find(|kind| cause_name(*kind) == name)?;
        Some(Cause { kind, rank: self.rank()? })
    }

    fn effect(&mut self) -> Option<EffectName> {
        let name = self.0.next()?;
        EffectName::ALL.iter().find(|(_, known)| *known == name).map(|(effect, _)| *effect)
    }

    fn input(&mut self) -> Option<CallInput> {
        Some(match self.0.next()? {
            "agreed" => CallInput::Agreed,
            "done" => CallInput::Done,
            "raised" => CallInput::Raised,
            "lost" => CallInput::Lost(self.cause()?),
            "poisoned" => CallInput::Poisoned(self.cause()?),
            "wait" => CallInput::Wait,
            "dropped" => CallInput::Dropped,
            _ => return None,
        })
    }

    fn leg(&mut self) -> Option<Leg> {
        let direction = match self.0.next()? {
            "send" => Direction::Send,
            "receive" => Direction::Receive,
            _ => return None,
        };
        let peer = self.rank()?;
        let slot = match self.0.next()? {
            "packed" => None,
            slot => Some(slot.strip_prefix("slot")?.parse().ok()?),
        };
        let place = match (slot, self.0.next()?) {
            (None, "first") => Place::Packed(Edge::First),
            (None, "last") => Place::Packed(Edge::Last),
            (None, "both") => Place::PackedBoth,
            (Some(slot), "first") => Place::Slot(slot, Edge::First),
            (Some(slot), "last") => Place::Slot(slot, Edge::Last),
            (Some(slot), "both") => Place::SlotBoth(slot),
            _ => return None,
        };
        Some(Leg { direction, peer, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 21] = [
        "begin 3 halo 2 00ff",
        "begin 1 barrier 1 -",
        "wrote 00000000000000ff",
        "announced",
        "saw 1",
        "decided 1 3 -",
        "decided 1 2 late 1",
        "swapped 3 - won",
        "swapped 3 - found 2 gone 1",
        "read 1 00000000000000ff",
        "read 1 none",
        "expired",
        "gone 2",
        "poison failed 0 won 4 -",
        "poison failed 0 first aborted 3",
        "call 0 agree agreed",
        "call 0 hold wait",
        "call 7 order lost corrupt 2",
        "leg 0 send 1 packed both 17 4096",
        "leg 0 receive 1 slot1 last 17 4096",
        "end",
    ];

    #[test]
    fn every_line_survives_reading_and_writing() {
        for line in LINES {
            assert_eq!(Event::parse(line).map(|event| event.to_string()).as_deref(), Some(line));
        }
    }

    #[test]
    fn a_line_with_a_word_too_many_too_few_or_wrong_is_no_event() {
        for line in LINES {
            let more = alloc::format!("{line} 1");
            assert_eq!(Event::parse(&more), None, "{more}");
            if let Some((fewer, _)) = line.rsplit_once(' ') {
                assert_eq!(Event::parse(fewer), None, "{fewer}");
            }
        }
        for line in
            ["begin 1 halo 1 0", "begin 1 halo 1 é", "begin 1 halo 1 FF", "saw +1", "saw 01", "wrote ff"]
        {
            assert_eq!(Event::parse(line), None, "{line}");
        }
    }
}
