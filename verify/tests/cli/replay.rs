//! `run halo --trace` and `replay`: what real ranks do conforms, and a log that was changed does not.

use super::common::{Done, Folder, rankwise, run};
use rankwise::halo::Halo;
use rankwise::{BandShape, Dtype, Group, Options};
use rankwise_check::replay::{Log, Nonconformance, replay};
use rankwise_protocol::event::record_digest;
use rankwise_protocol::group::{Record, Tag};
use rankwise_protocol::policy::Policy;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const SMALL: [&str; 8] = ["--frames", "2", "--height", "9", "--width", "4", "--channels", "1"];

/// Records a run and gives its folder.
fn record(folder: &Folder, name: &str, words: &[&str]) -> (PathBuf, Done) {
    let path = folder.path().join(name);
    let mut command = rankwise();
    command.args(["run", "halo"]).args(SMALL).args(words).arg("--trace").arg(&path);
    let done = command.output().expect("the command starts").into();
    (path, done)
}

fn replay_folder(path: &Path) -> Done {
    run(&["replay", path.to_str().expect("UTF-8")])
}

fn assert_conforms(path: &Path, fragment: &str) {
    let done = replay_folder(path);
    assert_eq!((done.code, done.stderr.as_str(), done.stdout.lines().count()), (Some(0), "", 1), "{done:?}");
    assert!(done.stdout.starts_with("conforms: ") && done.stdout.contains(fragment), "{done:?}");
}

#[test]
fn runs_of_both_arms_over_threads_and_processes_conform() {
    let folder = Folder::new();
    for world in ["1", "2", "3"] {
        for arm in ["ring", "neighbour"] {
            for group in ["threads", "shm"] {
                let words = ["--world", world, "--arm", arm, "--group", group, "--repeat", "3"];
                let (path, done) = record(&folder, &format!("{world}-{arm}-{group}"), &words);
                assert_eq!(done.code, Some(0), "{done:?}");
                // Of threads no group is joined.
                let exchanges = if group == "shm" { 7 } else { 6 };
                assert_conforms(&path, &format!(", {exchanges} exchanges, "));
            }
        }
    }
}

#[test]
fn a_refused_call_conforms_and_so_does_another_policy_if_it_is_named() {
    let folder = Folder::new();
    for group in ["threads", "shm"] {
        let words = ["--world", "3", "--group", group, "--env", "1:RANKWISE_HALO=ring"];
        let (path, done) = record(&folder, group, &words);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert_conforms(&path, ", 0 calls, 0 messages");
    }
    let set = ["--set", "call.deadline_ms=4000"];
    let (path, _) = record(&folder, "policy", &["--repeat", "1", set[0], set[1]]);
    let path = path.to_str().expect("UTF-8");
    assert_eq!(run(&["replay", path, set[0], set[1]]).code, Some(0));
    let done = run(&["replay", path]);
    assert!(
        done.code == Some(2) && done.stdout.starts_with("rank 0, line 1: it ran under policy "),
        "{done:?}"
    );
}

