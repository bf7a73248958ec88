//! The control group under every interleaving of its operations on the board (GRP-1..5).
//!
//! Each rank runs `group::Member` on a board of plain values. One step is one operation on a shared word or slot,
//! news of a deadline or of a rank that is gone, or a fault. The board grants the axioms that it is given and no
//! more: without `AnnounceAfterWrite` a record lands some time after it was written, without `SwapIsAtomic` a swap
//! compares in one step and stores in another, without `GoneIsTrue` a live rank may be reported gone.
//!
//! Not modelled: the bytes of a record (`protocol::wire` has its own tests), word tearing, more than one poisoner.

mod claims;
mod studies;

use super::{mutant, subgroup};
use crate::explore::{Claim, Step, Wait, When, World, properties};
use crate::registry::{Engine, Module, Mutant, Promise, Regime, Report, Requirement, Setup, Study, explore};
use rankwise_protocol::call::Op;
use rankwise_protocol::group::{
    Axiom, Backend, Cause, CauseKind, Decision, Input, Member, Operation, Outcome, Poisoner, Record, Tag,
};
use rankwise_protocol::rules::{Rules, Shipped};
use stateright::{Model, Property};
use std::marker::PhantomData;

pub use studies::{module, small_models};

const GRP_1: Requirement = Requirement::new("GRP", 1);
const GRP_2: Requirement = Requirement::new("GRP", 2);
const GRP_3: Requirement = Requirement::new("GRP", 3);
const GRP_4: Requirement = Requirement::new("GRP", 4);
const GRP_5: Requirement = Requirement::new("GRP", 5);

const NAMED: &str = "ranks that come with different tags all learn so, with every rank's tag";
const UNSPLIT: &str = "no exchange is complete on one rank and poisoned on another";
const ENDS: &str = "every live rank's exchanges end";
const CLEAN: &str = "without a fault every exchange is complete on every rank";
const FIRST_CAUSE: &str = "every rank that learns of the end learns the first cause";
const OWN_RECORDS: &str = "no rank reads a record of another exchange";
const STRANGER: &str = "a rank of another incarnation completes nothing";
const PROMISED: &str = "what a backend promises is enough: no split, no error without a fault";

/// What the adversary may do, and what the board grants.
#[derive(Clone, Copy, Debug)]
struct Attack {
    regime: Regime,
    /// Any subset of ranks may die at any step, and peers can learn so.
    deaths: bool,
    /// Any subset of ranks may stall at any step, and nobody learns so. What is safe needs no such step: a rank
    /// that is never scheduled has stalled.
    stalls: bool,
    /// Some thread may abort at any step.
    abort: bool,
    /// Ranks may come with different tags.
    divergence: bool,
    /// The last rank is of another incarnation.
    stranger: bool,
    axioms: &'static [Axiom],
}

impl Attack {
    const NONE: Attack = Attack {
        regime: Regime::T0,
        deaths: false,
        stalls: false,
        abort: false,
        divergence: false,
        stranger: false,
        axioms: Backend::Shm.axioms(),
    };

    fn grants(&self, axiom: Axiom) -> bool {
        self.axioms.contains(&axiom)
    }
}

/// `world` ranks, `exchanges` exchanges each.
#[derive(Clone, Debug)]
pub struct Exchanges<R> {
    world: u32,
    exchanges: u64,
    attack: Attack,
    claims: &'static [&'static str],
    rules: PhantomData<R>,
}

/// How an exchange ended for a rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Ended {
    Complete,
    Diverged(Vec<Tag>),
    Poisoned(Cause),
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Health {
    Live,
    Stalled,
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rank<R> {
    member: Member<R>,
    health: Health,
    /// Op of each exchange.
    ops: Vec<Op>,
    ended: Vec<Ended>,
    /// A record that was written but has not landed.
    afloat: Option<(u64, Record)>,
    /// A swap that has compared but not stored.
    half_swapped: Option<Result<Decision, Decision>>,
}

/// Board and ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<R> {
    decision: Decision,
    posted: Vec<u64>,
    slots: Vec<Vec<Option<Record>>>,
    ranks: Vec<Rank<R>>,
    poisoner: Option<Poisoner<R>>,
    /// Causes that were swapped in or tried, two at most: the first must be what all learn.
    causes_tried: u8,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The next operation of a rank.
    Operate(u32),
    /// The other word that a waiting rank looks at.
    Glance(u32),
    /// The second half of a swap that is not atomic.
    Store(u32),
    /// A record becomes visible.
    Land(u32),
    /// A rank's deadline passes.
    Expire(u32),
    /// A waiting rank is told that its peer is gone.
    LearnGone(u32),
    /// A rank takes no further step, and its peers can learn so.
    Die(u32),
    /// A rank takes no further step, and nobody learns so.
    Stall(u32),
    /// The next operation of the thread that aborts.
    Abort,
}

