//! Mistakes: one line on stderr that names field, value and what was expected, nothing on stdout, exit 1.

use super::common::{Folder, rankwise, run};

/// Words, and what the line must say.
const CASES: [(&str, &[&str]); 31] = [
    ("run halo --world 0", &["--world", "found 0", "expected 1 to 4096"]),
    ("run halo --world 5000", &["--world", "found 5000", "expected 1 to 4096"]),
    ("run halo --world 5 --height 3", &["height is 3 rows for 5 ranks", "at least one row a rank"]),
    ("run halo --height 0", &["--height", "'0'", "expected 1 to"]),
    ("run halo --wrold 4", &["'--wrold'", "'--world'"]),
    ("run halo --arm rng", &["--arm", "'rng'", "expected ring or neighbour"]),
    ("run halo --arm=", &["--arm", "expected ring or neighbour"]),
    ("run halo --dtype f8", &["--dtype", "'f8'", "expected one of uint8"]),
    ("run halo --repeat 0", &["--repeat", "'0'"]),
    ("run halo --group mpi", &["--group", "'mpi'", "threads", "shm"]),
    ("run halo --deadline-ms 0", &["call.deadline_ms", "found 0", "expected 1 to"]),
    ("run halo --env 4:A=b", &["--env 4:A", "found rank 4", "expected 0 to 3"]),
    ("run halo --env A=b", &["--env", "'A=b'", "expected RANK:KEY=VALUE"]),
    ("run halo --group threads --env 1:A=b", &["--env 1:A", "expected RANKWISE_HALO"]),
    ("run halo --input /nonexistent.npy", &["/nonexistent.npy: file", "expected a .npy file"]),
    ("run halo --input x.npy --dtype uint8", &["'--input", "'--dtype"]),
    ("run halo --set halo.coalesce=maybe", &["halo.coalesce", "\"maybe\"", "expected true or false"]),
    ("run haloo", &["'haloo'", "'halo'"]),
    ("prove --set halo.colour=1", &["halo.colour", "an unknown key", "halo.coalesce"]),
    ("prove --set halo.coalesce", &["--set", "\"halo.coalesce\"", "expected KEY=VALUE"]),
    ("prove --policy /nonexistent.toml", &["--policy", "/nonexistent.toml", "expected a file"]),
    ("prove --only HAL-33", &["--only", "\"HAL-33\"", "expected one of", "did you mean HAL-3?"]),
    ("prove --mutant uncoalesed", &["--mutant", "\"uncoalesed\"", "did you mean uncoalesced?"]),
    ("prove --worlds 0-3", &["--worlds", "'0-3'", "expected worlds from 1 up"]),
    ("prove --only halo/stream-order --worlds 99", &["--worlds", "found 99", "expected worlds among"]),
    ("prove --budget hours=1", &["--budget", "\"hours\"", "expected states, seconds or bytes"]),
    (
        "prove --explore group/sometimes",
        &["--explore", "\"group/sometimes\"", "expected one of", "group/any-time"],
    ),
    ("prove --explore halo/bands", &["--explore", "halo/bands", "by sweep", "explores states"]),
    ("prove --explore halo/legs --worlds 99", &["--worlds", "found 99", "expected worlds among"]),
    ("explain HAL-99", &["explain", "\"HAL-99\"", "expected one of", "GRP-1"]),
    ("explain nothing.json", &["nothing.json: file", "expected a counterexample"]),
];

#[test]
fn a_mistake_is_one_line_and_exit_1() {
    for (words, fragments) in CASES {
        let done = run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(done.code, Some(1), "{words}: {done:?}");
        assert_eq!((done.stdout.as_str(), done.stderr.lines().count()), ("", 1), "{words}: {done:?}");
        for fragment in fragments {
            assert!(done.stderr.contains(fragment), "{words}: {fragment:?} is missing: {}", done.stderr);
        }
    }
}

