//! The first line: one sentence that is understood without the source.

use super::arms::{Stretch, named};
use super::coverage::Exchanged;
use super::evidence::Says;
use super::side::Side;
use super::{Findings, Limits, MEASUREMENTS};
use crate::certificate::Judged;
use crate::complaint::Complaint;
use crate::report::{Exit, count};
use crate::verdicts::{INCONCLUSIVE, PROVED, REFUTED, worlds_text};
use rankwise_check::lanes::Counterexample;
use rankwise_protocol::policy::PolicyError;
use serde::Serialize;

/// What a change comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Word {
    /// Both sides mean the same.
    #[default]
    Same,
    /// They differ, and what was proved is proved.
    Holds,
    /// Something is not shown.
    Inconclusive,
    /// Less is proved.
    Weaker,
    /// Something does not hold.
    Refuted,
    /// The policy cannot be meant.
    Invalid,
}

impl Word {
    /// The exit code of the command.
    pub(super) fn exit(self) -> Exit {
        match self {
            Word::Same | Word::Holds => Exit::Good,
            Word::Inconclusive => Exit::Inconclusive,
            Word::Weaker | Word::Refuted => Exit::Refuted,
            Word::Invalid => Exit::Failed,
        }
    }
}

/// What a change comes to, in a word and in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    #[serde(rename = "verdict")]
    pub(super) word: Word,
    pub(super) line: String,
}

impl Verdict {
    /// The head's policy is refused.
    pub(super) fn invalid(error: &PolicyError) -> Verdict {
        Verdict { word: Word::Invalid, line: format!("invalid policy: {}", Complaint::from(error.clone())) }
    }

    /// What the findings come to.
    pub(super) fn of(findings: &Findings, base: &Side, head: &Side, limits: &Limits) -> Verdict {
        let obligations = &findings.obligations;
        let (refuted, open) = (obligations.with(REFUTED), obligations.with(INCONCLUSIVE));
        let (word, line) = if !refuted.is_empty() {
            (Word::Refuted, refutation(findings, &refuted))
        } else if let Some((first, more)) = obligations.weaker.split_first() {
            let more = more_of(more.len(), "place", "where less is proved");
            (Word::Weaker, format!("weaker: {first}{more}"))
        } else if let Some((first, more)) = open.split_first() {
            let why = first.why.as_deref().unwrap_or("not shown");
            let more = more_of(more.len(), "obligation", "");
            (Word::Inconclusive, format!("inconclusive: {}: {why}{more}", first.told()))
        } else if is_same(findings, base, head) {
            (Word::Same, format!("no change in meaning: {} says what {} says", head.name, base.name))
        } else {
            let only = limits.worlds.map(|(first, last)| {
                let noun = if first == last { "world" } else { "worlds" };
                format!(" on {noun} {} alone", worlds_text((first, last)))
            });
            (Word::Holds, format!("holds{}: {}", only.unwrap_or_default(), holds(findings, base, head)))
        };
        Verdict { word, line }
    }
}

fn more_of(number: usize, noun: &str, what: &str) -> String {
    match number {
        0 => String::new(),
        _ => {
            format!("; and {} {}", count(number as u64, &format!("more {noun}")), what).trim_end().to_owned()
        }
    }
}

fn is_same(findings: &Findings, base: &Side, head: &Side) -> bool {
    findings.keys.is_empty() && findings.obligations.notes.is_empty() && base.sources() == head.sources()
}

/// "REFUTED: HAL-3 on world 2 under halo.coalesce = false (...): deadlock: ranks 0 and 1 ...".
fn refutation(findings: &Findings, refuted: &[&Judged]) -> String {
    let before = |one: &&Judged| findings.obligations.before(one).is_some_and(|before| before.is(REFUTED));
    let word = if refuted.iter().all(before) { "REFUTED, as in the base" } else { "REFUTED" };
    let Some(first) = findings.counterexamples.first() else {
        return format!("{word}: {}", refuted[0].told());
    };
    let Counterexample { requirement, world, policy, sentence, .. } = first;
    let keys: Vec<String> =
        policy.iter().map(|line| format!("{} = {} ({})", line.key, line.value, line.origin)).collect();
    let under = if keys.is_empty() { String::new() } else { format!(" under {}", keys.join(" and ")) };
    let others: Vec<&str> =
        findings.counterexamples.iter().skip(1).map(|other| other.requirement.as_str()).collect();
    let more = match others.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} is refuted too"),
        _ => format!("; {} are refuted too", others.join(", ")),
    };
    format!("{word}: {requirement} on world {world}{under}: {}{more}", clause(sentence))
}

