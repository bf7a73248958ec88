//! What the logs of several ranks say of each other.

use super::rank::{Ended, Given, Run};
use super::{Log, Nonconformance};
use rankwise_protocol::event::{CallInput, Event};
use rankwise_protocol::group::{Decision, Record};
use rankwise_protocol::policy::Policy;
use std::collections::{BTreeMap, BTreeSet};

fn wrong(rank: u32, line: Option<usize>, why: impl Into<String>) -> Nonconformance {
    Nonconformance { rank, line, why: why.into() }
}

/// Logs of one run: one for each rank but those that others saw gone, one nonce, one policy.
pub(super) fn heads(policy: &Policy, logs: &[Log]) -> Result<(), Nonconformance> {
    let Some(first) = logs.first() else { return Err(wrong(0, None, "there are no logs")) };
    for (position, log) in logs.iter().enumerate() {
        if logs[..position].iter().any(|other| other.rank == log.rank) {
            return Err(wrong(log.rank, None, "it has two logs"));
        }
        if (log.world, log.nonce) != (first.world, first.nonce) {
            return Err(wrong(log.rank, Some(1), format!("it is of another run than rank {}", first.rank)));
        }
        if log.policy != policy.digest() {
            let why = format!("it ran under policy {:016x}, expected {:016x}", log.policy, policy.digest());
            return Err(wrong(log.rank, Some(1), why));
        }
    }
    let missing = (0..first.world).find(|&rank| logs.iter().all(|log| log.rank != rank));
    match missing {
        Some(rank) if !logs.iter().flat_map(|log| &log.events).any(says_ended) => {
            Err(wrong(rank, None, "it has no log, and no other log says that the group was ended"))
        }
        _ => Ok(()),
    }
}

/// Whether a rank learns that the group was ended, or ends it.
fn says_ended(event: &Event) -> bool {
    match event {
        Event::Gone { .. } | Event::Expired | Event::Poison { .. } => true,
        Event::Call { input: CallInput::Lost(_) | CallInput::Poisoned(_), .. } => true,
        Event::Decided { decision, .. } => decision.cause.is_some(),
        Event::Swapped { found, .. } => found.is_some_and(|found| found.cause.is_some()),
        _ => false,
    }
}

/// The record that each rank gave to each exchange.
pub(super) fn records_given(logs: &[Log]) -> Result<Given, Nonconformance> {
    let mut given = Given::default();
    for log in logs {
        if !log.full {
            given.whole.insert(log.rank);
        }
        for (position, event) in log.events.iter().enumerate() {
            let Event::Begin { index, tag, payload } = event else { continue };
            let (rank, index) = (log.rank, *index);
            let record = Record { nonce: log.nonce, rank, index, tag: *tag, payload: payload.clone() };
            if given.records.insert((rank, index), record).is_some() {
                return Err(wrong(rank, Some(position + 2), "an exchange begins twice"));
            }
        }
    }
    Ok(given)
}

/// Everything that takes more than one log.
pub(super) fn check(logs: &[Log], runs: &[Run]) -> Result<(), Nonconformance> {
    announcements(logs, runs)?;
    no_split(logs, runs)?;
    one_arm(logs, runs)?;
    messages(logs, runs)?;
    decisions(logs, runs)
}

/// What a rank saw of another one's announcements was so (GRP-1, GRP-4, GRP-5).
fn announcements(logs: &[Log], runs: &[Run]) -> Result<(), Nonconformance> {
    let announced: BTreeMap<u32, (u64, bool)> =
        logs.iter().zip(runs).map(|(log, run)| (log.rank, (run.announced, !log.full))).collect();
    let never =
        |rank: &u32, index: u64| announced.get(rank).is_some_and(|&(last, whole)| whole && last < index);
    let mut strange = BTreeMap::new();
    for (log, run) in logs.iter().zip(runs) {
        if let Some((peer, (_, line))) = run.saw.iter().find(|(peer, (index, _))| never(peer, *index)) {
            let why = format!("an announcement of rank {peer} is seen that it never made");
            return Err(wrong(log.rank, Some(*line), why));
        }
        for (index, Ended(complete, line)) in &run.outcomes {
            if let Some(peer) = announced.keys().find(|peer| *complete && never(peer, *index)) {
                let why = format!("exchange {index} is complete, and rank {peer} never announced it");
                return Err(wrong(log.rank, Some(*line), why));
            }
        }
        for (peer, index, line) in &run.gone {
            if announced.get(peer).is_some_and(|(last, _)| last >= index) {
                let why = format!("rank {peer} is seen gone, and had announced the exchange");
                return Err(wrong(log.rank, Some(*line), why));
            }
        }
        for (key, (digest, line)) in &run.strange {
            if strange.entry(*key).or_insert(*digest) != digest {
                let why = format!("other ranks read another record of rank {} there", key.0);
                return Err(wrong(log.rank, Some(*line), why));
            }
        }
    }
    Ok(())
}

