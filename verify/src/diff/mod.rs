//! What one policy, or one tree, means beside another: verdict, arms, bytes, evidence, obligations.

mod arms;
mod coverage;
mod evidence;
mod git;
mod obligations;
mod page;
mod rungs;
mod side;
mod verdict;

use crate::choice::Choice;
use crate::complaint::Complaint;
use crate::counterexamples::workspace;
use crate::keys::elements;
use crate::proof::{self, Settings};
use crate::report::{Exit, say, say_json};
use arms::{Move, Stretch};
use coverage::Exchanged;
use evidence::Opinion;
use obligations::Obligations;
use rankwise_check::explore::Budget;
use rankwise_check::lanes::Counterexample;
use rankwise_check::registry::modules;
use rungs::Known;
use serde::Serialize;
use side::Side;
use std::sync::atomic::AtomicBool;
use verdict::Verdict;

/// Where measurements are kept.
const MEASUREMENTS: &str = "docs/measurements";

/// How the comparison is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For a terminal.
    Text,
    /// For a review.
    Markdown,
    /// One object.
    Json,
}

/// Limits of the studies that are run.
pub(crate) struct Limits {
    /// Only these worlds.
    pub(crate) worlds: Option<(u32, u32)>,
    /// Of each study.
    pub(crate) budget: Budget,
    /// Set when the user wants an end.
    pub(crate) interrupted: &'static AtomicBool,
}

impl Limits {
    fn settings(&self, choice: &Choice) -> Settings {
        let Limits { worlds, budget, interrupted } = *self;
        Settings { policy: choice.policy.clone(), worlds, budget, interrupted }
    }
}

/// A key that differs.
#[derive(Clone, Debug, Serialize)]
struct KeyChange {
    key: String,
    base: Option<String>,
    head: Option<String>,
    /// Where the head has it.
    place: String,
    /// For a list: elements that went, with "-", and that came, with "+".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elements: Vec<String>,
}

/// Everything that differs, and what it means.
#[derive(Debug, Serialize)]
struct Findings {
    #[serde(flatten)]
    verdict: Verdict,
    base: String,
    head: String,
    keys: Vec<KeyChange>,
    arms: Vec<Stretch>,
    moves: Vec<Move>,
    measurements: Vec<Opinion>,
    /// Whether there is a folder of measurements here.
    looked_up: bool,
    rungs: Vec<Known>,
    evidence: Vec<Exchanged>,
    obligations: Obligations,
    /// One for each requirement that is refuted.
    counterexamples: Vec<Counterexample>,
    /// Why a side's policy could not be read, where that is no error.
    unread: Option<String>,
}

/// Compares two sides and says what differs, the verdict in the first line.
pub(crate) fn run(
    base: Option<&str>,
    head: Option<&str>,
    limits: &Limits,
    form: Form,
) -> Result<Exit, Complaint> {
    let base = base.map_or_else(Side::merge_base, Side::read)?;
    let head = head.map_or_else(Side::working_tree, Side::read)?;
    let findings = Findings::gather(&base, &head, limits)?;
    match form {
        Form::Text => say(&page::of(&findings).text())?,
        Form::Markdown => say(&page::of(&findings).markdown())?,
        Form::Json => say_json(&findings)?,
    }
    Ok(findings.verdict.word.exit())
}

impl Findings {
    fn gather(base: &Side, head: &Side, limits: &Limits) -> Result<Findings, Complaint> {
        let keys = changed_keys(base, head);
        let mut findings = Findings {
            verdict: Verdict::default(),
            base: base.name.clone(),
            head: head.name.clone(),
            keys,
            arms: Vec::new(),
            moves: Vec::new(),
            measurements: Vec::new(),
            looked_up: false,
            rungs: Vec::new(),
            evidence: Vec::new(),
            obligations: Obligations::default(),
            counterexamples: Vec::new(),
            unread: None,
        };
        if let (Err(error), None) = (&head.choice, &head.certificate) {
            findings.verdict = Verdict::invalid(error);
            return Ok(findings);
        }
        let unread = [base, head].into_iter().find_map(|side| side.choice.as_ref().err());
        findings.unread = unread.map(|error| format!("not readable by this build: {error}"));
        let no_certificate = base.certificate.is_none() && head.certificate.is_none();
        if !(no_certificate && findings.keys.is_empty()) {
            findings.policies(base, head, limits)?;
            let changed: Vec<String> = findings.keys.iter().map(|change| change.key.clone()).collect();
            let selection = proof::select(&modules(), &[])?;
            findings.obligations = obligations::compare(base, head, &changed, &selection, limits)?;
            findings.counterexamples = findings.obligations.counterexamples();
        }
        findings.verdict = Verdict::of(&findings, base, head, limits);
        Ok(findings)
    }

