//! Counterexamples: which to show, where they are kept.

use crate::complaint::Complaint;
use crate::report::{color, say, warn, width};
use crate::verdicts::Obligation;
use rankwise_check::lanes::{Counterexample, render};
use std::path::PathBuf;

/// For each refuted requirement, in the order of `results`, the counterexample to show: one with lanes, at the
/// smallest world, the shortest.
pub(crate) fn shown(results: &[Obligation]) -> Vec<&Counterexample> {
    let size = |found: &Counterexample| (found.lanes.is_empty(), found.world, found.steps.len());
    let mut shown: Vec<&Counterexample> = Vec::new();
    for found in results.iter().filter_map(|result| result.counterexample.as_ref()) {
        match shown.iter_mut().find(|kept| kept.requirement == found.requirement) {
            Some(kept) if size(found) < size(kept) => *kept = found,
            Some(_) => {}
            None => shown.push(found),
        }
    }
    shown
}

/// Draws a counterexample and says where it is kept.
pub(crate) fn draw(found: &Counterexample, file: Option<&PathBuf>) -> Result<(), Complaint> {
    let kept = file.map_or(String::new(), |file| format!("kept in {}\n", file.display()));
    say(&format!("{}{kept}\n", render(found, width(), color())))
}

/// Writes a counterexample to `target/rankwise/NAME.json`. One that cannot be written is told of and is no error:
/// the verdict stands without it.
pub(crate) fn keep(found: &Counterexample, name: &str) -> Option<PathBuf> {
    let folder = workspace().join("target/rankwise");
    let path = folder.join(format!("{name}.json"));
    let text = serde_json::to_string_pretty(found).expect("a counterexample is plain data");
    match std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, text + "\n")) {
        Ok(()) => Some(path),
        Err(error) => {
            warn(&format!("{}: {error}", path.display()));
            None
        }
    }
}

/// The nearest folder upward that has `model/policy.toml`, as a path from here, or this folder.
pub(crate) fn workspace() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let found = here.ancestors().position(|folder| folder.join("model/policy.toml").exists());
    (0..found.unwrap_or(0)).map(|_| "..").collect()
}
