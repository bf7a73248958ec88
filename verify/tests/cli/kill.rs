//! A rank that is killed: the others say which, in time, and nothing is left behind.

use super::common::{Done, Folder, rankwise, run};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const WORLD: usize = 4;
const DEADLINE: Duration = Duration::from_millis(500);
/// How long after the deadline a rank of a busy machine may take to end.
const SLACK: Duration = Duration::from_millis(1500);
/// How long ranks may take to start.
const START: Duration = Duration::from_secs(20);
const PHASES: [&str; 6] = ["idle", "exchange", "pack", "post", "wait", "unpack"];

#[test]
fn a_killed_rank_is_named_by_all_others_in_time_and_nothing_is_left() {
    let rounds = if std::env::var_os("RANKWISE_LONG").is_some_and(|value| value == "1") { 50 } else { 10 };
    let folder = Folder::new();
    let mut hit: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 0..rounds {
        *hit.entry(kill_one(&folder, round)).or_default() += 1;
    }
    println!("{rounds} ranks killed; phases hit: {hit:?}");
}

/// Starts a job, kills one of its ranks at a random moment, and gives the phase in which it was.
fn kill_one(folder: &Folder, round: u32) -> &'static str {
    let before = shared_memory();
    let job = format!("kill-{}-{round}", std::process::id());
    let phases = folder.path().join(format!("phases-{round}"));
    let mut ranks: Vec<Child> = (0..WORLD).map(|rank| start(&job, &phases, rank)).collect();
    wait_for("all ranks to exchange", START, || has_begun(&phases));
    std::thread::sleep(Duration::from_micros(random() % 20_000));

    let victim = random() as usize % WORLD;
    let mut killed = ranks.remove(victim);
    assert!(killed.try_wait().expect("a child").is_none(), "rank {victim} ended before it was killed");
    killed.kill().expect("it lives");
    let moment = Instant::now();
    let ended = Done::from(killed.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, None, "rank {victim} was not killed: {ended:?}");

    wait_for("the others to end", DEADLINE + SLACK, || {
        ranks.iter_mut().all(|rank| rank.try_wait().expect("a child").is_some())
    });
    let took = moment.elapsed();
    for rank in ranks {
        let done = Done::from(rank.wait_with_output().expect("it has ended"));
        assert_eq!(done.code, Some(1), "{done:?}");
        let error = done.json()["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains(&format!("rank {victim} ")), "rank {victim} was killed: {error}");
        assert!(done.stderr.contains(&error), "{done:?}");
    }
    assert!(took <= DEADLINE + SLACK, "{took:?}");
    assert_nothing_left(&job, &before);
    let phase = std::fs::read(&phases).expect("the phase file")[victim];
    PHASES[usize::from(phase)]
}

fn start(job: &str, phases: &Path, rank: usize) -> Child {
    let deadline = DEADLINE.as_millis().to_string();
    rankwise()
        .args(["run", "halo", "--frames", "2", "--height", "16", "--width", "8", "--repeat", "1000000000"])
        .args(["--deadline-ms", &deadline, "--phase-file"])
        .arg(phases)
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", WORLD.to_string())
        .env("RANKWISE_JOB", job)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a rank starts")
}

/// Whether every rank has written a phase of an exchange of data.
fn has_begun(phases: &Path) -> bool {
    std::fs::read(phases).is_ok_and(|bytes| bytes.len() == WORLD && bytes.iter().all(|&phase| phase > 0))
}

fn wait_for(what: &str, patience: Duration, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + patience;
    while !done() {
        assert!(Instant::now() < limit, "waited {patience:?} for {what}");
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Names in `/dev/shm`.
fn shared_memory() -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir("/dev/shm").expect("/dev/shm");
    entries.flatten().map(|entry| entry.path()).collect()
}

/// No segment is new, and no socket has the job's name. Other programs may use both for a moment.
fn assert_nothing_left(job: &str, before: &BTreeSet<PathBuf>) {
    let sockets = || std::fs::read_to_string("/proc/net/unix").expect("sockets of this host");
    assert!(!sockets().contains(job), "a socket of {job} is left");
    wait_for("/dev/shm to be as before", SLACK, || shared_memory().is_subset(before));
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Processes that `parent` has started, by rank.
pub(crate) fn children(parent: u32) -> BTreeMap<usize, Pid> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    let rank_of = |pid: &str| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environment.split(|&byte| byte == 0);
        let rank = variables.find_map(|variable| variable.strip_prefix(b"RANK="))?;
        Some((std::str::from_utf8(rank).ok()?.parse().ok()?, Pid::from_raw(pid.parse().ok()?)?))
    };
    list.split_whitespace().filter_map(rank_of).collect()
}

fn start_all(phases: &Path) -> (Child, BTreeMap<usize, Pid>) {
    let parent = rankwise()
        .args(["run", "halo", "--frames", "2", "--height", "16", "--width", "8", "--repeat", "1000000000"])
        .args(["--deadline-ms", "500", "--phase-file"])
        .arg(phases)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    wait_for("all ranks to exchange", START, || has_begun(phases));
    let ranks = children(parent.id());
    assert_eq!(ranks.len(), WORLD);
    (parent, ranks)
}

fn lives(pid: Pid) -> bool {
    // A zombie that nobody has reaped yet has ended.
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

#[test]
fn the_parent_reports_a_killed_rank_by_the_signals_name_and_reaps_the_others() {
    let folder = Folder::new();
    let (parent, ranks) = start_all(&folder.path().join("phases"));
    kill_process(ranks[&2], Signal::KILL).expect("it lives");
    let done = Done::from(parent.wait_with_output().expect("it ends"));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("rank 2: killed by SIGKILL (9)"), "{done:?}");
    assert!(done.stderr.contains("ranks 0 1 3: ") && done.stderr.contains("rank 2 is gone"), "{done:?}");
    assert!(ranks.values().all(|&rank| !lives(rank)));
}

#[test]
fn ranks_do_not_outlive_their_parent() {
    let folder = Folder::new();
    let (mut parent, ranks) = start_all(&folder.path().join("phases"));
    parent.kill().expect("it lives");
    parent.wait().expect("it ends");
    wait_for("the ranks to end", SLACK, || ranks.values().all(|&rank| !lives(rank)));
}

#[test]
fn a_rank_that_stands_still_is_named_and_killed() {
    let folder = Folder::new();
    let (parent, ranks) = start_all(&folder.path().join("phases"));
    kill_process(ranks[&1], Signal::STOP).expect("it lives");
    let done = Done::from(parent.wait_with_output().expect("it ends"));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("rank 1: did not end in time and was killed"), "{done:?}");
    assert!(done.stderr.contains("rank 1 did not come before the deadline"), "{done:?}");
    assert!(!lives(ranks[&1]));
}

#[test]
fn a_run_leaves_nothing_in_shared_memory() {
    let before = shared_memory();
    assert_eq!(run(&["run", "halo", "--repeat", "2"]).code, Some(0));
    wait_for("/dev/shm to be as before", SLACK, || shared_memory().is_subset(&before));
}
