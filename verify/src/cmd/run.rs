//! `rankwise run`: the real thing, over ranks that it starts itself, or as one rank where RANK is set.

use super::replay::logs;
use crate::choice::{Choice, PolicyArgs};
use crate::complaint::Complaint;
use crate::launch;
use crate::rank::{self, Forced, Job, RankReport};
use crate::reference::Whole;
use crate::report::{Exit, Lean, Table, count, grouped, say, say_json, warn};
use clap::{Subcommand, ValueEnum};
use rankwise::{Address, Group, Options};
use rankwise_protocol::group::WORLD_MAX;
use rankwise_protocol::layout::Dtype;
use rankwise_protocol::legs::Arm;
use serde_json::json;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Ranks of a run that names no other number.
const WORLD: u32 = 4;
/// Events that the log of a rank has at most.
const TRACE_EVENTS_MAX: usize = 1_000_000;
/// How long after a deadline a rank may take to say so.
const GRACE: Duration = Duration::from_secs(5);
/// The variables that tell a process which rank of which job it is.
const RANK: &str = "RANK";
const WORLD_SIZE: &str = "WORLD_SIZE";
const JOB: &str = "RANKWISE_JOB";

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Exchange halo rows between the bands of frames `[T,H,W,C]`
    Halo(HaloArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// Ranks are threads of this process
    Threads,
    /// Ranks are processes that share memory
    Shm,
}

#[derive(Clone, Debug, clap::Args)]
struct HaloArgs {
    /// Frames to split, a .npy file `[T,H,W,C]`; a test card without it
    #[arg(long, value_name = "FILE.npy", conflicts_with_all = ["frames", "height", "width", "channels", "dtype"])]
    input: Option<PathBuf>,
    /// Ranks, 4 by default; WORLD_SIZE counts only where RANK is set
    #[arg(long, value_name = "N")]
    world: Option<u32>,
    /// What the ranks are
    #[arg(long, value_enum, default_value = "shm")]
    group: Backend,
    /// Arm for all ranks, in place of what the policy says
    #[arg(long, value_name = "ring|neighbour", value_parser = arm)]
    arm: Option<Arm>,
    /// Element type of the test card
    #[arg(long, default_value = "uint8", value_parser = dtype)]
    dtype: Dtype,
    /// Frames of the test card
    #[arg(long, value_name = "T", default_value_t = 8, value_parser = size)]
    frames: usize,
    /// Rows of the test card
    #[arg(long, value_name = "H", default_value_t = 72, value_parser = size)]
    height: usize,
    /// Columns of the test card
    #[arg(long, value_name = "W", default_value_t = 128, value_parser = size)]
    width: usize,
    /// Channels of the test card
    #[arg(long, value_name = "C", default_value_t = 3, value_parser = size)]
    channels: usize,
    /// Exchanges, each on other data
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    /// Seed of the test card and of the changes between exchanges
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// How long a call may wait for its peers; the same as --set call.deadline_ms=D
    #[arg(long, value_name = "D")]
    deadline_ms: Option<u64>,
    /// Environment variable for one rank; may be given several times
    #[arg(long, value_name = "RANK:KEY=VALUE", value_parser = variable)]
    env: Vec<Variable>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Keep a log of each rank in this folder, for replay
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// Write the phase of each rank to this file, one byte a rank
    #[arg(long, hide = true, value_name = "FILE")]
    phase_file: Option<PathBuf>,
    /// Process that started this rank and that it must not outlive
    #[arg(long, hide = true, value_name = "PID")]
    parent: Option<u32>,
}

/// A variable of one rank's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    rank: u32,
    key: String,
    value: String,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<Exit, Complaint> {
    let What::Halo(mut args) = args.what;
    if let Some(deadline_ms) = args.deadline_ms.take() {
        args.policy.put("call.deadline_ms", &deadline_ms.to_string());
    }
    let choice = Choice::read(&args.policy)?;
    match std::env::var_os(RANK) {
        None => all_ranks(&args, &choice),
        Some(rank) => one_rank(&args, &choice, &rank.to_string_lossy()),
    }
}

impl HaloArgs {
    fn job(&self) -> Job {
        let element = self.dtype.bytes() as usize;
        let HaloArgs { frames, height, width, channels, .. } = *self;
        Job {
            input: self.input.clone(),
            card: Whole { frames, height, width, channels, element },
            dtype: self.dtype,
            seed: self.seed,
            repeat: self.repeat,
            phase_file: self.phase_file.clone(),
            trace: self.trace.clone(),
        }
    }

