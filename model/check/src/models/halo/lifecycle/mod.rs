//! A halo call of all ranks, from the agreed record to the released buffers (HAL-1, HAL-6, HAL-7, HAL-10, HAL-11).
//!
//! Each rank runs `halo::Exchange`. The exchange of records is one atomic step once all have come (the control
//! group's own model interleaves it in full). Work on streams is queued and runs when the adversary lets it:
//! streams of a rank are in no order but the one that the machine asks for. Legs of ranks meet as in `plan`.
//!
//! At world 3 failures are explored *reduced*: while some rank has a step that no other rank can see or hinder, only
//! the lowest such rank moves. States at rest and what a rank does by itself stay the same, and these are what the
//! claims there are about; `tests/check/cross_check.rs` compares the results at world 2.
//!
//! Two drivers are modelled. *Queued*: ordering a caller's stream after the transport is an event, and `wait`
//! returns at once (GPU streams). *Blocking*: `wait` returns when the legs are done or lost (host memory).

mod claims;
mod studies;

use super::super::mutant;
use super::hal;
use crate::explore::{Claim, Step, Wait, When, World, properties};
use crate::registry::{Engine, Mutant, Promise, Regime, Report, Requirement, Setup, Study, explore};
use rankwise_protocol::call::{CallRecord, Override, Reason, Text};
use rankwise_protocol::group::{Cause, CauseKind};
use rankwise_protocol::halo::{Effect, Exchange, Failure, Input, Local, Sight, Stream};
use rankwise_protocol::layout::{BandShape, Dtype};
use rankwise_protocol::legs::{Arm, Direction, Leg};
use rankwise_protocol::policy::{Policy, SHIPPED};
use rankwise_protocol::rules::{Rules, Shipped};
use stateright::{Model, Property};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use claims::results;
pub(super) use studies::{ARMS, FAILURE, ORDER, failure, one_arm_study, part, stream_order};
use studies::{attack, same};

pub(super) const ONE_ARM: &str = "all ranks run one arm, or all refuse for one reason before a leg is posted";
const ONE_CONTEXT: &str = "ranks that run an exchange are in one context";
pub(super) const IN_ORDER: &str =
    "work on a buffer runs after what it needs and before the buffer is given back";
pub(super) const CLOSED: &str = "no group of legs is open once a rank is done";
const TOLD: &str = "every rank's call ends, without a deadline, when one fails after the agreement";
const CLEAN: &str = "without a fault every rank's call ends well";
const ENDS: &str = "every live rank's call ends when others die, stall or garble a message";
const RIGHT: &str = "a call ends well only with every edge in place";
const UNREADABLE: &str = "a rank that cannot read what a peer said ends the group";

/// The caller's stream that the band is ready on, and another of the caller's.
const FIRST: Stream = Stream::Caller(0);
const SECOND: Stream = Stream::Caller(1);
const STREAMS: [Stream; 3] = [FIRST, SECOND, Stream::Transport];

fn queue(stream: Stream) -> usize {
    STREAMS.iter().position(|known| *known == stream).expect("a stream of the model")
}

/// What a rank brings to the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Brought {
    forced: Override,
    /// Whether its buffers could be had.
    able: bool,
    /// Width of its tensor.
    width: u64,
    context: u64,
    /// Whether it was built with another policy, which gives every world the other arm.
    other_policy: bool,
}

impl Brought {
    /// Able, of width 1, in the first context.
    fn forced(forced: Override) -> Brought {
        Brought { forced, able: true, width: 1, context: 0, other_policy: false }
    }
}

/// What the adversary may do.
#[derive(Clone, Debug)]
struct Attack {
    /// By rank.
    locals: Vec<Brought>,
    /// Ranks that may raise once, at any effect after the agreement.
    raising: Vec<u32>,
    /// Whether any rank may die or stall at any step, and send what is no message.
    stops: bool,
    /// A rank whose record the others can't read.
    unreadable: Option<u32>,
    regime: Regime,
    /// Whether callers may wait on another stream, or drop the handle.
    any_use: bool,
    /// Whether `wait` blocks the host until legs are done or lost.
    blocking: bool,
    /// Whether a rank's local steps go before all other ranks' steps.
    reduced: bool,
    setting: String,
}

