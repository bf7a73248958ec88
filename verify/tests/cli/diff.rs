//! `diff`: the verdict in the first line, and what it rests on.

use super::common::{Done, Folder, run, run_in};
use rankwise_check::registry::{Report, Setup, Verdict, modules};
use rankwise_protocol::policy::{KEYS, Policy, SHIPPED, SHIPPED_FILE};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

/// A line of the rungs of the policy that ships.
const RUNG_2: &str =
    "  { worlds = \"2\",  arm = \"ring\",      evidence = \"measured:seed-halo.json#world-2\" },\n";
const RUNG_4: &str =
    "  { worlds = \"4\",  arm = \"neighbour\", evidence = \"measured:seed-halo.json#world-4\" },\n";
const RUNG_3: &str = "  { worlds = \"3-\", arm = \"neighbour\", evidence = \"counted\" },\n";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("verify lies in the workspace")
}

/// The shipped policy with one place written otherwise.
fn edited(from: &str, to: &str) -> String {
    assert!(SHIPPED.contains(from), "{from}");
    SHIPPED.replacen(from, to, 1)
}

/// Compares the shipped policy with `text`, at the top of the workspace, where the measurements are.
fn diff(text: &str, more: &[&str]) -> Done {
    let folder = Folder::new();
    let head = folder.write("head.toml", text.as_bytes());
    run_in(root(), &[&["diff", SHIPPED_FILE, &head], more].concat())
}

fn first_line(done: &Done) -> &str {
    done.stdout.lines().next().unwrap_or_else(|| panic!("no line: {done:?}"))
}

#[test]
fn every_edit_of_the_policy_has_its_verdict_in_the_first_line() {
    let ring_3 = RUNG_3.replace("neighbour", "ring");
    let direct = RUNG_2.replace("ring", "direct");
    let gap = [&RUNG_3.replace("3-", "3"), RUNG_4, &RUNG_3.replace("3-", "6-")].concat();
    let edits: [(&str, String, &str, i32); 26] = [
        ("nothing", SHIPPED.to_owned(), "no change in meaning", 0),
        ("a comment", format!("# why\n{SHIPPED}"), "no change in meaning", 0),
        ("a number's form", edited("30000", "30_000"), "no change in meaning", 0),
        ("rung 2 gone", edited(RUNG_2, ""), "invalid policy", 1),
        ("rung 4 gone", edited(RUNG_4, ""), "holds", 0),
        ("rung 3- gone", edited(RUNG_3, ""), "invalid policy", 1),
        ("a gap at world 5", edited(&format!("{RUNG_4}{RUNG_3}"), &gap), "invalid policy", 1),
        ("rung 4 twice", edited(RUNG_4, &RUNG_4.repeat(2)), "invalid policy", 1),
        ("a rung that no world takes", edited(RUNG_3, &format!("{RUNG_3}{RUNG_3}")), "invalid policy", 1),
        ("a rung for 8", edited(RUNG_4, &format!("{RUNG_4}{}", RUNG_4.replace('4', "8"))), "holds", 0),
        ("neighbour at 2", edited(RUNG_2, &RUNG_2.replace("ring", "neighbour")), "holds", 0),
        ("ring at 4", edited(RUNG_4, &RUNG_4.replace("neighbour", "ring")), "holds", 0),
        ("ring from 3 up", edited(RUNG_3, &ring_3), "holds", 0),
        ("an arm there is not", edited(RUNG_2, &direct), "invalid policy", 1),
        ("rung 4 to 4-6", edited("worlds = \"4\"", "worlds = \"4-6\""), "holds", 0),
        (
            "rungs in another order",
            edited(&format!("{RUNG_2}{RUNG_4}"), &format!("{RUNG_4}{RUNG_2}")),
            "holds",
            0,
        ),
        ("evidence gone", edited("measured:seed-halo.json#world-4", "none"), "holds", 0),
        (
            "evidence of nothing",
            edited("evidence = \"counted\"", "evidence = \"measured:no.json#x\""),
            "holds",
            0,
        ),
        (
            "evidence unreadable",
            edited("evidence = \"counted\"", "evidence = \"guessed\""),
            "invalid policy",
            1,
        ),
        ("coalesce false", edited("coalesce = true", "coalesce = false"), "REFUTED", 2),
        ("coalesce gone", edited("coalesce = true\n", ""), "invalid policy", 1),
        ("override renamed", edited("RANKWISE_HALO", "HALO_ARM"), "holds", 0),
        ("override impossible", edited("RANKWISE_HALO", "HALO ARM"), "invalid policy", 1),
        ("deadline shorter", edited("30000", "500"), "holds", 0),
        ("deadline nought", edited("30000", "0"), "invalid policy", 1),
        ("an unknown key", edited("[call]", "[call]\ncolour = 1"), "invalid policy", 1),
    ];
    for (what, text, word, code) in edits {
        let done = diff(&text, &["--worlds", "2"]);
        let line = first_line(&done);
        println!("{what}: {line}");
        assert!(line.starts_with(word), "{what}: {line}");
        assert_eq!((done.code, done.stderr.as_str()), (Some(code), ""), "{what}: {line}");
        assert!(code != 1 || line.contains(": found "), "{what}: the error of the policy: {line}");
    }
}

