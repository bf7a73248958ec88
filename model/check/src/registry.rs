//! What is proved: modules, their studies, the claims of each, and the mutants that the claims must refute.
//!
//! A *study* is a model at stated worlds, faults and regime. Each claim of a study is an *obligation*: it is
//! proved to the study's bound, refuted by a counterexample, or inconclusive. A model file exports a [`Module`]
//! and is listed in [`modules`]; nothing else has to know of it.

use crate::explore::{Budget, Claim, Found, Path, Search, Stopped, World, resident_bytes, search};
use crate::lanes::{Counterexample, cycle};
use rankwise_protocol::policy::Policy;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Every module.
pub fn modules() -> Vec<Module> {
    vec![crate::models::group::module(), crate::models::channel::module(), crate::models::halo::module()]
}

/// A numbered requirement of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Requirement {
    /// `GRP`, `HAL`, ...
    pub family: &'static str,
    /// From 1; never used again.
    pub number: u32,
}

impl Requirement {
    /// `family`-`number`.
    pub const fn new(family: &'static str, number: u32) -> Self {
        Requirement { family, number }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.family, self.number)
    }
}

/// What a deadline may do in a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Regime {
    /// There is none: runs must finish by themselves.
    T0,
    /// It passes only when no live rank can move: waits are bounded.
    T1,
    /// It may pass at any time: what is safe stays safe.
    T2,
}

/// How a study looks at its states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Every reachable state.
    Explore,
    /// One run that stands for all, in linear time.
    WaitFor,
    /// Every case of a list.
    Sweep,
}

/// Name of an engine or regime in output.
macro_rules! named {
    ($type:ty { $($variant:ident => $name:literal),* $(,)? }) => {
        impl $type {
            /// Name in output.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}
named!(Regime { T0 => "T0", T1 => "T1", T2 => "T2" });
named!(Engine { Explore => "explore", WaitFor => "wait-for", Sweep => "sweep" });

/// A protocol's studies and mutants.
pub struct Module {
    /// As in `--only halo`.
    pub name: &'static str,
    /// Its studies.
    pub studies: Vec<Study>,
    /// Its mutants.
    pub mutants: Vec<Mutant>,
    /// Rules of the designs it started from that do not hold.
    pub seeds: Vec<SeedVariant>,
}

/// A model at stated worlds, faults and regime.
#[derive(Clone)]
pub struct Study {
    /// `module/what`.
    pub name: &'static str,
    /// How it looks.
    pub engine: Engine,
    /// What a deadline may do; `None` where no time passes.
    pub regime: Option<Regime>,
    /// Smallest and largest world.
    pub worlds: (u32, u32),
    /// What the adversary may do.
    pub faults: &'static str,
    /// What is taken for granted.
    pub axioms: &'static [&'static str],
    /// Steps that are not interleaved, at which worlds, and what cross-checks that nothing is missed by it.
    pub reductions: &'static [&'static str],
    /// Policy keys that change its states or verdicts.
    pub reads: &'static [&'static str],
    /// Its claims.
    pub claims: Vec<Promise>,
    /// Runs it with the shipped rules.
    pub run: fn(&Setup) -> Report,
}

/// What a study's claim stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The requirement.
    pub requirement: Requirement,
    /// The property as a sentence.
    pub name: &'static str,
}

/// Rules in which one decision is wrong, and the claim that must refute them.
#[derive(Clone)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// The requirement it breaks.
    pub requirement: Requirement,
    /// The study that shows it.
    pub study: &'static str,
    /// The claim, by name.
    pub claim: &'static str,
    /// Runs the study with the mutant's rules.
    pub run: fn(&Setup) -> Report,
}

/// A rule of the design that rankwise started from which its model refutes.
#[derive(Clone)]
pub struct SeedVariant {
    /// The hole, as a heading.
    pub title: &'static str,
    /// What happens, and what the original's authors can do about it.
    pub story: &'static str,
    /// What closes it here.
    pub closed_by: &'static str,
    /// The rule as a mutant: the claim it names must refute it.
    pub as_mutant: Mutant,
}

