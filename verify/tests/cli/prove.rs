//! `prove`: verdicts, counterexamples and exit codes.

use super::common::{Folder, rankwise, run, run_in};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn the_shipped_policy_is_proved_and_the_last_line_invites_to_break_it() {
    let done = run(&["prove"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{}", done.stdout);
    let last = done.stdout.lines().next_back().expect("a last line");
    assert!(last.ends_with("-- prove --set halo.coalesce=false"), "{last}");
    for requirement in ["GRP-1", "GRP-5", "CHN-2", "HAL-1", "HAL-10"] {
        assert!(done.stdout.contains(&format!("\n  {requirement} ")), "{requirement}: {}", done.stdout);
    }
}

#[test]
fn legs_in_groups_of_their_own_are_refuted_with_ranks_legs_and_the_policy_key() {
    let folder = Folder::new();
    // Files are kept at the top of the repository that the command is run in: here, this folder.
    std::fs::create_dir(folder.path().join("model")).expect("a folder");
    folder.write("model/policy.toml", include_bytes!("../../../model/policy.toml"));
    let done = run_in(folder.path(), &["prove", "--set", "halo.coalesce=false", "--only", "HAL-3"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    for fragment in [
        "HAL-3 does not hold",
        "policy: halo.coalesce = false  (--set halo.coalesce=false)",
        "rank 0",
        "rank 1",
        "send last edge to 1",
        "send first edge to 0",
        "cycle: rank 0",
        "Deadlock",
        "kept in target/rankwise/HAL-3.json",
    ] {
        assert!(done.stdout.contains(fragment), "{fragment}: {}", done.stdout);
    }
    let drawn = run_in(folder.path(), &["explain", "target/rankwise/HAL-3.json"]);
    assert_eq!(drawn.code, Some(0));
    assert!(done.stdout.contains(&drawn.stdout), "{}", drawn.stdout);
}

#[test]
fn a_counterexample_names_the_line_of_the_policy_file() {
    let folder = Folder::new();
    let shipped = include_str!("../../../model/policy.toml");
    folder.write("p.toml", shipped.replace("coalesce = true", "coalesce = false").as_bytes());
    let line = 1 + shipped.lines().position(|line| line.starts_with("coalesce")).expect("a line");
    let done = run_in(folder.path(), &["prove", "--policy", "p.toml", "--only", "halo/legs"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stdout.contains(&format!("halo.coalesce = false  (p.toml:{line})")), "{}", done.stdout);
}

#[test]
fn the_json_of_a_proof_has_every_field() {
    let done = run(&["prove", "--json", "--only", "channel", "--only", "HAL-3"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    let proof = done.json();
    assert_eq!(proof["policy_digest"].as_str().map(str::len), Some(16));
    assert_eq!(proof["mutants"], serde_json::json!([]));
    let obligations = proof["obligations"].as_array().expect("obligations");
    assert!(obligations.len() >= 4);
    let fields = [
        "requirement",
        "claim",
        "study",
        "engine",
        "worlds",
        "faults",
        "regime",
        "axioms",
        "reads",
        "states",
        "transitions",
        "depth",
        "seconds",
        "verdict",
    ];
    for one in obligations {
        assert!(fields.iter().all(|field| one.get(field).is_some()), "{one}");
        assert_eq!(one["verdict"], "proved");
        assert!(one["states"].as_u64() > Some(0) && one["seconds"].is_f64());
    }
}

#[test]
fn the_json_of_a_refutation_has_its_counterexample() {
    let folder = Folder::new();
    let words = ["prove", "--json", "--set", "halo.coalesce=false", "--only", "halo/legs"];
    let done = run_in(folder.path(), &words);
    assert_eq!(done.code, Some(2));
    let proof = done.json();
    let found = &proof["obligations"][0]["counterexample"];
    assert_eq!(
        (&found["requirement"], &found["policy"][0]["key"]),
        (&"HAL-3".into(), &"halo.coalesce".into())
    );
    assert!(!found["cycle"].as_array().expect("a cycle").is_empty());
}

#[test]
fn a_list_names_what_would_be_run() {
    let listed = run(&["prove", "--list", "--json", "--only", "HAL-3"]).json();
    let first = &listed["obligations"][0];
    assert_eq!((&first["requirement"], &first["verdict"]), (&"HAL-3".into(), &serde_json::Value::Null));
    let mutants = listed["mutants"].as_array().expect("mutants");
    assert!(mutants.iter().any(|mutant| mutant["name"] == "uncoalesced"), "{mutants:?}");
    assert!(run(&["prove", "--list"]).stdout.contains("override-not-in-record"));
}

#[test]
fn mutants_are_refuted_by_the_claims_they_name() {
    let done =
        run(&["prove", "--mutants", "--json", "--only", "channel", "--only", "HAL-1", "--only", "HAL-3"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let proof = done.json();
    let mutants = proof["mutants"].as_array().expect("mutants");
    assert!(mutants.len() >= 5);
    for one in mutants {
        assert_eq!(one["verdict"], "refuted", "{one}");
        assert!(one["requirement"].is_string() && one["claim"].is_string() && one["study"].is_string());
        assert!(one["counterexample"]["mutant"] == one["name"] && one["depth"].is_u64());
    }
}

#[test]
fn one_mutant_is_drawn_and_exits_2() {
    let folder = Folder::new();
    let done = run_in(folder.path(), &["prove", "--mutant", "uncoalesced"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    for fragment in ["mutant uncoalesced", "is refuted, as it must be", "mutant-uncoalesced.json", "cycle:"] {
        assert!(done.stdout.contains(fragment), "{fragment}: {}", done.stdout);
    }
}

#[test]
fn each_budget_that_runs_out_is_inconclusive_and_named_at_every_obligation() {
    for (budget, why) in [
        ("states=100", "the budget of states ran out"),
        ("seconds=0", "the budget of time ran out"),
        ("bytes=1000000", "the budget of memory ran out"),
    ] {
        let done = run(&["prove", "--only", "group/any-time", "--budget", budget]);
        assert_eq!((done.code, done.stderr.as_str()), (Some(3), ""), "{done:?}");
        assert!(done.stdout.contains(&format!("inconclusive: {why}")), "{}", done.stdout);
        let proof = run(&["prove", "--only", "group/any-time", "--budget", budget, "--json"]).json();
        let obligations = proof["obligations"].as_array().expect("obligations");
        assert!(!obligations.is_empty());
        assert!(
            obligations.iter().all(|one| one["verdict"] == "inconclusive" && one["why"] == why),
            "{proof}"
        );
    }
}

#[test]
fn less_memory_than_is_held_ends_at_once() {
    let proof = run(&["prove", "--json", "--budget", "bytes=1"]).json();
    let obligations = proof["obligations"].as_array().expect("obligations");
    assert!(obligations.iter().all(|one| one["why"] == "the budget of memory ran out"), "{proof}");
}

#[test]
fn what_was_shown_within_a_budget_is_kept() {
    let words =
        ["prove", "--json", "--only", "channel/ring", "--only", "group/any-time", "--budget", "states=20000"];
    let done = run(&words);
    assert_eq!(done.code, Some(3), "{done:?}");
    let proof = done.json();
    let obligations = proof["obligations"].as_array().expect("obligations");
    let verdict =
        |study: &str| obligations.iter().find(|one| one["study"] == study).map(|one| &one["verdict"]);
    assert_eq!(verdict("channel/ring"), Some(&"proved".into()), "{proof}");
    assert_eq!(verdict("group/any-time"), Some(&"inconclusive".into()), "{proof}");
}

#[test]
fn a_study_is_served_on_this_machine_alone() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let mut served = rankwise()
        .args(["prove", "--explore", "group/any-time", "--worlds", "2", "--port", &port.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut told = String::new();
    BufReader::new(served.stdout.take().expect("piped")).read_line(&mut told).expect("a line");
    assert!(told.contains(&format!("http://127.0.0.1:{port}/")), "{told}");
    let status = fetch(port, "/.status");
    let states = fetch(port, "/.states/");
    let elsewhere = TcpListener::bind(("127.0.0.2", port));
    served.kill().expect("it runs");
    served.wait().expect("it ends");
    assert!(status.contains("\"unique_state_count\":") && status.contains("Exchanges"), "{status}");
    assert!(states.contains("\"fingerprint\":"), "{states}");
    elsewhere.expect("no other address is taken");
}

/// The answer to one request, as soon as somebody listens.
fn fetch(port: u16, path: &str) -> String {
    let limit = Instant::now() + Duration::from_secs(20);
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < limit, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn worlds_limit_the_bound_that_is_claimed() {
    let done = run(&["prove", "--only", "halo/legs", "--worlds", "2-3"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("2-3") && done.stdout.contains("proved to 3"), "{}", done.stdout);
}

#[test]
fn an_interruption_keeps_the_partial_result() {
    let command = rankwise().args(["prove", "--json"]).stdout(Stdio::piped()).spawn();
    let prove = command.expect("the command starts");
    std::thread::sleep(Duration::from_millis(200));
    kill_process(Pid::from_child(&prove), Signal::INT).expect("it runs");
    let done = super::common::Done::from(prove.wait_with_output().expect("it ends"));
    assert_eq!(done.code, Some(3), "{done:?}");
    let proof = done.json();
    let obligations = proof["obligations"].as_array().expect("obligations");
    assert!(obligations.iter().any(|one| one["why"] == "interrupted"), "{proof}");
}