    /// The arguments of a rank process of this run.
    fn for_rank(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["run".into(), "halo".into()];
        let mut put = |name: &str, value: OsString| args.extend([name.into(), value]);
        match &self.input {
            Some(path) => put("--input", path.into()),
            None => {
                put("--dtype", self.dtype.name().into());
                put("--frames", self.frames.to_string().into());
                put("--height", self.height.to_string().into());
                put("--width", self.width.to_string().into());
                put("--channels", self.channels.to_string().into());
            }
        }
        put("--repeat", self.repeat.to_string().into());
        put("--seed", self.seed.to_string().into());
        put("--parent", std::process::id().to_string().into());
        if let Some(path) = &self.phase_file {
            put("--phase-file", path.into());
        }
        if let Some(folder) = &self.trace {
            put("--trace", folder.into());
        }
        args.extend(self.policy.to_args());
        args
    }
}

/// Starts all ranks, waits for them and tells what came of it.
fn all_ranks(args: &HaloArgs, choice: &Choice) -> Result<Exit, Complaint> {
    let world = args.world.unwrap_or(WORLD);
    if !(1..=WORLD_MAX).contains(&world) {
        return Err(Complaint(format!("--world: found {world}, expected 1 to {WORLD_MAX} ranks")));
    }
    if let Some(Variable { rank, key, .. }) = args.env.iter().find(|variable| variable.rank >= world) {
        let last = world - 1;
        return Err(Complaint(format!("--env {rank}:{key}: found rank {rank}, expected 0 to {last}")));
    }
    let job = args.job();
    let (whole, dtype) = job.check(world)?;
    // Every rank holds the whole array.
    let Whole { frames, height, width, channels, element } = whole;
    let bytes = frames * height * width * channels * element;
    rank::check_room((bytes as u64).saturating_mul(u64::from(world)))?;
    if let Some(folder) = &args.trace {
        prepare_trace(folder)?;
    }
    let reports = match args.group {
        Backend::Threads => threads(args, choice, &job, world)?,
        Backend::Shm => processes(args, choice, world)?,
    };
    tell(args, choice, &whole, dtype, &reports)
}

fn options(args: &HaloArgs, choice: &Choice) -> Options {
    let trace_events_max = if args.trace.is_some() { TRACE_EVENTS_MAX } else { 0 };
    Options { policy: choice.policy.clone(), trace_events_max }
}

/// Makes the folder for the log of a rank that was started by hand: others of its run may be there.
fn prepare_own_trace(folder: &Path, rank: u32) -> Result<(), Complaint> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Complaint(format!("--trace: {}: {error}", folder.display())))?;
    let log = rank::log_of(folder, rank);
    match log.exists() {
        true => Err(Complaint(format!("--trace: found {}, expected none", log.display()))),
        false => Ok(()),
    }
}

/// Makes the folder for logs. One that has logs already would mix two runs.
fn prepare_trace(folder: &Path) -> Result<(), Complaint> {
    let shown = folder.display();
    std::fs::create_dir_all(folder).map_err(|error| Complaint(format!("--trace: {shown}: {error}")))?;
    match logs(folder).map_err(|error| Complaint(format!("--trace: {shown}: {error}")))?.first() {
        Some((_, log)) => {
            Err(Complaint(format!("--trace: found {}, expected a folder without logs", log.display())))
        }
        None => Ok(()),
    }
}

fn threads(args: &HaloArgs, choice: &Choice, job: &Job, world: u32) -> Result<Vec<RankReport>, Complaint> {
    let variable = &choice.policy.halo().override_env;
    if let Some(Variable { rank, key, .. }) = args.env.iter().find(|given| given.key != *variable) {
        let expected = format!("{variable}, since threads share one environment, or --group shm");
        return Err(Complaint(format!("--env {rank}:{key}: found {key}, expected {expected}")));
    }
    let inherited = std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned());
    let common = args.arm.map(|arm| arm.name().to_owned()).or(inherited);
    let groups =
        Group::threads(world, &options(args, choice)).map_err(|error| Complaint(error.to_string()))?;
    let array = |_| job.array();
    let arrays = (0..world).map(array).collect::<Result<Vec<_>, _>>()?;
    Ok(std::thread::scope(|scope| {
        let started: Vec<_> = groups
            .into_iter()
            .zip(arrays)
            .map(|(group, array)| {
                let own = args.env.iter().rev().find(|given| given.rank == group.rank());
                let forced = Forced::Given(own.map(|given| given.value.clone()).or(common.clone()));
                scope.spawn(move || rank::run(job, array, &group, &forced))
            })
            .collect();
        let ended = started.into_iter().enumerate();
        ended
            .map(|(rank, thread)| {
                thread.join().unwrap_or_else(|_| RankReport::failed(rank as u32, "panicked"))
            })
            .collect()
    }))
}

