//! One rank's log through its machines.

use super::{Log, Nonconformance};
use rankwise_protocol::call::{CallRecord, Field, Op, Override, Reason, Status, Text};
use rankwise_protocol::event::{CallInput, EffectName, Event, record_digest};
use rankwise_protocol::group::{
    Cause, CauseKind, Decision, Input, Member, Operation, Outcome, Record, Step, Tag,
};
use rankwise_protocol::halo::{self, Effect, Exchange, Failure, Local, Stream};
use rankwise_protocol::layout::{BandShape, Dtype};
use rankwise_protocol::legs::{Arm, Direction, Leg};
use rankwise_protocol::policy::Policy;
use rankwise_protocol::rules::Shipped;
use rankwise_protocol::wire::{decode_call, encode_call};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The records that the logs say were given.
#[derive(Default)]
pub(super) struct Given {
    /// By rank and exchange.
    pub(super) records: HashMap<(u32, u64), Record>,
    /// Ranks whose logs have all that they gave.
    pub(super) whole: BTreeSet<u32>,
}

/// How an exchange ended for a rank: whether it is complete, and the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended(pub(super) bool, pub(super) usize);

/// What a log amounts to. Facts come with their line.
#[derive(Default)]
pub(super) struct Run {
    /// By exchange; one that this rank cannot know is not among them.
    pub(super) outcomes: BTreeMap<u64, Ended>,
    /// Swaps that took place.
    pub(super) wins: Vec<(Decision, Decision, usize)>,
    /// Other words that were read.
    pub(super) words: Vec<(Decision, usize)>,
    /// Causes that were the first.
    pub(super) causes: Vec<(Cause, usize)>,
    /// The last exchange that it announced.
    pub(super) announced: u64,
    /// The last exchange of which it saw a peer's announcement.
    pub(super) saw: BTreeMap<u32, (u64, usize)>,
    /// Ranks that it saw gone, in which exchange.
    pub(super) gone: Vec<(u32, u64, usize)>,
    /// Digests of records of ranks whose logs do not have them, by rank and exchange.
    pub(super) strange: BTreeMap<(u32, u64), (u64, usize)>,
    /// By peer and sequence: bytes.
    pub(super) sent: BTreeMap<(u32, u64), (u64, usize)>,
    pub(super) received: BTreeMap<(u32, u64), (u64, usize)>,
    /// Messages that were posted to a peer, whether they were all sent or not.
    pub(super) posted: BTreeMap<(u32, u64), u64>,
    /// Arm of each call, by exchange.
    pub(super) arms: BTreeMap<u64, (Arm, usize)>,
    pub(super) calls_done: u64,
}

/// Runs a log through the machines.
pub(super) fn run(policy: &Policy, log: &Log, given: &Given) -> Result<Run, Nonconformance> {
    let mut replay = Replay {
        policy,
        log,
        given,
        line: 1,
        member: Member::new(log.rank, log.world, log.nonce),
        under_way: false,
        outcome: None,
        calls: BTreeMap::new(),
        agreed: 0,
        begun: [0; Op::ALL.len()],
        guessed: false,
        posting: None,
        poisons: BTreeMap::new(),
        stopped: false,
        flights: VecDeque::new(),
        lanes: HashMap::new(),
        ended: false,
        run: Run::default(),
    };
    for event in &log.events {
        replay.line += 1;
        replay.event(event)?;
    }
    if !replay.ended && !log.full {
        replay.line += 1;
        return Err(replay.wrong("the log stops before the rank left the group"));
    }
    Ok(replay.run)
}

/// The stream of a caller that has one.
const CALLER: Stream = Stream::Caller(0);

struct Call {
    machine: Exchange<Shipped>,
    edge_bytes: u64,
    open: Vec<Leg>,
}

/// A group of legs on its way: each with its place on its channel and whether it is done.
struct Flight {
    call: u64,
    legs: Vec<(Leg, u64, bool)>,
}

struct Replay<'a> {
    policy: &'a Policy,
    log: &'a Log,
    given: &'a Given,
    /// Of the event under way.
    line: usize,
    member: Member<Shipped>,
    under_way: bool,
    /// Of the last exchange, if it was of a call, until the call takes it.
    outcome: Option<(u64, Outcome)>,
    /// Whether a record of the exchange is one that no log has.
    guessed: bool,
    calls: BTreeMap<u64, Call>,
    /// Calls whose agreement is over.
    agreed: u64,
    /// Exchanges begun, by op.
    begun: [u64; Op::ALL.len()],
    /// The call whose legs are being posted: no exchange begins meanwhile.
    posting: Option<u64>,
    /// What calls that end the group were told, until they say so.
    poisons: BTreeMap<u64, Cause>,
    /// Whether legs may move no more.
    stopped: bool,
    flights: VecDeque<Flight>,
    /// Messages so far, by direction and peer.
    lanes: HashMap<(Direction, u32), u64>,
    ended: bool,
    run: Run,
}