/// A tree whose policy is `text`, with the measurements, and the shipped policy as main.toml: compares the two.
fn edit_in_a_tree(text: &str, more: &[&str]) -> Done {
    let tree = Folder::new();
    for folder in ["model", "docs/measurements"] {
        std::fs::create_dir_all(tree.path().join(folder)).expect("a folder");
    }
    let measured = "docs/measurements/seed-halo.json";
    tree.write(measured, &std::fs::read(root().join(measured)).expect("the measurements"));
    tree.write("main.toml", SHIPPED.as_bytes());
    tree.write(SHIPPED_FILE, text.as_bytes());
    run_in(tree.path(), &[&["diff", "main.toml"], more].concat())
}

/// Compares an example of the documentation with what the command says, or writes it when `UPDATE_DOCS` is set.
fn is_the_example(name: &str, said: &str) {
    static PAGE: Mutex<()> = Mutex::new(());
    let _alone = PAGE.lock();
    let path = root().join("docs/reviewing-a-policy.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let start = format!("<!-- example:{name} -->\n```text\n");
    let from = page.find(&start).unwrap_or_else(|| panic!("no example {name}")) + start.len();
    let to = from + page[from..].find("```\n").expect("an end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{said}{}", &page[..from], &page[to..])).expect("the page");
    } else {
        assert_eq!(
            &page[from..to],
            said,
            "UPDATE_DOCS=1 cargo test -p rankwise-verify writes the example anew"
        );
    }
}

#[test]
fn legs_in_groups_of_their_own_are_refuted_with_world_ranks_and_key() {
    let line = SHIPPED.lines().position(|line| line.starts_with("coalesce")).expect("a line") + 1;
    let text = edited("coalesce = true", "coalesce = false");
    let done = edit_in_a_tree(&text, &["--budget", "states=20000"]);
    let first = first_line(&done);
    let due = format!(
        "REFUTED: HAL-3 on world 2 under halo.coalesce = false (model/policy.toml:{line}, true in the base): deadlock: \
         ranks 0 and 1 wait for each other in a circle, each for a leg that its peer posts only after the one it waits \
         in"
    );
    assert!(first.starts_with(&due), "{first}");
    assert_eq!(done.code, Some(2));
    assert!(done.stdout.contains("cycle: rank 0 ─waits for─▶ rank 1 ─waits for─▶ rank 0"), "{}", done.stdout);
    assert!(done.stdout.contains("REFUTED at 3"), "the rung that it breaks: {}", done.stdout);
    let end = done.stdout.find("\nHAL-10 does not hold").expect("another counterexample");
    is_the_example("uncoalesced", &done.stdout[..end]);
}

