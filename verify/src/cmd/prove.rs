//! `rankwise prove`: every obligation under a policy, proved, refuted or inconclusive.

use crate::certificate;
use crate::choice::{Choice, PolicyArgs};
use crate::complaint::Complaint;
use crate::counterexamples::{draw, keep, shown};
use crate::progress;
use crate::proof::{self, Selection, Settings, Task};
use crate::report::{Exit, Lean, Table, count, say, say_json};
use crate::verdicts::{
    INCONCLUSIVE, Obligation, PROVED, Proof, REFUTED, Tried, mutant_table, obligation_table, worlds_text,
};
use rankwise_check::explore::Budget;
use rankwise_check::registry::{Engine, Module, Mutant, Setup, modules};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Arguments of `prove`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    policy: PolicyArgs,
    /// Only this module, requirement (HAL-3) or study; may be given several times
    #[arg(long, value_name = "MODULE|HAL-3|STUDY")]
    only: Vec<String>,
    /// Only these worlds, inclusive, as 2-8 or 4
    #[arg(long, value_name = "FIRST-LAST", value_parser = worlds)]
    worlds: Option<(u32, u32)>,
    /// Put every mutant on trial: the claim that it names must refute it, and no other
    #[arg(long, conflicts_with = "mutant")]
    mutants: bool,
    /// Run one mutant and draw its counterexample
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// Limits of each study
    #[arg(long, value_name = "states=N,seconds=N,bytes=N", value_parser = budget, default_value = "")]
    budget: Budget,
    /// List obligations and mutants, and run nothing
    #[arg(long, conflicts_with_all = ["mutants", "mutant"])]
    list: bool,
    /// Prove everything, put every mutant on trial, and write what came of it to this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mutants", "mutant", "list"])]
    certificate: Option<PathBuf>,
    /// Say whether a certificate still speaks of this tree: its policy, sources, obligations and mutants
    #[arg(long, value_name = "CERTIFICATE")]
    #[arg(conflicts_with_all = ["mutants", "mutant", "list", "certificate", "only", "worlds"])]
    check: Option<PathBuf>,
    /// Walk the states of a study in a browser, at its smallest world or that of --worlds; Ctrl-C ends it
    #[arg(long, value_name = "STUDY")]
    #[arg(conflicts_with_all = ["mutants", "mutant", "list", "certificate", "check", "only", "budget", "json"])]
    explore: Option<String>,
    /// Port of --explore, on 127.0.0.1
    #[arg(long, value_name = "PORT", requires = "explore", default_value_t = 3000)]
    port: u16,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Complaint> {
    let choice = Choice::read(&args.policy)?;
    let modules = modules();
    let selection = proof::select(&modules, &args.only)?;
    if let Some(name) = &args.explore {
        return explore(args, &choice, &selection.tasks, name);
    }
    if args.list {
        return list(args, &choice, &selection);
    }
    if let Some(file) = &args.check {
        return certificate::check(file, &choice, &selection, args.json);
    }
    if !args.json {
        progress::show();
    }
    let settings = Settings {
        policy: choice.policy.clone(),
        worlds: args.worlds,
        budget: args.budget,
        interrupted: listen()?,
    };
    if let Some(file) = &args.certificate {
        return certificate::write(file, &choice, &settings, &selection, args.json);
    }
    match &args.mutant {
        Some(name) => one_mutant(args, &choice, &settings, &modules, name),
        None if args.mutants => all_mutants(args, &choice, &settings, &selection.mutants),
        None => prove(args, &choice, &settings, &selection.tasks),
    }
}

/// Set by Ctrl-C: studies end where they are, and what was found is kept. A second one ends the process.
pub(super) fn listen() -> Result<&'static AtomicBool, Complaint> {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    })
    .map_err(|error| Complaint(format!("Ctrl-C: {error}")))?;
    Ok(&INTERRUPTED)
}

fn prove(args: &Args, choice: &Choice, settings: &Settings, tasks: &[Task]) -> Result<Exit, Complaint> {
    check_worlds(args, tasks)?;
    let started = Instant::now();
    let mut results: Vec<Obligation> = Vec::new();
    let mut table = Vec::new();
    let mut states = 0;
    let mut left = tasks.iter().map(|task| task.module).peekable();
    proof::prove(tasks, settings, |task, report| {
        states += report.as_ref().map_or(0, |report| report.states);
        let judged: Vec<Obligation> = task
            .claims
            .iter()
            .map(|claim| Obligation::judged(task, *claim, report.as_ref(), choice))
            .collect();
        table.extend(judged.iter().map(Obligation::row));
        results.extend(judged);
        left.next();
        // A module's table is printed once its last study is there.
        if !args.json && left.peek() != Some(&task.module) {
            say(&format!("{}\n{}\n", task.module, obligation_table(std::mem::take(&mut table))))?;
        }
        Ok(())
    })?;
    for found in shown(&results) {
        let file = keep(found, &found.requirement);
        if !args.json {
            draw(found, file.as_ref())?;
        }
    }
    if args.json {
        say_json(&Proof { policy_digest: choice.digest(), obligations: &results, mutants: &[] })?;
    } else {
        say(&summary(args, choice, &results, states, started.elapsed()))?;
    }
    Ok(exit(&results))
}