#[test]
fn a_rank_that_another_launcher_starts_names_the_variable_it_lacks() {
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("RANK", "0")], "WORLD_SIZE: found nothing"),
        (&[("RANK", "0"), ("WORLD_SIZE", "2")], "RANKWISE_JOB: found nothing"),
        (&[("RANK", "x"), ("WORLD_SIZE", "2")], "RANK: found \"x\""),
        (&[("RANK", "2"), ("WORLD_SIZE", "2")], "RANK: found 2, expected less than WORLD_SIZE"),
        (&[("RANK", "0"), ("WORLD_SIZE", "-1")], "WORLD_SIZE: found \"-1\""),
    ];
    for (variables, expected) in cases {
        let output = rankwise().args(["run", "halo"]).envs(variables.iter().copied()).output();
        let done = super::common::Done::from(output.expect("the command starts"));
        assert_eq!((done.code, done.stderr.lines().count()), (Some(1), 1), "{done:?}");
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
    }
}

#[test]
fn a_policy_file_is_refused_with_its_line() {
    let folder = Folder::new();
    let shipped = include_str!("../../../model/policy.toml");
    let path = folder.write("p.toml", shipped.replace("coalesce = true", "coalesce = 3").as_bytes());
    let line = 1 + shipped.lines().position(|line| line.starts_with("coalesce")).expect("a line");
    let done = run(&["prove", "--policy", &path]);
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains(&format!("p.toml:{line}: halo.coalesce: found 3")), "{done:?}");
}

#[test]
fn help_and_version_are_no_mistakes() {
    for words in [&["--help"][..], &["--version"], &["run", "halo", "--help"]] {
        let done = run(words);
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{words:?}");
        assert!(!done.stdout.is_empty());
    }
    assert_eq!(run(&[]).code, Some(1));
}

/// Ends an empty override on one rank, a word that is no arm, and arms that differ, in the same way on all ranks.
#[test]
fn an_override_of_one_rank_is_refused_on_all_before_a_leg_is_posted() {
    let cases = [
        ("1:RANKWISE_HALO=ring", "override differs by rank: unset on ranks 0 2 3, ring on rank 1"),
        ("2:RANKWISE_HALO=", "rank 2: the override is empty"),
        ("3:RANKWISE_HALO=rng", "rank 3: the override is no arm (expected ring or neighbour): found \"rng\""),
    ];
    for (variable, expected) in cases {
        for group in ["shm", "threads"] {
            let done = run(&["run", "halo", "--group", group, "--env", variable, "--json"]);
            assert_eq!((done.code, done.stderr.lines().count()), (Some(1), 1), "{done:?}");
            assert!(done.stderr.contains(expected), "{expected}: {done:?}");
            assert!(done.stderr.contains("refused by all ranks"), "{done:?}");
            let report = done.json();
            let ranks = report["ranks"].as_array().expect("ranks");
            assert_eq!(ranks.len(), 4);
            for rank in ranks {
                assert_eq!((&rank["posted"], &rank["exchanges"]), (&false.into(), &0.into()), "{rank}");
                assert_eq!(rank["error"], ranks[0]["error"]);
            }
        }
    }
}

#[test]
fn threads_are_refused_where_the_process_is_one_rank() {
    let output = rankwise().args(["run", "halo", "--group", "threads"]).env("RANK", "0").output();
    let done = super::common::Done::from(output.expect("the command starts"));
    assert_eq!((done.code, done.stderr.lines().count()), (Some(1), 1), "{done:?}");
    assert!(done.stderr.contains("--group: found threads, expected shm, since RANK is set"), "{done:?}");
}

#[test]
fn a_stderr_that_cannot_be_written_changes_no_exit_code() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let status = rankwise().args(["prove", "--only", "nope"]).stderr(full).status();
    assert_eq!(status.expect("the command starts").code(), Some(1));
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused_before_it_is_opened() {
    let folder = Folder::new();
    let path = folder.path().join("pipe.json");
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo starts");
    assert!(made.success());
    let path = path.to_str().expect("UTF-8");
    for words in [&["run", "halo", "--input", path][..], &["prove", "--policy", path], &["explain", path]] {
        let done = run(words);
        assert_eq!((done.code, done.stderr.lines().count()), (Some(1), 1), "{words:?}: {done:?}");
        assert!(done.stderr.contains("pipe.json: ") && done.stderr.contains("no regular file"), "{done:?}");
    }
}
