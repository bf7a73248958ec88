//! `rankwise replay`: a recorded run through the model.

use crate::choice::{Choice, PolicyArgs};
use crate::complaint::Complaint;
use crate::report::{Exit, count, say, say_json};
use rankwise_check::replay::{Conforms, Log, Nonconformance, replay};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of logs, as run halo --trace wrote it
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    policy: PolicyArgs,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Complaint> {
    let choice = Choice::read(&args.policy)?;
    let texts = read(&args.folder)?;
    let logs: Result<Vec<Log>, _> = texts.iter().map(|(rank, text)| Log::parse(*rank, text)).collect();
    // Without its header a file is no log, and says nothing of a run.
    if let Err(Nonconformance { rank, line: Some(1), why }) = &logs {
        return Err(Complaint(format!("replay: rank-{rank}.log, line 1: {why}")));
    }
    let (exit, found) = match logs.and_then(|logs| replay(&choice.policy, &logs)) {
        Ok(conforms) => (Exit::Good, Ok(conforms)),
        Err(wrong) => (Exit::Refuted, Err(wrong)),
    };
    if args.json {
        say_json(&object(&choice, &found))?
    } else {
        say(&line(&found))?
    }
    Ok(exit)
}

fn line(found: &Result<Conforms, Nonconformance>) -> String {
    let counted = |number: u64, name: &str| count(number, name);
    match found {
        Err(wrong) => format!("{wrong}\n"),
        Ok(conforms) => format!(
            "conforms: {}, {}, {}, {}, {}\n",
            counted(conforms.ranks.into(), "rank"),
            counted(conforms.events, "event"),
            counted(conforms.exchanges, "exchange"),
            counted(conforms.calls, "call"),
            counted(conforms.messages, "message"),
        ),
    }
}

fn object(choice: &Choice, found: &Result<Conforms, Nonconformance>) -> serde_json::Value {
    match found {
        Ok(Conforms { ranks, events, exchanges, calls, messages }) => json!({
            "policy_digest": choice.digest(),
            "conforms": true,
            "ranks": ranks,
            "events": events,
            "exchanges": exchanges,
            "calls": calls,
            "messages": messages,
        }),
        Err(Nonconformance { rank, line, why }) => json!({
            "policy_digest": choice.digest(),
            "conforms": false,
            "rank": rank,
            "line": line,
            "why": why,
        }),
    }
}

/// The logs of a folder, by rank.
fn read(folder: &Path) -> Result<Vec<(u32, String)>, Complaint> {
    let files = logs(folder).map_err(|error| {
        Complaint::field("replay", &folder.display().to_string(), &error.to_string(), "a folder of logs")
    })?;
    if files.is_empty() {
        return Err(Complaint(format!("replay: {}: found no rank-R.log in it", folder.display())));
    }
    // A pipe would be waited for.
    let regular = |path: &Path| match std::fs::metadata(path)?.is_file() {
        true => std::fs::read_to_string(path),
        false => Err(std::io::Error::other("no regular file")),
    };
    let text = |(rank, path): (u32, PathBuf)| match regular(&path) {
        Ok(text) => Ok((rank, text)),
        Err(error) => {
            let path = path.display().to_string();
            Err(Complaint::field("replay", &path, &error.to_string(), "a log"))
        }
    };
    files.into_iter().map(text).collect()
}

/// Files of a folder that are logs by name, in the order of the ranks.
pub(super) fn logs(folder: &Path) -> std::io::Result<Vec<(u32, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let rank = name.strip_prefix("rank-").and_then(|name| name.strip_suffix(".log"));
        files.extend(rank.and_then(|rank| rank.parse().ok()).map(|rank: u32| (rank, path.clone())));
    }
    files.sort();
    Ok(files)
}
