//! The obligations of both sides: which of them a change touches, what comes of those, and where less is proved.

use super::Limits;
use super::side::Side;
use crate::certificate::{Judged, OnTrial, accused, judge, listed};
use crate::complaint::Complaint;
use crate::keys;
use crate::proof::{Selection, Task};
use crate::verdicts::{INCONCLUSIVE, PROVED, REFUTED, worlds_text};
use rankwise_check::lanes::{Counterexample, PolicyLine};
use rankwise_protocol::policy::SHIPPED;
use serde::Serialize;
use std::collections::BTreeSet;

/// The obligations of both sides.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Obligations {
    pub(super) base: Vec<Judged>,
    pub(super) head: Vec<Judged>,
    /// Run by this comparison, on one side at least.
    pub(super) run: usize,
    /// Where the head proves less.
    pub(super) weaker: Vec<String>,
    /// Proved in the head's certificate; inconclusive or refuted in the base's.
    pub(super) proved_now: usize,
    /// What else differs in what is proved.
    pub(super) notes: Vec<String>,
}

/// Which studies are run.
struct Touched<'a> {
    changed: &'a [String],
    /// Every study: the other side is from other sources, or its policy cannot be read.
    all: bool,
}

impl Touched<'_> {
    /// Whether a study reads a key that differs between the sides, or one that is not as shipped: of that the tests
    /// of this tree say nothing.
    fn has(&self, task: &Task, side: &Side) -> bool {
        let shipped = keys::read(SHIPPED, &[]);
        let unusual = |key: &str| {
            let known = shipped.iter().find(|one| one.key == key).map(|one| one.value.as_str());
            side.value(key) != known
        };
        let reads = |key: &&&str| self.changed.iter().any(|one| one == **key) || unusual(key);
        self.all || task.study.reads.iter().any(|key| reads(&key))
    }
}

/// Runs what has to be run, and compares.
pub(super) fn compare(
    base: &Side,
    head: &Side,
    changed: &[String],
    selection: &Selection,
    limits: &Limits,
) -> Result<Obligations, Complaint> {
    let mut run = BTreeSet::new();
    let mut of = |side: &Side, other: &Side| judge_side(side, other, changed, selection, limits, &mut run);
    let (base_judged, mut head_judged) = (of(base, head)?, of(head, base)?);
    for one in &mut head_judged {
        let lines = lines(one, base, head, changed);
        if let Some(found) = one.counterexample.as_mut().filter(|_| !lines.is_empty()) {
            found.policy = lines;
        }
    }
    let (mutants, seeds) = accused(selection);
    let tried = |side: &Side| match &side.certificate {
        Some(certificate) => [certificate.mutants.clone(), certificate.seeds.clone()].concat(),
        None => [mutants.clone(), seeds.clone()].concat(),
    };
    let mut found = Obligations { run: run.len(), ..Obligations::default() };
    found.judge(&base_judged, &head_judged, limits);
    found.try_mutants(&tried(base), &tried(head));
    if let (Some(before), Some(after)) = (&base.certificate, &head.certificate) {
        found.verdicts(&before.obligations, &after.obligations);
        found.trials(&tried(base), &tried(head));
    }
    Ok(Obligations { base: base_judged, head: head_judged, ..found })
}

/// The obligations of a side: those of its certificate, or those of this build, of which the touched ones are run.
/// `run` gets what was run.
fn judge_side(
    side: &Side,
    other: &Side,
    changed: &[String],
    selection: &Selection,
    limits: &Limits,
    run: &mut BTreeSet<String>,
) -> Result<Vec<Judged>, Complaint> {
    if let Some(certificate) = &side.certificate {
        return Ok(certificate.obligations.clone());
    }
    let mut all = listed(&selection.tasks);
    let Ok(choice) = &side.choice else { return Ok(all) };
    let touched = Touched { changed, all: other.sources() != side.sources() || other.choice.is_err() };
    let wanted = |task: &&Task| touched.has(task, side) || is_new(task, other);
    let tasks: Vec<Task> = selection.tasks.iter().filter(wanted).cloned().collect();
    for judged in judge(&tasks, &limits.settings(choice), choice)? {
        run.insert(judged.told());
        if let Some(place) = all.iter_mut().find(|one| one.identity() == judged.identity()) {
            *place = judged;
        }
    }
    Ok(all)
}