#[test]
fn a_gap_names_its_world() {
    let gap = format!("{RUNG_4}{}", RUNG_3.replace("3-", "6-"));
    let rung_3 = RUNG_3.replace("3-", "3");
    let done = diff(&edited(&format!("{RUNG_4}{RUNG_3}"), &format!("{rung_3}{gap}")), &[]);
    assert_eq!(done.code, Some(1));
    assert!(first_line(&done).starts_with("invalid policy: "), "{done:?}");
    assert!(first_line(&done).contains("halo.rungs: found no rung for world 5"), "{done:?}");
}

#[test]
fn a_ring_at_world_4_is_proved_and_moves_three_times_the_bytes_against_the_measurement() {
    let done = edit_in_a_tree(&edited(RUNG_4, &RUNG_4.replace("neighbour", "ring")), &[]);
    let first = first_line(&done);
    for part in [
        "holds: world 4 takes ring instead of neighbour; ",
        " that may depend on it are proved",
        "at world 4 an interior rank receives 3 x the bytes",
        "the measurement speaks against it: ring 2462.9/2244.5 ms, neighbour 1010.6/1017.5 ms at world 4",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert_eq!(done.code, Some(0));
    let interior = done.stdout.lines().find(|line| line.contains("4  interior")).expect("a row");
    assert!(
        interior.contains("2 P in 2 copies -> 6 P in 3 copies") && interior.ends_with("3 x"),
        "{interior}"
    );
    assert!(done.stdout.contains("seed-halo.json#world-4; machine and date not stated"), "{}", done.stdout);
    assert!(
        done.stdout.contains("rung 2, evidence speaks against it: the row speaks for neighbour, not ring")
    );
    let rung_3 = done.stdout.lines().find(|line| line.trim_start().starts_with("3  3- ")).expect("a row");
    let cells: Vec<&str> = rung_3.split_whitespace().collect();
    assert_eq!(cells, ["3", "3-", "neighbour", "8", "65,536", "counted"]);
    is_the_example("ring-at-4", &done.stdout);
}

#[test]
fn evidence_that_does_not_cover_its_rung_is_told() {
    let done = diff(
        &edited("evidence = \"counted\"", "evidence = \"measured:seed-halo.json#world-2\""),
        &["--worlds", "2"],
    );
    let first = first_line(&done);
    for part in ["no world changes its arm", "gain evidence", "the row speaks for ring, not neighbour"] {
        assert!(first.contains(part), "{part}: {first}");
    }
}

#[test]
fn a_deadline_leaves_every_obligation_as_it_was() {
    let done = diff(&edited("30000", "500"), &[]);
    let first = first_line(&done);
    assert!(
        first.starts_with("holds: call.deadline_ms is 500, was 30000; no obligation depends on it"),
        "{first}"
    );
}

#[test]
fn markdown_keeps_the_first_line_and_folds_the_lanes() {
    let text = edited("coalesce = true", "coalesce = false");
    let words = ["--budget", "states=20000", "--markdown"];
    let done = diff(&text, &words);
    let plain = diff(&text, &words[..2]);
    let without_path = |done: &Done| first_line(done).split('(').next().map(str::to_owned);
    assert_eq!(without_path(&done), without_path(&plain));
    let lanes = "<details><summary>HAL-3 on world 2, rank by rank</summary>\n\n```text\nHAL-3 does not hold";
    assert!(done.stdout.contains(lanes), "{}", done.stdout);
    assert_eq!(done.stdout.matches("<details>").count(), done.stdout.matches("\n```\n\n</details>").count());
    assert!(done.stdout.contains("\n| ---: | --- |"), "tables: {}", done.stdout);
    assert!(!done.stdout.contains('\u{1b}'), "colors in Markdown");
}

#[test]
fn json_has_the_verdict_and_everything_it_rests_on() {
    let done = diff(&edited(RUNG_4, &RUNG_4.replace("neighbour", "ring")), &["--worlds", "2-3", "--json"]);
    let found = done.json();
    assert_eq!(found["verdict"], "holds");
    assert!(found["line"].as_str().is_some_and(|line| line.starts_with("holds on worlds 2-3 alone: ")));
    assert_eq!(found["arms"], serde_json::json!([{ "worlds": "4", "base": "neighbour", "head": "ring" }]));
    assert_eq!(found["keys"][0]["key"], "halo.rungs");
    assert_eq!(found["measurements"][0]["says"], "against");
    for field in ["moves", "rungs", "evidence", "obligations", "counterexamples", "base", "head"] {
        assert!(found.get(field).is_some(), "{field}: {found}");
    }
}

#[test]
fn a_budget_that_runs_out_is_inconclusive() {
    let text = edited(RUNG_4, &RUNG_4.replace("neighbour", "ring"));
    let done = diff(&text, &["--budget", "states=100"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(first_line(&done).starts_with("inconclusive: HAL-"), "{done:?}");
    assert!(first_line(&done).contains("the budget of states ran out"), "{done:?}");
}

#[test]
fn a_policy_that_is_no_longer_broken_says_so() {
    let folder = Folder::new();
    let base = folder.write("base.toml", edited("coalesce = true", "coalesce = false").as_bytes());
    let done = run_in(root(), &["diff", &base, SHIPPED_FILE, "--worlds", "2"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(first_line(&done).contains("HAL-3 and HAL-10 among them, refuted in the base"), "{done:?}");
}

#[test]
fn a_base_that_this_build_cannot_read_is_told_and_the_head_is_proved() {
    let folder = Folder::new();
    let base = folder.write("base.toml", edited("[call]", "[call]\nretries = 1").as_bytes());
    let done = run_in(root(), &["diff", &base, SHIPPED_FILE, "--worlds", "2"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let first = first_line(&done);
    assert!(first.contains("call.retries: found an unknown key") && first.contains("are proved"), "{first}");
    assert!(done.stdout.contains("call.retries: 1 -> not there"), "{}", done.stdout);
}

/// A repository whose first commit has the shipped policy.
fn repository() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().join("model")).expect("a folder");
    folder.write(SHIPPED_FILE, SHIPPED.as_bytes());
    git(folder.path(), &["init", "--quiet", "--initial-branch", "main"]);
    commit(folder.path(), "the shipped policy");
    folder
}

fn commit(folder: &Path, message: &str) {
    git(folder, &["add", "--all"]);
    let who = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"];
    git(folder, &[&who[..], &["commit", "--quiet", "--no-verify", "--message", message]].concat());
}

fn git(folder: &Path, words: &[&str]) {
    let done = Command::new("git").args(words).current_dir(folder).output().expect("git runs");
    assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn without_arguments_the_working_tree_is_compared_with_where_head_left_main() {
    let repository = repository();
    let there = repository.path();
    let same = run_in(there, &["diff"]);
    assert_eq!((same.code, same.stderr.as_str()), (Some(0), ""), "{same:?}");
    assert!(first_line(&same).starts_with("no change in meaning: model/policy.toml says what "), "{same:?}");
    assert!(first_line(&same).ends_with("(where HEAD left main) says"), "{same:?}");

    git(there, &["checkout", "--quiet", "-b", "topic"]);
    repository.write(SHIPPED_FILE, edited("30000", "500").as_bytes());
    commit(there, "a shorter deadline");
    repository.write(SHIPPED_FILE, edited("30000", "600").as_bytes());
    let other = run_in(there, &["diff"]);
    assert!(first_line(&other).starts_with("holds: call.deadline_ms is 600, was 30000"), "{other:?}");
    let below = run_in(&there.join("model"), &["diff"]);
    assert_eq!(below.stdout, other.stdout, "from a folder below");
    let revisions = run_in(there, &["diff", "main", "topic"]);
    assert!(first_line(&revisions).starts_with("holds: call.deadline_ms is 500, was 30000"), "{revisions:?}");
    assert!(revisions.stdout.contains("base: main ("), "{revisions:?}");
    let back = run_in(there, &["diff", "HEAD"]);
    assert!(first_line(&back).starts_with("holds: call.deadline_ms is 600, was 500"), "{back:?}");
}

#[test]
fn without_a_base_to_find_one_is_asked_for() {
    let repository = repository();
    git(repository.path(), &["branch", "--move", "trunk"]);
    let done = run_in(repository.path(), &["diff"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    assert!(done.stderr.contains("none of upstream/main, origin/main, main"), "{done:?}");
    assert!(done.stderr.contains("name a base: rankwise diff BASE"), "{done:?}");
}

#[test]
fn a_side_that_is_nothing_is_refused_by_name() {
    let repository = repository();
    for (word, part) in [
        ("no-such-branch", "a policy.toml, a certificate.json or a git revision"),
        ("missing.toml", "missing.toml: "),
        ("missing.json", "missing.json: "),
    ] {
        let done = run_in(repository.path(), &["diff", word]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{word}: {done:?}");
        assert!(done.stderr.contains(word) && done.stderr.contains(part), "{word}: {done:?}");
        assert_eq!(done.stderr.lines().count(), 1, "{word}: {done:?}");
    }
}

/// A certificate of a few obligations that are proved at once.
fn certificate(folder: &Folder, name: &str) -> (String, Value) {
    let path = folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let only = ["--only", "HAL-2", "--only", "HAL-3", "--only", "HAL-9"];
    let words = [&["prove", "--certificate", &path, "--worlds", "2-3"], &only[..]].concat();
    let done = run(&words);
    assert_eq!(done.code, Some(0), "{done:?}");
    let value = serde_json::from_str(&std::fs::read_to_string(&path).expect("a certificate")).expect("JSON");
    (path, value)
}

/// The first line and the exit code of comparing `base` with itself, edited.
fn after(edit: impl Fn(&mut Value)) -> (String, Option<i32>) {
    let folder = Folder::new();
    let (base, mut value) = certificate(&folder, "base.json");
    edit(&mut value);
    let head = folder.write("head.json", value.to_string().as_bytes());
    let done = run(&["diff", &base, &head]);
    (first_line(&done).to_owned(), done.code)
}

fn obligation<'a>(certificate: &'a mut Value, requirement: &str) -> &'a mut Value {
    let list = certificate["obligations"].as_array_mut().expect("a list");
    list.iter_mut().find(|one| one["requirement"] == requirement).expect("an obligation")
}

fn remove(certificate: &mut Value, list: &str, field: &str, value: &str) {
    certificate[list].as_array_mut().expect("a list").retain(|one| one[field] != value);
}

#[test]
fn two_certificates_of_one_tree_say_the_same() {
    let (line, code) = after(|_| {});
    assert!(line.starts_with("no change in meaning: "), "{line}");
    assert_eq!(code, Some(0));
}

/// The first line and the exit code of comparing a certificate, edited, with itself.
fn before(edit: impl Fn(&mut Value)) -> (String, Option<i32>) {
    let folder = Folder::new();
    let (head, mut value) = certificate(&folder, "head.json");
    edit(&mut value);
    let base = folder.write("base.json", value.to_string().as_bytes());
    let done = run(&["diff", &base, &head]);
    (first_line(&done).to_owned(), done.code)
}

#[test]
fn a_certificate_that_proves_more_says_so() {
    for verdict in ["inconclusive", "refuted"] {
        let (line, code) = before(|base| obligation(base, "HAL-9")["verdict"] = verdict.into());
        let due = "holds: 1 obligation that was inconclusive or refuted is proved now; all ";
        assert!(line.starts_with(due), "{line}");
        assert_eq!(code, Some(0));
    }
    let (line, code) = before(|base| base["mutants"][0]["verdict"] = "survived".into());
    assert!(line.starts_with("holds: "), "{line}");
    assert_eq!(code, Some(0));
    let (line, code) = after(|head| obligation(head, "HAL-9")["verdict"] = Value::Null);
    assert!(line.starts_with("weaker: no longer run: HAL-9 "), "{line}");
    assert_eq!(code, Some(2));
}

#[test]
fn an_obligation_that_is_gone_is_named_in_the_first_line() {
    let (line, code) = after(|head| remove(head, "obligations", "requirement", "HAL-9"));
    let due =
        "weaker: obligation gone: HAL-9 statistics equal the bytes that the arm must move (halo/statistics)";
    assert_eq!((line.as_str(), code), (due, Some(2)));
}

#[test]
fn a_lowered_bound_an_added_axiom_and_a_mutant_gone_are_weaker() {
    let (line, code) = after(|head| obligation(head, "HAL-2")["worlds"] = serde_json::json!([2, 2]));
    assert!(
        line.starts_with("weaker: bound lowered: HAL-2 ") && line.ends_with("from worlds 2-3 to 2"),
        "{line}"
    );
    assert_eq!(code, Some(2));
    let (line, code) = after(|head| {
        obligation(head, "HAL-9")["axioms"] = serde_json::json!(["ranks never fail"]);
    });
    assert_eq!(line, "weaker: axiom added: HAL-9 now assumed: ranks never fail");
    assert_eq!(code, Some(2));
    let (line, code) = after(|head| obligation(head, "HAL-2")["faults"] = "some".into());
    assert!(line.starts_with("weaker: adversary changed: HAL-2 "), "{line}");
    assert_eq!(code, Some(2));
    let (line, code) = after(|head| remove(head, "mutants", "name", "uncoalesced"));
    assert!(line.starts_with("weaker: mutant gone: uncoalesced, against HAL-3 "), "{line}");
    assert_eq!(code, Some(2));
    let (line, code) = after(|head| {
        let mutants = head["mutants"].as_array_mut().expect("mutants");
        mutants[0]["verdict"] = "survived".into();
    });
    assert!(line.starts_with("weaker: mutant ") && line.contains(" no longer refuted by "), "{line}");
    assert_eq!(code, Some(2));
}

#[test]
fn other_sources_that_prove_as_much_hold() {
    let (line, code) = after(|head| head["sources"][1]["sha256"] = "0".into());
    assert!(line.starts_with("holds: the sources of model/check are others; all "), "{line}");
    assert_eq!(code, Some(0));
}

#[test]
fn a_refutation_in_a_certificate_is_refuted_here() {
    let (line, code) = after(|head| obligation(head, "HAL-9")["verdict"] = "refuted".into());
    assert!(line.starts_with("REFUTED: HAL-9 statistics"), "{line}");
    assert_eq!(code, Some(2));
}

#[test]
fn a_certificate_is_compared_with_the_tree_that_this_command_was_built_from() {
    let folder = Folder::new();
    let (base, _) = certificate(&folder, "base.json");
    let done = run_in(root(), &["diff", &base, SHIPPED_FILE, "--worlds", "2"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let first = first_line(&done);
    assert!(first.contains("obligation added: GRP-3 ") && first.contains("are proved"), "{first}");
}

fn judged(report: &Report) -> (u64, u64, u64, Vec<bool>) {
    let proved = report.verdicts.iter().map(|(_, verdict)| matches!(verdict, Verdict::Proved)).collect();
    (report.states, report.transitions, report.depth, proved)
}

/// Obligations that do not read a changed key are not run again. So what a study says it reads must be all that it
/// reads.
#[test]
fn a_study_gives_the_same_whatever_the_keys_that_it_does_not_read() {
    let everywhere = |arm| format!("[{{ worlds = \"2-\", arm = \"{arm}\", evidence = \"none\" }}]");
    let others = [
        ("halo.rungs", everywhere("ring")),
        ("halo.rungs", everywhere("neighbour")),
        ("halo.coalesce", "false".to_owned()),
        ("halo.override_env", "OTHER".to_owned()),
        ("call.deadline_ms", "1".to_owned()),
    ];
    assert!(
        KEYS.iter().all(|key| others.iter().any(|(other, _)| other == key)),
        "a key without another value"
    );
    let at = |policy| Setup { worlds: Some((1, 2)), ..Setup::new(policy) };
    let shipped = at(Policy::shipped());
    for study in modules().into_iter().flat_map(|module| module.studies) {
        let due = judged(&(study.run)(&shipped));
        for (key, value) in others.iter().filter(|(key, _)| !study.reads.contains(key)) {
            let sets = [((*key).to_owned(), value.clone())];
            let other = at(Policy::parse(SHIPPED_FILE, SHIPPED, &sets).expect("a policy"));
            assert_eq!(judged(&(study.run)(&other)), due, "{} reads {key}", study.name);
        }
    }
}
