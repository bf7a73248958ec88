//! One leg on its way through a channel.

use super::Buffers;
use crate::memory::Region;
use rankwise_protocol::event::Event;
use rankwise_protocol::group::Cause;
use rankwise_protocol::legs::{Buffer, Direction, Leg};
use rankwise_protocol::rules::Shipped;
use rankwise_protocol::shared::channel::{HEADER_BYTES, Header, Receiver, Sender, pull, push};
use std::ops::Range;

/// Bytes that go into or out of a channel in one step, before the other side is told. A part of the ring, so
/// that both sides copy at once.
const PIECE_BYTES: usize = 1 << 15;

/// This rank's end of the two channels to and from one peer.
#[derive(Debug, Default)]
pub(super) struct Lane {
    sender: Sender<Shipped>,
    /// Messages handed to the channel.
    sent: u64,
    receiver: Receiver<Shipped>,
    /// Messages expected of the channel.
    received: u64,
}

/// A leg and how far it has come.
#[derive(Debug)]
pub(super) struct Flight {
    leg: Leg,
    buffer: Buffer,
    /// Bytes of the buffer that are still to go.
    left: Range<usize>,
    header: Header,
    /// The header as it goes or has come.
    header_bytes: [u8; HEADER_BYTES],
    header_done: usize,
    /// Whether its end was told of.
    told: bool,
}

impl Flight {
    /// A leg that lies at `bytes` and takes the next place on its lane.
    pub(super) fn new(leg: Leg, (buffer, bytes): (Buffer, Range<u64>), lane: &mut Lane) -> Self {
        let count = match leg.direction {
            Direction::Send => &mut lane.sent,
            Direction::Receive => &mut lane.received,
        };
        *count += 1;
        let header = Header { sequence: *count, bytes: bytes.end - bytes.start };
        let header_bytes = match leg.direction {
            Direction::Send => header.to_bytes(),
            Direction::Receive => [0; HEADER_BYTES],
        };
        let left = bytes.start as usize..bytes.end as usize;
        Self { leg, buffer, left, header, header_bytes, header_done: 0, told: false }
    }

    /// The leg.
    pub(super) fn leg(&self) -> Leg {
        self.leg
    }

    /// Whether all of it has gone or come.
    pub(super) fn is_done(&self) -> bool {
        self.header_done == HEADER_BYTES && self.left.is_empty()
    }

    /// For the log, once: that this leg of halo call `call` is done.
    pub(super) fn news(&mut self, call: u64) -> Option<Event> {
        let news = self.is_done() && !self.told;
        self.told |= news;
        let Header { sequence, bytes } = self.header;
        news.then_some(Event::Leg { call, leg: self.leg, sequence, bytes })
    }

    /// Whether `later` uses the same channel, so that it must wait for this one.
    pub(super) fn is_in_way_of(&self, later: &Flight) -> bool {
        (self.leg.peer, self.leg.direction) == (later.leg.peer, later.leg.direction)
    }

    /// Moves one piece, if the channel takes or gives any now; true where anything moved.
    pub(super) fn advance(
        &mut self,
        buffers: &mut Buffers,
        lane: &mut Lane,
        region: &Region,
        rank: u32,
    ) -> Result<bool, Cause> {
        match self.leg.direction {
            Direction::Send => Ok(self.send(buffers, &mut lane.sender, region, rank)),
            Direction::Receive => self.receive(buffers, &mut lane.receiver, region, rank),
        }
    }

    fn send(&mut self, buffers: &Buffers, sender: &mut Sender<Shipped>, region: &Region, rank: u32) -> bool {
        let channel = region.channel(rank, self.leg.peer);
        let from = self.header_done;
        if from < HEADER_BYTES {
            self.header_done += push(&channel, sender, &self.header_bytes[from..]);
        }
        let mut moved = self.header_done - from;
        if self.header_done == HEADER_BYTES {
            let pushed = push(&channel, sender, &buffers.of(self.buffer)[self.piece()]);
            self.left.start += pushed;
            moved += pushed;
        }
        moved > 0
    }

    fn receive(
        &mut self,
        buffers: &mut Buffers,
        receiver: &mut Receiver<Shipped>,
        region: &Region,
        rank: u32,
    ) -> Result<bool, Cause> {
        let channel = region.channel(self.leg.peer, rank);
        let from = self.header_done;
        if from < HEADER_BYTES {
            self.header_done += pull(&channel, receiver, &mut self.header_bytes[from..]);
            if self.header_done == HEADER_BYTES {
                self.header.check::<Shipped>(self.leg.peer, Header::from_bytes(self.header_bytes))?;
            }
        }
        let mut moved = self.header_done - from;
        if self.header_done == HEADER_BYTES {
            let piece = self.piece();
            let pulled = pull(&channel, receiver, &mut buffers.of_mut(self.buffer)[piece]);
            self.left.start += pulled;
            moved += pulled;
        }
        Ok(moved > 0)
    }

    /// The bytes to move next.
    fn piece(&self) -> Range<usize> {
        self.left.start..self.left.end.min(self.left.start + PIECE_BYTES)
    }
}