impl<R: Rules> Exchanges<R> {
    fn tag(rank: &Rank<R>, index: u64) -> Tag {
        Tag { op: rank.ops[index as usize - 1], call: index }
    }

    /// Begins a rank's next exchange, if it has one left. One that the machine refuses has ended with the cause that
    /// it gives, and so have all after it.
    fn begin(&self, rank: &mut Rank<R>) {
        while (rank.ended.len() as u64) < self.exchanges {
            let tag = Self::tag(rank, rank.ended.len() as u64 + 1);
            match rank.member.begin(tag, Vec::new()) {
                Ok(()) => return,
                Err(cause) => rank.ended.push(Ended::Poisoned(cause)),
            }
        }
    }

    fn feed(&self, state: &mut State<R>, rank: u32, input: Input) {
        let rank = &mut state.ranks[rank as usize];
        if let rankwise_protocol::group::Step::Ended(outcome) = rank.member.handle(input) {
            rank.ended.push(match outcome {
                Outcome::Complete(_) => Ended::Complete,
                Outcome::Diverged(tags) => Ended::Diverged(tags),
                Outcome::Poisoned(cause) => Ended::Poisoned(cause),
                Outcome::Unknown { .. } => Ended::Unknown,
            });
            self.begin(rank);
        }
    }

    /// Carries out an operation, or the first half of it; `None` if its outcome comes later.
    fn perform(&self, state: &mut State<R>, rank: u32, operation: Operation) -> Option<Input> {
        let own = rank as usize;
        Some(match operation {
            Operation::WriteSlot(claim, record) => {
                let (_, slot) = claim.slot();
                if self.attack.grants(Axiom::AnnounceAfterWrite) {
                    state.slots[own][slot as usize] = Some(record);
                } else {
                    state.ranks[own].afloat = Some((slot, record));
                }
                Input::Done
            }
            Operation::Announce { index } => {
                state.posted[own] = index;
                Input::Done
            }
            Operation::LoadPosted { rank } => Input::Posted(state.posted[rank as usize]),
            Operation::LoadDecision => Input::Decision(state.decision),
            Operation::SwapDecision { expected, new } => {
                state.causes_tried = (state.causes_tried + u8::from(new.cause.is_some())).min(2);
                let compared = if state.decision == expected { Ok(new) } else { Err(state.decision) };
                if !self.attack.grants(Axiom::SwapIsAtomic) {
                    state.ranks[own].half_swapped = Some(compared);
                    return None;
                }
                store(state, compared)
            }
            Operation::ReadSlot(claim) => {
                let (of, slot) = claim.slot();
                Input::Record(state.slots[of as usize][slot as usize].clone())
            }
        })
    }

    /// Whether a rank's next operation would change anything. A wait is a guard.
    fn can_operate(state: &State<R>, rank: u32) -> bool {
        match state.ranks[rank as usize].member.operation() {
            None => false,
            Some(Operation::LoadPosted { rank: peer }) => {
                state.posted[peer as usize] >= state.ranks[rank as usize].member.index()
            }
            Some(_) => true,
        }
    }

    fn waits_for(member: &Member<R>) -> Option<u32> {
        match member.operation() {
            Some(Operation::LoadPosted { rank }) => Some(rank),
            _ => None,
        }
    }

    /// Steps of live ranks and of the poisoner, faults and deadlines aside.
    fn moves(&self, state: &State<R>, actions: &mut Vec<Action>) {
        for (own, rank) in state.ranks.iter().enumerate() {
            let at = own as u32;
            if rank.afloat.is_some() {
                actions.push(Action::Land(at));
            }
            if rank.health != Health::Live {
                continue;
            }
            if rank.half_swapped.is_some() {
                actions.push(Action::Store(at));
                continue;
            }
            if Self::can_operate(state, at) {
                actions.push(Action::Operate(at));
            }
            let settled = R::settles(state.decision, rank.member.index(), false).is_some();
            if rank.member.glance().is_some() && settled {
                actions.push(Action::Glance(at));
            }
            if let Some(peer) = Self::waits_for(&rank.member) {
                let gone = state.ranks[peer as usize].health == Health::Dead;
                if gone || !self.attack.grants(Axiom::GoneIsTrue) {
                    actions.push(Action::LearnGone(at));
                }
            }
        }
    }

    fn finished(&self, rank: &Rank<R>) -> bool {
        rank.ended.len() as u64 == self.exchanges
    }
}

