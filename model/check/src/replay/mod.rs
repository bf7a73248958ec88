//! Conformance: recorded runs against the model.
//!
//! Each rank's log goes through the same machines that ran: every logged input must be one that the machine could
//! take there, and every effect the one it asked for. Then what the ranks say of each other must agree: records read
//! are records given, messages received are messages sent, one swap takes each decision to the next and no other
//! word is ever read, no exchange is complete on one rank and poisoned on another, who is seen gone announced
//! nothing any more, and one arm runs.
//!
//! Machines of one rank are its exchanges, each of its calls, and its channels. Events of different machines may
//! stand in either order where neither waits for the other: a call waits for its exchange, an exchange for the call
//! that is being posted, a leg for the close of its group, and the end of a wait for its legs. Legs of one group on
//! different channels may stand in either order. Nothing else may.
//!
//! What is not seen: the time between events, the order of events on different ranks, the bytes of tensors. Of a
//! rank without a log, its records count as read by the others.

mod joint;
mod rank;

use rankwise_protocol::event::Event;
use rankwise_protocol::group::WORLD_MAX;
use rankwise_protocol::policy::Policy;
use std::fmt;

/// First word of a log's first line.
const MAGIC: &str = "rankwise-log";
/// Layout version of logs.
const VERSION: &str = "1";
/// First word of the last line of a log that could hold no more; the number of its events follows.
const FULL: &str = "full";
/// Characters that are shown of a line that is wrong.
const SHOWN_MAX: usize = 100;

/// One rank's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The rank.
    pub rank: u32,
    /// Ranks of the group.
    pub world: u32,
    /// Incarnation of the group.
    pub nonce: u64,
    /// Digest of the policy that it ran under.
    pub policy: u64,
    /// What happened.
    pub events: Vec<Event>,
    /// Whether the log was full before the rank left.
    pub full: bool,
}

/// Where and why logs do not conform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonconformance {
    /// Whose log.
    pub rank: u32,
    /// Line of the log, from 1; `None` where the log as a whole is meant.
    pub line: Option<usize>,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for Nonconformance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "rank {}, line {line}: {}", self.rank, self.why),
            None => write!(f, "rank {}: {}", self.rank, self.why),
        }
    }
}

/// What logs that conform amount to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conforms {
    /// Ranks.
    pub ranks: u32,
    /// Events of all ranks.
    pub events: u64,
    /// Exchanges of records that were complete.
    pub exchanges: u64,
    /// Halo calls that ended well, of all ranks.
    pub calls: u64,
    /// Messages received.
    pub messages: u64,
}

impl Log {
    /// Reads the log of `rank`. `text` is the whole file.
    pub fn parse(rank: u32, text: &str) -> Result<Log, Nonconformance> {
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let at = |line, why: String| Nonconformance { rank, line: Some(line), why };
        let mut log = parse_header(header).filter(|log| log.rank == rank).ok_or_else(|| {
            let expected = format!("\"{MAGIC} {VERSION} rank {rank} world N nonce HEX policy HEX\"");
            at(1, format!("found {}, expected {expected}", shown(header)))
        })?;
        for (position, line) in lines.enumerate() {
            if log.full {
                return Err(at(position + 2, "a full log goes on".to_owned()));
            }
            if line.starts_with(FULL) {
                log.full = line == format!("{FULL} {}", log.events.len());
            }
            match Event::parse(line) {
                Some(event) => log.events.push(event),
                None if log.full => {}
                None => return Err(at(position + 2, format!("{} is no event", shown(line)))),
            }
        }
        Ok(log)
    }

    /// The log as a file.
    pub fn to_text(&self) -> String {
        let mut text = self.header();
        text.push('\n');
        for event in &self.events {
            text.push_str(&format!("{event}\n"));
        }
        if self.full {
            text.push_str(&format!("{FULL} {}\n", self.events.len()));
        }
        text
    }

    fn header(&self) -> String {
        let Log { rank, world, nonce, policy, .. } = self;
        format!("{MAGIC} {VERSION} rank {rank} world {world} nonce {nonce:016x} policy {policy:016x}")
    }
}

/// The start of a line, escaped, between quotes.
fn shown(line: &str) -> String {
    let mut text = String::new();
    for letter in line.chars() {
        let escaped = letter.escape_debug();
        if text.chars().count() + escaped.len() > SHOWN_MAX {
            return format!("\"{text}\"...");
        }
        text.extend(escaped);
    }
    format!("\"{text}\"")
}

fn parse_header(line: &str) -> Option<Log> {
    let words: Vec<&str> = line.split(' ').collect();
    let [MAGIC, VERSION, "rank", rank, "world", world, "nonce", nonce, "policy", policy] = words[..] else {
        return None;
    };
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let (rank, world) = (rank.parse().ok()?, world.parse().ok()?);
    let events = Vec::new();
    let log = Log { rank, world, nonce: hex(nonce)?, policy: hex(policy)?, events, full: false };
    (rank < world && world <= WORLD_MAX && log.header() == line).then_some(log)
}

/// Runs logs through the machines under `policy`. A rank that was killed leaves none: logs may be missing if another
/// one says that the group was ended.
pub fn replay(policy: &Policy, logs: &[Log]) -> Result<Conforms, Nonconformance> {
    joint::heads(policy, logs)?;
    let given = joint::records_given(logs)?;
    let runs = logs.iter().map(|log| rank::run(policy, log, &given)).collect::<Result<Vec<_>, _>>()?;
    joint::check(logs, &runs)?;
    let complete = runs.iter().map(|run| run.outcomes.values().filter(|ended| ended.0).count());
    Ok(Conforms {
        ranks: logs.len() as u32,
        events: logs.iter().map(|log| log.events.len() as u64).sum(),
        exchanges: complete.max().unwrap_or(0) as u64,
        calls: runs.iter().map(|run| run.calls_done).sum(),
        messages: runs.iter().map(|run| run.received.len() as u64).sum(),
    })
}