fn processes(args: &HaloArgs, choice: &Choice, world: u32) -> Result<Vec<RankReport>, Complaint> {
    let program = std::env::current_exe().map_err(|error| Complaint(format!("this program: {error}")))?;
    let job = format!("run-{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish());
    let command = |rank: u32| {
        let mut command = Command::new(&program);
        command.args(args.for_rank());
        command.env(RANK, rank.to_string()).env(WORLD_SIZE, world.to_string()).env(JOB, &job);
        if let Some(arm) = args.arm {
            command.env(&choice.policy.halo().override_env, arm.name());
        }
        let own = args.env.iter().filter(|given| given.rank == rank);
        command.envs(own.map(|given| (&given.key, &given.value)));
        command
    };
    let deadline = Duration::from_millis(choice.policy.call().deadline_ms);
    let ended = launch::run((0..world).map(command).collect(), deadline + GRACE)?;
    let reports = ended.iter().enumerate().map(|(rank, ended)| {
        let told = ended.said.lines().next_back().and_then(|line| serde_json::from_str(line).ok());
        told.unwrap_or_else(|| RankReport::failed(rank as u32, ended.how()))
    });
    Ok(reports.collect())
}

/// What the ranks came to: a table, errors, and the verdict.
fn tell(
    args: &HaloArgs,
    choice: &Choice,
    whole: &Whole,
    dtype: Dtype,
    reports: &[RankReport],
) -> Result<Exit, Complaint> {
    let errors = errors(reports);
    let wrong: u64 = reports.iter().map(|report| report.wrong_bytes).sum();
    let (exit, verdict) = verdict(wrong, &errors);
    errors.iter().for_each(|error| warn(error));
    let shape = [whole.frames, whole.height, whole.width, whole.channels];
    let group = if args.group == Backend::Shm { "shm" } else { "threads" };
    if args.json {
        say_json(&json!({
            "op": "halo",
            "world": reports.len(),
            "group": group,
            "policy_digest": choice.digest(),
            "shape": shape,
            "dtype": dtype.name(),
            "verdict": verdict,
            "wrong_bytes": wrong,
            "errors": errors,
            "ranks": reports,
        }))?;
        return Ok(exit);
    }
    let source = args.input.as_ref().map_or("test card".to_owned(), |path| path.display().to_string());
    say(&format!("halo {shape:?} {dtype}, {source}, group {group}, policy {}\n", choice.digest()))?;
    if reports.iter().any(|report| report.exchanges > 0) {
        say(&format!("{}\n", table(reports, dtype)))?;
    }
    say(&verdict_line(reports, wrong, &errors))?;
    Ok(exit)
}

/// Wrong bytes weigh more than a rank that failed.
fn verdict(wrong: u64, errors: &[String]) -> (Exit, &'static str) {
    match (wrong, errors.len()) {
        (0, 0) => (Exit::Good, "equal"),
        (0, _) => (Exit::Failed, "failed"),
        _ => (Exit::Refuted, "different"),
    }
}

fn table(reports: &[RankReport], dtype: Dtype) -> String {
    let mut table = Table::new([
        ("rank", Lean::Right),
        ("rows", Lean::Right),
        ("arm", Lean::Left),
        ("type", Lean::Left),
        ("sent (B)", Lean::Right),
        ("received (B)", Lean::Right),
        ("time (us)", Lean::Right),
        ("algbw (GB/s)", Lean::Right),
        ("wrong", Lean::Right),
    ]);
    for report in reports {
        let rate = report.microseconds.map(|time| report.bytes_received as f64 / time / 1e3);
        let number = |value: Option<f64>, digits: usize| {
            value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        table.row([
            report.rank.to_string(),
            report.rows.to_string(),
            report.arm.clone().unwrap_or("-".into()),
            dtype.name().to_owned(),
            report.bytes_sent.to_string(),
            report.bytes_received.to_string(),
            number(report.microseconds, 1),
            number(rate, 3),
            report.wrong_bytes.to_string(),
        ]);
    }
    table.render()
}

fn verdict_line(reports: &[RankReport], wrong: u64, errors: &[String]) -> String {
    let exchanges = reports.iter().map(|report| report.exchanges).min().unwrap_or(0);
    let what = format!("{}, {}", count(reports.len() as u64, "rank"), count(exchanges, "exchange"));
    let first = reports.iter().find_map(|report| Some((report.rank, report.first_wrong?)));
    match first {
        Some((rank, (exchange, at))) => {
            let (wrong, reference) = (grouped(wrong), "not as in the unsplit array");
            format!(
                "{what}: {wrong} wrong bytes, {reference}; the first on rank {rank} in exchange {exchange}: {at}\n"
            )
        }
        None if errors.is_empty() => format!("{what}: every byte as in the unsplit array\n"),
        None if exchanges > 0 => format!("{what}: every byte as in the unsplit array, then errors\n"),
        None if reports.iter().any(|report| report.posted) => format!("{what}: errors\n"),
        None => format!("{what}: no rank posted a leg\n"),
    }
}

/// Each distinct error once, with the ranks that have it.
fn errors(reports: &[RankReport]) -> Vec<String> {
    let mut distinct: Vec<(&str, Vec<u32>)> = Vec::new();
    for report in reports {
        // The barrier before an exchange and the exchange say the same of a group that has ended.
        let Some(error) = report.error.as_deref().map(|error| error.trim_start_matches("halo: ")) else {
            continue;
        };
        match distinct.iter_mut().find(|(known, _)| *known == error) {
            Some((_, ranks)) => ranks.push(report.rank),
            None => distinct.push((error, vec![report.rank])),
        }
    }
    let line = |(error, ranks): (&str, Vec<u32>)| {
        let names = ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        match ranks.len() {
            // The library says so itself of what all ranks refused.
            all if all == reports.len() && error.contains(" by all ranks: ") => error.to_owned(),
            all if all == reports.len() && all > 1 => format!("all ranks: {error}"),
            1 => format!("rank {names}: {error}"),
            _ => format!("ranks {names}: {error}"),
        }
    };
    distinct.into_iter().map(line).collect()
}

/// This process is one rank: another launcher, or this program, has set its variables. The result is one line of
/// JSON.
fn one_rank(args: &HaloArgs, choice: &Choice, rank: &str) -> Result<Exit, Complaint> {
    if let Some(parent) = args.parent {
        die_with(parent)?;
    }
    if args.group == Backend::Threads {
        let expected = format!("shm, since {RANK} is set: unset {RANK} to start all ranks");
        return Err(Complaint(format!("--group: found threads, expected {expected}")));
    }
    let number = |name: &str, text: &str| {
        let number = text.parse::<u32>();
        number.map_err(|_| Complaint(format!("{name}: found {text:?}, expected a whole number")))
    };
    let variable = |name: &str| {
        let expected = format!("since {RANK} is {rank}: unset {RANK} to start all ranks");
        std::env::var(name)
            .map_err(|_| Complaint(format!("{name}: found nothing, expected a value, {expected}")))
    };
    let rank = number(RANK, rank)?;
    let world = number(WORLD_SIZE, &variable(WORLD_SIZE)?)?;
    if rank >= world {
        return Err(Complaint(format!(
            "{RANK}: found {rank}, expected less than {WORLD_SIZE}, which is {world}"
        )));
    }
    if let Some(other) = args.world.filter(|&other| other != world) {
        return Err(Complaint(format!("--world: found {other}, expected {world} as {WORLD_SIZE} says")));
    }
    if let Some(given) = args.env.first() {
        let expected = format!("none, since {RANK} is set: set {} in the environment", given.key);
        return Err(Complaint(format!("--env: found {}:{}, expected {expected}", given.rank, given.key)));
    }
    let report = joined(args, choice, rank, world, &variable(JOB)?);
    let report = report.unwrap_or_else(|complaint| RankReport::failed(rank, complaint));
    if let (Some(error), None) = (&report.error, args.parent) {
        warn(&format!("rank {rank}: {error}"));
    }
    say_json(&report)?;
    Ok(match (report.wrong_bytes, &report.error) {
        (0, None) => Exit::Good,
        (0, Some(_)) => Exit::Failed,
        _ => Exit::Refuted,
    })
}

fn joined(
    args: &HaloArgs,
    choice: &Choice,
    rank: u32,
    world: u32,
    name: &str,
) -> Result<RankReport, Complaint> {
    let job = args.job();
    job.check(world)?;
    if let Some(folder) = &args.trace {
        prepare_own_trace(folder, rank)?;
    }
    let array = job.array()?;
    let refused = |error: &dyn std::fmt::Display| Complaint(error.to_string());
    let address = Address::new(name).map_err(|error| Complaint(format!("{JOB}: {error}")))?;
    let group = Group::shm(&address, rank, world, &options(args, choice)).map_err(|error| refused(&error))?;
    let forced = match args.arm {
        None => Forced::Environment,
        Some(arm) => Forced::Given(Some(arm.name().to_owned())),
    };
    Ok(rank::run(&job, array, &group, &forced))
}

/// Makes the system end this process when the one that started it ends.
fn die_with(parent: u32) -> Result<(), Complaint> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Complaint(format!("parent death signal: {error}")))?;
    // It may have ended before the signal was asked for.
    let alive = getppid().is_some_and(|pid| pid.as_raw_nonzero().get() as u32 == parent);
    if alive {
        Ok(())
    } else {
        Err(Complaint(format!("the process {parent} that started this rank is gone")))
    }
}