/// A sentence as a part of another: without its full stop, its first letter small.
fn clause(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

/// What changes, what is proved of it, and what speaks against it.
fn holds(findings: &Findings, base: &Side, head: &Side) -> String {
    let mut parts = Vec::new();
    let verbs = |number: usize| if number == 1 { ("was", "is") } else { ("were", "are") };
    if let number @ 1.. = findings.obligations.proved_now {
        let (was, is) = verbs(number);
        let told = count(number as u64, "obligation");
        parts.push(format!("{told} that {was} inconclusive or refuted {is} proved now"));
    }
    if let Some(unread) = &findings.unread {
        parts.push(format!("keys and obligations are compared, arms are not: a policy is {unread}"));
    } else {
        parts.extend(changes(findings, base, head));
    }
    let others: Vec<String> = head
        .sources()
        .into_iter()
        .filter(|one| !base.sources().contains(one))
        .map(|one| one.folder)
        .collect();
    if !others.is_empty() {
        parts.push(format!("the sources of {} are others", others.join(" and ")));
    }
    parts.push(proved(findings, head));
    let moved = findings.moves.iter().filter(|one| one.other_arm());
    if let Some(one) = moved.min_by_key(|one| (one.world, one.rank == "end")) {
        let (world, rank) = (one.world, one.rank);
        parts.push(format!("at world {world} an {rank} rank receives {} the bytes", one.ratio()));
    }
    parts.extend(measured(findings));
    parts.join("; ")
}

fn changes(findings: &Findings, base: &Side, head: &Side) -> Vec<String> {
    let mut told = Vec::new();
    for change in &findings.keys {
        if change.key == "halo.rungs" {
            told.extend(rungs(findings));
            continue;
        }
        let value = |side: &Side| side.told(&change.key).unwrap_or("not there".to_owned());
        told.push(format!("{} is {}, was {}", change.key, value(head), value(base)));
    }
    told
}

fn rungs(findings: &Findings) -> Vec<String> {
    let mut arms: Vec<Vec<&Stretch>> = Vec::new();
    for stretch in &findings.arms {
        match arms.iter_mut().find(|known| known[0].same_pair(stretch)) {
            Some(known) => known.push(stretch),
            None => arms.push(vec![stretch]),
        }
    }
    let takes = |stretches: &Vec<&Stretch>| {
        let (names, one) = named(stretches);
        let take = if one { "takes" } else { "take" };
        format!("{names} {take} {} instead of {}", stretches[0].head, stretches[0].base)
    };
    let mut told: Vec<String> = arms.iter().map(takes).collect();
    match (findings.arms.is_empty(), findings.evidence.is_empty()) {
        (true, true) => {
            told.push(
                "no world changes its arm or its evidence, only the rungs are written otherwise".to_owned(),
            );
        }
        (true, false) => {
            told.push("no world changes its arm".to_owned());
            told.extend(findings.evidence.iter().map(Exchanged::told));
        }
        (false, _) => {}
    }
    told
}

fn proved(findings: &Findings, head: &Side) -> String {
    let obligations = &findings.obligations;
    let (all, run) = (obligations.head.len(), obligations.run);
    let held = obligations.with(PROVED).len();
    let mut told = if head.certificate.is_some() || run == all {
        match all - held {
            0 => format!("all {} are proved", count(all as u64, "obligation")),
            rest => format!("{} are proved, {rest} were not run", count(held as u64, "obligation")),
        }
    } else if run == 0 {
        format!("no obligation depends on it, all {all} stand as they were")
    } else {
        let run = count(run as u64, "obligation");
        let rest = all - obligations.run;
        format!("the {run} that may depend on it are proved, the other {rest} do not depend on it")
    };
    let before = |one: &&&Judged| obligations.before(one).is_some_and(|before| before.is(REFUTED));
    let mut fixed: Vec<&str> =
        obligations.with(PROVED).iter().filter(before).map(|one| one.requirement.as_str()).collect();
    fixed.dedup();
    if !fixed.is_empty() {
        told.push_str(&format!(", {} among them, refuted in the base", fixed.join(" and ")));
    }
    let added: Vec<&String> = obligations.notes.iter().filter(|note| note.contains(" added: ")).collect();
    if let Some((first, more)) = added.split_first() {
        told.push_str(&format!("; {first}{}", more_of(more.len(), "addition", "")));
    }
    told
}

/// The measurement that says most: against, for, or nothing to go by.
fn measured(findings: &Findings) -> Option<String> {
    if findings.arms.is_empty() || findings.unread.is_some() {
        return None;
    }
    let weight = |says: Says| match says {
        Says::Against => 0,
        Says::For => 1,
        Says::Even => 2,
        Says::Unknown => 3,
    };
    let opinions = findings.measurements.iter();
    let told = opinions.min_by_key(|opinion| weight(opinion.says)).map(|opinion| opinion.clause());
    Some(told.unwrap_or_else(|| unmeasured(findings)))
}

/// Why there is no measurement to go by.
pub(super) fn unmeasured(findings: &Findings) -> String {
    if findings.looked_up {
        "no measurement compares the two arms there".to_owned()
    } else {
        format!("no {MEASUREMENTS} here to look measurements up in")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_becomes_a_clause() {
        assert_eq!(clause("Deadlock: ranks 0 and 1 wait."), "deadlock: ranks 0 and 1 wait");
        assert_eq!(clause(""), "");
    }

    #[test]
    fn how_many_more_is_told() {
        assert_eq!(more_of(0, "place", "where less is proved"), "");
        assert_eq!(more_of(2, "place", "where less is proved"), "; and 2 more places where less is proved");
        assert_eq!(more_of(1, "obligation", ""), "; and 1 more obligation");
    }
}
