//! Breadth-first search over any `stateright::Model`.
//!
//! Level by level, with 64-bit fingerprints and predecessors; states are kept for the frontier alone. The first
//! violation of a claim is at the smallest depth, so its path is a shortest counterexample. A transition that
//! changes nothing is no step: a spin is a guard. A state in which only the adversary can take a step is at rest.
//!
//! stateright's own checker visits the same states; `tests/check/cross_check.rs` compares the counts. What it does not
//! do, and so is done here: stuck states, budgets, shortest paths kept.

use crate::registry::Requirement;
use ahash::RandomState;
use stateright::{Model, Property};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::time::{Duration, Instant};

/// A model whose states are judged by claims and whose steps can be drawn.
pub trait World:
    Model<State: Clone + Debug + Eq + Hash + Send + Sync, Action: Clone + Debug + PartialEq + Send + Sync>
    + Send
    + Sync
    + 'static
{
    /// Ranks of this world.
    fn world(&self) -> u32;

    /// What must hold.
    fn claims(&self) -> Vec<Claim<Self>>;

    /// Whether a step is the adversary's: one that nobody has to take. A state whose only steps are these is at
    /// rest.
    fn is_fault(&self, _action: &Self::Action) -> bool {
        false
    }

    /// Names of the lanes: ranks, or other agents.
    fn lanes(&self) -> Vec<String>;

    /// One step as it is drawn.
    fn draw(&self, before: &Self::State, action: &Self::Action) -> Step;

    /// What lanes that wait have begun and not ended, drawn after the last step.
    fn begun(&self, _state: &Self::State) -> Vec<Step> {
        Vec::new()
    }

    /// Who waits for whom in a state at rest.
    fn waits(&self, _state: &Self::State) -> Vec<Wait> {
        Vec::new()
    }

    /// One sentence on what went wrong in `state`.
    fn sentence(&self, claim: &Claim<Self>, _state: &Self::State) -> String {
        format!("this state breaks: {}", claim.name)
    }

    /// The situation that the search starts in, where a model has several.
    fn setting(&self, _first: &Self::State) -> String {
        String::new()
    }
}

/// The claims of a model for stateright's own checker and its Explorer. What is judged at rest is left out:
/// stateright does not know rest.
pub fn properties<M: World>(model: &M) -> Vec<Property<M>> {
    let always = model.claims().into_iter().filter(|claim| claim.when == When::Always);
    let claims = always.map(|claim| Property::always(claim.name, claim.holds));
    std::iter::once(Property::always("every state is visited", |_, _| true)).chain(claims).collect()
}

/// One step of one lane.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Step {
    /// Which lane.
    pub lane: usize,
    /// What it does.
    pub text: String,
    /// The lane it does it with, if any.
    pub peer: Option<usize>,
}

/// A lane that waits for another.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Wait {
    /// Who waits.
    pub lane: usize,
    /// For whom.
    pub on: usize,
    /// What for.
    pub why: String,
}

/// When a claim is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In every state.
    Always,
    /// In states in which nobody but the adversary can take a step.
    AtRest,
}

type Judge<M> = fn(&M, &<M as Model>::State) -> bool;

/// A property and what keeps it from being empty: `holds` must be true whenever it is judged, and `reached` must
/// be true in some state, or nothing has been shown.
pub struct Claim<M: Model> {
    /// What it stands for.
    pub requirement: Requirement,
    /// The property as a sentence.
    pub name: &'static str,
    /// When it is judged.
    pub when: When,
    /// The property.
    pub holds: Judge<M>,
    /// The state of interest.
    pub reached: Judge<M>,
}

impl<M: Model> Clone for Claim<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Model> Copy for Claim<M> {}

/// How far a search may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Distinct states.
    pub states: u64,
    /// Time.
    pub time: Duration,
    /// Memory of the process.
    pub bytes: u64,
}