fn arm(text: &str) -> Result<Arm, String> {
    Arm::from_name(text).ok_or_else(|| "expected ring or neighbour".to_owned())
}

fn dtype(text: &str) -> Result<Dtype, String> {
    let names = Dtype::ALL.map(Dtype::name).join(", ");
    Dtype::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or(format!("expected one of {names}"))
}

/// A dimension of the test card.
fn size(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| (1..=SIZE_MAX).contains(number));
    number.ok_or_else(|| format!("expected 1 to {SIZE_MAX}"))
}

/// Largest dimension of the test card: four of them still multiply in 64 bits.
const SIZE_MAX: usize = 32_768;

fn variable(text: &str) -> Result<Variable, String> {
    let expected = || "expected RANK:KEY=VALUE, as 1:RANKWISE_HALO=ring".to_owned();
    let (rank, pair) = text.split_once(':').ok_or_else(expected)?;
    let (key, value) = pair.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(expected)?;
    let rank = rank.parse().map_err(|_| expected())?;
    Ok(Variable { rank, key: key.to_owned(), value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Wrong;

    #[test]
    fn an_equal_error_is_told_once() {
        let failed = |rank, error: &str| RankReport::failed(rank, error);
        assert_eq!(errors(&[failed(0, "a"), failed(1, "a")]), ["all ranks: a"]);
        assert_eq!(errors(&[failed(0, "a"), failed(1, "b"), failed(2, "a")]), ["ranks 0 2: a", "rank 1: b"]);
        assert_eq!(errors(&[failed(0, "a")]), ["rank 0: a"]);
        assert_eq!(errors(&[failed(0, "a"), failed(1, "halo: a")]), ["all ranks: a"]);
    }

    #[test]
    fn wrong_bytes_are_told_with_the_first_and_exit_2() {
        let at = Wrong { frame: 1, row: -1, column: 2, channel: 0, byte: 0, found: 0xa5, expected: 0 };
        let good = RankReport { exchanges: 5, ..RankReport::default() };
        let bad = RankReport { rank: 1, wrong_bytes: 1200, first_wrong: Some((3, at)), ..good.clone() };
        assert_eq!(verdict(1200, &["rank 0: failed".into()]), (Exit::Refuted, "different"));
        let line = verdict_line(&[good, bad], 1200, &[]);
        for fragment in
            ["2 ranks, 5 exchanges: 1,200 wrong bytes", "rank 1 in exchange 3: frame 1, row -1", "0xa5"]
        {
            assert!(line.contains(fragment), "{fragment}: {line}");
        }
    }

    #[test]
    fn what_all_ranks_refused_is_told_as_the_library_says_it() {
        let refused = |rank| RankReport::failed(rank, "halo refused by all ranks: why");
        assert_eq!(errors(&[refused(0), refused(1)]), ["halo refused by all ranks: why"]);
    }

    #[test]
    fn a_variable_of_a_rank_has_three_parts() {
        let read = variable("1:K=a=b").unwrap();
        assert_eq!((read.rank, read.key.as_str(), read.value.as_str()), (1, "K", "a=b"));
        assert_eq!(variable("0:K=").unwrap().value, "");
        for wrong in ["K=V", "1:K", "1:=V", "x:K=V", "-1:K=V"] {
            assert!(variable(wrong).is_err(), "{wrong}");
        }
    }
}