/// A call of all ranks.
#[derive(Clone, Debug)]
pub struct Calls<R> {
    policy: Arc<Policy>,
    other_policy: Arc<Policy>,
    world: u32,
    attack: Attack,
    claims: &'static [&'static str],
    rules: PhantomData<R>,
}

/// Work on a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Work {
    Pack,
    Legs(Vec<Leg>),
    Unpack,
    /// Runs once `stream` has done that much.
    After(Stream, u32),
    Free,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Health {
    Live,
    Stalled,
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rank<R> {
    machine: Exchange<R>,
    health: Health,
    /// By stream: work to do, and how much was queued and done.
    work: [VecDeque<Work>; 3],
    queued: [u32; 3],
    done: [u32; 3],
    /// Legs of the open group.
    open: Option<Vec<Leg>>,
    agreed: bool,
    packed: bool,
    /// Groups of legs that are done.
    groups_done: u32,
    groups_posted: u32,
    /// Whether legs were given up.
    lost: bool,
    freed: bool,
    /// Whether it has raised.
    raised: bool,
    /// Whether a use of the handle other than waiting on the first stream was chosen.
    used: bool,
    /// Work that ran too early or too late.
    disordered: bool,
    result: Option<Result<(), Failure>>,
}

/// Ranks, and what the group holds of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<R> {
    ranks: Vec<Rank<R>>,
    records: Vec<Option<CallRecord>>,
    /// Whether the exchange of records was decided complete.
    complete: bool,
    poison: Option<Cause>,
}

impl<R> State<R> {
    /// By rank, what its call gave.
    pub fn results(&self) -> Vec<Option<Result<(), Failure>>> {
        results(self).map(|result| result.cloned()).collect()
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A rank carries out its machine's effect.
    Carry(u32),
    /// The effect fails on this rank.
    Raise(u32),
    /// A rank takes the outcome of the exchange of records.
    Learn(u32),
    /// The caller waits, in the order of a stream.
    Wait(u32, Stream),
    /// The caller drops the handle.
    Drop(u32),
    /// A rank that waits sees why it waits in vain.
    Look(u32),
    /// A rank's deadline passes while it waits.
    Expire(u32),
    /// A rank finds that a message is not as announced.
    Garble(u32),
    /// A rank takes no further step, and its peers can learn so.
    Die(u32),
    /// A rank takes no further step, and nobody learns so.
    Stall(u32),
    /// The first work of a stream runs.
    Run(u32, Stream),
    /// A leg of one rank and its partner's complete.
    Transfer(u32, u32),
    /// The same, of a rank that has stopped: its bytes may be on their way, or not.
    Drift(u32, u32),
}

/// A policy that gives `world` the arm that `policy` does not.
fn opposite(policy: &Policy, world: u32) -> Policy {
    let arm = Arm::ALL.into_iter().find(|&arm| arm != policy.halo().arm(world)).expect("there are two arms");
    let rungs = format!("[{{ worlds = \"2-\", arm = \"{arm}\", evidence = \"none\" }}]");
    Policy::parse("", SHIPPED, &[("halo.rungs".to_owned(), rungs)]).expect("one rung for every world")
}

impl<R: Rules> Calls<R> {
    fn policy_of(&self, rank: u32) -> &Policy {
        if self.attack.locals[rank as usize].other_policy { &self.other_policy } else { &self.policy }
    }

    fn new(policy: &Policy, world: u32, attack: Attack, claims: &'static [&'static str]) -> Self {
        let other_policy = Arc::new(opposite(policy, world));
        Calls { policy: Arc::new(policy.clone()), other_policy, world, attack, claims, rules: PhantomData }
    }

    /// Any subset of ranks may die, stall or garble a message, and the last may give a record that none can read.
    fn stopping(policy: &Policy, world: u32, arm: Arm, regime: Regime, unreadable: Option<u32>) -> Self {
        let setting = format!("{arm} arm, any rank may stop");
        let attack =
            Attack { stops: true, unreadable, regime, ..attack(same(world, Override::Forced(arm)), setting) };
        Self::new(policy, world, attack, &[ENDS, RIGHT, UNREADABLE])
    }