/// Whether a certificate on the other side lacks a claim of this study.
fn is_new(task: &Task, other: &Side) -> bool {
    let Some(certificate) = &other.certificate else { return false };
    let has = |claim: &str| {
        let mut all = certificate.obligations.iter();
        all.any(|one| (one.study.as_str(), one.claim.as_str()) == (task.study.name, claim))
    };
    task.claims.iter().any(|promise| !has(promise.name))
}

/// The changed keys that an obligation reads, as a counterexample names them.
fn lines(one: &Judged, base: &Side, head: &Side, changed: &[String]) -> Vec<PolicyLine> {
    let read = changed.iter().filter(|key| one.reads.contains(key));
    let line = |key: &String| {
        let was = base.told(key).map_or("not there".to_owned(), |value| value);
        let origin = format!("{}, {was} in the base", head.place(key));
        Some(PolicyLine { key: key.clone(), value: head.told(key)?, origin })
    };
    read.filter_map(line).collect()
}

impl Obligations {
    /// Says where the head proves less, and what else differs.
    fn judge(&mut self, base: &[Judged], head: &[Judged], limits: &Limits) {
        let in_list =
            |list: &[Judged], one: &Judged| list.iter().position(|other| other.identity() == one.identity());
        for one in base.iter().filter(|one| in_list(head, one).is_none()) {
            self.weaker.push(format!("obligation gone: {}", one.told()));
        }
        for one in head.iter().filter(|one| in_list(base, one).is_none()) {
            self.notes.push(format!("obligation added: {}", one.told()));
        }
        let mut added: Vec<(String, Vec<String>)> = Vec::new();
        for after in head {
            let Some(before) = in_list(base, after).map(|place| &base[place]) else { continue };
            self.bounds(before, after, limits);
            for axiom in after.axioms.iter().filter(|axiom| !before.axioms.contains(axiom)) {
                match added.iter_mut().find(|(known, _)| known == axiom) {
                    Some((_, names)) => names.push(after.requirement.clone()),
                    None => added.push((axiom.clone(), vec![after.requirement.clone()])),
                }
            }
        }
        for (axiom, mut names) in added {
            names.dedup();
            self.weaker.push(format!("axiom added: {} now assumed: {axiom}", names.join(", ")));
        }
    }

    /// One obligation of both sides.
    fn bounds(&mut self, before: &Judged, after: &Judged, limits: &Limits) {
        let told = after.told();
        let within = |(first, last): (u32, u32)| match limits.worlds {
            Some((from, to)) => (first.max(from), last.min(to)),
            None => (first, last),
        };
        let ran = before.verdict.is_some() && after.verdict.is_some();
        let (was, is) = if ran { (within(before.worlds), within(after.worlds)) } else { Default::default() };
        if is.0 > was.0 || is.1 < was.1 {
            let (was, is) = (worlds_text(was), worlds_text(is));
            self.weaker.push(format!("bound lowered: {told} from worlds {was} to {is}"));
        } else if is != was {
            self.notes.push(format!(
                "bound raised: {told} from worlds {} to {}",
                worlds_text(was),
                worlds_text(is)
            ));
        }
        let regime = |one: &Judged| one.regime.clone().unwrap_or("none".to_owned());
        for (what, was, is) in [
            ("adversary", before.faults.clone(), after.faults.clone()),
            ("regime of time", regime(before), regime(after)),
            ("engine", before.engine.clone(), after.engine.clone()),
        ] {
            if was != is {
                self.weaker.push(format!("{what} changed: {told} from \"{was}\" to \"{is}\""));
            }
        }
        for axiom in before.axioms.iter().filter(|axiom| !after.axioms.contains(axiom)) {
            self.notes.push(format!("axiom dropped: {told}: {axiom}"));
        }
        for reduction in after.reductions.iter().filter(|one| !before.reductions.contains(one)) {
            self.notes.push(format!("reduction added: {told}: {reduction}"));
        }
        if before.is(REFUTED) && after.verdict.is_some() && !after.is(REFUTED) {
            self.notes.push(format!("refuted in the base, and no more: {told}"));
        }
    }