/// How studies are run.
#[derive(Clone)]
pub struct Setup<'a> {
    /// The policy in question.
    pub policy: Policy,
    /// Only these worlds, inclusive, where a study has them.
    pub worlds: Option<(u32, u32)>,
    /// Of each study.
    pub budget: Budget,
    /// A claim that is taken for true, so that only its state of interest is looked for.
    pub without: Option<&'static str>,
    /// Told now and then how many states there are; ends the study by `true`.
    pub watch: &'a dyn Fn(u64) -> bool,
    /// Serve the first model in stateright's Explorer at this address, for ever, and search nothing.
    pub serve: Option<SocketAddr>,
}

impl Setup<'_> {
    /// `policy` with the default budget and all worlds.
    pub fn new(policy: Policy) -> Self {
        let budget = Budget::default();
        Setup { policy, worlds: None, budget, without: None, watch: &|_| false, serve: None }
    }

    /// Why a sweep may not go on that has seen so many cases.
    fn is_over(&self, cases: u64, started: Instant) -> Option<Stopped> {
        let Budget { states, time, bytes } = self.budget;
        let over = [
            (cases > states, Stopped::States),
            (started.elapsed() > time, Stopped::Time),
            (resident_bytes().is_some_and(|held| held > bytes), Stopped::Bytes),
        ];
        let over = over.into_iter().find(|(over, _)| *over).map(|(_, stopped)| stopped);
        over.or_else(|| (self.watch)(cases).then_some(Stopped::Interrupted))
    }

    /// A claim as this run judges it.
    fn judged<M: World>(&self, claim: Claim<M>) -> Claim<M> {
        if self.without == Some(claim.name) { Claim { holds: |_, _| true, ..claim } } else { claim }
    }

    /// The worlds of a study that are asked for.
    pub fn worlds_of(&self, study: (u32, u32)) -> std::ops::RangeInclusive<u32> {
        let (first, last) = self.worlds.unwrap_or(study);
        first.max(study.0)..=last.min(study.1)
    }
}

/// Verdict on one obligation.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It holds in every state of the study's bound.
    Proved,
    /// It does not.
    Refuted(Box<Counterexample>),
    /// Neither was shown.
    Inconclusive(String),
}

/// What came of a study.
#[derive(Clone, Debug)]
pub struct Report {
    /// States, or cases of a sweep.
    pub states: u64,
    /// Steps between them.
    pub transitions: u64,
    /// Levels of the deepest search.
    pub depth: u64,
    /// Smallest and largest world looked at; `None` if no world was asked for that the study has.
    pub worlds: Option<(u32, u32)>,
    /// Time.
    pub time: Duration,
    /// By claim.
    pub verdicts: Vec<(Promise, Verdict)>,
}

impl Report {
    /// The counterexamples in it.
    pub fn refuted(&self) -> impl Iterator<Item = (&Promise, &Counterexample)> {
        self.verdicts.iter().filter_map(|(promise, verdict)| match verdict {
            Verdict::Refuted(counterexample) => Some((promise, counterexample.as_ref())),
            _ => None,
        })
    }
}

/// Explores models one after the other, smallest world first, and joins what was found. A claim that is refuted in
/// one model is not judged in later ones, so that its counterexample is at the smallest world that fails.
pub fn explore<M: World>(study: &str, setup: &Setup, models: impl IntoIterator<Item = M>) -> Report {
    let started = Instant::now();
    let mut tally = Tally::new(started);
    for model in models {
        if let Some(address) = setup.serve {
            let _served = model.checker().serve(address);
            break;
        }
        let open: Vec<Claim<M>> = model
            .claims()
            .into_iter()
            .filter(|claim| tally.is_open(claim.name))
            .map(|claim| setup.judged(claim))
            .collect();
        tally.saw_world(model.world());
        if open.is_empty() {
            continue;
        }
        let budget = Budget {
            states: setup.budget.states.saturating_sub(tally.report.states),
            time: setup.budget.time.saturating_sub(started.elapsed()),
            ..setup.budget
        };
        let before = tally.report.states;
        let found = search(&model, &open, &budget, &|states| (setup.watch)(before + states));
        tally.add(study, &model, found);
    }
    tally.finish()
}