    /// Any subset of ranks may raise once, at any effect after the agreement.
    pub fn failing(policy: &Policy, world: u32, arm: Arm, reduced: bool) -> Self {
        let setting = format!("{arm} arm, any rank may fail");
        let raising = (0..world).collect();
        let any_use = !reduced;
        let attack =
            Attack { raising, reduced, any_use, ..attack(same(world, Override::Forced(arm)), setting) };
        Self::new(policy, world, attack, &[CLOSED, TOLD, IN_ORDER])
    }

    /// The same ranks and faults, explored reduced or in full.
    pub fn reduced(mut self, reduced: bool) -> Self {
        self.attack.reduced = reduced;
        self
    }

    /// Any use of the handle, streams that run when they like, and ranks that may raise.
    pub fn used(policy: &Policy, world: u32, arm: Arm, raising: Vec<u32>) -> Self {
        let setting = match raising.as_slice() {
            [] => format!("{arm} arm"),
            ranks => format!("{arm} arm, of ranks {ranks:?} any may fail"),
        };
        let attack = attack(same(world, Override::Forced(arm)), setting);
        let attack = Attack { any_use: true, blocking: false, raising, ..attack };
        Self::new(policy, world, attack, &[IN_ORDER])
    }

    fn local(&self, rank: u32) -> Local {
        let Brought { forced, able, width, context, .. } = self.attack.locals[rank as usize];
        let shape = BandShape { frames: 1, rows: 1, width, channels: 1, dtype: Dtype::U8 };
        let prepared = if able { Ok(()) } else { Err((Reason::OutOfMemory, Text::default())) };
        Local {
            rank,
            world: self.world,
            context,
            shape,
            forced,
            forced_text: Text::default(),
            prepared,
            stream: FIRST,
        }
    }

    /// Whether all work that reads or writes a rank's buffers is done.
    fn in_use(rank: &Rank<R>) -> bool {
        rank.work.iter().flatten().any(|work| matches!(work, Work::Pack | Work::Legs(_) | Work::Unpack))
    }

    fn push(rank: &mut Rank<R>, stream: Stream, work: Work) {
        rank.work[queue(stream)].push_back(work);
        rank.queued[queue(stream)] += 1;
    }

    fn pop(rank: &mut Rank<R>, stream: Stream) {
        rank.work[queue(stream)].pop_front();
        rank.done[queue(stream)] += 1;
    }

    fn transport_idle(rank: &Rank<R>) -> bool {
        rank.work[queue(Stream::Transport)].is_empty()
    }

    /// Launches work on a stream of the caller's: a blocking driver does it on the spot.
    fn launch(&self, rank: &mut Rank<R>, stream: Stream, work: Work) {
        match work {
            _ if !self.attack.blocking => Self::push(rank, stream, work),
            Work::Pack => {
                rank.disordered |= rank.freed;
                rank.packed = true;
            }
            Work::Unpack => rank.disordered |= rank.freed || rank.groups_done < rank.groups_posted,
            Work::Free => {
                rank.disordered |= Self::in_use(rank);
                rank.freed = true;
            }
            Work::After(..) | Work::Legs(_) => {}
        }
    }

    /// Carries out an effect; `None` if the input comes later.
    fn carry(&self, state: &mut State<R>, own: usize, effect: Effect) -> Option<Input> {
        let rank = &mut state.ranks[own];
        match effect {
            Effect::Agree(record) => {
                state.records[own] = Some(record);
                return None;
            }
            Effect::Hold => return None,
            Effect::Pack(stream) => self.launch(rank, stream, Work::Pack),
            Effect::Order { earlier: Stream::Transport, .. } if self.attack.blocking => {
                return (Self::transport_idle(rank) && !rank.lost).then_some(Input::Done);
            }
            Effect::Order { earlier, later } => {
                let mark = rank.queued[queue(earlier)];
                self.launch(rank, later, Work::After(earlier, mark));
            }
            Effect::Open => rank.open = Some(Vec::new()),
            Effect::Post(leg) => rank.open.as_mut()?.push(leg),
            Effect::Close => {
                let legs = rank.open.take()?;
                rank.groups_posted += 1;
                Self::push(rank, Stream::Transport, Work::Legs(legs));
            }
            Effect::Unpack(stream) => self.launch(rank, stream, Work::Unpack),
            Effect::Poison(cause) => {
                return Some(Input::Poisoned(*state.poison.get_or_insert(cause)));
            }
            Effect::Release(Some(Stream::Transport)) => Self::push(rank, Stream::Transport, Work::Free),
            Effect::Release(Some(stream)) => self.launch(rank, stream, Work::Free),
            Effect::Release(None) => {
                rank.disordered |= Self::in_use(rank);
                rank.freed = true;
            }
            Effect::Return(result) => {
                rank.result = Some(result);
                return None;
            }
        }
        Some(Input::Done)
    }