impl Default for Budget {
    /// Memory is bounded by three quarters of what this machine or container has.
    fn default() -> Self {
        let bytes = memory_bytes().map_or(8 << 30, |bytes| (bytes / 4 * 3).min(8 << 30));
        Budget { states: 50_000_000, time: Duration::from_secs(600), bytes }
    }
}

/// What stopped a search before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Distinct states.
    States,
    /// Time.
    Time,
    /// Memory.
    Bytes,
    /// The user.
    Interrupted,
}

/// A path from a first state: each step's state before it, and the step; then the last state.
pub struct Path<M: Model> {
    /// States and steps.
    pub steps: Vec<(M::State, M::Action)>,
    /// Where it leads.
    pub last: M::State,
}

/// What a search found of one claim.
pub struct Found<M: Model> {
    /// The claim.
    pub claim: Claim<M>,
    /// A shortest path to a violation.
    pub violation: Option<Path<M>>,
    /// Whether the state of interest was met.
    pub reached: bool,
}

/// What a search found.
pub struct Search<M: Model> {
    /// Distinct states.
    pub states: u64,
    /// Steps taken.
    pub transitions: u64,
    /// Levels.
    pub depth: u64,
    /// What ended it early.
    pub stopped: Option<Stopped>,
    /// By claim, in the model's order.
    pub found: Vec<Found<M>>,
}

/// Searches the states of `model` within `budget`, judging `claims`. Ends early once every claim is violated.
/// `watch` is told now and then how many states there are, and ends the search by `true`.
pub fn search<M: World>(
    model: &M,
    claims: &[Claim<M>],
    budget: &Budget,
    watch: &dyn Fn(u64) -> bool,
) -> Search<M> {
    let mut run = Run {
        model,
        hasher: RandomState::with_seeds(1, 2, 3, 4),
        from: HashMap::default(),
        violated: claims.iter().map(|_| None).collect(),
        reached: vec![false; claims.len()],
        transitions: 0,
        started: Instant::now(),
        budget,
        watch,
    };
    let (depth, stopped) = run.levels(claims);
    let found = claims
        .iter()
        .enumerate()
        .map(|(position, claim)| Found {
            claim: *claim,
            violation: run.violated[position].map(|fingerprint| run.path(fingerprint)),
            reached: run.reached[position],
        })
        .collect();
    Search { states: run.from.len() as u64, transitions: run.transitions, depth, stopped, found }
}

/// States that are expanded between two looks at the budget.
const LOOK_STATES: usize = 4096;
/// Steps that a state has at most, or nearly so.
const STEPS_MAX: usize = 32;

/// Fingerprints are well mixed already.
#[derive(Default)]
struct Already(u64);

impl Hasher for Already {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("fingerprints are 64-bit")
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

type Predecessors = HashMap<u64, u64, BuildHasherDefault<Already>>;

struct Run<'a, M: Model> {
    model: &'a M,
    hasher: RandomState,
    /// Fingerprint of a state -> of the state it was first reached from; first states lead to themselves.
    from: Predecessors,
    violated: Vec<Option<u64>>,
    reached: Vec<bool>,
    transitions: u64,
    started: Instant,
    budget: &'a Budget,
    watch: &'a dyn Fn(u64) -> bool,
}