    /// Mutants and seed rules of both sides.
    fn try_mutants(&mut self, base: &[OnTrial], head: &[OnTrial]) {
        let noun = |one: &OnTrial| if one.hole.is_some() { "seed rule" } else { "mutant" };
        for before in base {
            let Some(after) = head.iter().find(|after| after.name == before.name) else {
                let OnTrial { name, requirement, claim, .. } = before;
                self.weaker.push(format!("{} gone: {name}, against {requirement} {claim}", noun(before)));
                continue;
            };
            let tried = after.verdict.as_deref().filter(|_| before.is(REFUTED));
            if let Some(verdict) = tried.filter(|verdict| *verdict != REFUTED) {
                let OnTrial { name, requirement, claim, .. } = after;
                let noun = noun(after);
                self.weaker
                    .push(format!("{noun} {name} no longer refuted by {requirement} {claim}: {verdict}"));
            }
        }
        for one in head.iter().filter(|one| !base.iter().any(|before| before.name == one.name)) {
            self.notes.push(format!("{} added: {}, against {}", noun(one), one.name, one.requirement));
        }
    }

    /// Verdicts of two certificates that differ, where no other line says so.
    fn verdicts(&mut self, base: &[Judged], head: &[Judged]) {
        for after in head {
            let Some(before) = base.iter().find(|before| before.identity() == after.identity()) else {
                continue;
            };
            let (told, was) = (after.told(), before.verdict.as_deref().unwrap_or("not run"));
            if after.is(PROVED) && (before.is(INCONCLUSIVE) || before.is(REFUTED)) {
                self.proved_now += 1;
            }
            match after.verdict.as_deref() {
                None if before.is(PROVED) => self.weaker.push(format!("no longer run: {told}")),
                None if before.verdict.is_some() => {
                    self.notes.push(format!("no longer run, was {was}: {told}"))
                }
                Some(is) if was != is && !before.is(REFUTED) => {
                    self.notes.push(format!("{was} in the base, {is} now: {told}"));
                }
                _ => {}
            }
        }
    }

    /// Trials of two certificates that ended otherwise, where no other line says so.
    fn trials(&mut self, base: &[OnTrial], head: &[OnTrial]) {
        for after in head {
            let Some(before) = base.iter().find(|before| before.name == after.name) else { continue };
            let told = |one: &OnTrial| one.verdict.clone().unwrap_or("not tried".to_owned());
            let noun = if after.hole.is_some() { "seed rule" } else { "mutant" };
            if before.is(REFUTED) && after.verdict.is_none() {
                self.weaker.push(format!("{noun} {} no longer tried", after.name));
            } else if before.verdict != after.verdict && !before.is(REFUTED) {
                let (was, is) = (told(before), told(after));
                self.notes.push(format!("{noun} {}: {was} in the base, {is} now", after.name));
            }
        }
    }

    /// Obligations of the head with that verdict.
    pub(super) fn with(&self, verdict: &str) -> Vec<&Judged> {
        self.head.iter().filter(|one| one.is(verdict)).collect()
    }

    /// For each refuted requirement, in order, the counterexample to show: one with lanes, at the smallest
    /// world, the shortest.
    pub(super) fn counterexamples(&self) -> Vec<Counterexample> {
        let size = |found: &Counterexample| (found.lanes.is_empty(), found.world, found.steps.len());
        let mut shown: Vec<Counterexample> = Vec::new();
        for found in self.with(REFUTED).into_iter().filter_map(|one| one.counterexample.as_ref()) {
            match shown.iter_mut().find(|kept| kept.requirement == found.requirement) {
                Some(kept) if size(found) < size(kept) => *kept = found.clone(),
                Some(_) => {}
                None => shown.push(found.clone()),
            }
        }
        shown
    }

    /// An obligation of the base.
    pub(super) fn before(&self, one: &Judged) -> Option<&Judged> {
        self.base.iter().find(|before| before.identity() == one.identity())
    }
}