    /// Whether the first work of a stream may run by itself; legs need a partner or an ended group.
    fn runnable(state: &State<R>, rank: &Rank<R>, stream: Stream) -> bool {
        match rank.work[queue(stream)].front() {
            None => false,
            Some(Work::After(earlier, mark)) => rank.done[queue(*earlier)] >= *mark,
            Some(Work::Legs(legs)) => legs.is_empty() || state.poison.is_some(),
            Some(_) => true,
        }
    }

    fn run_work(state: &mut State<R>, own: usize, stream: Stream) -> Option<()> {
        let rank = &mut state.ranks[own];
        match rank.work[queue(stream)].front()? {
            Work::Pack => {
                rank.disordered |= rank.freed;
                rank.packed = true;
            }
            Work::Legs(legs) if legs.is_empty() => rank.groups_done += 1,
            Work::Legs(_) => rank.lost = true,
            Work::Unpack => {
                let lost = state.poison.is_some();
                let early = rank.groups_done < rank.groups_posted || !Self::transport_idle(rank);
                rank.disordered |= rank.freed || (early && !lost);
            }
            Work::After(..) => {}
            Work::Free => {
                // This work itself is still queued; it uses nothing.
                rank.disordered |= Self::in_use(rank);
                rank.freed = true;
            }
        }
        Self::pop(rank, stream);
        Some(())
    }

    /// Position of the first leg in `rank`'s running group that goes `direction` with `peer`.
    fn leg_of(rank: &Rank<R>, direction: Direction, peer: u32) -> Option<usize> {
        match rank.work[queue(Stream::Transport)].front()? {
            Work::Legs(legs) => legs.iter().position(|leg| leg.direction == direction && leg.peer == peer),
            _ => None,
        }
    }

    fn transfer(state: &mut State<R>, from: u32, to: u32) -> Option<()> {
        let send = Self::leg_of(&state.ranks[from as usize], Direction::Send, to)?;
        let receive = Self::leg_of(&state.ranks[to as usize], Direction::Receive, from)?;
        for (own, position) in [(from, send), (to, receive)] {
            let rank = &mut state.ranks[own as usize];
            rank.disordered |= rank.freed || !rank.packed;
            if let Some(Work::Legs(legs)) = rank.work[queue(Stream::Transport)].front_mut() {
                legs.remove(position);
            }
        }
        Some(())
    }

    /// In a reduced exploration, the rank that moves alone.
    fn alone(&self, state: &State<R>) -> Option<usize> {
        state.ranks.iter().position(|rank| self.attack.reduced && Self::is_local(rank))
    }

    /// Pairs of ranks of which a send meets its receive.
    fn meetings(&self, state: &State<R>) -> Vec<(u32, u32)> {
        let meets = |&(from, to): &(u32, u32)| {
            from != to
                && Self::leg_of(&state.ranks[from as usize], Direction::Send, to).is_some()
                && Self::leg_of(&state.ranks[to as usize], Direction::Receive, from).is_some()
        };
        let pairs = (0..self.world).flat_map(|from| (0..self.world).map(move |to| (from, to)));
        pairs.filter(meets).collect()
    }

    /// Steps of live ranks: what goes on by itself.
    fn moves(&self, state: &State<R>, actions: &mut Vec<Action>) {
        let alone = self.alone(state);
        let live = |rank: usize| state.ranks[rank].health == Health::Live;
        let may_move = |own: usize| live(own) && alone.is_none_or(|alone| alone == own);
        for (own, rank) in state.ranks.iter().enumerate().filter(|(own, _)| may_move(*own)) {
            let at = own as u32;
            match rank.machine.effect() {
                Effect::Agree(_) if state.records[own].is_some() => actions.push(Action::Learn(at)),
                Effect::Hold => {
                    actions.push(Action::Wait(at, FIRST));
                    if self.attack.any_use {
                        actions.extend([Action::Wait(at, SECOND), Action::Drop(at)]);
                    }
                }
                Effect::Return(_) if rank.result.is_some() => {}
                _ => actions.push(Action::Carry(at)),
            }
            if self.attack.blocking && self.waits(state, own) {
                actions.push(Action::Look(at));
            }
            for stream in STREAMS {
                if Self::runnable(state, rank, stream) {
                    actions.push(Action::Run(at, stream));
                }
            }
        }
        for (from, to) in self.meetings(state) {
            // A leg is moved by its two ranks; in a reduced exploration it waits for the one that moves alone.
            if live(from as usize) && live(to as usize) && alone.is_none_or(|alone| alone == from as usize) {
                actions.push(Action::Transfer(from, to));
            }
        }
    }

