//! Every obligation of the shipped policy is proved, every mutant is refuted by the claim it names, and every
//! requirement has both.

use rankwise_check::docs;
use rankwise_check::registry::{Setup, Trial, Verdict, modules, trial};
use rankwise_protocol::policy::{KEYS, Policy};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Compares a generated page with the committed one; with `UPDATE_DOCS` set it is written anew.
fn generated(page: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let hint = "UPDATE_DOCS=1 cargo test -p rankwise-check";
    assert!(committed == text, "docs/{page} is not what the registry says. To write it anew: {hint}");
}

#[test]
fn every_obligation_of_the_shipped_policy_is_proved_in_the_states_that_the_page_says() {
    let setup = Setup::new(Policy::shipped());
    let modules = modules();
    let mut reports = BTreeMap::new();
    for study in modules.iter().flat_map(|module| &module.studies) {
        let report = (study.run)(&setup);
        let promised: Vec<_> = report.verdicts.iter().map(|(promise, _)| *promise).collect();
        assert_eq!(promised, study.claims, "{}: claims of the run and of the registry", study.name);
        assert_eq!(
            report.worlds,
            Some(study.worlds),
            "{}: worlds of the run and of the registry",
            study.name
        );
        for (promise, verdict) in &report.verdicts {
            assert!(matches!(verdict, Verdict::Proved), "{}: {}: {verdict:?}", study.name, promise.name);
        }
        println!("{} {} {:?}", study.name, report.states, report.time);
        reports.insert(study.name, report);
    }
    generated("proved.md", &docs::proved(&modules, &reports));
}

#[test]
fn every_hole_of_the_seeds_is_refuted_and_told_as_found() {
    let setup = Setup::new(Policy::shipped());
    let modules = modules();
    for variant in modules.iter().flat_map(|module| &module.seeds) {
        let (verdict, _) = trial(&variant.as_mutant, &setup);
        assert_eq!(verdict, Trial::Refuted, "{}", variant.title);
    }
    generated("findings.md", &docs::findings(&modules, &setup));
}

#[test]
fn every_requirement_has_its_section_in_the_specification() {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec");
    let mut sections = BTreeSet::new();
    for file in std::fs::read_dir(spec).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let headings = text.lines().filter_map(|line| line.strip_prefix("## ")?.split(' ').next());
        sections.extend(headings.filter(|word| word.contains('-')).map(str::to_owned));
    }
    let claimed: BTreeSet<_> = docs::requirements(&modules()).iter().map(ToString::to_string).collect();
    assert_eq!(sections, claimed);
}

#[test]
fn every_mutant_is_refuted_by_the_claim_it_names_and_by_no_other_of_its_study() {
    let setup = Setup::new(Policy::shipped());
    for mutant in modules().into_iter().flat_map(|module| module.mutants) {
        let (verdict, report) = trial(&mutant, &setup);
        println!("{} {:?}", mutant.name, report.time);
        assert_eq!(verdict, Trial::Refuted, "{}", mutant.name);
    }
}

#[test]
fn every_requirement_has_a_claim_and_a_mutant_and_every_mutant_names_a_claim_there_is() {
    let modules = modules();
    let studies: Vec<_> = modules.iter().flat_map(|module| &module.studies).collect();
    let mutants: Vec<_> = modules.iter().flat_map(|module| &module.mutants).collect();
    let claimed: BTreeSet<_> =
        studies.iter().flat_map(|study| &study.claims).map(|claim| claim.requirement).collect();
    let mutated: BTreeSet<_> = mutants.iter().map(|mutant| mutant.requirement).collect();
    assert_eq!(claimed, mutated);
    for mutant in &mutants {
        let study = studies.iter().find(|study| study.name == mutant.study).expect(mutant.name);
        let named = study
            .claims
            .iter()
            .any(|claim| claim.name == mutant.claim && claim.requirement == mutant.requirement);
        assert!(named, "{} names a claim that {} has not", mutant.name, mutant.study);
    }
    let names: BTreeSet<_> = mutants.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), mutants.len(), "two mutants have one name");
}

#[test]
fn every_policy_key_but_the_listed_exceptions_is_read_by_a_model() {
    // A deadline bounds a wait, whatever its length (regimes T1 and T2); the override's name is how a
    // rank-local value comes in, and the models take any value.
    let exceptions = ["call.deadline_ms", "halo.override_env"];
    let modules = modules();
    let read: BTreeSet<_> =
        modules.iter().flat_map(|module| &module.studies).flat_map(|study| study.reads).copied().collect();
    for key in KEYS {
        assert!(read.contains(key) != exceptions.contains(&key), "{key}");
    }
}
