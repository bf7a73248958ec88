//! `explain` and `doctor`.

use super::common::{Folder, rankwise, run};

#[test]
fn a_requirement_is_explained_in_words_with_its_obligations_and_mutants() {
    let done = run(&["explain", "hal-3"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    for fragment in ["## HAL-3 ", "Why:", "Obligations:", "halo/legs", "uncoalesced"] {
        assert!(done.stdout.contains(fragment), "{fragment}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("## HAL-4"));
    let object = run(&["explain", "GRP-2", "--json"]).json();
    assert_eq!(object["requirement"], "GRP-2");
    assert!(!object["mutants"].as_array().expect("mutants").is_empty());
}

#[test]
fn a_file_that_is_no_counterexample_is_refused() {
    let folder = Folder::new();
    let lane = serde_json::json!({
        "requirement": "HAL-3", "claim": "", "study": "", "world": 2, "setting": "", "policy": [],
        "mutant": null, "lanes": ["rank 0"], "steps": [{ "lane": 1, "text": "", "peer": null }], "waits": [],
        "cycle": [], "sentence": "",
    });
    for (text, expected) in [("{}", "missing field"), (&lane.to_string(), "lane 1 of 1")] {
        let path = folder.write("found.json", text.as_bytes());
        let done = run(&["explain", &path]);
        assert_eq!((done.code, done.stderr.lines().count()), (Some(1), 1), "{done:?}");
        assert!(done.stderr.contains(expected), "{expected}: {done:?}");
    }
}

#[test]
fn the_doctor_says_which_arm_runs_here_and_why() {
    let done = run(&["doctor", "--json"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let found = done.json();
    let worlds: Vec<_> = found["arms"].as_array().expect("arms").iter().map(|arm| &arm["world"]).collect();
    assert_eq!(worlds, [2, 3, 4, 8]);
    assert_eq!((&found["arms"][0]["arm"], &found["arms"][0]["rung"]), (&"ring".into(), &1.into()));
    assert_eq!(found["policy"]["digest"].as_str().map(str::len), Some(16));
    let text = run(&["doctor"]).stdout;
    for fragment in ["memfd", "abstract socket", "libcuda.so.1", "nvcc", "evidence counted", "is not set"] {
        assert!(text.contains(fragment), "{fragment}: {text}");
    }
}

#[test]
fn the_doctor_sees_an_override() {
    let with = |value: &str| {
        let output = rankwise().arg("doctor").env("RANKWISE_HALO", value).output().expect("it starts");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    assert!(with("p2p").contains("RANKWISE_HALO is set to \"p2p\": it decides"));
    assert!(with("rng").contains("every call is refused"));
}
