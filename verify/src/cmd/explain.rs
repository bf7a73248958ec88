//! `rankwise explain`: a requirement in words, or a counterexample from a file as lanes, a page or a test.

use crate::complaint::{Complaint, regular};
use crate::report::{Exit, color, say, say_json, width};
use crate::{html, regression};
use rankwise_check::lanes::{Counterexample, render};
use rankwise_check::registry::{Engine, Module, modules};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The pages of the specification.
const PAGES: [&str; 3] = [
    include_str!("../../../docs/spec/group.md"),
    include_str!("../../../docs/spec/channel.md"),
    include_str!("../../../docs/spec/halo.md"),
];

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A requirement, as HAL-3, or a file that prove wrote, as target/rankwise/HAL-3.json
    #[arg(value_name = "HAL-3|FILE.json")]
    what: String,
    /// Write the counterexample as a page that needs no other file
    #[arg(long, value_name = "OUT", conflicts_with_all = ["test", "json"])]
    html: Option<PathBuf>,
    /// Print a Rust test that replays the counterexample, for model/check/tests
    #[arg(long, conflicts_with = "json")]
    test: bool,
    /// Write the test to this file
    #[arg(long, value_name = "OUT", requires = "test")]
    output: Option<PathBuf>,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Complaint> {
    let path = Path::new(&args.what);
    let is_file = path.components().count() > 1 || path.extension().is_some();
    if is_file {
        return counterexample(&read(path)?, args);
    }
    for (given, option) in [(args.html.is_some(), "--html"), (args.test, "--test")] {
        if given {
            let expected = "a counterexample that prove wrote, as target/rankwise/HAL-3.json";
            return Err(Complaint(format!("{option}: found {}, expected {expected}", args.what)));
        }
    }
    requirement(&args.what, args.json)
}

fn counterexample(found: &Counterexample, args: &Args) -> Result<Exit, Complaint> {
    if let Some(out) = &args.html {
        write(out, &html::page(found))?;
    } else if args.test {
        let test = regression::test(found)?;
        match &args.output {
            Some(out) => write(out, &test)?,
            None => say(&test)?,
        }
    } else if args.json {
        say_json(found)?;
    } else {
        say(&render(found, width(), color()))?;
    }
    Ok(Exit::Good)
}

fn write(out: &Path, text: &str) -> Result<(), Complaint> {
    std::fs::write(out, text).map_err(|error| Complaint(format!("{}: {error}", out.display())))?;
    say(&format!("kept in {}\n", out.display()))
}

/// Reads a counterexample whose lanes all exist.
fn read(path: &Path) -> Result<Counterexample, Complaint> {
    let refused = |field: &str, found: String| {
        Complaint::field(path.display(), field, &found, "a counterexample that prove wrote")
    };
    regular(path).map_err(|found| refused("file", found))?;
    let text = std::fs::read_to_string(path).map_err(|error| refused("file", error.to_string()))?;
    let found: Counterexample =
        serde_json::from_str(&text).map_err(|error| refused("counterexample", error.to_string()))?;
    let lanes = found.lanes.len();
    let steps = found.steps.iter().flat_map(|step| [Some(step.lane), step.peer]).flatten();
    let named = steps.chain(found.cycle.iter().copied());
    let waits = found.waits.iter().flat_map(|wait| [wait.lane, wait.on]);
    if let Some(lane) = named.chain(waits).find(|&lane| lane >= lanes) {
        return Err(refused("counterexample", format!("lane {lane} of {lanes}")));
    }
    Ok(found)
}

fn requirement(what: &str, as_json: bool) -> Result<Exit, Complaint> {
    let known: Vec<&str> = PAGES.iter().flat_map(|page| sections(page)).map(|(name, _)| name).collect();
    let section = PAGES
        .iter()
        .flat_map(|page| sections(page))
        .find(|(name, _)| name.eq_ignore_ascii_case(what))
        .ok_or_else(|| {
            let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
            Complaint::unknown("explain", what, &known)
        })?;
    let (name, text) = section;
    let modules = modules();
    if as_json {
        say_json(&json!({
            "requirement": name,
            "text": text,
            "obligations": obligations(&modules, name),
            "mutants": mutants(&modules, name),
        }))?;
        return Ok(Exit::Good);
    }
    let mut out = format!("{text}\n\nObligations:\n");
    for one in obligations(&modules, name) {
        let _ = writeln!(out, "- {} ({}, worlds {}{})", one.claim, one.study, one.worlds, one.how);
    }
    out.push_str("\nMutants, each of which its claim refutes:\n");
    for one in mutants(&modules, name) {
        let _ = writeln!(out, "- {}: against \"{}\" ({})", one.name, one.claim, one.study);
    }
    let _ = writeln!(out, "\nProve it: rankwise prove --only {name}");
    say(&out)?;
    Ok(Exit::Good)
}

/// The sections of a page that are requirements: the number, and the text with its heading.
fn sections(page: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let starts = page.match_indices("\n## ").map(|(at, _)| at + 1);
    starts.filter_map(move |start| {
        let section = &page[start..];
        let end = section[3..].find("\n## ").map_or(section.len(), |end| end + 3);
        let name = section[3..].split_whitespace().next()?;
        let (family, number) = name.split_once('-')?;
        let numbered = number.parse::<u32>().is_ok() && family.chars().all(|c| c.is_ascii_uppercase());
        numbered.then(|| (name, section[..end].trim_end()))
    })
}

#[derive(serde::Serialize)]
struct ObligationOf {
    claim: &'static str,
    study: &'static str,
    worlds: String,
    how: String,
}

fn obligations(modules: &[Module], name: &str) -> Vec<ObligationOf> {
    let studies = modules.iter().flat_map(|module| &module.studies);
    let claims = studies.flat_map(|study| study.claims.iter().map(move |claim| (study, claim)));
    let wanted = claims.filter(|(_, claim)| claim.requirement.to_string() == name);
    wanted
        .map(|(study, claim)| {
            let regime = study.regime.map_or(String::new(), |regime| format!(", {}", regime.name()));
            let engine = if study.engine == Engine::Explore { "every state" } else { study.engine.name() };
            ObligationOf {
                claim: claim.name,
                study: study.name,
                worlds: format!("{}-{}", study.worlds.0, study.worlds.1),
                how: format!(", {engine}{regime}"),
            }
        })
        .collect()
}

#[derive(serde::Serialize)]
struct MutantOf {
    name: &'static str,
    claim: &'static str,
    study: &'static str,
}

fn mutants(modules: &[Module], name: &str) -> Vec<MutantOf> {
    let mutants = modules.iter().flat_map(|module| &module.mutants);
    let wanted = mutants.filter(|mutant| mutant.requirement.to_string() == name);
    wanted.map(|mutant| MutantOf { name: mutant.name, claim: mutant.claim, study: mutant.study }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_requirement_of_the_registry_has_a_section_and_the_other_way_round() {
        let written: BTreeSet<String> =
            PAGES.iter().flat_map(|page| sections(page)).map(|(name, _)| name.to_owned()).collect();
        let modules = modules();
        let studies = modules.iter().flat_map(|module| &module.studies);
        let claimed: BTreeSet<String> =
            studies.flat_map(|study| &study.claims).map(|claim| claim.requirement.to_string()).collect();
        assert_eq!(written, claimed);
    }

    #[test]
    fn a_section_ends_where_the_next_begins() {
        let (name, text) = sections(PAGES[2]).next().unwrap();
        assert!(name == "HAL-1" && text.starts_with("## HAL-1 ") && !text.contains("## HAL-2"));
    }
}