impl<M: World> Run<'_, M> {
    fn levels(&mut self, claims: &[Claim<M>]) -> (u64, Option<Stopped>) {
        let mut frontier = Vec::new();
        for state in self.model.init_states() {
            let fingerprint = self.hasher.hash_one(&state);
            if self.from.insert(fingerprint, fingerprint).is_none() {
                self.judge(claims, When::Always, &state, fingerprint);
                frontier.push((fingerprint, state));
            }
        }
        let mut depth = 0;
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for (visited, (fingerprint, state)) in frontier.into_iter().enumerate() {
                if self.violated.iter().all(Option::is_some) && !claims.is_empty() {
                    return (depth, None);
                }
                if visited % LOOK_STATES == 0
                    && let Some(stopped) = self.over_budget()
                {
                    return (depth, Some(stopped));
                }
                self.expand(claims, fingerprint, &state, &mut next);
            }
            frontier = next;
            depth += u64::from(!frontier.is_empty());
        }
        (depth, None)
    }

    fn expand(
        &mut self,
        claims: &[Claim<M>],
        fingerprint: u64,
        state: &M::State,
        next: &mut Vec<(u64, M::State)>,
    ) {
        let mut at_rest = true;
        for (action, successor) in steps(self.model, state) {
            at_rest &= self.model.is_fault(&action);
            if !self.model.within_boundary(&successor) {
                continue;
            }
            self.transitions += 1;
            let reached = self.hasher.hash_one(&successor);
            if let std::collections::hash_map::Entry::Vacant(vacant) = self.from.entry(reached) {
                vacant.insert(fingerprint);
                self.judge(claims, When::Always, &successor, reached);
                next.push((reached, successor));
            }
        }
        if at_rest {
            self.judge(claims, When::AtRest, state, fingerprint);
        }
    }

    fn judge(&mut self, claims: &[Claim<M>], when: When, state: &M::State, fingerprint: u64) {
        for (position, claim) in claims.iter().enumerate().filter(|(_, claim)| claim.when == when) {
            self.reached[position] |= (claim.reached)(self.model, state);
            if self.violated[position].is_none() && !(claim.holds)(self.model, state) {
                self.violated[position] = Some(fingerprint);
            }
        }
    }

    fn over_budget(&self) -> Option<Stopped> {
        let states = self.from.len() as u64;
        if states > self.budget.states {
            return Some(Stopped::States);
        }
        if self.started.elapsed() > self.budget.time {
            return Some(Stopped::Time);
        }
        if resident_bytes().is_some_and(|bytes| bytes + self.growth_bytes() > self.budget.bytes) {
            return Some(Stopped::Bytes);
        }
        (self.watch)(states).then_some(Stopped::Interrupted)
    }

    /// What the table of fingerprints takes at once where it may have to grow before the next look.
    fn growth_bytes(&self) -> u64 {
        let room = self.from.capacity() - self.from.len();
        let entry_bytes = size_of::<(u64, u64)>() + 1;
        if room < LOOK_STATES * STEPS_MAX { (2 * self.from.capacity() * entry_bytes) as u64 } else { 0 }
    }

    /// Walks back to a first state, then forward again to recover states and steps.
    fn path(&self, last: u64) -> Path<M> {
        let mut trail = vec![last];
        while let Some(&before) = self.from.get(trail.last().expect("not empty")) {
            if before == *trail.last().expect("not empty") {
                break;
            }
            trail.push(before);
        }
        let first = trail.pop().expect("a path has a first state");
        let mut state = self
            .model
            .init_states()
            .into_iter()
            .find(|state| self.hasher.hash_one(state) == first)
            .expect("the first state is a first state");
        let mut path = Vec::new();
        while let Some(fingerprint) = trail.pop() {
            let (action, successor) = steps(self.model, &state)
                .find(|(_, successor)| self.hasher.hash_one(successor) == fingerprint)
                .expect("each state was reached by a step");
            path.push((std::mem::replace(&mut state, successor), action));
        }
        Path { steps: path, last: state }
    }
}

/// Steps that change something.
fn steps<'a, M: World>(
    model: &'a M,
    state: &'a M::State,
) -> impl Iterator<Item = (M::Action, M::State)> + 'a {
    let mut actions = Vec::new();
    model.actions(state, &mut actions);
    actions.into_iter().filter_map(|action| {
        let successor = model.next_state(state, action.clone())?;
        (successor != *state).then_some((action, successor))
    })
}

/// Memory that this process holds, where the system tells.
pub fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Memory that this process may hold, where the system tells: the machine's, or its container's.
fn memory_bytes() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes: u64 = machine.lines().next()?.split_whitespace().nth(1)?.parse().ok()?;
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = container.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    Some(limit.min(kilobytes * 1024))
}