/// A job of three processes that has begun to exchange, and the processes by rank.
fn begin(phases: &Path, trace: &Path) -> (Child, Vec<Pid>) {
    let parent = rankwise()
        .args(["run", "halo", "--world", "3", "--repeat", "1000000000", "--deadline-ms", "500"])
        .args(SMALL)
        .arg("--phase-file")
        .arg(phases)
        .arg("--trace")
        .arg(trace)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let limit = Instant::now() + Duration::from_secs(20);
    while !std::fs::read(phases).is_ok_and(|bytes| bytes.len() == 3 && bytes.iter().all(|&phase| phase > 0)) {
        assert!(Instant::now() < limit, "the ranks do not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
    let ranks = super::kill::children(parent.id());
    (parent, ranks.into_values().collect())
}

#[test]
fn the_logs_of_ranks_that_lost_a_peer_conform_and_the_peer_left_none() {
    for (signal, said) in
        [(Signal::KILL, "rank 1 is gone"), (Signal::STOP, "rank 1 did not come before the deadline")]
    {
        let folder = Folder::new();
        let trace = folder.path().join("trace");
        let (parent, ranks) = begin(&folder.path().join("phases"), &trace);
        kill_process(ranks[1], signal).expect("it lives");
        let done = Done::from(parent.wait_with_output().expect("it ends"));
        assert!(done.code == Some(1) && done.stderr.contains(said), "{done:?}");
        assert!(trace.join("rank-0.log").exists() && !trace.join("rank-1.log").exists());
        let done = run(&["replay", trace.to_str().expect("UTF-8"), "--set", "call.deadline_ms=500"]);
        assert!(done.code == Some(0) && done.stdout.starts_with("conforms: 2 ranks, "), "{done:?}");
    }
}

/// Runs `work` as every rank of a group of threads, and gives the logs.
fn threads(world: u32, events_max: usize, work: impl Fn(&Group) + Sync) -> Vec<Log> {
    let options = Options { trace_events_max: events_max, ..Options::default() };
    let groups = Group::threads(world, &options).expect("a group");
    std::thread::scope(|scope| {
        for group in &groups {
            scope.spawn(|| work(group));
        }
    });
    let log = |group: &Group| Log::parse(group.rank(), &group.trace().expect("a log")).expect("a log");
    groups.iter().map(log).collect()
}

const SHAPE: BandShape = BandShape { frames: 1, rows: 2, width: 3, channels: 1, dtype: Dtype::U8 };

#[test]
fn handles_that_are_dropped_and_waits_on_other_threads_conform() {
    for round in 0..20 {
        let logs = threads(3, 1000, |group| {
            let mut halo = Halo::with_override(group, None);
            let band = vec![0; SHAPE.padded_bytes() as usize];
            drop(halo.post(&SHAPE, &band).expect("posted"));
            let waits = halo.post(&SHAPE, &band).expect("posted");
            std::thread::scope(|scope| {
                scope.spawn(|| waits.wait(&mut band.clone()).expect("legs"));
                let mut other = Halo::with_override(group, Some("ring"));
                other.exchange(&SHAPE, &mut band.clone()).expect("exchanged");
            });
            group.barrier().expect("all come");
        });
        let found = replay(&Policy::shipped(), &logs);
        let found = found.unwrap_or_else(|wrong| panic!("round {round}: {wrong}\n{}", text_of(&logs)));
        // The second group of calls ends well, the first is dropped.
        assert_eq!((found.ranks, found.exchanges, found.calls), (3, 4, 6));
    }
}

#[test]
fn aborts_and_their_consequences_conform() {
    for _ in 0..20 {
        let logs = threads(3, 1000, |group| {
            let mut halo = Halo::with_override(group, None);
            let mut band = vec![0; SHAPE.padded_bytes() as usize];
            let first = halo.exchange(&SHAPE, &mut band);
            if group.rank() == 1 {
                first.expect("exchanged");
                group.abort();
                group.abort();
            }
            while halo.exchange(&SHAPE, &mut band).is_ok() {}
            halo.exchange(&SHAPE, &mut band).expect_err("the group has ended");
            group.barrier().expect_err("the group has ended");
        });
        let found = replay(&Policy::shipped(), &logs);
        found.unwrap_or_else(|wrong| panic!("{wrong}\n{}", text_of(&logs)));
    }
}

#[test]
fn a_log_that_is_full_speaks_of_what_it_has() {
    for events_max in 1..60 {
        let logs = threads(2, events_max, |group| {
            let mut band = vec![0; SHAPE.padded_bytes() as usize];
            let mut halo = Halo::with_override(group, None);
            (0..2).for_each(|_| halo.exchange(&SHAPE, &mut band).map(drop).expect("exchanged"));
        });
        let found = replay(&Policy::shipped(), &logs);
        found.unwrap_or_else(|wrong| panic!("{events_max}: {wrong}\n{}", text_of(&logs)));
    }
}

fn text_of(logs: &[Log]) -> String {
    logs.iter().map(Log::to_text).collect()
}

/// The logs of a run of two exchanges, by rank.
fn recorded(words: &[&str]) -> Vec<Vec<String>> {
    let folder = Folder::new();
    let (path, done) = record(&folder, "trace", &[words, &["--repeat", "2"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let logs: Vec<Vec<String>> = (0..3)
        .filter_map(|rank| std::fs::read_to_string(path.join(format!("rank-{rank}.log"))).ok())
        .map(|text| text.lines().map(str::to_owned).collect())
        .collect();
    assert_eq!(judge(&logs), Ok(()));
    logs
}

const RUNS: [&[&str]; 3] = [
    &["--world", "2", "--group", "shm", "--arm", "ring"],
    &["--world", "3", "--group", "shm", "--arm", "neighbour"],
    &["--world", "3", "--group", "threads", "--arm", "ring"],
];

fn judge(logs: &[Vec<String>]) -> Result<(), Nonconformance> {
    let parse = |(rank, lines): (usize, &Vec<String>)| Log::parse(rank as u32, &(lines.join("\n") + "\n"));
    let logs = logs.iter().enumerate().map(parse).collect::<Result<Vec<_>, _>>()?;
    replay(&Policy::shipped(), &logs).map(drop)
}

/// Judges the logs with the lines of one rank changed.
fn judge_changed(
    logs: &[Vec<String>],
    rank: usize,
    change: impl FnOnce(&mut Vec<String>),
) -> Result<(), Nonconformance> {
    let mut changed = logs.to_vec();
    change(&mut changed[rank]);
    judge(&changed)
}

/// Fails unless the change was found, at a line of a rank.
fn assert_found(told: &str, found: Result<(), Nonconformance>) {
    let wrong = found.expect_err(told);
    let said = wrong.to_string();
    assert!(
        said.starts_with(&format!("rank {}, line {}: ", wrong.rank, wrong.line.unwrap_or(0))),
        "{told}: {said}"
    );
}

#[test]
fn a_log_with_any_event_removed_or_doubled_does_not_conform() {
    for logs in RUNS.map(recorded) {
        for (rank, lines) in logs.iter().enumerate() {
            for (at, line) in lines.iter().enumerate() {
                let told = format!("rank {rank}, line {}: {line}", at + 1);
                let removed = judge_changed(&logs, rank, |lines| drop(lines.remove(at)));
                assert_found(&format!("removed: {told}"), removed);
                let doubled = judge_changed(&logs, rank, |lines| lines.insert(at, line.clone()));
                assert_found(&format!("doubled: {told}"), doubled);
            }
        }
    }
}

#[test]
fn a_log_with_any_word_altered_does_not_conform() {
    for logs in RUNS.map(recorded) {
        let names = names(&logs);
        let mut altered_count = 0;
        for (rank, lines) in logs.iter().enumerate() {
            for (at, line) in lines.iter().enumerate() {
                let words: Vec<&str> = line.split(' ').collect();
                for place in 0..words.len() {
                    for other in others(words[place], &names) {
                        let mut words = words.clone();
                        words[place] = &other;
                        let altered = words.join(" ");
                        let told = format!("rank {rank}, line {}: {line} -> {altered}", at + 1);
                        assert_found(&told, judge_changed(&logs, rank, |lines| lines[at] = altered));
                        altered_count += 1;
                    }
                }
            }
        }
        assert!(altered_count > 10_000, "{altered_count}");
    }
}

/// Every word of the logs that is no number, and the others that a log may have.
fn names(logs: &[Vec<String>]) -> BTreeSet<String> {
    let words =
        logs.iter().flatten().flat_map(|line| line.split(' ')).filter(|word| word.parse::<u64>().is_err());
    let more = "decided expired gone poison full none won found first late aborted diverged failed corrupt agreed \
                raised lost poisoned wait dropped receive packed slot0 slot1 slot2 slot3 last both barrier subgroup \
                pack order hold unpack release return";
    words.chain(more.split(' ')).filter(|word| word.len() < 16).map(str::to_owned).collect()
}

/// What a word is altered to: numbers by one, digits of a digest or payload, and every other name.
fn others(word: &str, names: &BTreeSet<String>) -> Vec<String> {
    if let (Ok(number), true) = (word.parse::<u64>(), word.len() < 16) {
        let less = number.checked_sub(1).map(|less| less.to_string());
        return less.into_iter().chain([(number + 1).to_string(), "-".to_owned()]).collect();
    }
    if word.len() >= 16 {
        let flip = |at: usize| {
            let other = if word.as_bytes()[at] == b'0' { "1" } else { "0" };
            format!("{}{other}{}", &word[..at], &word[at + 1..])
        };
        return (0..word.len()).map(flip).collect();
    }
    names.iter().filter(|name| *name != word).cloned().collect()
}

#[test]
fn a_log_with_two_neighbours_swapped_conforms_exactly_when_they_commute() {
    let (mut commuting, mut other) = (0, 0);
    for logs in RUNS.map(recorded) {
        for (rank, lines) in logs.iter().enumerate() {
            for at in 1..lines.len() - 1 {
                let (first, second) = (&lines[at], &lines[at + 1]);
                let told = format!("rank {rank}, line {}: {first}, {second}", at + 1);
                let swapped = judge_changed(&logs, rank, |lines| lines.swap(at, at + 1));
                if first == second || commute(lines, at) {
                    assert_eq!(swapped, Ok(()), "{told}");
                    commuting += usize::from(first != second);
                } else {
                    assert_found(&told, swapped);
                    other += 1;
                }
            }
        }
    }
    assert!(commuting > 20 && other > 200, "{commuting} {other}");
}

/// Whether the events at `at` and after it are of machines of which neither waits for the other there.
fn commute(lines: &[String], at: usize) -> bool {
    let (first, second) = (&lines[at], &lines[at + 1]);
    let word = |line: &str, place: usize| line.split(' ').nth(place).map(str::to_owned);
    // The call of a leg, and which of its groups: each group of these runs has one leg a channel.
    let channel = |line: &str| (word(line, 1), word(line, 2), word(line, 3));
    let before = |is: &dyn Fn(&String) -> bool| lines[..at].iter().filter(|line| is(line)).count();
    let group = |leg: &str| before(&|line| line.starts_with("leg ") && channel(line) == channel(leg));
    if first.starts_with("leg ") != second.starts_with("leg ") {
        let (leg, other) = if first.starts_with("leg ") { (first, second) } else { (second, first) };
        let of_call = |what: &str| format!("call {} {what}", word(leg, 1).expect("a call"));
        let closes = *other == of_call("close done");
        let closes_own = closes && before(&|line| *line == of_call("close done")) == group(leg);
        // The second order of a call is the wait for its legs.
        let joins = *other == of_call("order done") && before(&|line| *line == of_call("hold wait")) > 0;
        return !closes_own && !joins && other != "end";
    }
    if first.starts_with("leg ") {
        let same_group = word(first, 1) == word(second, 1) && group(first) == group(second);
        return same_group && channel(first) != channel(second);
    }
    // A call is agreed after its exchange and posted before the next one; from then on they are independent.
    let (call, exchange) = match (first.starts_with("call "), second.starts_with("call ")) {
        (true, false) => (first, second),
        (false, true) => (second, first),
        _ => return false,
    };
    let last =
        call.ends_with(" release done") || call.ends_with(" unpack done") || call.ends_with(" hold wait");
    last && exchange != "end"
}

#[test]
fn a_record_that_is_another_in_its_own_log_alone_is_found_where_it_is_read() {
    let logs = recorded(RUNS[1]);
    let at = logs[1].iter().position(|line| line.starts_with("begin 3 halo")).expect("a call");
    let words: Vec<&str> = logs[1][at].split(' ').collect();
    let header: Vec<&str> = logs[1][0].split(' ').collect();
    // The frames, 2 of them, become 3.
    let payload = words[4].replacen("0402", "0403", 1);
    let bytes = (0..payload.len()).step_by(2).map(|at| u8::from_str_radix(&payload[at..at + 2], 16));
    let record = Record {
        nonce: u64::from_str_radix(header[7], 16).expect("a nonce"),
        rank: 1,
        index: 3,
        tag: Tag { op: rankwise::Op::Halo, call: 1 },
        payload: bytes.collect::<Result<_, _>>().expect("bytes"),
    };
    let digest = format!("{:016x}", record_digest(&record));
    let own = logs[1][at + 1].strip_prefix("wrote ").expect("written").to_owned();
    let found = judge_changed(&logs, 1, |lines| {
        lines[at] = format!("begin 3 halo 1 {payload}");
        lines.iter_mut().for_each(|line| *line = line.replace(&own, &digest));
    });
    let wrong = found.expect_err("another record").to_string();
    assert!(
        wrong.starts_with("rank 0, line ") && wrong.ends_with("another record is read than its rank gave"),
        "{wrong}"
    );
}

#[test]
fn a_swap_that_two_ranks_won_names_the_second() {
    let logs = recorded(RUNS[1]);
    let lost = |lines: &Vec<String>| lines.iter().position(|line| line.contains(" - found "));
    let (rank, at) =
        logs.iter().enumerate().find_map(|(rank, lines)| Some((rank, lost(lines)?))).expect("a loser");
    let found = judge_changed(&logs, rank, |lines| {
        let (swap, _) = lines[at].split_once(" found ").expect("it lost");
        lines[at] = format!("{swap} won");
    });
    let wrong = found.expect_err("two winners").to_string();
    assert!(wrong.contains("its swap took place, and so did rank"), "{wrong}");
}

#[test]
fn what_does_not_conform_exits_2_and_names_rank_and_line() {
    let folder = Folder::new();
    let (path, _) = record(&folder, "trace", &["--world", "2", "--repeat", "1"]);
    let file = path.join("rank-1.log");
    let text = std::fs::read_to_string(&file).expect("a log");
    std::fs::write(&file, text.replacen("announced\n", "", 1)).expect("written");
    let done = replay_folder(&path);
    assert_eq!((done.code, done.stderr.as_str(), done.stdout.lines().count()), (Some(2), "", 1), "{done:?}");
    assert!(
        done.stdout.starts_with("rank 1, line 4: \"saw 0\" does not answer announcing the record"),
        "{done:?}"
    );
    let json = run(&["replay", path.to_str().expect("UTF-8"), "--json"]).json();
    assert_eq!((&json["conforms"], &json["rank"], &json["line"]), (&false.into(), &1.into(), &4.into()));
    std::fs::remove_file(&file).expect("a log");
    let done = replay_folder(&path);
    assert!(done.code == Some(2) && done.stdout.starts_with("rank 1: it has no log"), "{done:?}");
}

#[test]
fn what_is_no_log_and_a_folder_that_has_logs_are_refused_by_name() {
    let folder = Folder::new();
    let (path, _) = record(&folder, "trace", &["--world", "2", "--repeat", "1"]);
    let (_, again) = record(&folder, "trace", &["--world", "2", "--repeat", "1"]);
    assert!(
        again.code == Some(1) && again.stderr.contains("rank-0.log, expected a folder without logs"),
        "{again:?}"
    );
    std::fs::write(path.join("rank-0.log"), [0xff, 0xfe]).expect("written");
    let done = replay_folder(&path);
    assert!(done.code == Some(1) && done.stderr.contains("rank-0.log"), "{done:?}");
    let empty = Folder::new();
    let done = replay_folder(empty.path());
    assert!(done.code == Some(1) && done.stderr.contains("found no rank-R.log"), "{done:?}");
    let done = replay_folder(Path::new("/nonexistent"));
    assert!(done.code == Some(1) && done.stderr.contains("/nonexistent"), "{done:?}");
}

#[test]
fn what_is_no_log_at_all_is_unreadable_and_no_line_is_shown_whole() {
    let folder = Folder::new();
    let (path, _) = record(&folder, "trace", &["--world", "2", "--repeat", "1"]);
    let file = path.join("rank-0.log");
    let text = std::fs::read_to_string(&file).expect("a log");
    let long = "\u{1b}".to_owned() + &"x".repeat(1_000_000);
    std::fs::write(&file, format!("{}\n{long}\n", text.lines().next().expect("a header"))).expect("written");
    let done = replay_folder(&path);
    let start = "rank 0, line 2: \"\\u{1b}xxx";
    assert!(done.code == Some(2) && done.stdout.starts_with(start) && done.stdout.len() < 200, "{done:?}");
    std::fs::write(&file, &long).expect("written");
    let done = replay_folder(&path);
    assert_eq!((done.code, done.stdout.as_str()), (Some(1), ""), "{done:?}");
    let start = "rank-0.log, line 1: found \"\\u{1b}xxx";
    assert!(done.stderr.contains(start) && done.stderr.len() < 300, "{done:?}");
    std::fs::remove_file(&file).expect("a log");
    let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo runs");
    assert!(made.success());
    let done = replay_folder(&path);
    assert!(done.code == Some(1) && done.stderr.contains("rank-0.log: found no regular file"), "{done:?}");
}