/// No exchange is complete on one rank and poisoned on another (GRP-2).
fn no_split(logs: &[Log], runs: &[Run]) -> Result<(), Nonconformance> {
    let mut first = BTreeMap::new();
    for (log, run) in logs.iter().zip(runs) {
        for (exchange, Ended(complete, line)) in &run.outcomes {
            let (other, rank) = *first.entry(*exchange).or_insert((*complete, log.rank));
            if other != *complete {
                let why =
                    format!("exchange {exchange} is complete on one rank and not on another: rank {rank}");
                return Err(wrong(log.rank, Some(*line), why));
            }
        }
    }
    Ok(())
}

/// The ranks of a call run one arm (HAL-1).
fn one_arm(logs: &[Log], runs: &[Run]) -> Result<(), Nonconformance> {
    let mut arms = BTreeMap::new();
    for (log, run) in logs.iter().zip(runs) {
        for (exchange, (arm, line)) in &run.arms {
            let first = arms.entry(*exchange).or_insert((*arm, log.rank));
            if first.0 != *arm {
                let why = format!("it runs the {arm} arm, and rank {} the {} arm", first.1, first.0);
                return Err(wrong(log.rank, Some(*line), why));
            }
        }
    }
    Ok(())
}

/// What was received was posted by its sender, with as many bytes (HAL-2, CHN-1).
fn messages(logs: &[Log], runs: &[Run]) -> Result<(), Nonconformance> {
    for (log, run) in logs.iter().zip(runs) {
        for ((from, sequence), (bytes, line)) in &run.received {
            let Some(sender) = logs.iter().position(|other| other.rank == *from) else { continue };
            let posted = runs[sender].posted.get(&(log.rank, *sequence));
            if posted.is_none() && logs[sender].full {
                continue;
            }
            if posted != Some(bytes) {
                let sent = posted.map_or("none was posted".into(), |sent| format!("{sent} were posted"));
                let why = format!("message {sequence} of rank {from} has {bytes} bytes, and {sent} there");
                return Err(wrong(log.rank, Some(*line), why));
            }
        }
        for ((to, sequence), (_, line)) in &run.sent {
            let Some(receiver) = logs.iter().position(|other| other.rank == *to) else { continue };
            let later =
                runs[receiver].received.keys().any(|(from, later)| *from == log.rank && later > sequence);
            if later && !runs[receiver].received.contains_key(&(log.rank, *sequence)) {
                let why = format!("message {sequence} to rank {to} was passed over there");
                return Err(wrong(log.rank, Some(*line), why));
            }
        }
        for ((from, sequence), (_, line)) in &run.received {
            let Some(sender) = logs.iter().position(|other| other.rank == *from) else { continue };
            let whole = !logs[sender].full;
            if whole && !runs[sender].sent.contains_key(&(log.rank, *sequence)) {
                let why =
                    format!("message {sequence} of rank {from} came, and was not sent to its end there");
                return Err(wrong(log.rank, Some(*line), why));
            }
        }
    }
    Ok(())
}

/// The swaps that took place lead from the first decision to the last, each from where the one before it left off,
/// and no other word was read (GRP-2). One cause ended the group (GRP-3). Ranks without a log, or with a full one,
/// leave gaps in the swaps, and then only doubles are told.
fn decisions(logs: &[Log], runs: &[Run]) -> Result<(), Nonconformance> {
    let mut swaps: BTreeMap<(u64, bool), (Decision, u32, usize)> = BTreeMap::new();
    let mut cause = None;
    for (log, run) in logs.iter().zip(runs) {
        for (expected, new, line) in &run.wins {
            let place = (expected.completed, new.cause.is_some());
            if let Some((_, other, _)) = swaps.insert(place, (*new, log.rank, *line)) {
                let why = format!("its swap took place, and so did rank {other}'s from the same decision");
                return Err(wrong(log.rank, Some(*line), why));
            }
        }
        let won = run.wins.iter().filter_map(|(_, new, line)| Some((new.cause?, *line)));
        let read = run.words.iter().filter_map(|(word, line)| Some((word.cause?, *line)));
        for (told, line) in run.causes.iter().copied().chain(won).chain(read) {
            let (first, rank) = *cause.get_or_insert((told, log.rank));
            if told != first {
                let why = format!("the group's end is \"{told}\", and on rank {rank} \"{first}\"");
                return Err(wrong(log.rank, Some(line), why));
            }
        }
    }
    let whole = logs.len() == logs[0].world as usize && logs.iter().all(|log| !log.full);
    if whole { chain(logs, runs, &swaps) } else { Ok(()) }
}