/// Serves a study's first model in stateright's Explorer until the process ends.
fn explore(args: &Args, choice: &Choice, tasks: &[Task], name: &str) -> Result<Exit, Complaint> {
    let can_be = |task: &&Task| task.study.engine == Engine::Explore;
    let Some(task) = tasks.iter().find(|task| task.study.name == name) else {
        let known: Vec<String> = tasks.iter().filter(can_be).map(|task| task.study.name.to_owned()).collect();
        return Err(Complaint::unknown("--explore", name, &known));
    };
    if !can_be(&task) {
        let engine = task.study.engine.name();
        return Err(Complaint(format!(
            "--explore: found {name}, a study by {engine}, expected one that explores states"
        )));
    }
    check_worlds(args, std::slice::from_ref(task))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let free = TcpListener::bind(address).and_then(|listener| listener.local_addr());
    let address = free.map_err(|error| Complaint(format!("--port: found {}: {error}", args.port)))?;
    say(&format!("{name}: http://{address}/  Ctrl-C ends it.\n"))?;
    let setup = Setup { worlds: args.worlds, serve: Some(address), ..Setup::new(choice.policy.clone()) };
    (task.study.run)(&setup);
    Err(Complaint(format!("--explore: {name} has no model of that world")))
}

/// A range of worlds that no study has is a mistake, not a proof.
fn check_worlds(args: &Args, tasks: &[Task]) -> Result<(), Complaint> {
    let Some((first, last)) = args.worlds else { return Ok(()) };
    let has = |task: &Task| first.max(task.study.worlds.0) <= last.min(task.study.worlds.1);
    if tasks.iter().any(has) {
        return Ok(());
    }
    let smallest = tasks.iter().map(|task| task.study.worlds.0).min().unwrap_or(0);
    let largest = tasks.iter().map(|task| task.study.worlds.1).max().unwrap_or(0);
    let expected = format!("worlds among {}", worlds_text((smallest, largest)));
    Err(Complaint(format!("--worlds: found {}, expected {expected}", worlds_text((first, last)))))
}

/// The exit code of a proof.
fn exit(results: &[Obligation]) -> Exit {
    let has = |name: &str| results.iter().any(|result| result.verdict == Some(name));
    match (has(REFUTED), has(INCONCLUSIVE)) {
        (true, _) => Exit::Refuted,
        (false, true) => Exit::Inconclusive,
        (false, false) => Exit::Good,
    }
}

fn summary(args: &Args, choice: &Choice, results: &[Obligation], states: u64, time: Duration) -> String {
    let number = |name: &str| results.iter().filter(|result| result.verdict == Some(name)).count() as u64;
    let (proved, refuted, open) = (number(PROVED), number(REFUTED), number(INCONCLUSIVE));
    let found = match (refuted, open) {
        (0, 0) => format!("{} proved", count(proved, "obligation")),
        _ => format!("{refuted} refuted, {open} inconclusive, {proved} proved"),
    };
    let digest = choice.digest();
    let mut text =
        format!("{found}: {} in {:.1} s, policy {digest}\n", count(states, "state"), time.as_secs_f64());
    let whole = args.only.is_empty() && args.worlds.is_none();
    if refuted + open == 0 && whole && choice.is_shipped() {
        text.push_str("To see it break: cargo run --release -- prove --set halo.coalesce=false\n");
    }
    text
}

fn all_mutants(
    args: &Args,
    choice: &Choice,
    settings: &Settings,
    mutants: &[Mutant],
) -> Result<Exit, Complaint> {
    let started = Instant::now();
    let mut tried = Vec::new();
    proof::try_mutants(mutants, settings, |mutant, result| {
        tried.push(Tried::judged(mutant, result));
        Ok(())
    })?;
    let number = |verdict: &str| tried.iter().filter(|one| one.verdict == Some(verdict)).count();
    let (refuted, open) = (number(REFUTED), number(INCONCLUSIVE));
    if args.json {
        say_json(&Proof { policy_digest: choice.digest(), obligations: &[], mutants: &tried })?;
    } else {
        let seconds = started.elapsed().as_secs_f64();
        let all = count(tried.len() as u64, "mutant");
        say(&mutant_table(tried.iter().map(Tried::row)))?;
        say(&format!(
            "\n{refuted} of {all} refuted, each by the claim that it names alone: {seconds:.1} s\n"
        ))?;
    }
    Ok(match tried.len() {
        all if all == refuted => Exit::Good,
        all if all == refuted + open => Exit::Inconclusive,
        _ => Exit::Refuted,
    })
}

