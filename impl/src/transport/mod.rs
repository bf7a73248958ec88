//! Legs over the channels of one host: a queue of posted exchanges, moved forward by whoever sweeps it.
//!
//! Nothing here blocks. A sweep moves what can move now and says whether anything did; the one who waits
//! decides how long to go on.
//!
//! Order is what makes it right. Channels are first in, first out and carry no addresses, so all ranks must
//! put the messages of a channel into it in the same order. Three orders see to that: exchanges in the order
//! in which they were agreed (a rank posts one exchange at a time), the groups of an exchange one after the
//! other, and within a group the legs to or from one peer in table order. Legs of a group to and from
//! different peers run at once. A message's header carries its place in that order, and a receiver that finds
//! another one takes nothing.

mod flight;
mod pool;

use crate::memory::Region;
use crate::trace::Trace;
use flight::{Flight, Lane};
pub(crate) use pool::{Buffers, Pool};
use rankwise_protocol::group::Cause;
use rankwise_protocol::legs::{Direction, Leg};
use std::collections::{TryReserveError, VecDeque};
use std::sync::Arc;

/// An exchange that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// One rank's end of all its channels.
#[derive(Debug)]
pub(crate) struct Transport {
    rank: u32,
    /// Where legs that are done are noted.
    trace: Option<Arc<Trace>>,
    /// By peer.
    lanes: Vec<Lane>,
    /// The group that is being posted.
    open: Vec<Leg>,
    /// Exchanges not yet taken back, in the order in which they were posted.
    queue: VecDeque<Posted>,
    tickets: u64,
    broken: Option<Cause>,
    stopped: bool,
    #[cfg(test)]
    raises: bool,
}

#[derive(Debug)]
struct Posted {
    ticket: Ticket,
    /// Which of the rank's halo calls.
    call: u64,
    /// Groups with legs left; the first one runs.
    groups: VecDeque<Vec<Flight>>,
    buffers: Buffers,
    edge_bytes: u64,
    /// Where the buffers go when the legs are done, if nobody waits for them any more.
    abandoned_to: Option<Pool>,
}

/// A leg could not be posted.
#[derive(Clone, Debug, thiserror::Error)]
#[error("a leg could not be posted")]
pub(crate) struct Raised;

impl From<TryReserveError> for Raised {
    fn from(_: TryReserveError) -> Self {
        Raised
    }
}

impl Transport {
    /// The end of rank `rank` of `world`, before its first leg.
    pub(crate) fn new(rank: u32, world: u32, trace: Option<Arc<Trace>>) -> Self {
        Self {
            rank,
            trace,
            lanes: (0..world).map(|_| Lane::default()).collect(),
            open: Vec::new(),
            queue: VecDeque::new(),
            tickets: 0,
            broken: None,
            stopped: false,
            #[cfg(test)]
            raises: false,
        }
    }

