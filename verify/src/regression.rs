//! A Rust test that replays a counterexample against the core, to paste into `model/check/tests`.

use crate::choice::value;
use crate::complaint::Complaint;
use rankwise_check::lanes::{Counterexample, PolicyLine};
use rankwise_check::registry::{Mutant, Report, Setup, Study, Verdict, modules};
use rankwise_protocol::policy::{KEYS, Policy, SHIPPED, SHIPPED_FILE};
use std::fmt::Write;

/// Columns of a line, as rustfmt breaks it.
const COLUMNS: usize = 110;

/// The text of the test. It is tried first: one that does not pass here is of no use.
pub(crate) fn test(found: &Counterexample) -> Result<String, Complaint> {
    let sets = sets(&found.policy)?;
    replay(found, &sets)?;
    let mut out = heading(found);
    let _ = writeln!(out, "#[test]\nfn {}() {{", name(found, &sets));
    out.push_str("    use rankwise_check::registry::{Setup, Verdict, modules};\n");
    out.push_str(&policy(&sets));
    out.push_str("    let modules = modules();\n");
    if found.mutant.is_none() {
        let study = &found.study;
        let _ = write!(
            out,
            "    let mut studies = modules.iter().flat_map(|module| &module.studies);\n    \
             let run = studies.find(|study| study.name == {study:?}).expect(\"the study\").run;\n"
        );
    }
    if let Some(mutant) = &found.mutant {
        let _ = write!(
            out,
            "    let mut mutants = modules.iter().flat_map(|module| &module.mutants);\n    \
             let run = mutants.find(|mutant| mutant.name == {mutant:?}).expect(\"the mutant\").run;\n"
        );
    }
    let (world, steps) = (found.world, found.steps.len());
    let claim = bound("claim", &found.claim);
    let closed = match found.mutant {
        None => {
            "// Once the hole is closed this must hold, in place of the rest:\n    \
             // assert!(matches!(verdict, Verdict::Proved), \"{verdict:?}\");"
        }
        Some(_) => {
            "// A mutant stays refuted. Should its rule become the right one, this must hold in place of the rest:\n    \
             // assert!(matches!(verdict, Verdict::Proved), \"{verdict:?}\");"
        }
    };
    let _ = write!(
        out,
        "    let report = run(&Setup {{ worlds: Some(({world}, {world})), ..Setup::new(policy) }});\n{claim}    \
         let judged = report.verdicts.iter().find(|(promise, _)| promise.name == claim);\n    \
         let (_, verdict) = judged.expect(\"the study judges the claim\");\n    \
         {closed}\n    \
         let Verdict::Refuted(found) = verdict else {{ panic!(\"not refuted: {{verdict:?}}\") }};\n    \
         assert_eq!((found.world, found.steps.len()), ({world}, {steps}));\n}}\n"
    );
    Ok(out)
}

/// What does not hold and how that shows.
fn heading(found: &Counterexample) -> String {
    let mut out = format!("/// {}: {}.\n", line(&found.requirement), line(&found.claim));
    let ranks = if found.world == 1 { "rank" } else { "ranks" };
    let _ = write!(out, "///\n/// {}, {} {ranks}", line(&found.study), found.world);
    if !found.setting.is_empty() {
        let _ = write!(out, ", {}", line(&found.setting));
    }
    if let Some(mutant) = &found.mutant {
        let _ = write!(out, ", mutant {}", line(mutant));
    }
    let _ = writeln!(out, ".\n/// {}", line(&found.sentence));
    out
}

/// `text` as it may stand in a comment.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// Does what the test does.
fn replay(found: &Counterexample, sets: &[(String, String)]) -> Result<(), Complaint> {
    let policy = Policy::parse(SHIPPED_FILE, SHIPPED, sets)?;
    let setup = Setup { worlds: Some((found.world, found.world)), ..Setup::new(policy) };
    let report = run_of(found)?(&setup);
    let judged = report.verdicts.iter().find(|(promise, _)| promise.name == found.claim);
    let steps = found.steps.len();
    let said = match judged {
        Some((_, Verdict::Refuted(again))) if (again.world, again.steps.len()) == (found.world, steps) => {
            return Ok(());
        }
        Some((_, Verdict::Refuted(again))) => format!("one of {} steps", again.steps.len()),
        Some((_, Verdict::Proved)) => "that the claim holds".to_owned(),
        Some((_, Verdict::Inconclusive(why))) => why.clone(),
        None => "no such claim".to_owned(),
    };
    let Counterexample { requirement, world, .. } = found;
    Err(Complaint(format!(
        "--test: replayed at world {world} under the policy it names: found {said}, expected the counterexample of \
         {requirement} with {steps} steps; it is of another policy or another build"
    )))
}