    /// What differs between two policies that this build can read.
    fn policies(&mut self, base: &Side, head: &Side, limits: &Limits) -> Result<(), Complaint> {
        let Ok(after) = &head.choice else { return Ok(()) };
        if self.keys.is_empty() {
            return Ok(());
        }
        let rows = evidence::rows(&workspace().join(MEASUREMENTS))?;
        self.looked_up = rows.is_some();
        self.rungs = rungs::known(after, &head.keys, rows.as_deref(), &limits.settings(after))?;
        let Ok(before) = &base.choice else { return Ok(()) };
        self.arms = arms::changed_arms(&before.policy, &after.policy);
        self.evidence = coverage::exchanged(rows.as_deref(), &before.policy, &after.policy);
        self.moves = arms::moves(&before.policy, &after.policy, &self.arms);
        let opinions = |stretch: &Stretch| -> Vec<Opinion> {
            let there = rows.iter().flatten().filter(|row| stretch.worlds.contains(row.world));
            there.filter_map(|row| row.opinion(&stretch.head, &stretch.base)).collect()
        };
        self.measurements = self.arms.iter().flat_map(opinions).collect();
        Ok(())
    }
}

/// The keys that differ; none where both policies mean the same.
fn changed_keys(base: &Side, head: &Side) -> Vec<KeyChange> {
    if let (Ok(before), Ok(after)) = (&base.choice, &head.choice)
        && before.policy == after.policy
    {
        return Vec::new();
    }
    let mut names: Vec<&str> = head.keys.iter().map(|one| one.key.as_str()).collect();
    let gone = base.keys.iter().map(|one| one.key.as_str()).filter(|key| head.value(key).is_none());
    names.extend(gone);
    let differ = names.into_iter().filter(|key| base.value(key) != head.value(key));
    differ
        .map(|key| KeyChange {
            key: key.to_owned(),
            base: base.value(key).map(str::to_owned),
            head: head.value(key).map(str::to_owned),
            place: head.place(key),
            elements: changed_elements(base.value(key), head.value(key)),
        })
        .collect()
}

/// The elements of two lists, one a line: " " where both have it, "-" where it went, "+" where it came.
fn changed_elements(base: Option<&str>, head: Option<&str>) -> Vec<String> {
    let (Some(base), Some(head)) = (base.and_then(elements), head.and_then(elements)) else {
        return Vec::new();
    };
    // Lengths of the longest common subsequences of what is left of both.
    let mut common = vec![vec![0; head.len() + 1]; base.len() + 1];
    for (i, before) in base.iter().enumerate().rev() {
        for (j, after) in head.iter().enumerate().rev() {
            let longest = common[i + 1][j].max(common[i][j + 1]);
            common[i][j] = if before == after { common[i + 1][j + 1] + 1 } else { longest };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < base.len() || j < head.len() {
        if i < base.len() && j < head.len() && base[i] == head[j] {
            lines.push(format!("  {}", base[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < base.len() && (j == head.len() || common[i + 1][j] >= common[i][j + 1]) {
            lines.push(format!("- {}", base[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", head[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_element_stands_where_it_was() {
        let lines = changed_elements(Some("[1, 2, 3]"), Some("[1, 4, 3]"));
        assert_eq!(lines, ["  1", "- 2", "+ 4", "  3"]);
        assert_eq!(changed_elements(Some("[1]"), Some("[]")), ["- 1"]);
        assert!(changed_elements(Some("1"), Some("2")).is_empty());
    }
}
