//! The log of a rank: what its machines were told, for `rankwise replay`.

use rankwise_protocol::event::Event;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Events of one rank, up to a number. A log that could hold no more says so in its last line.
#[derive(Debug)]
pub(crate) struct Trace {
    header: String,
    events_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    events: Vec<Event>,
    full: bool,
}

impl Trace {
    /// A log of at most `events_max` events of rank `rank` of `world`.
    pub(crate) fn new(events_max: usize, rank: u32, world: u32, nonce: u64, policy: u64) -> Self {
        let header =
            format!("rankwise-log 1 rank {rank} world {world} nonce {nonce:016x} policy {policy:016x}\n");
        Self { header, events_max, kept: Mutex::default() }
    }

    /// Events kept at most.
    pub(crate) fn events_max(&self) -> usize {
        self.events_max
    }

    /// Keeps an event, if there is room.
    pub(crate) fn note(&self, event: Event) {
        let mut kept = self.kept();
        if kept.events.len() < self.events_max {
            kept.events.push(event);
        } else {
            kept.full = true;
        }
    }

    /// The log as a file, closed as if the rank left now.
    pub(crate) fn to_text(&self) -> String {
        let kept = self.kept();
        let mut text = self.header.clone();
        for event in &kept.events {
            text.push_str(&event.to_string());
            text.push('\n');
        }
        if kept.full {
            text.push_str(&format!("full {}\n", kept.events.len()));
        } else {
            text.push_str(&Event::End.to_string());
            text.push('\n');
        }
        text
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_full_keeps_the_first_events_and_says_so() {
        let trace = Trace::new(1, 0, 2, 7, 8);
        assert!(trace.to_text().ends_with("\nend\n"));
        trace.note(Event::Announced);
        trace.note(Event::Saw { rank: 1 });
        assert!(trace.to_text().ends_with("\nannounced\nfull 1\n"));
    }
}
