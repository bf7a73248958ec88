//! Obligations and mutants, what came of them, and how they are printed.

use crate::choice::Choice;
use crate::proof::Task;
use crate::report::{Lean, Table, grouped};
use rankwise_check::lanes::Counterexample;
use rankwise_check::registry::{Mutant, Promise, Report, Trial, Verdict};
use serde::Serialize;

/// It holds in every state of the study's bound.
pub(crate) const PROVED: &str = "proved";
/// It does not.
pub(crate) const REFUTED: &str = "refuted";
/// Neither was shown.
pub(crate) const INCONCLUSIVE: &str = "inconclusive";
/// The study has none of the worlds that were asked for.
const SKIPPED: &str = "skipped";

/// What `--json` prints.
#[derive(Serialize)]
pub(crate) struct Proof<'a> {
    pub(crate) policy_digest: String,
    pub(crate) obligations: &'a [Obligation],
    pub(crate) mutants: &'a [Tried],
}

/// A claim of a study, and what came of it if the study was run.
#[derive(Clone, Serialize)]
pub(crate) struct Obligation {
    pub(crate) module: &'static str,
    pub(crate) requirement: String,
    pub(crate) claim: &'static str,
    pub(crate) study: &'static str,
    pub(crate) engine: &'static str,
    /// Of the report, or those the study has.
    pub(crate) worlds: (u32, u32),
    pub(crate) faults: &'static str,
    pub(crate) regime: Option<&'static str>,
    pub(crate) axioms: &'static [&'static str],
    pub(crate) reductions: &'static [&'static str],
    pub(crate) reads: &'static [&'static str],
    pub(crate) states: Option<u64>,
    pub(crate) transitions: Option<u64>,
    pub(crate) depth: Option<u64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counterexample: Option<Counterexample>,
}

impl Obligation {
    /// Before it is run.
    pub(crate) fn listed(task: &Task, promise: Promise) -> Self {
        let study = &task.study;
        Obligation {
            module: task.module,
            requirement: promise.requirement.to_string(),
            claim: promise.name,
            study: study.name,
            engine: study.engine.name(),
            worlds: study.worlds,
            faults: study.faults,
            regime: study.regime.map(|regime| regime.name()),
            axioms: study.axioms,
            reductions: study.reductions,
            reads: study.reads,
            states: None,
            transitions: None,
            depth: None,
            seconds: None,
            verdict: None,
            why: None,
            counterexample: None,
        }
    }

    /// With what came of its study; `None` is one that was not begun.
    pub(crate) fn judged(task: &Task, promise: Promise, report: Option<&Report>, choice: &Choice) -> Self {
        let listed = Self::listed(task, promise);
        let Some(report) = report else {
            return Obligation { verdict: Some(INCONCLUSIVE), why: Some("interrupted".into()), ..listed };
        };
        let verdict =
            report.verdicts.iter().find(|(judged, _)| *judged == promise).map(|(_, verdict)| verdict);
        let (name, why, counterexample) = match verdict {
            Some(Verdict::Proved) => (PROVED, None, None),
            Some(Verdict::Inconclusive(why)) => (INCONCLUSIVE, Some(why.clone()), None),
            Some(Verdict::Refuted(found)) => {
                let mut found = found.as_ref().clone();
                found.policy = choice.lines(task.study.reads);
                (REFUTED, None, Some(found))
            }
            None if report.worlds.is_none() => (SKIPPED, Some("no such world".into()), None),
            None => (INCONCLUSIVE, Some("the study did not judge it".into()), None),
        };
        Obligation {
            worlds: report.worlds.unwrap_or(listed.worlds),
            states: Some(report.states),
            transitions: Some(report.transitions),
            depth: Some(report.depth),
            seconds: Some(report.time.as_secs_f64()),
            verdict: Some(name),
            why,
            counterexample,
            ..listed
        }
    }