    /// Takes the buffers of an exchange whose groups follow, of the rank's halo call `call`. One edge has
    /// `edge_bytes` bytes.
    pub(crate) fn begin(&mut self, buffers: Buffers, edge_bytes: u64, call: u64) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let groups = VecDeque::new();
        self.queue.push_back(Posted { ticket, call, groups, buffers, edge_bytes, abandoned_to: None });
        ticket
    }

    /// Opens a group of legs.
    pub(crate) fn open(&mut self) {
        self.open.clear();
    }

    /// Adds a leg to the open group.
    pub(crate) fn post(&mut self, leg: Leg) -> Result<(), Raised> {
        #[cfg(test)]
        if self.raises {
            return Err(Raised);
        }
        self.open.try_reserve(1)?;
        self.open.push(leg);
        Ok(())
    }

    /// Closes the open group: its legs belong to the exchange of `ticket`.
    pub(crate) fn close(&mut self, ticket: Ticket) {
        let Some(posted) = self.queue.iter_mut().find(|posted| posted.ticket == ticket) else { return };
        let lanes = &mut self.lanes;
        let flights = self.open.drain(..).map(|leg| {
            let bytes = leg.place.bytes(posted.edge_bytes);
            Flight::new(leg, bytes, &mut lanes[leg.peer as usize])
        });
        posted.groups.push_back(flights.collect());
    }

    /// Moves what can move now; true where anything did. The sweep that finds a message which is not as
    /// announced gives its cause, and no later one moves anything.
    pub(crate) fn sweep(&mut self, region: &Region) -> Result<bool, Cause> {
        let mut moved = false;
        while !self.stopped && self.broken.is_none() {
            let Some(at) = self.queue.iter().position(|posted| !posted.groups.is_empty()) else { break };
            let posted = &mut self.queue[at];
            let group = &mut posted.groups[0];
            let ran = run(group, &mut posted.buffers, &mut self.lanes, region, self.rank);
            if let Some(trace) = &self.trace {
                let call = posted.call;
                group.iter_mut().filter_map(|flight| flight.news(call)).for_each(|event| trace.note(event));
            }
            self.broken = ran.err();
            moved |= ran?;
            if group.iter().any(|flight| !flight.is_done()) {
                break;
            }
            posted.groups.pop_front();
            self.give_back_abandoned(at);
        }
        Ok(moved)
    }

    /// Gives the buffers back once the legs of `ticket` are done; `None` before that, and for ever after a
    /// stop that came first.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Buffers> {
        let is_done = |posted: &Posted| posted.ticket == ticket && posted.groups.is_empty();
        let at = self.queue.iter().position(is_done)?;
        self.queue.remove(at).map(|posted| posted.buffers)
    }

    /// Nobody will take the buffers of `ticket`: they go to `pool` once its legs are done.
    pub(crate) fn abandon(&mut self, ticket: Ticket, pool: Pool) {
        if let Some(at) = self.queue.iter().position(|posted| posted.ticket == ticket) {
            self.queue[at].abandoned_to = Some(pool);
            self.give_back_abandoned(at);
        }
    }

    /// The group has ended: no leg moves from here on. A message may be half in its channel, so nothing may
    /// follow it there.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.queue.retain(|posted| posted.groups.is_empty());
    }

    /// What ended the legs, where a message was not as announced.
    pub(crate) fn broken(&self) -> Option<Cause> {
        self.broken
    }

    /// The peers that the running group waits for: first those that owe bytes, then those that owe room.
    pub(crate) fn waits_for(&self) -> Vec<u32> {
        let group = self.queue.iter().find_map(|posted| posted.groups.front());
        let peers = |direction: Direction| {
            let legs = group.into_iter().flatten().filter(|flight| !flight.is_done());
            legs.map(Flight::leg).filter(move |leg| leg.direction == direction).map(|leg| leg.peer)
        };
        peers(Direction::Receive).chain(peers(Direction::Send)).collect()
    }

    /// From now on no leg can be posted.
    #[cfg(test)]
    pub(crate) fn raise(&mut self) {
        self.raises = true;
    }

    fn give_back_abandoned(&mut self, at: usize) {
        let posted = &self.queue[at];
        if posted.groups.is_empty()
            && let Some(pool) = posted.abandoned_to.clone()
            && let Some(posted) = self.queue.remove(at)
        {
            pool.give(posted.buffers);
        }
    }
}

/// Moves each leg of a group that has no earlier leg in its way; true where anything moved.
fn run(
    group: &mut [Flight],
    buffers: &mut Buffers,
    lanes: &mut [Lane],
    region: &Region,
    rank: u32,
) -> Result<bool, Cause> {
    let mut moved = false;
    for at in 0..group.len() {
        let (before, rest) = group.split_at_mut(at);
        let flight = &mut rest[0];
        if flight.is_done() || before.iter().any(|other| !other.is_done() && other.is_in_way_of(flight)) {
            continue;
        }
        let peer = flight.leg().peer;
        if flight.advance(buffers, &mut lanes[peer as usize], region, rank)? {
            moved = true;
            region.ring(peer);
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests;