    /// What a rank sees that waits for its legs, or for records: why it may wait in vain.
    fn sight(&self, state: &State<R>, own: usize, expired: bool) -> Sight {
        let rank = &state.ranks[own];
        let awaited: Vec<u32> = match (rank.machine.effect(), rank.work[queue(Stream::Transport)].front()) {
            (Effect::Agree(_), _) => {
                (0..self.world).filter(|&peer| state.records[peer as usize].is_none()).collect()
            }
            (_, Some(Work::Legs(legs))) => legs.iter().map(|leg| leg.peer).collect(),
            _ => Vec::new(),
        };
        let dead = |peer: &&u32| state.ranks[**peer as usize].health == Health::Dead;
        Sight {
            ended: state.poison,
            corrupt: None,
            gone: awaited.iter().find(dead).copied(),
            late: awaited.first().copied().filter(|_| expired),
        }
    }

    /// Whether a rank waits for others: for records, or for legs that are neither done nor known to be lost.
    fn waits(&self, state: &State<R>, own: usize) -> bool {
        let rank = &state.ranks[own];
        match rank.machine.effect() {
            Effect::Agree(_) => state.records[own].is_some() && !state.complete && state.poison.is_none(),
            _ => Self::waits_for_legs(rank) && (rank.lost || !Self::transport_idle(rank)),
        }
    }

    /// A rank that waits sees `sight`: where that ends its wait, it does what it does.
    fn see(state: &mut State<R>, own: u32, sight: Sight) -> Option<()> {
        let cause = sight.lost::<R>()?;
        if let Effect::Agree(_) = state.ranks[own as usize].machine.effect() {
            state.poison.get_or_insert(cause);
        } else {
            state.ranks[own as usize].machine.handle(Input::Lost(cause));
        }
        Some(())
    }

    /// The outcome of the exchange of records, as one rank learns it.
    fn outcome(&self, state: &mut State<R>) -> Option<Result<Vec<CallRecord>, Failure>> {
        let records: Option<Vec<_>> = state.records.iter().cloned().collect();
        match (records, state.poison) {
            (Some(records), poison) if state.complete || poison.is_none() => {
                state.complete = true;
                let unreadable = self.attack.unreadable.map(|rank| Err(Failure::Unknown { rank }));
                Some(unreadable.unwrap_or(Ok(records)))
            }
            (_, Some(cause)) => Some(Err(Failure::Poisoned(cause))),
            (_, None) => None,
        }
    }

    /// Whether a rank's next effect is one that no other rank sees or hinders.
    fn is_local(rank: &Rank<R>) -> bool {
        rank.health == Health::Live
            && match rank.machine.effect() {
                Effect::Pack(_) | Effect::Open | Effect::Post(_) | Effect::Unpack(_) | Effect::Release(_) => {
                    true
                }
                Effect::Order { earlier, .. } => earlier != Stream::Transport,
                Effect::Return(_) => rank.result.is_none(),
                Effect::Agree(_) | Effect::Close | Effect::Hold | Effect::Poison(_) => false,
            }
    }

    fn waits_for_legs(rank: &Rank<R>) -> bool {
        matches!(rank.machine.effect(), Effect::Order { earlier: Stream::Transport, .. })
    }
}

/// Whether an effect may fail on its rank.
fn is_fallible(effect: &Effect) -> bool {
    !matches!(
        effect,
        Effect::Agree(_) | Effect::Hold | Effect::Return(_) | Effect::Poison(_) | Effect::Release(_)
    )
}

impl<R: Rules> Model for Calls<R> {
    type State = State<R>;
    type Action = Action;