/// Joins the searches of a study.
struct Tally {
    started: Instant,
    report: Report,
    reached: Vec<bool>,
    stopped: Option<Stopped>,
}

impl Tally {
    fn new(started: Instant) -> Self {
        let report = Report {
            states: 0,
            transitions: 0,
            depth: 0,
            worlds: None,
            time: Duration::ZERO,
            verdicts: Vec::new(),
        };
        Tally { started, report, reached: Vec::new(), stopped: None }
    }

    fn is_open(&self, name: &str) -> bool {
        let seen = self.report.verdicts.iter().find(|(promise, _)| promise.name == name);
        !matches!(seen, Some((_, Verdict::Refuted(_))))
    }

    fn saw_world(&mut self, world: u32) {
        let (first, last) = self.report.worlds.unwrap_or((world, world));
        self.report.worlds = Some((first.min(world), last.max(world)));
    }

    fn position(&mut self, promise: Promise) -> usize {
        let known = self.report.verdicts.iter().position(|(known, _)| *known == promise);
        known.unwrap_or_else(|| {
            self.report.verdicts.push((promise, Verdict::Proved));
            self.reached.push(false);
            self.reached.len() - 1
        })
    }

    fn add<M: World>(&mut self, study: &str, model: &M, search: Search<M>) {
        self.report.states += search.states;
        self.report.transitions += search.transitions;
        self.report.depth = self.report.depth.max(search.depth);
        self.stopped = self.stopped.or(search.stopped);
        for Found { claim, violation, reached } in search.found {
            let promise = Promise { requirement: claim.requirement, name: claim.name };
            let position = self.position(promise);
            self.reached[position] |= reached;
            if let Some(path) = violation {
                let drawn = draw(study, model, &claim, &path);
                self.report.verdicts[position].1 = Verdict::Refuted(Box::new(drawn));
            }
        }
    }

    fn finish(mut self) -> Report {
        for (position, (_, verdict)) in self.report.verdicts.iter_mut().enumerate() {
            if let Verdict::Proved = verdict {
                if let Some(stopped) = self.stopped {
                    *verdict = Verdict::Inconclusive(limit(stopped).to_owned());
                } else if !self.reached[position] {
                    let why = "no state was met in which it could have failed";
                    *verdict = Verdict::Inconclusive(why.to_owned());
                }
            }
        }
        self.report.time = self.started.elapsed();
        self.report
    }
}

fn limit(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::States => "the budget of states ran out",
        Stopped::Time => "the budget of time ran out",
        Stopped::Bytes => "the budget of memory ran out",
        Stopped::Interrupted => "interrupted",
    }
}

fn draw<M: World>(study: &str, model: &M, claim: &Claim<M>, path: &Path<M>) -> Counterexample {
    let waits = model.waits(&path.last);
    let lanes = model.lanes();
    let cycle = cycle(lanes.len(), &waits);
    let steps = path.steps.iter().map(|(state, action)| model.draw(state, action));
    let first = path.steps.first().map_or(&path.last, |(state, _)| state);
    Counterexample {
        requirement: claim.requirement.to_string(),
        claim: claim.name.to_owned(),
        study: study.to_owned(),
        world: model.world(),
        setting: model.setting(first),
        policy: Vec::new(),
        mutant: None,
        lanes,
        steps: steps.chain(model.begun(&path.last)).collect(),
        waits,
        cycle,
        sentence: model.sentence(claim, &path.last),
    }
}

