//! `explain FILE --test`: the tests that it writes. They stand here as files, are compiled and run with these, and
//! must be what the command writes today.

use super::common::{Folder, run};
use serde_json::Value;

mod coalesce;
mod mutant;

/// What `explain --test` makes of a counterexample, on stdout and into a file.
fn written(found: &Value) -> String {
    let folder = Folder::new();
    let file = folder.write("found.json", found.to_string().as_bytes());
    let done = run(&["explain", &file, "--test"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let out = folder.path().join("test.rs");
    let again = run(&["explain", &file, "--test", "--output", out.to_str().expect("UTF-8")]);
    assert_eq!(again.stdout, format!("kept in {}\n", out.display()));
    assert_eq!(std::fs::read_to_string(out).expect("the test"), done.stdout);
    done.stdout
}

fn coalesce_off() -> Value {
    let words =
        ["prove", "--json", "--set", "halo.coalesce=false", "--only", "halo/legs-forced", "--worlds", "2"];
    run(&words).json()["obligations"][0]["counterexample"].clone()
}

#[test]
fn the_test_of_a_policy_is_the_one_that_runs_here() {
    let text = written(&coalesce_off());
    assert_eq!(
        text,
        include_str!("regression/coalesce.rs"),
        "tests/cli/regression/coalesce.rs differs:\n{text}"
    );
}

#[test]
fn the_test_of_a_mutant_is_the_one_that_runs_here() {
    let found =
        run(&["prove", "--json", "--mutant", "ring-sends-first"]).json()["mutants"][0]["counterexample"]
            .clone();
    let text = written(&found);
    assert_eq!(text, include_str!("regression/mutant.rs"), "tests/cli/regression/mutant.rs differs:\n{text}");
}

#[test]
fn a_counterexample_that_does_not_come_again_has_no_test() {
    let folder = Folder::new();
    for (field, value, expected) in [
        ("policy", Value::Array(Vec::new()), "found that the claim holds"),
        ("steps", Value::Array(Vec::new()), "expected the counterexample of HAL-3 with 0 steps"),
        ("claim", "another".into(), "found no such claim"),
        ("study", "halo/lags".into(), "did you mean halo/legs?"),
        ("mutant", "no-such".into(), "--mutant"),
    ] {
        let mut found = coalesce_off();
        found[field] = value;
        let file = folder.write("found.json", found.to_string().as_bytes());
        let done = run(&["explain", &file, "--test"]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{field}: {done:?}");
        assert!(done.stderr.contains(expected), "{field}: {}", done.stderr);
    }
}
