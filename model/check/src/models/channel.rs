//! A channel: one rank sends bytes to another through a ring (CHN-1..3).
//!
//! Sender and receiver move in steps of one operation on a shared counter or on the ring, in any order; a copy of
//! bytes is two steps, so that the other side may look while it goes on. That counters are read and stored in an
//! order that makes the bytes visible is loom's part (`tests/check/loom`), since here every step is visible at once.

use super::mutant;
use crate::explore::{Claim, Step, When, World, properties};
use crate::registry::{
    Engine, Module, Mutant, Promise, Regime, Report, Requirement, Setup, Study, SweepClaim, explore, sweep,
};
use rankwise_protocol::rules::{Rules, Shipped};
use rankwise_protocol::shared::channel::{Header, Receiver, Sender};
use stateright::{Model, Property};

const CHN_1: Requirement = Requirement::new("CHN", 1);
const CHN_2: Requirement = Requirement::new("CHN", 2);
const CHN_3: Requirement = Requirement::new("CHN", 3);

const IN_ORDER: &str = "the receiver takes the bytes that were sent, in order, each once";
const NO_OVERWRITE: &str = "no byte is overwritten before it was consumed";
const ALL_ARRIVE: &str = "every byte arrives";
const ANNOUNCED: &str = "a message other than the one waited for is refused";

/// `total` bytes through a ring of `capacity`, the sender offering `offer` at a time and the receiver asking for
/// `ask`.
#[derive(Clone, Debug)]
pub struct Stream<R> {
    capacity: usize,
    total: u8,
    offer: usize,
    ask: usize,
    claims: &'static [&'static str],
    rules: std::marker::PhantomData<R>,
}

/// A copy that is under way: offset, length, and which byte is next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Copy {
    offset: usize,
    len: usize,
    next: usize,
}

/// Counters, ring, and both sides. Byte k of the stream has the value k.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<R> {
    written: u64,
    consumed: u64,
    ring: Vec<Option<u8>>,
    sender: Sender<R>,
    sent: u8,
    writing: Option<Copy>,
    receiver: Receiver<R>,
    taken: Vec<Option<u8>>,
    reading: Option<Copy>,
    overwritten: bool,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The sender reads `consumed` and claims room.
    Claim,
    /// The sender copies one byte.
    Write,
    /// The sender stores `written`.
    Publish,
    /// The receiver reads `written` and claims bytes.
    Look,
    /// The receiver copies one byte.
    Read,
    /// The receiver stores `consumed`.
    Release,
}

impl<R: Rules> Model for Stream<R> {
    type State = State<R>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        vec![State {
            written: 0,
            consumed: 0,
            ring: vec![None; self.capacity],
            sender: Sender::default(),
            sent: 0,
            writing: None,
            receiver: Receiver::default(),
            taken: Vec::new(),
            reading: None,
            overwritten: false,
        }]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        actions.push(match &state.writing {
            None => Action::Claim,
            Some(copy) if copy.next < copy.len => Action::Write,
            Some(_) => Action::Publish,
        });
        actions.push(match &state.reading {
            None => Action::Look,
            Some(copy) if copy.next < copy.len => Action::Read,
            Some(_) => Action::Release,
        });
    }

    fn next_state(&self, last: &Self::State, action: Self::Action) -> Option<Self::State> {
        let mut state = last.clone();
        match action {
            Action::Claim => {
                let want = self.offer.min((self.total - state.sent) as usize);
                // Without room nothing changes: the sender looks again when the receiver has moved.
                let span = state.sender.claim(state.consumed, self.capacity, want)?;
                let (offset, len) = span.range();
                state.writing = Some(Copy { offset, len, next: 0 });
            }
            Action::Write => {
                let copy = state.writing.as_mut()?;
                let at = (copy.offset + copy.next) % self.capacity;
                // What was written and not consumed by now still lies in the ring.
                let unread = state.written - state.consumed;
                state.overwritten |= unread + copy.next as u64 >= self.capacity as u64;
                state.ring[at] = Some(state.sent + copy.next as u8);
                copy.next += 1;
            }
            Action::Publish => {
                let copy = state.writing.take()?;
                state.written = state.sender.advance(copy.len);
                state.sent += copy.len as u8;
            }
            Action::Look => {
                let span = state.receiver.claim(state.written, self.capacity, self.ask)?;
                let (offset, len) = span.range();
                state.reading = Some(Copy { offset, len, next: 0 });
            }
            Action::Read => {
                let copy = state.reading.as_mut()?;
                state.taken.push(state.ring[(copy.offset + copy.next) % self.capacity]);
                copy.next += 1;
            }
            Action::Release => {
                let copy = state.reading.take()?;
                state.consumed = state.receiver.advance(copy.len);
            }
        }
        Some(state)
    }

    fn within_boundary(&self, state: &Self::State) -> bool {
        state.taken.len() <= self.total as usize + self.capacity
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(self)
    }
}

impl<R: Rules> World for Stream<R> {
    fn world(&self) -> u32 {
        2
    }

    fn claims(&self) -> Vec<Claim<Self>> {
        let wraps = |model: &Self, state: &State<R>| state.taken.len() > model.capacity;
        let all: [Claim<Self>; 3] = [
            Claim {
                requirement: CHN_1,
                name: IN_ORDER,
                when: When::Always,
                holds: |_, state| state.taken.iter().enumerate().all(|(k, byte)| *byte == Some(k as u8)),
                reached: wraps,
            },
            Claim {
                requirement: CHN_2,
                name: NO_OVERWRITE,
                when: When::Always,
                holds: |_, state| !state.overwritten,
                reached: |model, state| state.written - state.consumed == model.capacity as u64,
            },
            Claim {
                requirement: CHN_1,
                name: ALL_ARRIVE,
                when: When::AtRest,
                holds: |model, state| state.taken.len() == model.total as usize,
                reached: wraps,
            },
        ];
        all.into_iter().filter(|claim| self.claims.contains(&claim.name)).collect()
    }

