//! Rank processes: started, listened to, and gone on every path out.

use crate::complaint::Complaint;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// How a rank process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What it wrote to stdout.
    pub(crate) said: String,
    /// `None`: it did not end by itself in time.
    pub(crate) status: Option<ExitStatus>,
}

impl Ended {
    /// How, in words.
    pub(crate) fn how(&self) -> String {
        let Some(status) = self.status else { return "did not end in time and was killed".to_owned() };
        match status.signal() {
            None => format!("ended without a result ({status})"),
            Some(signal) => format!("killed by {}", signal_name(signal)),
        }
    }
}

fn signal_name(number: i32) -> String {
    let names = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
    ];
    let name = names.iter().find(|(known, _)| *known == number);
    name.map_or(format!("signal {number}"), |(_, name)| format!("{name} ({number})"))
}

/// Starts one process a command and waits for all. After the first one that fails the others have `patience` to
/// end by themselves; then they are killed.
pub(crate) fn run(commands: Vec<Command>, patience: Duration) -> Result<Vec<Ended>, Complaint> {
    let (sender, receiver) = channel();
    let mut processes = Processes(Vec::new());
    for (rank, command) in commands.into_iter().enumerate() {
        processes.0.push(start(rank, command, sender.clone())?);
    }
    drop(sender);
    let mut ended: Vec<Option<Ended>> = processes.0.iter().map(|_| None).collect();
    let mut limit: Option<Instant> = None;
    while ended.iter().any(Option::is_none) {
        let left = limit.map(|limit| limit.saturating_duration_since(Instant::now()));
        let heard = left.map_or_else(|| receiver.recv().ok(), |left| receiver.recv_timeout(left).ok());
        let Some((rank, said)) = heard else { break };
        // Its stdout is closed, which happens when it ends.
        let status = processes.0[rank].wait().map_err(|error| Complaint(format!("rank {rank}: {error}")))?;
        if failed(status) {
            limit.get_or_insert(Instant::now() + patience);
        }
        ended[rank] = Some(Ended { said, status: Some(status) });
    }
    Ok(ended.into_iter().map(|one| one.unwrap_or(Ended { said: String::new(), status: None })).collect())
}

/// Whether its peers may wait for it in vain. One that found wrong bytes has done all its exchanges.
fn failed(status: ExitStatus) -> bool {
    !matches!(status.code(), Some(0 | 2))
}

fn start(rank: usize, mut command: Command, heard: Sender<(usize, String)>) -> Result<Child, Complaint> {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut process =
        started.map_err(|error| Complaint(format!("rank {rank}: cannot be started: {error}")))?;
    let mut stdout = process.stdout.take().expect("stdout is piped");
    std::thread::spawn(move || {
        let mut said = Vec::new();
        // What was read before an error counts; without a result the rank's end is told instead.
        let _ = stdout.read_to_end(&mut said);
        let _ = heard.send((rank, String::from_utf8_lossy(&said).into_owned()));
    });
    Ok(process)
}

/// Kills and reaps what is left of them when dropped.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // An error says that it has ended.
            let _ = process.kill();
        }
        for process in &mut self.0 {
            let _ = process.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_ranks_say_and_how_they_end_is_kept_by_rank() {
        let ended = run(vec![shell("echo a"), shell("echo b; exit 2")], Duration::ZERO).unwrap();
        assert_eq!((ended[0].said.as_str(), ended[1].said.as_str()), ("a\n", "b\n"));
        assert_eq!(ended[1].status.unwrap().code(), Some(2));
    }

    #[test]
    fn a_rank_killed_by_a_signal_is_reported_by_the_signals_name() {
        let ended = run(vec![shell("kill -9 $$")], Duration::ZERO).unwrap();
        assert_eq!(ended[0].how(), "killed by SIGKILL (9)");
    }

    #[test]
    fn after_a_failure_the_others_do_not_run_for_ever() {
        let started = Instant::now();
        let ended = run(vec![shell("exit 1"), shell("exec sleep 60")], Duration::from_millis(50)).unwrap();
        assert!(ended[1].status.is_none() && started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_command_that_cannot_start_leaves_none_behind() {
        let missing = Command::new("/nonexistent/program");
        let error = run(vec![shell("exec sleep 60"), missing], Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("rank 1: cannot be started"));
    }
}
