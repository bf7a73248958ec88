//! Which obligations and mutants are asked for, and running them on two threads.

use crate::complaint::Complaint;
use crate::progress::Progress;
use rankwise_check::registry::{Module, Mutant, Promise, Report, Setup, Study, Trial, trial};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// Studies that run at the same time.
const THREADS: usize = 2;

/// A study and those of its claims that are asked for.
#[derive(Clone)]
pub(crate) struct Task {
    /// Name of the study's module.
    pub(crate) module: &'static str,
    /// The study.
    pub(crate) study: Study,
    /// Its claims that are asked for.
    pub(crate) claims: Vec<Promise>,
}

/// What is asked for.
pub(crate) struct Selection {
    /// In the order of the registry.
    pub(crate) tasks: Vec<Task>,
    /// In the order of the registry.
    pub(crate) mutants: Vec<Mutant>,
    /// Rules of the designs that this one started from: the hole, and the rule as a mutant.
    pub(crate) seeds: Vec<(&'static str, Mutant)>,
}

/// The obligations and mutants that `only` names: modules, requirements or studies; all if it is empty.
pub(crate) fn select(modules: &[Module], only: &[String]) -> Result<Selection, Complaint> {
    let known = names(modules);
    for name in only {
        if !known.iter().any(|candidate| candidate.eq_ignore_ascii_case(name)) {
            return Err(Complaint::unknown("--only", name, &known));
        }
    }
    let asked = |name: &str| only.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
    let mut selection = Selection { tasks: Vec::new(), mutants: Vec::new(), seeds: Vec::new() };
    for module in modules {
        let whole = only.is_empty() || asked(module.name);
        for study in &module.studies {
            let wanted =
                |promise: &&Promise| whole || asked(study.name) || asked(&promise.requirement.to_string());
            let claims: Vec<Promise> = study.claims.iter().filter(wanted).copied().collect();
            if !claims.is_empty() {
                selection.tasks.push(Task { module: module.name, study: study.clone(), claims });
            }
        }
        let wanted =
            |mutant: &&Mutant| whole || asked(mutant.study) || asked(&mutant.requirement.to_string());
        selection.mutants.extend(module.mutants.iter().filter(wanted).cloned());
        let seeds = module.seeds.iter().filter(|seed| wanted(&&seed.as_mutant));
        selection.seeds.extend(seeds.map(|seed| (seed.title, seed.as_mutant.clone())));
    }
    Ok(selection)
}

/// The mutant of that name.
pub(crate) fn mutant(modules: &[Module], name: &str) -> Result<Mutant, Complaint> {
    let mutants = || modules.iter().flat_map(|module| &module.mutants);
    let known: Vec<String> = mutants().map(|mutant| mutant.name.to_owned()).collect();
    let found = mutants().find(|mutant| mutant.name == name).cloned();
    found.ok_or_else(|| Complaint::unknown("--mutant", name, &known))
}

/// Policy keys that a study reads.
pub(crate) fn reads(modules: &[Module], study: &str) -> &'static [&'static str] {
    let mut studies = modules.iter().flat_map(|module| &module.studies);
    studies.find(|candidate| candidate.name == study).map_or(&[], |study| study.reads)
}

/// What `--only` takes: modules, requirements, studies.
fn names(modules: &[Module]) -> Vec<String> {
    let studies = || modules.iter().flat_map(|module| &module.studies);
    let mut known: Vec<String> = modules.iter().map(|module| module.name.to_owned()).collect();
    for promise in studies().flat_map(|study| &study.claims) {
        let name = promise.requirement.to_string();
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known.extend(studies().map(|study| study.name.to_owned()));
    known
}

/// Runs the studies; `None` is one that was not begun before the interruption. `ready` gets each result in the
/// order of `tasks`, as soon as those before it are there.
pub(crate) fn prove(
    tasks: &[Task],
    setup: &Settings,
    ready: impl FnMut(&Task, Option<Report>) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    in_order(tasks, |task| task.study.name, |task, watched| setup.run_watched(watched, task.study.run), ready)
}

/// Puts mutants on trial, as [`prove`] runs studies.
pub(crate) fn try_mutants(
    mutants: &[Mutant],
    setup: &Settings,
    ready: impl FnMut(&Mutant, Option<(Trial, Report)>) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    let name = |mutant: &Mutant| mutant.name;
    in_order(mutants, name, |mutant, watched| setup.run_watched(watched, |setup| trial(mutant, setup)), ready)
}

/// How studies are run, for each thread to make its own [`Setup`] from.
pub(crate) struct Settings {
    /// The policy in question.
    pub(crate) policy: rankwise_protocol::policy::Policy,
    /// Only these worlds.
    pub(crate) worlds: Option<(u32, u32)>,
    /// Of each study.
    pub(crate) budget: rankwise_check::explore::Budget,
    /// Set when the user wants an end.
    pub(crate) interrupted: &'static AtomicBool,
}

impl Settings {
    /// Runs one thing, unless the user wants an end.
    pub(crate) fn run<T>(&self, work: impl FnOnce(&Setup<'_>) -> T) -> Option<T> {
        self.run_watched(&|_| {}, work)
    }

    /// As [`Settings::run`]; `watched` is told of the states so far.
    fn run_watched<T>(&self, watched: &dyn Fn(u64), work: impl FnOnce(&Setup<'_>) -> T) -> Option<T> {
        let watch = |states| {
            watched(states);
            self.interrupted.load(Ordering::Relaxed)
        };
        if self.interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let mut setup = Setup::new(self.policy.clone());
        setup.worlds = self.worlds;
        setup.budget = self.budget;
        Some(work(&Setup { watch: &watch, ..setup }))
    }
}

/// Works on `items` with [`THREADS`] threads and hands out the results in the order of the items. Shows progress.
fn in_order<T: Sync, R: Send>(
    items: &[T],
    name: impl Fn(&T) -> &'static str + Sync,
    work: impl Fn(&T, &dyn Fn(u64)) -> R + Sync,
    mut ready: impl FnMut(&T, R) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    let progress = Progress::new(items.len());
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(items.len()) {
            let sender = sender.clone();
            let (next, work, name, progress) = (&next, &work, &name, &progress);
            scope.spawn(move || {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(position) else { break };
                    let name = name(item);
                    progress.begin(name);
                    let result = work(item, &|states| progress.reached(name, states));
                    progress.end(name);
                    let _ = sender.send((position, result));
                }
            });
        }
        drop(sender);
        let mut waiting: Vec<Option<R>> = items.iter().map(|_| None).collect();
        let mut handed_out = 0;
        for (position, result) in receiver {
            waiting[position] = Some(result);
            while let Some(result) = waiting.get_mut(handed_out).and_then(Option::take) {
                progress.pause(|| ready(&items[handed_out], result))?;
                handed_out += 1;
            }
        }
        Ok(())
    })
}
