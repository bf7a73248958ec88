//! `prove --certificate` and `prove --check`.

use super::common::{Done, Folder, rankwise, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Writes a certificate of the small worlds, which is made at once, and reads it.
fn small(folder: &Folder, name: &str) -> Value {
    let path = folder.path().join(name);
    let done = run(&["prove", "--certificate", path.to_str().expect("UTF-8"), "--worlds", "1-2"]);
    assert_eq!(done.stderr, "", "{done:?}");
    assert!(done.stdout.contains(&format!("certificate in {}", path.display())), "{done:?}");
    read(&path)
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("a certificate");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn listed() -> Value {
    run(&["prove", "--list", "--json"]).json()
}

/// A certificate that claims what a proof of all worlds would.
fn whole(folder: &Folder) -> Value {
    let mut certificate = small(folder, "small.json");
    let listed = listed();
    let obligations = certificate["obligations"].as_array_mut().expect("obligations");
    for (one, due) in obligations.iter_mut().zip(listed["obligations"].as_array().expect("a list")) {
        one["worlds"] = due["worlds"].clone();
        one["verdict"] = "proved".into();
    }
    for list in ["mutants", "seeds"] {
        for one in certificate[list].as_array_mut().expect("a list") {
            one["verdict"] = "refuted".into();
        }
    }
    certificate
}

fn check(folder: &Folder, certificate: &Value, more: &[&str]) -> Done {
    let path = folder.write("checked.json", certificate.to_string().as_bytes());
    run(&[&["prove", "--check", &path], more].concat())
}

#[test]
fn two_certificates_of_one_tree_are_the_same_but_for_time() {
    let folder = Folder::new();
    let (mut first, mut second) = (small(&folder, "first.json"), small(&folder, "second.json"));
    let date = first["time"]["date"].as_str().expect("a date");
    assert!(date.len() == 10 && date.split('-').count() == 3, "{date}");
    assert!(first["time"]["seconds"].is_f64());
    for certificate in [&mut first, &mut second] {
        certificate.as_object_mut().expect("an object").remove("time");
    }
    assert_eq!(first, second);
    let text = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).expect("a certificate");
        text.split("\n  \"time\": ").next().map(str::to_owned)
    };
    assert_eq!(text("first.json"), text("second.json"), "byte for byte");
}

#[test]
fn a_certificate_says_what_was_proved_of_what() {
    let folder = Folder::new();
    let certificate = small(&folder, "c.json");
    assert_eq!(certificate["schema"], 1);
    assert!(certificate["tool"].as_str().is_some_and(|tool| tool.starts_with("rankwise ")));
    assert!(certificate["rustc"].as_str().is_some_and(|rustc| rustc.starts_with("rustc 1.")));
    assert_eq!(certificate["policy"]["digest"].as_str().map(str::len), Some(16));
    let keys = certificate["policy"]["keys"].as_array().expect("keys");
    assert_eq!(keys[1], serde_json::json!({ "key": "halo.coalesce", "value": "true" }));
    let sources = certificate["sources"].as_array().expect("sources");
    for (source, folder) in sources.iter().zip(["model/protocol", "model/check"]) {
        assert_eq!(source["folder"], folder);
        assert_eq!(source["sha256"].as_str().map(str::len), Some(64), "{source}");
    }
    let fields = [
        "requirement",
        "claim",
        "study",
        "engine",
        "regime",
        "worlds",
        "faults",
        "axioms",
        "reductions",
        "reads",
        "states",
        "transitions",
        "depth",
        "verdict",
    ];
    let axioms = certificate["axioms"].as_array().expect("axioms");
    for one in certificate["obligations"].as_array().expect("obligations") {
        assert!(fields.iter().all(|field| one.get(field).is_some()), "{one}");
        assert!(
            one["axioms"].as_array().expect("axioms").iter().all(|axiom| axioms.contains(axiom)),
            "{one}"
        );
    }
    let mutants = certificate["mutants"].as_array().expect("mutants");
    assert!(mutants.iter().any(|one| one["name"] == "sender-ignores-room" && one["verdict"] == "refuted"));
    assert!(certificate["seeds"].as_array().expect("seeds").iter().all(|one| one["hole"].is_string()));
}

#[test]
fn a_reduction_is_named_with_what_cross_checks_it() {
    let folder = Folder::new();
    let certificate = small(&folder, "c.json");
    let obligations = certificate["obligations"].as_array().expect("obligations");
    let reduced =
        obligations.iter().find(|one| one["study"] == "halo/failure-after-agreement").expect("a study");
    let told = reduced["reductions"][0].as_str().expect("a reduction");
    assert!(told.contains("cross-checked at world 2"), "{told}");
}