fn store<R>(state: &mut State<R>, compared: Result<Decision, Decision>) -> Input {
    Input::Swapped(match compared {
        Ok(new) => {
            state.decision = new;
            Ok(())
        }
        Err(found) => Err(found),
    })
}

impl<R: Rules> Model for Exchanges<R> {
    type State = State<R>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        let world = self.world as usize;
        let rank = |own: usize, ops: Vec<Op>| {
            let nonce = if self.attack.stranger && own + 1 == world { 2 } else { 1 };
            let member = Member::new(own as u32, self.world, nonce);
            let mut rank = Rank {
                member,
                health: Health::Live,
                ops,
                ended: Vec::new(),
                afloat: None,
                half_swapped: None,
            };
            self.begin(&mut rank);
            rank
        };
        let mut choices = vec![vec![vec![Op::Halo; self.exchanges as usize]; world]];
        if self.attack.divergence {
            // Each rank may come to each exchange with another tag.
            let bits = world * self.exchanges as usize;
            choices = (0..1u32 << bits)
                .map(|mask| {
                    let op = |bit: usize| if mask >> bit & 1 == 0 { Op::Halo } else { Op::Barrier };
                    let ops = |own| (0..self.exchanges as usize).map(move |k| op(own * bits / world + k));
                    (0..world).map(|own| ops(own).collect()).collect()
                })
                .collect();
        }
        let poisoner = self
            .attack
            .abort
            .then(|| Poisoner::new(Cause { kind: CauseKind::Aborted, rank: self.world - 1 }));
        choices
            .into_iter()
            .map(|ops| State {
                decision: Decision::default(),
                posted: vec![0; world],
                slots: vec![vec![None; R::board_slots() as usize]; world],
                ranks: ops.into_iter().enumerate().map(|(own, ops)| rank(own, ops)).collect(),
                poisoner,
                causes_tried: 0,
            })
            .collect()
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        self.moves(state, actions);
        let quiet = actions.is_empty();
        let live = |(_, rank): &(usize, &Rank<R>)| rank.health == Health::Live;
        for (own, rank) in state.ranks.iter().enumerate().filter(live) {
            let at = own as u32;
            let may_expire = match self.attack.regime {
                Regime::T0 => false,
                Regime::T1 => quiet,
                Regime::T2 => true,
            };
            if may_expire && Self::waits_for(&rank.member).is_some() {
                actions.push(Action::Expire(at));
            }
            if self.attack.deaths && !self.finished(rank) {
                actions.push(Action::Die(at));
            }
            if self.attack.stalls && !self.finished(rank) {
                actions.push(Action::Stall(at));
            }
        }
        if state.poisoner.is_some() {
            actions.push(Action::Abort);
        }
    }

    fn next_state(&self, last: &Self::State, action: Self::Action) -> Option<Self::State> {
        let mut state = last.clone();
        match action {
            Action::Operate(rank) => {
                let operation = state.ranks[rank as usize].member.operation()?;
                if let Some(input) = self.perform(&mut state, rank, operation) {
                    self.feed(&mut state, rank, input);
                }
            }
            Action::Glance(rank) => {
                let decision = state.decision;
                self.feed(&mut state, rank, Input::Decision(decision));
            }
            Action::Store(rank) => {
                let compared = state.ranks[rank as usize].half_swapped.take()?;
                let input = store(&mut state, compared);
                self.feed(&mut state, rank, input);
            }
            Action::Land(rank) => {
                let (slot, record) = state.ranks[rank as usize].afloat.take()?;
                state.slots[rank as usize][slot as usize] = Some(record);
            }
            Action::Expire(rank) => self.feed(&mut state, rank, Input::Expired),
            Action::LearnGone(rank) => {
                let gone = Self::waits_for(&state.ranks[rank as usize].member)?;
                self.feed(&mut state, rank, Input::Gone { rank: gone });
            }
            Action::Die(rank) => state.ranks[rank as usize].health = Health::Dead,
            Action::Stall(rank) => state.ranks[rank as usize].health = Health::Stalled,
            Action::Abort => {
                let mut poisoner = state.poisoner?;
                let input = match poisoner.operation() {
                    Operation::SwapDecision { expected, new } if state.decision == expected => {
                        state.causes_tried = (state.causes_tried + 1).min(2);
                        store(&mut state, Ok(new))
                    }
                    Operation::SwapDecision { .. } => Input::Swapped(Err(state.decision)),
                    _ => Input::Decision(state.decision),
                };
                state.poisoner = poisoner.handle(input).is_none().then_some(poisoner);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(self)
    }
}