/// What runs the study, with the mutant's rules if there is one.
fn run_of(found: &Counterexample) -> Result<fn(&Setup<'_>) -> Report, Complaint> {
    let modules = modules();
    if let Some(name) = &found.mutant {
        return crate::proof::mutant(&modules, name).map(|Mutant { run, .. }| run);
    }
    let studies = || modules.iter().flat_map(|module| &module.studies);
    let known: Vec<String> = studies().map(|study| study.name.to_owned()).collect();
    let study = studies().find(|study| study.name == found.study).map(|Study { run, .. }| *run);
    study.ok_or_else(|| Complaint::unknown("--test: study", &found.study, &known))
}

/// The keys that differ from the shipped policy, and their values as TOML.
fn sets(lines: &[PolicyLine]) -> Result<Vec<(String, String)>, Complaint> {
    let known: Vec<String> = KEYS.iter().map(|key| (*key).to_owned()).collect();
    if let Some(line) = lines.iter().find(|line| !known.contains(&line.key)) {
        return Err(Complaint::unknown("--test: policy", &line.key, &known));
    }
    let shipped = Policy::shipped();
    let changed = lines.iter().filter(|line| line.value != value(&shipped, &line.key));
    Ok(changed.map(|line| (line.key.clone(), toml(&line.key, &line.value))).collect())
}

/// A value as [`value`] writes it, as TOML. What speaks for a rung is not in it and changes no verdict.
fn toml(key: &str, value: &str) -> String {
    if key != "halo.rungs" {
        return value.to_owned();
    }
    let rung = |rung: &str| {
        let (worlds, arm) = rung.split_once(": ").unwrap_or((rung, ""));
        format!("{{ worlds = {worlds:?}, arm = {arm:?}, evidence = \"none\" }}")
    };
    format!("[{}]", value.split(", ").map(rung).collect::<Vec<_>>().join(", "))
}

/// The test's name, a sentence.
fn name(found: &Counterexample, sets: &[(String, String)]) -> String {
    let sentence = match &found.mutant {
        Some(mutant) => format!("{} rejects {mutant}", found.requirement),
        None => {
            let given = sets.iter().map(|(key, value)| {
                let plain = value.len() <= 16 && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if plain { format!("{key} is {value}") } else { format!("{key} is changed") }
            });
            let given = given.collect::<Vec<_>>().join(" and ");
            let when = if given.is_empty() { String::new() } else { format!(" when {given}") };
            format!("{} fails at world {}{when}", found.requirement, found.world)
        }
    };
    let mut name = String::new();
    for letter in sentence.to_lowercase().chars() {
        if letter.is_ascii_alphanumeric() {
            name.push(letter);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_end_matches('_');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name.to_owned() } else { format!("test_{name}") }
}

/// The lines that make the policy.
fn policy(sets: &[(String, String)]) -> String {
    if sets.is_empty() {
        return "    use rankwise_protocol::policy::Policy;\n\n    let policy = Policy::shipped();\n"
            .to_owned();
    }
    let one = |(key, value): &(String, String)| {
        let flat = format!("({key:?}.to_owned(), {value:?}.to_owned())");
        let broken =
            format!("(\n            {key:?}.to_owned(),\n            {value:?}.to_owned(),\n        )");
        if flat.len() + 9 <= COLUMNS { flat } else { broken }
    };
    let sets: Vec<String> = sets.iter().map(one).collect();
    let flat = format!("    let sets = [{}];", sets.join(", "));
    let sets = if sets.len() == 1 && flat.len() <= COLUMNS {
        flat
    } else {
        format!("    let sets = [\n        {},\n    ];", sets.join(",\n        "))
    };
    format!(
        "    use rankwise_protocol::policy::{{Policy, SHIPPED, SHIPPED_FILE}};\n\n{sets}\n    \
         let policy = Policy::parse(SHIPPED_FILE, SHIPPED, &sets).expect(\"the policy\");\n"
    )
}

/// `let name = "text";`, broken where rustfmt would.
fn bound(name: &str, text: &str) -> String {
    let flat = format!("    let {name} = {text:?};");
    if flat.chars().count() <= COLUMNS {
        return flat + "\n";
    }
    format!("    let {name} =\n        {text:?};\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(key: &str, value: &str) -> PolicyLine {
        PolicyLine { key: key.to_owned(), value: value.to_owned(), origin: String::new() }
    }

    #[test]
    fn every_key_can_be_set_to_what_is_shown_of_it() {
        let policy = Policy::shipped();
        for key in KEYS {
            let set = (key.to_owned(), toml(key, &value(&policy, key)));
            let read = Policy::parse(SHIPPED_FILE, SHIPPED, &[set]).unwrap();
            assert_eq!(value(&read, key), value(&policy, key));
        }
    }

    #[test]
    fn what_ships_is_not_set() {
        let shipped = value(&Policy::shipped(), "halo.coalesce");
        assert!(sets(&[shown("halo.coalesce", &shipped)]).unwrap().is_empty());
        assert_eq!(sets(&[shown("halo.coalesce", "false")]).unwrap().len(), 1);
        assert!(sets(&[shown("halo.colour", "false")]).is_err());
    }
}
