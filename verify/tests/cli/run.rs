//! `run halo` over real ranks.

use super::common::{rankwise, run};
use serde_json::Value;

#[test]
fn every_arm_world_and_type_gives_the_bits_of_the_unsplit_array() {
    let types = ["uint8", "int8", "bfloat16", "float16", "float8_e4m3", "uint16", "int32", "float32"];
    let mut types = types.iter().cycle();
    for world in ["1", "2", "3", "5"] {
        for arm in ["ring", "neighbour"] {
            for group in ["shm", "threads"] {
                let dtype = types.next().expect("a cycle");
                let words = [
                    "run",
                    "halo",
                    "--world",
                    world,
                    "--arm",
                    arm,
                    "--group",
                    group,
                    "--dtype",
                    dtype,
                    "--frames",
                    "3",
                    "--height",
                    "11",
                    "--width",
                    "7",
                    "--channels",
                    "3",
                    "--repeat",
                    "4",
                    "--json",
                ];
                let done = run(&words);
                assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{words:?}: {done:?}");
                check(&done.json(), world.parse().expect("a number"), arm);
            }
        }
    }
}

/// All ranks ran `arm`, own all rows between them, and moved what they should.
fn check(report: &Value, world: usize, arm: &str) {
    assert_eq!((&report["verdict"], &report["wrong_bytes"]), (&"equal".into(), &0.into()));
    let ranks = report["ranks"].as_array().expect("ranks");
    assert_eq!(ranks.len(), world);
    let sum = |field: &str| ranks.iter().map(|rank| rank[field].as_u64().expect("a number")).sum::<u64>();
    assert_eq!((sum("rows"), sum("bytes_sent")), (11, sum("bytes_received")));
    for rank in ranks {
        assert_eq!(
            (&rank["arm"], &rank["exchanges"], &rank["error"]),
            (&arm.into(), &4.into(), &Value::Null)
        );
        assert_eq!(rank["posted"], world > 1);
    }
}

#[test]
fn four_processes_exchange_the_test_card_and_say_so() {
    let done = run(&["run", "halo"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    assert!(
        done.stdout.contains("4 ranks, 20 exchanges: every byte as in the unsplit array"),
        "{}",
        done.stdout
    );
    for column in ["rank", "rows", "arm", "time (us)", "algbw (GB/s)", "wrong"] {
        assert!(done.stdout.contains(column), "{column}: {}", done.stdout);
    }
}

#[test]
fn without_an_override_the_policy_chooses_the_arm() {
    for (world, arm) in [("2", "ring"), ("4", "neighbour")] {
        let report = run(&["run", "halo", "--world", world, "--json"]).json();
        assert_eq!(report["ranks"][0]["arm"], arm);
    }
    let rungs = "halo.rungs=[{ worlds = \"2-\", arm = \"ring\", evidence = \"none\" }]";
    let report = run(&["run", "halo", "--world", "3", "--set", rungs, "--json"]).json();
    assert_eq!(report["ranks"][2]["arm"], "ring");
}

#[test]
fn a_variable_in_the_environment_of_all_ranks_forces_the_arm() {
    for group in ["shm", "threads"] {
        let output = rankwise()
            .args(["run", "halo", "--group", group, "--json"])
            .env("RANKWISE_HALO", "allgather")
            .output()
            .expect("the command starts");
        assert_eq!(super::common::Done::from(output).json()["ranks"][3]["arm"], "ring");
    }
}

#[test]
fn one_rank_of_a_job_can_be_started_by_hand() {
    let job = format!("by-hand-{}", std::process::id());
    let start = |rank: &str| {
        let mut command = rankwise();
        command.args(["run", "halo", "--height", "9", "--arm", "neighbour"]);
        command.env("RANK", rank).env("WORLD_SIZE", "2").env("RANKWISE_JOB", &job);
        command.stdout(std::process::Stdio::piped()).spawn().expect("the command starts")
    };
    let ranks = [start("0"), start("1")];
    for (rank, process) in ranks.into_iter().enumerate() {
        let done = super::common::Done::from(process.wait_with_output().expect("it ends"));
        let report = done.json();
        assert_eq!((done.code, &report["rank"]), (Some(0), &rank.into()), "{report}");
        assert_eq!((&report["arm"], &report["wrong_bytes"]), (&"neighbour".into(), &0.into()));
    }
}
