//! Groups made of a group's ranks.

use super::rank::{Home, Rank};
use super::{Group, Options, nonce, shm, threads};
use crate::error::GroupError;
use crate::trace::Trace;
use rankwise_protocol::call::Op;
use rankwise_protocol::group::{Cause, CauseKind};
use rankwise_protocol::rules::Shipped;
use rankwise_protocol::subgroup::Proposal;

/// What the rank that will be rank 0 of a subgroup makes before the agreement, since making it can fail.
enum Prepared {
    Threads(threads::Key),
    Shm(shm::Host),
}

impl Group {
    /// Makes a group of the ranks listed; the position in the list is the new rank. Every rank of this group
    /// calls it with the same list, and gets its handle or, where it is not in the list, `None`. If a list is
    /// bad or lists differ, all ranks refuse (GRP-6).
    ///
    /// The new group has memory of its own: its end does not end this one, nor this one's end it. Its options
    /// are this one's.
    pub fn subgroup(&self, ranks: &[u32]) -> Result<Option<Group>, GroupError> {
        let inner = self.inner();
        let deadline = inner.deadline();
        let mut control = inner.enter(deadline)?;
        let call = control.calls[Op::Subgroup as usize] + 1;
        let world = ranks.len() as u32;

        let mut proposal = Proposal::<Shipped>::new(self.rank(), self.world(), ranks);
        let mut prepared = None;
        if proposal.leads() {
            match inner.prepare(call, ranks) {
                Ok(made) => prepared = Some(made),
                Err(error) => proposal.unprepared(&error.to_string()),
            }
        }
        let gathered = inner.gather_calls(&mut control, Op::Subgroup, &proposal.record(), deadline);
        let rank = match gathered.and_then(|records| Ok(proposal.seat(&records)?)) {
            Ok(Some(rank)) => rank,
            Ok(None) => return Ok(None),
            Err(error) => {
                inner.withdraw(prepared);
                return Err(error);
            }
        };
        let options = Options {
            policy: self.policy().clone(),
            trace_events_max: inner.trace().map_or(0, Trace::events_max),
        };
        let deadline_ms = options.policy.call().deadline_ms;
        let seat = match (&inner.home, prepared) {
            (Home::Threads(parent), _) => {
                let Some(party) = parent.take((call, ranks[0]), self.rank()) else {
                    // Its leader put it up before the agreement, and could not learn of it.
                    let failed = Cause { kind: CauseKind::Failed, rank: ranks[0] };
                    return Err(GroupError::Poisoned(inner.poison(failed)));
                };
                return Ok(Some(Group::new(rank, world, &options, Home::Threads(party))));
            }
            (Home::Shm { .. }, Some(Prepared::Shm(host))) => host.receive(deadline, deadline_ms)?,
            (Home::Shm { nonce, .. }, _) => {
                let place = place(*nonce, call, ranks[0]);
                shm::attend(&place, rank, world, deadline, deadline_ms)?
            }
        };
        Group::seated(seat, rank, world, &options, deadline).map(Some)
    }
}

impl Rank {
    fn prepare(&self, call: u64, ranks: &[u32]) -> Result<Prepared, GroupError> {
        let world = ranks.len() as u32;
        match &self.home {
            Home::Threads(parent) => {
                let key = (call, self.rank);
                parent.offer(key, threads::Party::new(world, nonce()?)?, ranks);
                Ok(Prepared::Threads(key))
            }
            Home::Shm { nonce, .. } => {
                shm::Host::open(place(*nonce, call, self.rank), world).map(Prepared::Shm)
            }
        }
    }

    fn withdraw(&self, prepared: Option<Prepared>) {
        if let (Home::Threads(parent), Some(Prepared::Threads(key))) = (&self.home, prepared) {
            parent.withdraw(key);
        }
    }
}

/// Where a subgroup meets that rank `leader` leads. Nobody outside knows the nonce of its parent, and no
/// address has a slash.
fn place(nonce: u64, call: u64, leader: u32) -> shm::Place {
    let shown = format!("subgroup {call}");
    shm::Place { shown, key: format!("/{nonce:016x}/{call}/{leader}") }
}