fn one_mutant(
    args: &Args,
    choice: &Choice,
    settings: &Settings,
    modules: &[Module],
    name: &str,
) -> Result<Exit, Complaint> {
    let mutant = proof::mutant(modules, name)?;
    let mut tried = None;
    proof::try_mutants(std::slice::from_ref(&mutant), settings, |mutant, result| {
        tried = Some(Tried::judged(mutant, result));
        Ok(())
    })?;
    let mut tried = tried.expect("one mutant has one result");
    let mut file = None;
    if let Some(found) = &mut tried.counterexample {
        found.policy = choice.lines(proof::reads(modules, mutant.study));
        file = keep(found, &format!("mutant-{name}"));
    }
    let exit = match tried.verdict {
        Some(REFUTED) => Exit::Refuted,
        Some(INCONCLUSIVE) => Exit::Inconclusive,
        _ => Exit::Failed,
    };
    if args.json {
        say_json(&Proof { policy_digest: choice.digest(), obligations: &[], mutants: &[tried] })?;
        return Ok(exit);
    }
    if let Some(found) = &tried.counterexample {
        draw(found, file.as_ref())?;
    }
    let claim = format!("{} {}", tried.requirement, tried.claim);
    say(&match exit {
        Exit::Refuted => {
            format!("The mutant {name} is refuted, as it must be, by {claim}. Exit 2: a refutation.\n")
        }
        _ => {
            format!("The mutant {name} is not refuted by {claim} alone: {}.\n", tried.why.unwrap_or_default())
        }
    })?;
    Ok(exit)
}

fn list(args: &Args, choice: &Choice, selection: &Selection) -> Result<Exit, Complaint> {
    let listed = |task: &Task| -> Vec<Obligation> {
        task.claims.iter().map(|claim| Obligation::listed(task, *claim)).collect()
    };
    let obligations: Vec<Obligation> = selection.tasks.iter().flat_map(listed).collect();
    let mutants: Vec<Tried> = selection.mutants.iter().map(Tried::listed).collect();
    if args.json {
        say_json(&Proof { policy_digest: choice.digest(), obligations: &obligations, mutants: &mutants })?;
        return Ok(Exit::Good);
    }
    let mut table = Table::new([
        ("", Lean::Left),
        ("claim", Lean::Left),
        ("study", Lean::Left),
        ("engine", Lean::Left),
        ("worlds", Lean::Right),
        ("regime", Lean::Left),
        ("faults", Lean::Left),
        ("reads", Lean::Left),
    ]);
    for one in &obligations {
        table.row([
            one.requirement.clone(),
            one.claim.to_owned(),
            one.study.to_owned(),
            one.engine.to_owned(),
            worlds_text(one.worlds),
            one.regime.unwrap_or("-").to_owned(),
            one.faults.to_owned(),
            one.reads.join(" "),
        ]);
    }
    say(&table.wrap(1).render())?;
    let mut table = Table::new([
        ("mutant", Lean::Left),
        ("", Lean::Left),
        ("claim that refutes it", Lean::Left),
        ("study", Lean::Left),
    ]);
    for one in &mutants {
        table.row([one.name.into(), one.requirement.clone(), one.claim.into(), one.study.into()]);
    }
    say(&format!("\n{}", table.wrap(2).render()))?;
    Ok(Exit::Good)
}

/// Reads "2-8" or "4".
pub(super) fn worlds(text: &str) -> Result<(u32, u32), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<u32>().ok().filter(|&world| world >= 1);
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err("expected worlds from 1 up, as 2-8 or 4".to_owned()),
    }
}

/// Reads "states=N,seconds=N,bytes=N", each of which may be left out.
pub(super) fn budget(text: &str) -> Result<Budget, String> {
    let mut budget = Budget::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (name, number) = part.split_once('=').unwrap_or((part, ""));
        let number: u64 =
            number.parse().map_err(|_| format!("{name}: found {number:?}, expected a whole number"))?;
        match name {
            "states" => budget.states = number,
            "seconds" => budget.time = Duration::from_secs(number),
            "bytes" => budget.bytes = number,
            _ => return Err(format!("found {name:?}, expected states, seconds or bytes")),
        }
    }
    Ok(budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_are_inclusive_ranges() {
        assert_eq!((worlds("2-8"), worlds("4")), (Ok((2, 8)), Ok((4, 4))));
        for wrong in ["", "0", "8-2", "2-", "a-b", "0-3"] {
            assert!(worlds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_budget_changes_what_it_names() {
        let read = budget("states=10,seconds=2").unwrap();
        assert_eq!(
            (read.states, read.time, read.bytes),
            (10, Duration::from_secs(2), Budget::default().bytes)
        );
        assert_eq!(budget("").unwrap(), Budget::default());
        assert!(budget("state=1").unwrap_err().contains("expected states, seconds or bytes"));
        assert!(budget("states=x").unwrap_err().contains("states: found \"x\""));
    }
}