#[test]
fn obligations_stand_in_the_order_of_the_registry() {
    let folder = Folder::new();
    let certificate = small(&folder, "c.json");
    let named = |list: &Value| -> Vec<String> {
        let list = list.as_array().expect("a list");
        list.iter().map(|one| format!("{} {} {}", one["requirement"], one["claim"], one["study"])).collect()
    };
    assert_eq!(named(&certificate["obligations"]), named(&listed()["obligations"]));
    assert_eq!(named(&certificate["mutants"]), named(&listed()["mutants"]));
}

#[test]
fn a_certificate_of_this_tree_speaks_of_it() {
    let folder = Folder::new();
    let done = check(&folder, &whole(&folder), &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("checked.json speaks of this tree: ") && done.stdout.contains(" proved, "));
    assert_eq!(done.stdout.lines().count(), 1);
}

#[test]
fn what_differs_from_this_tree_is_named_in_one_line() {
    let folder = Folder::new();
    let certificate = whole(&folder);
    let edit = |edit: &dyn Fn(&mut Value)| {
        let mut other = certificate.clone();
        edit(&mut other);
        check(&folder, &other, &[])
    };
    let without = |list: &'static str, field: &'static str, value: &'static str| {
        move |other: &mut Value| other[list].as_array_mut().expect("a list").retain(|one| one[field] != value)
    };
    let cases: [(Done, &str); 6] = [
        (check(&folder, &certificate, &["--set", "halo.coalesce=false"]), "(halo.coalesce)"),
        (
            edit(&|other| other["sources"][0]["sha256"] = "0".into()),
            "the sources of model/protocol are others",
        ),
        (edit(&without("obligations", "requirement", "HAL-9")), "obligation HAL-9 statistics"),
        (edit(&without("mutants", "name", "uncoalesced")), "mutant uncoalesced is not in it"),
        (edit(&|other| other["mutants"][0]["name"] = "unheard-of".into()), "unheard-of is not in this tree"),
        (edit(&|other| other["obligations"][0]["worlds"][1] = 2.into()), "is stated otherwise"),
    ];
    for (done, part) in cases {
        assert_eq!(done.code, Some(2), "{part}: {done:?}");
        assert!(done.stdout.contains(" does not speak of this tree: "), "{part}: {done:?}");
        assert!(done.stdout.contains(part), "{part}: {done:?}");
        assert_eq!(done.stdout.lines().count(), 1, "{done:?}");
    }
}

#[test]
fn a_certificate_that_refutes_does_not_pass_the_check() {
    let folder = Folder::new();
    let mut certificate = whole(&folder);
    certificate["obligations"][0]["verdict"] = "refuted".into();
    let done = check(&folder, &certificate, &[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stdout.contains("speaks of this tree: 1 refuted"), "{done:?}");
}

#[test]
fn a_policy_that_is_refuted_is_certified_as_such() {
    let folder = Folder::new();
    let path = folder.path().join("c.json");
    let file = path.to_str().expect("UTF-8");
    let done = run(&["prove", "--certificate", file, "--only", "halo/legs", "--set", "halo.coalesce=false"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stdout.starts_with("refuted: HAL-3 "), "{done:?}");
    let certificate = read(&path);
    assert_eq!(certificate["obligations"][0]["verdict"], "refuted");
    assert_eq!(certificate["obligations"][0]["counterexample"]["world"], 3);
}

#[test]
fn a_target_that_cannot_be_written_is_refused_before_anything_is_proved() {
    let folder = Folder::new();
    let there = folder.path().to_str().expect("UTF-8");
    for target in [there.to_owned(), format!("{there}/missing/c.json"), "/dev/null".to_owned()] {
        let done = run(&["prove", "--certificate", &target]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{target}: {done:?}");
        assert!(done.stderr.contains(&format!("--certificate: {target}: found ")), "{done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
    }
}

#[test]
fn an_interrupted_proof_keeps_the_old_certificate() {
    let folder = Folder::new();
    let path = folder.write("c.json", b"old");
    let mut command = rankwise();
    command.args(["prove", "--certificate", &path]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the command starts");
    std::thread::sleep(Duration::from_secs(1));
    kill_process(Pid::from_raw(child.id() as i32).expect("an id"), Signal::INT).expect("a signal");
    let done: Done = child.wait_with_output().expect("it ends").into();
    let due = format!("interrupted: no certificate written, {path} stays as it was\n");
    assert_eq!((done.code, done.stdout.as_str()), (Some(3), due.as_str()), "{done:?}");
    assert_eq!(std::fs::read(&path).expect("a file"), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_file_that_is_no_certificate_is_refused_by_name() {
    let folder = Folder::new();
    for (text, part) in [
        ("", "certificate: found "),
        ("{}", "schema: found nothing"),
        ("{\"schema\":2}", "schema: found 2, expected 1"),
        ("{\"schema\":1}", "certificate: found missing field"),
    ] {
        let path = folder.write("no.json", text.as_bytes());
        let done = run(&["prove", "--check", &path]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{text}: {done:?}");
        assert!(done.stderr.contains("no.json: ") && done.stderr.contains(part), "{text}: {done:?}");
    }
}