/// All swaps are known: they are one chain, from which every word was read.
fn chain(
    logs: &[Log],
    runs: &[Run],
    swaps: &BTreeMap<(u64, bool), (Decision, u32, usize)>,
) -> Result<(), Nonconformance> {
    let mut last = Decision::default();
    let mut words = BTreeSet::from([last.to_word()]);
    for ((from, _), (new, rank, line)) in swaps {
        if last.cause.is_some() || *from != last.completed {
            let why =
                format!("its swap starts at {from} exchanges complete, where {} had been", last.completed);
            return Err(wrong(*rank, Some(*line), why));
        }
        last = *new;
        words.insert(last.to_word());
    }
    for (log, run) in logs.iter().zip(runs) {
        if let Some((_, line)) = run.words.iter().find(|(word, _)| !words.contains(&word.to_word())) {
            return Err(wrong(log.rank, Some(*line), "no swap made the decision that is read here"));
        }
        let mut complete = run.outcomes.iter().filter(|(_, ended)| ended.0);
        if let Some((exchange, Ended(_, line))) =
            complete.next_back().filter(|(exchange, _)| **exchange > last.completed)
        {
            let why = format!("exchange {exchange} is complete, and the swaps end at {}", last.completed);
            return Err(wrong(log.rank, Some(*line), why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankwise_protocol::group::{Cause, CauseKind};

    /// Two logs, and what they amount to before a test adds to it.
    fn pair() -> ([Log; 2], [Run; 2]) {
        let log = |rank| Log { rank, world: 2, nonce: 7, policy: 8, events: Vec::new(), full: false };
        let run = || Run { announced: 1, ..Run::default() };
        ([log(0), log(1)], [run(), run()])
    }

    fn decision(completed: u64) -> Decision {
        Decision { completed, cause: None }
    }

    /// What is wrong once `add` has been done to rank 0 and rank 1.
    fn complaint(add: impl FnOnce(&mut Run, &mut Run)) -> String {
        let (logs, mut runs) = pair();
        let [first, second] = &mut runs;
        add(first, second);
        check(&logs, &runs).map_or_else(|wrong| wrong.to_string(), |()| "nothing".to_owned())
    }

    #[test]
    fn one_rank_wins_a_swap() {
        let win = |run: &mut Run, line| run.wins.push((decision(0), decision(1), line));
        assert_eq!(complaint(|first, _| win(first, 5)), "nothing");
        let said = complaint(|first, second| {
            win(first, 5);
            win(second, 6);
        });
        assert_eq!(said, "rank 1, line 6: its swap took place, and so did rank 0's from the same decision");
    }

    #[test]
    fn swaps_leave_no_gap_and_make_every_word_that_is_read() {
        let said = complaint(|first, _| first.wins.push((decision(1), decision(2), 5)));
        assert_eq!(said, "rank 0, line 5: its swap starts at 1 exchanges complete, where 0 had been");
        let said = complaint(|_, second| second.words.push((decision(1), 9)));
        assert_eq!(said, "rank 1, line 9: no swap made the decision that is read here");
    }

    #[test]
    fn a_message_has_the_bytes_that_were_posted_and_was_sent_to_its_end() {
        let receives = |run: &mut Run| run.received.insert((0, 1), (48, 20));
        let posts = |run: &mut Run, bytes| run.posted.insert((1, 1), bytes);
        let said = complaint(|first, second| {
            posts(first, 24);
            receives(second);
        });
        assert_eq!(said, "rank 1, line 20: message 1 of rank 0 has 48 bytes, and 24 were posted there");
        let said = complaint(|first, second| {
            posts(first, 48);
            receives(second);
        });
        assert_eq!(said, "rank 1, line 20: message 1 of rank 0 came, and was not sent to its end there");
        let said = complaint(|first, second| {
            posts(first, 48);
            first.sent.insert((1, 1), (48, 19));
            receives(second);
        });
        assert_eq!(said, "nothing");
    }

    #[test]
    fn no_exchange_is_complete_here_and_poisoned_there() {
        let said = complaint(|first, second| {
            first.outcomes.insert(1, Ended(true, 8));
            second.outcomes.insert(1, Ended(false, 7));
        });
        assert_eq!(said, "rank 1, line 7: exchange 1 is complete on one rank and not on another: rank 0");
    }

    #[test]
    fn one_cause_ends_a_group() {
        let late = |rank| Cause { kind: CauseKind::Late, rank };
        let said = complaint(|first, second| {
            first.causes.push((late(1), 5));
            second.causes.push((late(0), 6));
        });
        let (here, there) = (late(0), late(1));
        assert_eq!(said, format!("rank 1, line 6: the group's end is \"{here}\", and on rank 0 \"{there}\""));
    }

    #[test]
    fn what_is_seen_was_announced_and_who_is_gone_announces_nothing() {
        let said = complaint(|first, _| {
            first.saw.insert(1, (2, 11));
        });
        assert_eq!(said, "rank 0, line 11: an announcement of rank 1 is seen that it never made");
        let said = complaint(|first, _| first.gone.push((1, 1, 12)));
        assert_eq!(said, "rank 0, line 12: rank 1 is seen gone, and had announced the exchange");
        let said = complaint(|first, _| {
            first.outcomes.insert(2, Ended(true, 13));
        });
        assert!(said.contains("exchange 2 is complete, and rank 0 never announced it"), "{said}");
    }
}
