//! Counterexamples as a person reads them: a column for each rank or agent, time downward, who waits for whom, the
//! cycle, and one sentence.

use crate::explore::{Step, Wait};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A run that breaks a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counterexample {
    /// The requirement it breaks, as `HAL-3`.
    pub requirement: String,
    /// The claim, as a sentence.
    pub claim: String,
    /// The study that found it.
    pub study: String,
    /// The smallest world that fails.
    pub world: u32,
    /// What was given: arm, overrides, faults. May be empty.
    pub setting: String,
    /// The policy keys that it hangs on.
    pub policy: Vec<PolicyLine>,
    /// The mutant that was run, if one was.
    pub mutant: Option<String>,
    /// Names of the lanes.
    pub lanes: Vec<String>,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// Who waits for whom at the end.
    pub waits: Vec<Wait>,
    /// Lanes that wait in a circle, in order; empty if none do.
    pub cycle: Vec<usize>,
    /// What went wrong.
    pub sentence: String,
}

/// A key of the policy, its value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyLine {
    /// As `halo.coalesce`.
    pub key: String,
    /// As it was in this run.
    pub value: String,
    /// File and line, or the `--set` that gave it.
    pub origin: String,
}

/// A circle of lanes each of which waits for the next, if there is one: the one that holds the lowest lane.
pub fn cycle(lanes: usize, waits: &[Wait]) -> Vec<usize> {
    (0..lanes).find_map(|start| walk(start, lanes, waits)).unwrap_or_default()
}

/// Looks for a way from `start` back to it, shortest first.
fn walk(start: usize, lanes: usize, waits: &[Wait]) -> Option<Vec<usize>> {
    let mut came_from = vec![None; lanes];
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(lane) = queue.pop_front() {
        for wait in waits.iter().filter(|wait| wait.lane == lane) {
            if wait.on == start {
                let mut way = vec![lane];
                while let Some(&Some(before)) = way.last().map(|&last| &came_from[last]) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if came_from[wait.on].is_none() {
                came_from[wait.on] = Some(lane);
                queue.push_back(wait.on);
            }
        }
    }
    None
}

/// Draws a counterexample for a terminal of `width` columns.
pub fn render(counterexample: &Counterexample, width: usize, color: bool) -> String {
    let paint = Paint { color };
    let mut out = String::new();
    heading(&mut out, counterexample, &paint);
    if !counterexample.lanes.is_empty() {
        body(&mut out, counterexample, width, &paint);
    }
    let _ = writeln!(out, "\n{}", paint.bold(&counterexample.sentence));
    out
}

fn heading(out: &mut String, counterexample: &Counterexample, paint: &Paint) {
    let Counterexample { requirement, claim, study, world, .. } = counterexample;
    let title = format!("{requirement} does not hold: {claim}");
    let _ = writeln!(out, "{}", paint.red(&title));
    let ranks = if *world == 1 { "rank" } else { "ranks" };
    let _ = write!(out, "{study}, {world} {ranks}");
    if !counterexample.setting.is_empty() {
        let _ = write!(out, ", {}", counterexample.setting);
    }
    if let Some(mutant) = &counterexample.mutant {
        let _ = write!(out, ", mutant {mutant}");
    }
    let _ = writeln!(out);
    for PolicyLine { key, value, origin } in &counterexample.policy {
        let _ = writeln!(out, "policy: {key} = {value}  ({origin})");
    }
}

fn body(out: &mut String, counterexample: &Counterexample, width: usize, paint: &Paint) {
    let lanes = &counterexample.lanes;
    let column = (width.saturating_sub(1) / lanes.len()).clamp(14, 34);
    let row = |cells: &[String]| {
        let line: String = cells.iter().map(|cell| format!("{cell:<column$}")).collect();
        line.trim_end().to_owned()
    };
    let _ = writeln!(out, "\n{}", paint.bold(&row(lanes)));
    let rule: Vec<String> = lanes.iter().map(|_| "─".repeat(column - 2)).collect();
    let _ = writeln!(out, "{}", row(&rule));
    for step in &counterexample.steps {
        for line in wrap(&step.text, column - 2) {
            let cells: Vec<String> = (0..lanes.len())
                .map(|lane| if lane == step.lane { line.clone() } else { "·".into() })
                .collect();
            let _ = writeln!(out, "{}", row(&cells));
        }
    }
    let waiting: Vec<Vec<String>> = (0..lanes.len())
        .map(|lane| {
            let waits = counterexample.waits.iter().filter(|wait| wait.lane == lane);
            waits.flat_map(|wait| wrap(&format!("waits: {}", wait.why), column - 2)).collect()
        })
        .collect();
    for line in 0..waiting.iter().map(Vec::len).max().unwrap_or(0) {
        let cells: Vec<String> =
            waiting.iter().map(|column| column.get(line).cloned().unwrap_or_default()).collect();
        let _ = writeln!(out, "{}", paint.yellow(&row(&cells)));
    }
    if !counterexample.cycle.is_empty() {
        let mut names: Vec<&str> = counterexample.cycle.iter().map(|&lane| lanes[lane].as_str()).collect();
        names.push(names[0]);
        let _ = writeln!(out, "\n{}", paint.red(&format!("cycle: {}", names.join(" ─waits for─▶ "))));
    }
}

/// Breaks `text` at spaces into lines of at most `width` characters where words allow.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("never empty");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

struct Paint {
    color: bool,
}

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    fn red(&self, text: &str) -> String {
        self.with("31;1", text)
    }

    fn yellow(&self, text: &str) -> String {
        self.with("33", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(lane: usize, on: usize) -> Wait {
        Wait { lane, on, why: String::new() }
    }

    #[test]
    fn a_cycle_is_found_behind_a_chain() {
        assert_eq!(cycle(4, &[wait(0, 1), wait(1, 2), wait(2, 3), wait(3, 1)]), [1, 2, 3]);
        assert_eq!(cycle(2, &[wait(0, 0)]), [0]);
        assert!(cycle(3, &[wait(0, 1), wait(1, 2)]).is_empty());
    }

    #[test]
    fn long_texts_wrap_with_an_indent() {
        assert_eq!(wrap("send first edge to 2", 12), ["send first", "  edge to 2"]);
    }
}