impl Replay<'_> {
    fn wrong(&self, why: impl Into<String>) -> Nonconformance {
        Nonconformance { rank: self.log.rank, line: Some(self.line), why: why.into() }
    }

    fn require(&self, holds: bool, why: &str) -> Result<(), Nonconformance> {
        if holds { Ok(()) } else { Err(self.wrong(why)) }
    }

    fn event(&mut self, event: &Event) -> Result<(), Nonconformance> {
        self.require(!self.ended, "something happens after the rank left the group")?;
        match event {
            Event::Begin { index, tag, payload } => {
                self.require(!self.under_way, "an exchange begins inside another")?;
                self.require(self.posting.is_none(), "an exchange begins while a call is being posted")?;
                self.require(self.outcome.is_none(), "the call of the exchange before is missing")?;
                let begun = self.member.begin(*tag, payload.clone());
                self.require(begun.is_ok(), "an exchange begins after the group's end")?;
                self.require(self.member.index() == *index, "an exchange is missing or stands twice")?;
                let count = &mut self.begun[tag.op as usize];
                *count += 1;
                let counted = *count == tag.call;
                self.require(counted, "the exchange has another count of its collective")?;
                (self.under_way, self.guessed) = (true, false);
                Ok(())
            }
            Event::Poison { cause, stood } => self.poison(*cause, *stood),
            Event::Call { call, effect, input } => self.call(*call, *effect, *input),
            Event::Leg { call, leg, sequence, bytes } => self.leg(*call, *leg, *sequence, *bytes),
            Event::End => {
                self.require(!self.under_way, "the rank leaves inside an exchange")?;
                self.require(self.outcome.is_none(), "the call of the exchange before is missing")?;
                self.require(self.poisons.is_empty(), "the rank leaves while a call ends the group")?;
                let at_rest = |call: &Call| matches!(call.machine.effect(), Effect::Hold | Effect::Return(_));
                let all = self.calls.values().all(at_rest);
                self.require(all, "the rank leaves inside a call")?;
                self.ended = true;
                Ok(())
            }
            exchange => self.exchange(exchange),
        }
    }

    /// An event of the exchange that is under way.
    fn exchange(&mut self, event: &Event) -> Result<(), Nonconformance> {
        self.require(self.under_way, "this belongs to an exchange, and none is under way")?;
        let operation = self.member.operation();
        let input = self.input(event, operation.as_ref())?;
        match self.member.handle(input) {
            Step::Continue => Ok(()),
            Step::Waiting { .. } => Err(self.wrong("this changes nothing, and is not logged")),
            Step::Ended(outcome) => {
                let index = self.member.index();
                let complete = match &outcome {
                    Outcome::Complete(_) | Outcome::Diverged(_) => Some(true),
                    Outcome::Poisoned(cause) => {
                        self.run.causes.push((*cause, self.line));
                        Some(false)
                    }
                    Outcome::Unknown { .. } => None,
                };
                if let Some(complete) = complete {
                    self.run.outcomes.insert(index, Ended(complete, self.line));
                }
                let of_call = self.own(index).is_some_and(|own| own.tag.op == Op::Halo);
                self.outcome = of_call.then_some((index, outcome));
                self.under_way = false;
                Ok(())
            }
        }
    }

    /// The input that an event stands for, if the machine asked for it.
    fn input(&mut self, event: &Event, operation: Option<&Operation>) -> Result<Input, Nonconformance> {
        let (index, line) = (self.member.index(), self.line);
        let waiting = self.member.glance().is_some();
        Ok(match (event, operation) {
            (Event::Wrote { digest }, Some(Operation::WriteSlot(_, record))) => {
                self.require(record_digest(record) == *digest, "another record is written than was given")?;
                Input::Done
            }
            (Event::Announced, Some(Operation::Announce { .. })) => {
                self.run.announced = index;
                Input::Done
            }
            (Event::Saw { rank }, Some(Operation::LoadPosted { rank: asked })) if rank == asked => {
                self.run.saw.insert(*rank, (index, line));
                Input::Posted(index)
            }
            (Event::Decided { peer, decision }, Some(Operation::LoadPosted { rank: asked }))
                if waiting && peer == asked =>
            {
                self.read_word(*decision)?;
                Input::Decision(*decision)
            }
            (Event::Swapped { new, found }, Some(Operation::SwapDecision { new: asked, expected }))
                if new == asked =>
            {
                match found {
                    Some(found) => self.read_word(*found)?,
                    None => self.run.wins.push((*expected, *new, line)),
                }
                Input::Swapped(found.map_or(Ok(()), Err))
            }
            (Event::Read { rank, digest }, Some(Operation::ReadSlot(claim))) if *rank == claim.slot().0 => {
                Input::Record(self.record(*rank, *digest)?)
            }
            (Event::Expired, _) if waiting => Input::Expired,
            (Event::Gone { rank }, Some(Operation::LoadPosted { rank: asked })) if rank == asked => {
                self.run.gone.push((*rank, index, line));
                Input::Gone { rank: *rank }
            }
            (_, Some(asked)) => {
                return Err(self.wrong(format!("\"{event}\" does not answer {}", short(asked))));
            }
            (_, None) => return Err(self.wrong("nothing was asked for")),
        })
    }

    /// No exchange is complete before this rank has announced its record, and so none after the one under way.
    fn read_word(&mut self, word: Decision) -> Result<(), Nonconformance> {
        let known = word.completed <= self.member.index();
        self.require(known, "an exchange is complete that this rank had not announced")?;
        self.run.words.push((word, self.line));
        Ok(())
    }

    /// The record of this rank.
    fn own(&self, index: u64) -> Option<&Record> {
        self.given.records.get(&(self.log.rank, index))
    }

    /// The record that was read. One that no log has is taken for a copy of one that a log has, if the digest says
    /// so, and otherwise guessed to be like this rank's.
    fn record(&mut self, rank: u32, digest: Option<u64>) -> Result<Option<Record>, Nonconformance> {
        let Some(digest) = digest else { return Ok(None) };
        let index = self.member.index();
        if let Some(given) = self.given.records.get(&(rank, index)) {
            self.require(record_digest(given) == digest, "another record is read than its rank gave")?;
            return Ok(Some(given.clone()));
        }
        self.require(!self.given.whole.contains(&rank), "a record is read that its rank never gave")?;
        self.run.strange.insert((rank, index), (digest, self.line));
        let copies = (0..self.log.world).filter_map(|other| self.given.records.get(&(other, index)));
        let mut copies = copies.map(|record| Record { rank, ..record.clone() });
        let same = copies.find(|record| record_digest(record) == digest);
        self.guessed |= same.is_none();
        Ok(same.or_else(|| self.own(index).map(|own| Record { rank, ..own.clone() })))
    }

    /// The group is ended: because a call asks for it, by the caller, or for what this rank found.
    fn poison(&mut self, cause: Cause, stood: Result<Decision, Cause>) -> Result<(), Nonconformance> {
        match stood {
            Ok(expected) => {
                self.require(expected.cause.is_none(), "a cause takes the place of the first")?;
                let new = Decision { cause: Some(cause), ..expected };
                self.run.wins.push((expected, new, self.line));
            }
            Err(first) => self.run.causes.push((first, self.line)),
        }
        let asks = |(call, state): (&u64, &Call)| {
            let asks = state.machine.effect() == Effect::Poison(cause) && !self.poisons.contains_key(call);
            asks.then_some(*call)
        };
        if let Some(call) = self.calls.iter().find_map(asks) {
            self.poisons.insert(call, stood.err().unwrap_or(cause));
            return Ok(());
        }
        let own =
            cause.rank == self.log.rank && [CauseKind::Aborted, CauseKind::Failed].contains(&cause.kind);
        self.require(own || cause.kind == CauseKind::Corrupt, "no call ends the group for this")
    }

    fn call(&mut self, call: u64, effect: EffectName, input: CallInput) -> Result<(), Nonconformance> {
        if effect == EffectName::Agree {
            return self.agree(call, input);
        }
        let Some(Call { machine, .. }) = self.calls.get(&call) else {
            return Err(self.wrong(format!("call {call} was never agreed")));
        };
        let asked = machine.effect();
        let fits = EffectName::of(&asked) == effect;
        self.require(fits, &format!("call {call} asked for another effect: {:?}", EffectName::of(&asked)))?;
        let fits = match (&asked, input) {
            (Effect::Hold, CallInput::Wait | CallInput::Dropped) => true,
            (Effect::Poison(_), CallInput::Poisoned(first)) => self.poisons.remove(&call) == Some(first),
            (Effect::Order { earlier: Stream::Transport, .. }, CallInput::Lost(_)) => true,
            (Effect::Hold | Effect::Poison(_) | Effect::Return(_) | Effect::Agree(_), _) => false,
            (Effect::Release(_), input) => input == CallInput::Done,
            (_, CallInput::Done | CallInput::Raised) => true,
            _ => false,
        };
        self.require(fits, "this is no answer to that effect")?;
        self.carry_out(call, &asked, input)?;
        let given = match input {
            CallInput::Agreed => return Err(self.wrong("this is no answer to that effect")),
            CallInput::Done => halo::Input::Done,
            CallInput::Raised => halo::Input::Raised,
            CallInput::Lost(cause) => halo::Input::Lost(cause),
            CallInput::Poisoned(cause) => halo::Input::Poisoned(cause),
            CallInput::Wait => halo::Input::Wait(CALLER),
            CallInput::Dropped => halo::Input::Dropped,
        };
        let Some(Call { machine, .. }) = self.calls.get_mut(&call) else { return Ok(()) };
        machine.handle(given);
        let effect = machine.effect();
        self.run.calls_done += u64::from(effect == Effect::Return(Ok(())));
        if self.posting == Some(call) && matches!(effect, Effect::Hold | Effect::Return(_)) {
            self.posting = None;
        }
        Ok(())
    }

    /// What an effect means for the legs.
    fn carry_out(&mut self, call: u64, effect: &Effect, input: CallInput) -> Result<(), Nonconformance> {
        let done = input == CallInput::Done;
        let Some(state) = self.calls.get_mut(&call) else { return Ok(()) };
        match effect {
            Effect::Open if done => state.open.clear(),
            Effect::Post(leg) if done => state.open.push(*leg),
            Effect::Close if done => {
                let legs = std::mem::take(&mut state.open);
                let edge_bytes = state.edge_bytes;
                let placed = legs.into_iter().map(|leg| {
                    let count = self.lanes.entry((leg.direction, leg.peer)).or_default();
                    *count += 1;
                    if leg.direction == Direction::Send {
                        self.run
                            .posted
                            .insert((leg.peer, *count), edge_bytes.saturating_mul(leg.place.edges()));
                    }
                    (leg, *count, false)
                });
                let flight = Flight { call, legs: placed.collect() };
                self.flights.push_back(flight);
            }
            Effect::Order { earlier: Stream::Transport, .. } if done => {
                let open = self.flights.iter().any(|flight| flight.call == call && !flight.is_done());
                self.require(!open, "the wait ends before its legs")?;
            }
            // The group has ended, and the transport stands still.
            Effect::Poison(_) => self.stopped = true,
            _ => {}
        }
        Ok(())
    }

    /// The agreement of a new call: the record was the one that the machine gives, and the outcome is the last
    /// exchange's.
    fn agree(&mut self, call: u64, input: CallInput) -> Result<(), Nonconformance> {
        self.require(input == CallInput::Agreed, "this is no answer to that effect")?;
        self.require(call == self.agreed, "a call is missing or stands twice")?;
        self.require(!self.under_way, "a call is agreed inside its exchange")?;
        self.agreed += 1;
        let Some((exchange, outcome)) = self.outcome.take() else {
            // The group had ended: the exchange was refused before it began.
            let tag = Tag { op: Op::Halo, call: self.agreed };
            let over = self.member.clone().begin(tag, Vec::new()).is_err();
            return self.require(over, "a call is agreed without an exchange");
        };
        let own = self.own(exchange).expect("an exchange that ended was begun");
        let said = decode_call(&own.payload).map_err(|error| self.wrong(format!("call record: {error}")))?;
        let local = self.local(&said)?;
        let shape = &local.shape;
        let sizes = [shape.frames, shape.width, shape.channels, shape.dtype.bytes()];
        let edge_bytes = sizes.into_iter().fold(1, u64::saturating_mul);
        let mut machine = Exchange::new(self.policy, local);
        let same = match machine.effect() {
            Effect::Agree(record) => encode_call(&record) == own.payload,
            _ => false,
        };
        self.require(same, "the record is not the one that the protocol gives")?;
        if self.guessed && matches!(outcome, Outcome::Complete(_)) && !self.packs(call) {
            // A record that no log has may have refused it.
            return Ok(());
        }
        machine.handle(halo::Input::Agreed(agreed(outcome)));
        if matches!(machine.effect(), Effect::Pack(_)) {
            self.run.arms.insert(exchange, (machine.arm(), self.line));
        }
        if !matches!(machine.effect(), Effect::Return(_)) {
            self.posting = Some(call);
        }
        self.calls.insert(call, Call { machine, edge_bytes, open: Vec::new() });
        Ok(())
    }

    /// Whether the log says that a call went on.
    fn packs(&self, call: u64) -> bool {
        let packs = |event: &Event| matches!(event, Event::Call { call: of, effect: EffectName::Pack, .. } if *of == call);
        self.log.events.iter().any(packs)
    }

    /// What this rank brought to the call, as far as its record says.
    fn local(&self, said: &CallRecord) -> Result<Local, Nonconformance> {
        let value = |field: Field| {
            let found = said.signature.iter().find(|(known, _)| *known == field);
            found
                .map(|(_, value)| *value)
                .ok_or_else(|| self.wrong(format!("no {} in the record", field.name())))
        };
        let forced = Override::from_code(value(Field::Override)?);
        let dtype = Dtype::ALL.get(value(Field::Dtype)? as usize).copied();
        let (Some(forced), Some(dtype)) = (forced, dtype) else {
            return Err(self.wrong("the record has an override or element type that there is not"));
        };
        let (prepared, forced_text) = match &said.status {
            Status::Ready => (Ok(()), Text::default()),
            Status::Refused { reason: Reason::UnknownOverride | Reason::EmptyOverride, text } => {
                (Ok(()), text.clone())
            }
            Status::Refused { reason, text } => (Err((*reason, text.clone())), Text::default()),
        };
        let shape = BandShape {
            frames: value(Field::Frames)?,
            rows: 1,
            width: value(Field::Width)?,
            channels: value(Field::Channels)?,
            dtype,
        };
        Ok(Local {
            rank: self.log.rank,
            world: self.log.world,
            context: value(Field::Context)?,
            shape,
            forced,
            forced_text,
            prepared,
            stream: CALLER,
        })
    }

    /// A leg is done: it is in the first group that is not, and no earlier leg of its channel is open.
    fn leg(&mut self, call: u64, leg: Leg, sequence: u64, bytes: u64) -> Result<(), Nonconformance> {
        self.require(!self.stopped, "a leg is done after the group's end stopped them")?;
        while self.flights.front().is_some_and(Flight::is_done) {
            self.flights.pop_front();
        }
        let edge_bytes = self.calls.get(&call).map_or(0, |call| call.edge_bytes);
        let Some(flight) = self.flights.front_mut().filter(|flight| flight.call == call) else {
            return Err(self.wrong("a leg is done whose group is not the first under way"));
        };
        let lane = (leg.direction, leg.peer);
        let next =
            flight.legs.iter_mut().find(|(open, _, done)| !done && (open.direction, open.peer) == lane);
        let fits = next.filter(|(open, place, _)| *open == leg && *place == sequence);
        let Some((_, _, done)) = fits else {
            return Err(self.wrong("that leg is not the next of its channel in the group under way"));
        };
        *done = true;
        let due = edge_bytes.saturating_mul(leg.place.edges());
        self.require(bytes == due, "the leg has other bytes than its place")?;
        let kept = if leg.direction == Direction::Send { &mut self.run.sent } else { &mut self.run.received };
        kept.insert((leg.peer, sequence), (bytes, self.line));
        Ok(())
    }
}

impl Flight {
    fn is_done(&self) -> bool {
        self.legs.iter().all(|(_, _, done)| *done)
    }
}

/// What an exchange of call records gives a call, as the driver decodes it.
fn agreed(outcome: Outcome) -> Result<Vec<CallRecord>, Failure> {
    match outcome {
        Outcome::Complete(records) => records
            .iter()
            .map(|record| decode_call(&record.payload).map_err(|_| Failure::Unknown { rank: record.rank }))
            .collect(),
        Outcome::Diverged(tags) => Err(Failure::Diverged(tags)),
        Outcome::Poisoned(cause) => Err(Failure::Poisoned(cause)),
        Outcome::Unknown { rank } => Err(Failure::Unknown { rank }),
    }
}

fn short(operation: &Operation) -> &'static str {
    match operation {
        Operation::WriteSlot(..) => "writing the record",
        Operation::Announce { .. } => "announcing the record",
        Operation::LoadPosted { .. } => "looking for the next peer's announcement",
        Operation::LoadDecision => "reading the decision",
        Operation::SwapDecision { .. } => "that swap of the decision",
        Operation::ReadSlot(_) => "reading the next record",
    }
}