    fn init_states(&self) -> Vec<State<R>> {
        let rank = |rank| Rank {
            machine: Exchange::new(self.policy_of(rank), self.local(rank)),
            health: Health::Live,
            work: Default::default(),
            queued: [0; 3],
            done: [0; 3],
            open: None,
            agreed: false,
            packed: false,
            groups_done: 0,
            groups_posted: 0,
            lost: false,
            freed: false,
            raised: false,
            used: false,
            disordered: false,
            result: None,
        };
        let ranks: Vec<_> = (0..self.world).map(rank).collect();
        vec![State { records: vec![None; ranks.len()], ranks, complete: false, poison: None }]
    }

    fn actions(&self, state: &State<R>, actions: &mut Vec<Action>) {
        self.moves(state, actions);
        let changes =
            |action: &Action| self.next_state(state, action.clone()).is_some_and(|next| next != *state);
        let quiet = !actions.iter().any(changes);
        let alone = self.alone(state);
        for (own, rank) in state.ranks.iter().enumerate() {
            let at = own as u32;
            let may_move = rank.health == Health::Live && alone.is_none_or(|alone| alone == own);
            if !may_move {
                continue;
            }
            let may_expire = match self.attack.regime {
                Regime::T0 => false,
                Regime::T1 => quiet,
                Regime::T2 => true,
            };
            if may_expire && self.waits(state, own) {
                actions.push(Action::Expire(at));
            }
            if self.attack.raising.contains(&at) && !rank.raised && is_fallible(&rank.machine.effect()) {
                actions.push(Action::Raise(at));
            }
            if self.attack.stops && rank.result.is_none() {
                actions.extend([Action::Die(at), Action::Stall(at)]);
                if Self::waits_for_legs(rank) && self.waits(state, own) {
                    actions.push(Action::Garble(at));
                }
            }
        }
        for (from, to) in self.meetings(state) {
            let stopped = |rank: u32| state.ranks[rank as usize].health != Health::Live;
            if stopped(from) || stopped(to) {
                actions.push(Action::Drift(from, to));
            }
        }
    }

    fn next_state(&self, last: &State<R>, action: Action) -> Option<State<R>> {
        let mut state = last.clone();
        match action {
            Action::Carry(own) => {
                let effect = state.ranks[own as usize].machine.effect();
                if let Some(input) = self.carry(&mut state, own as usize, effect) {
                    state.ranks[own as usize].machine.handle(input);
                }
            }
            Action::Raise(own) => {
                let rank = &mut state.ranks[own as usize];
                rank.raised = true;
                // A close that fails has closed the group all the same: the transport keeps what it has.
                if rank.machine.effect() == Effect::Close {
                    rank.open = None;
                }
                rank.machine.handle(Input::Raised);
            }
            Action::Learn(own) => {
                let outcome = self.outcome(&mut state)?;
                let rank = &mut state.ranks[own as usize];
                rank.agreed = outcome.is_ok();
                rank.machine.handle(Input::Agreed(outcome));
            }
            Action::Wait(own, stream) => {
                let rank = &mut state.ranks[own as usize];
                rank.used |= stream != FIRST;
                rank.machine.handle(Input::Wait(stream));
            }
            Action::Drop(own) => {
                let rank = &mut state.ranks[own as usize];
                rank.used = true;
                rank.machine.handle(Input::Dropped);
            }
            Action::Look(own) => {
                let sight = self.sight(last, own as usize, false);
                Self::see(&mut state, own, sight)?;
            }
            Action::Expire(own) => {
                let sight = self.sight(last, own as usize, true);
                Self::see(&mut state, own, sight)?;
            }
            Action::Garble(own) => {
                let sender = self.sight(last, own as usize, true).late?;
                let corrupt = Some(Cause { kind: CauseKind::Corrupt, rank: sender });
                Self::see(&mut state, own, Sight { corrupt, ..Sight::default() })?;
            }
            Action::Die(own) => state.ranks[own as usize].health = Health::Dead,
            Action::Stall(own) => state.ranks[own as usize].health = Health::Stalled,
            Action::Run(own, stream) => Self::run_work(&mut state, own as usize, stream)?,
            Action::Transfer(from, to) | Action::Drift(from, to) => Self::transfer(&mut state, from, to)?,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(self)
    }
}