/// One claim of a sweep: `cases` calls its argument for each case with the world, whether the case is one in which
/// the claim could fail, and what is wrong with it.
pub struct SweepClaim<'a> {
    /// What it stands for.
    pub promise: Promise,
    /// Goes through the cases until told to stop.
    pub cases: &'a dyn Fn(&mut Cases),
}

/// Counts the cases of a sweep and keeps the first failure.
#[derive(Default)]
pub struct Cases {
    states: u64,
    reached: bool,
    worlds: Option<(u32, u32)>,
    failure: Option<(u32, String, String)>,
}

impl Cases {
    /// One case: the world, whether it could have failed, and what went wrong in which setting.
    pub fn case(&mut self, world: u32, interesting: bool, failure: Option<(String, String)>) {
        self.states += 1;
        self.reached |= interesting;
        let (first, last) = self.worlds.unwrap_or((world, world));
        self.worlds = Some((first.min(world), last.max(world)));
        if self.failure.is_none() {
            self.failure = failure.map(|(setting, sentence)| (world, setting, sentence));
        }
    }
}

/// Runs the claims of a sweep.
pub fn sweep(study: &str, setup: &Setup, claims: &[SweepClaim<'_>]) -> Report {
    let mut tally = Tally::new(Instant::now());
    for SweepClaim { promise, cases } in claims.iter().filter(|c| setup.without != Some(c.promise.name)) {
        let mut seen = Cases::default();
        let position = tally.position(*promise);
        tally.stopped = tally.stopped.or_else(|| setup.is_over(tally.report.states, tally.started));
        if tally.stopped.is_some() {
            continue;
        }
        cases(&mut seen);
        tally.reached[position] = seen.reached;
        tally.report.states += seen.states;
        for world in seen.worlds.into_iter().flat_map(|(first, last)| [first, last]) {
            tally.saw_world(world);
        }
        if let Some((world, setting, sentence)) = seen.failure {
            let failed = Counterexample {
                requirement: promise.requirement.to_string(),
                claim: promise.name.to_owned(),
                study: study.to_owned(),
                world,
                setting,
                policy: Vec::new(),
                mutant: None,
                lanes: Vec::new(),
                steps: Vec::new(),
                waits: Vec::new(),
                cycle: Vec::new(),
                sentence,
            };
            tally.report.verdicts[position].1 = Verdict::Refuted(Box::new(failed));
        }
    }
    tally.finish()
}

/// How a mutant fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// The claim named for it refutes it, and nothing else of the study does.
    Refuted,
    /// The claim named for it holds: it cannot fail, or not for this reason.
    Survived,
    /// Without the claim named for it the study refutes it all the same, by this claim: that one should be named.
    AlsoBy(String),
    /// The claim's state of interest is not met, or a budget ran out.
    Inconclusive(String),
}

/// Puts a mutant on trial: the claim it names must refute it. With that claim taken for true it must survive the
/// whole study, and meet the claim's state of interest on the way.
pub fn trial(mutant: &Mutant, setup: &Setup) -> (Trial, Report) {
    let report = (mutant.run)(setup);
    let named = report.verdicts.iter().find(|(promise, _)| promise.name == mutant.claim);
    let verdict = match named {
        None => Trial::Inconclusive("the study has no such claim".to_owned()),
        Some((_, Verdict::Proved)) => Trial::Survived,
        Some((_, Verdict::Inconclusive(why))) => Trial::Inconclusive(why.clone()),
        Some((_, Verdict::Refuted(_))) => {
            let without = (mutant.run)(&Setup { without: Some(mutant.claim), ..setup.clone() });
            let open = without.verdicts.iter().find_map(|(promise, verdict)| match verdict {
                Verdict::Inconclusive(why) if promise.name == mutant.claim => Some(why.clone()),
                _ => None,
            });
            match (without.refuted().next(), open) {
                (Some((other, _)), _) => Trial::AlsoBy(other.name.to_owned()),
                (None, Some(why)) => Trial::Inconclusive(why),
                (None, None) => Trial::Refuted,
            }
        }
    };
    (verdict, report)
}