    /// Its line.
    pub(crate) fn row(&self) -> [String; 8] {
        let verdict = match (self.verdict, &self.why) {
            (Some(PROVED), _) => format!("proved to {}", grouped(self.worlds.1.into())),
            (Some(REFUTED), _) => "REFUTED".to_owned(),
            (Some(name), Some(why)) => format!("{name}: {why}"),
            (name, _) => name.unwrap_or_default().to_owned(),
        };
        [
            self.requirement.clone(),
            self.claim.to_owned(),
            self.study.to_owned(),
            worlds_text(self.worlds),
            self.regime.unwrap_or("-").to_owned(),
            self.states.map_or(String::new(), grouped),
            self.seconds.map_or(String::new(), |seconds| format!("{seconds:.2}")),
            verdict,
        ]
    }
}

/// "4" or "2-8".
pub(crate) fn worlds_text((first, last): (u32, u32)) -> String {
    if first == last { grouped(first.into()) } else { format!("{first}-{}", grouped(last.into())) }
}

/// A line for each obligation.
pub(crate) fn obligation_table(rows: Vec<[String; 8]>) -> String {
    let mut table = Table::new([
        ("", Lean::Left),
        ("claim", Lean::Left),
        ("study", Lean::Left),
        ("worlds", Lean::Right),
        ("regime", Lean::Left),
        ("states", Lean::Right),
        ("seconds", Lean::Right),
        ("verdict", Lean::Left),
    ]);
    rows.into_iter().for_each(|row| table.row(row));
    table.wrap(1).render()
}

/// A mutant, and how it fared if it was put on trial.
#[derive(Serialize)]
pub(crate) struct Tried {
    pub(crate) name: &'static str,
    pub(crate) requirement: String,
    pub(crate) claim: &'static str,
    pub(crate) study: &'static str,
    pub(crate) verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    pub(crate) depth: Option<usize>,
    pub(crate) seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) counterexample: Option<Counterexample>,
}

impl Tried {
    /// Before its trial.
    pub(crate) fn listed(mutant: &Mutant) -> Self {
        Tried {
            name: mutant.name,
            requirement: mutant.requirement.to_string(),
            claim: mutant.claim,
            study: mutant.study,
            verdict: None,
            why: None,
            depth: None,
            seconds: None,
            counterexample: None,
        }
    }

    /// With what came of its trial; `None` is one that was not begun.
    pub(crate) fn judged(mutant: &Mutant, result: Option<(Trial, Report)>) -> Self {
        let listed = Self::listed(mutant);
        let Some((trial, report)) = result else {
            return Tried { verdict: Some(INCONCLUSIVE), why: Some("interrupted".into()), ..listed };
        };
        let (verdict, why) = match trial {
            Trial::Refuted => (REFUTED, None),
            Trial::Survived => ("survived", Some("its claim holds".to_owned())),
            Trial::AlsoBy(claim) => ("survived", Some(format!("refuted also by: {claim}"))),
            Trial::Inconclusive(why) => (INCONCLUSIVE, Some(why)),
        };
        let found = report.refuted().find(|(promise, _)| promise.name == mutant.claim);
        let counterexample =
            found.map(|(_, found)| Counterexample { mutant: Some(mutant.name.to_owned()), ..found.clone() });
        Tried {
            verdict: Some(verdict),
            why,
            depth: counterexample.as_ref().map(|found| found.steps.len()),
            seconds: Some(report.time.as_secs_f64()),
            counterexample,
            ..listed
        }
    }

    /// Its line.
    pub(crate) fn row(&self) -> [String; 6] {
        let verdict = self.verdict.unwrap_or_default();
        [
            self.name.to_owned(),
            self.requirement.clone(),
            self.claim.to_owned(),
            self.study.to_owned(),
            self.depth.map_or("-".to_owned(), |depth| depth.to_string()),
            self.why.as_ref().map_or(verdict.to_owned(), |why| format!("{}: {why}", verdict.to_uppercase())),
        ]
    }
}

/// A line for each mutant.
pub(crate) fn mutant_table(rows: impl Iterator<Item = [String; 6]>) -> String {
    let mut table = Table::new([
        ("mutant", Lean::Left),
        ("", Lean::Left),
        ("claim", Lean::Left),
        ("study", Lean::Left),
        ("depth", Lean::Right),
        ("verdict", Lean::Left),
    ]);
    rows.for_each(|row| table.row(row));
    table.wrap(2).render()
}
