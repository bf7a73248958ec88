//! Drives the transport until the legs of one exchange are done.

use crate::group::Rank;
use crate::transport::{Buffers, Ticket};
use crate::wait::{Deadline, Rest};
use rankwise_protocol::group::Cause;
use rankwise_protocol::halo::Sight;
use rankwise_protocol::rules::Shipped;

impl Rank {
    /// Waits for the legs of `ticket` and takes their buffers, or says why they will not end.
    pub(crate) fn join_legs(&self, ticket: Ticket, deadline: Deadline) -> Result<Buffers, Cause> {
        let mut backoff = self.backoff();
        loop {
            let (moved, taken) = {
                let mut transport = self.transport();
                (self.sweep_held(&mut transport), transport.take(ticket))
            };
            if let Some(buffers) = taken {
                return Ok(buffers);
            }
            let rest = if moved {
                backoff.reset();
                Rest::Yield
            } else {
                backoff.rest()
            };
            let gone = match rest {
                Rest::Spin => continue,
                Rest::Yield => None,
                Rest::Sleep => self.sleep_for_legs(deadline),
            };
            if let Some(cause) = self.look_around(gone, deadline.passed()).lost::<Shipped>() {
                return Err(cause);
            }
        }
    }

    /// Sleeps until a peer may have moved something; gives a peer that the legs wait for and that has ended.
    fn sleep_for_legs(&self, deadline: Deadline) -> Option<u32> {
        let sleeper = self.region().bell(self.rank).lie_down();
        if self.sweep() || self.look_around(None, false).lost::<Shipped>().is_some() {
            return None;
        }
        sleeper.sleep(deadline.slice());
        let waits_for = self.transport().waits_for();
        let gone = waits_for.into_iter().find(|&peer| self.is_gone(peer))?;
        // What it wrote before it ended still counts.
        let mut transport = self.transport();
        let moved = self.sweep_held(&mut transport);
        (!moved && transport.waits_for().contains(&gone)).then_some(gone)
    }

    /// What can be seen now. If the legs wait for nobody, another thread of this rank has just finished them, or
    /// the group has ended: then nobody is late.
    fn look_around(&self, gone: Option<u32>, expired: bool) -> Sight {
        let transport = self.transport();
        let late = transport.waits_for().first().copied().filter(|_| expired);
        Sight { ended: self.cause(), corrupt: transport.broken(), gone, late }
    }
}

#[cfg(test)]
mod tests {
    use crate::group::{Group, Options};
    use rankwise_protocol::rules::Shipped;

    #[test]
    fn a_deadline_that_passes_when_the_legs_are_done_blames_nobody() {
        let groups = Group::threads(2, &Options::default()).unwrap();
        assert_eq!(groups[0].inner().look_around(None, true).lost::<Shipped>(), None);
    }
}