    fn lanes(&self) -> Vec<String> {
        vec!["sender".to_owned(), "receiver".to_owned()]
    }

    fn draw(&self, before: &Self::State, action: &Self::Action) -> Step {
        let (lane, text) = match action {
            Action::Claim => (0, format!("claims room, {} consumed", before.consumed)),
            Action::Write => {
                let next = before.writing.as_ref().map_or(0, |copy| copy.next);
                (0, format!("writes byte {}", before.sent as usize + next))
            }
            Action::Publish => (0, "stores `written`".to_owned()),
            Action::Look => (1, format!("claims bytes, {} written", before.written)),
            Action::Read => (1, "reads a byte".to_owned()),
            Action::Release => (1, "stores `consumed`".to_owned()),
        };
        Step { lane, text, peer: None }
    }

    fn sentence(&self, claim: &Claim<Self>, state: &Self::State) -> String {
        let taken: Vec<String> =
            state.taken.iter().map(|byte| byte.map_or("none".to_owned(), |byte| byte.to_string())).collect();
        format!("This must hold: {}. Taken so far: [{}].", claim.name, taken.join(" "))
    }
}

const RING: &str = "channel/ring";
const ROOM: &str = "channel/room";
const HEADERS: &str = "channel/headers";

/// Every ring of up to 3 bytes, with every size of piece up to 3 on each side.
pub fn streams<R: Rules>(claims: &'static [&'static str]) -> impl Iterator<Item = Stream<R>> {
    (1..=3).flat_map(move |capacity| {
        (1..=3).flat_map(move |offer| {
            (1..=3).map(move |ask| Stream {
                capacity,
                total: 2 * capacity as u8 + 2,
                offer,
                ask,
                claims,
                rules: std::marker::PhantomData,
            })
        })
    })
}

fn ring<R: Rules>(setup: &Setup) -> Report {
    explore(RING, setup, streams::<R>(&[IN_ORDER]))
}

fn room<R: Rules>(setup: &Setup) -> Report {
    explore(ROOM, setup, streams::<R>(&[NO_OVERWRITE, ALL_ARRIVE]))
}

fn headers<R: Rules>(setup: &Setup) -> Report {
    let promise = Promise { requirement: CHN_3, name: ANNOUNCED };
    let cases = |cases: &mut crate::registry::Cases| {
        let values = [0, 1, 2, 1 << 32, u64::MAX];
        let headers = || values.iter().flat_map(|&sequence| values.map(|bytes| Header { sequence, bytes }));
        for expected in headers() {
            for came in headers() {
                let taken = expected.check::<R>(1, came).is_ok();
                let failure = (taken != (expected == came)).then(|| {
                    (String::new(), format!("{came:?} came, {expected:?} was waited for, taken: {taken}"))
                });
                cases.case(2, expected != came, failure);
            }
        }
    };
    sweep(HEADERS, setup, &[SweepClaim { promise, cases: &cases }])
}

mutant!(
    /// The sender writes without looking how far the receiver is.
    NoRoom { fn channel_waits_for_room() -> bool { false } }
);
mutant!(
    /// The receiver keeps the last of several bytes, and so takes it twice.
    TakesTwice { fn consumed_after(consumed: u64, len: u64) -> u64 { consumed + (len - 1).max(1) } }
);
mutant!(
    /// A message's header is not compared.
    HeaderUnchecked { fn header_matches(_: Header, _: Header) -> bool { true } }
);

/// Studies and mutants of the channel.
pub fn module() -> Module {
    let study = |name, engine, regime, run, claims: &[(Requirement, &'static str)]| Study {
        name,
        engine,
        regime,
        worlds: (2, 2),
        faults: "none: a rank that stops is the halo's matter",
        axioms: &["release store and acquire load of both counters (loom)"],
        reductions: &[],
        reads: &[],
        claims: claims.iter().map(|&(requirement, name)| Promise { requirement, name }).collect(),
        run,
    };
    Module {
        name: "channel",
        studies: vec![
            study(RING, Engine::Explore, Some(Regime::T0), ring::<Shipped>, &[(CHN_1, IN_ORDER)]),
            study(
                ROOM,
                Engine::Explore,
                Some(Regime::T0),
                room::<Shipped>,
                &[(CHN_2, NO_OVERWRITE), (CHN_1, ALL_ARRIVE)],
            ),
            study(HEADERS, Engine::Sweep, None, headers::<Shipped>, &[(CHN_3, ANNOUNCED)]),
        ],
        mutants: vec![
            Mutant {
                name: "byte-taken-twice",
                requirement: CHN_1,
                study: RING,
                claim: IN_ORDER,
                run: ring::<TakesTwice>,
            },
            Mutant {
                name: "sender-ignores-room",
                requirement: CHN_2,
                study: ROOM,
                claim: NO_OVERWRITE,
                run: room::<NoRoom>,
            },
            Mutant {
                name: "header-unchecked",
                requirement: CHN_3,
                study: HEADERS,
                claim: ANNOUNCED,
                run: headers::<HeaderUnchecked>,
            },
        ],
        seeds: Vec::new(),
    }
}
