//! How long and how a thread waits.

use std::time::{Duration, Instant};

/// A sleeper looks again at least this often: at its deadline, and at whether the peer it waits for lives.
pub(crate) const SLICE: Duration = Duration::from_millis(2);

/// Looks between two offers of the core. A peer on a core of its own answers within a few hundred nanoseconds,
/// so within the first burst; one that shares this core gets it after a few microseconds.
const BURST: u32 = 50;
/// The same where ranks outnumber cores: the peer may well be waiting for this core.
const BURST_CROWDED: u32 = 10;
/// Bursts before a waiting thread sleeps: less than a hundred microseconds.
const BURSTS: u32 = 20;

/// The moment at which a call gives up, fixed when the call is entered (GRP-3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
}

impl Deadline {
    /// `deadline_ms` from now.
    pub(crate) fn after(deadline_ms: u64) -> Self {
        Self { at: Instant::now() + Duration::from_millis(deadline_ms) }
    }

    /// Whether it has passed.
    pub(crate) fn passed(self) -> bool {
        self.left().is_zero()
    }

    /// Time until it passes.
    pub(crate) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// The next slice of sleep: [`SLICE`], less if the deadline is nearer.
    pub(crate) fn slice(self) -> Duration {
        self.left().min(SLICE)
    }
}

/// What a thread that has looked in vain does before it looks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing, for a few cycles.
    Spin,
    /// Offers its core.
    Yield,
    /// Sleeps until rung, for a slice.
    Sleep,
}

/// From spinning and yielding to sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    looks: u32,
    burst: u32,
}

impl Backoff {
    /// For a group of `world` ranks on this host.
    pub(crate) fn new(world: u32, cores: usize) -> Self {
        let burst = if world as usize <= cores { BURST } else { BURST_CROWDED };
        Self { looks: 0, burst }
    }

    /// What was waited for has come: the next wait starts over.
    pub(crate) fn reset(&mut self) {
        self.looks = 0;
    }

    /// Rests after a look in vain. [`Rest::Sleep`] is left to the caller, who knows its bell.
    pub(crate) fn rest(&mut self) -> Rest {
        if self.looks == self.burst * BURSTS {
            return Rest::Sleep;
        }
        self.looks += 1;
        if self.looks.is_multiple_of(self.burst) {
            std::thread::yield_now();
            Rest::Yield
        } else {
            std::hint::spin_loop();
            Rest::Spin
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_in_sleep_and_starts_over_when_something_came() {
        let mut backoff = Backoff::new(4, 2);
        let rests: Vec<_> = (0..=BURST_CROWDED * BURSTS).map(|_| backoff.rest()).collect();
        assert_eq!(rests[..2], [Rest::Spin; 2]);
        assert_eq!(rests[BURST_CROWDED as usize - 1], Rest::Yield);
        assert_eq!(rests.iter().position(|&rest| rest == Rest::Sleep), Some(rests.len() - 1));
        backoff.reset();
        assert_eq!(backoff.rest(), Rest::Spin);
    }

    #[test]
    fn a_slice_ends_with_the_deadline() {
        assert!(Deadline::after(60_000).slice() == SLICE);
        let past = Deadline::after(0);
        assert!(past.passed() && past.slice().is_zero());
    }
}
