//! A channel: messages from one rank to one other through a ring of bytes in shared memory.
//!
//! The plain arms of one host send their legs through it. A message is a header and its bytes; it may be
//! larger than the ring, and then flows through in pieces.
//!
//! | field | who writes | who reads | under |
//! | --- | --- | --- | --- |
//! | `written` | the sender | the receiver | release store after the bytes, acquire load before they are read |
//! | `consumed` | the receiver | the sender | release store after the bytes are out, acquire load before they are overwritten |
//! | bytes `[consumed, written)` | nobody | the receiver, with a [`ReadSpan`] | |
//! | all others | the sender, with a [`WriteSpan`] | nobody | |
//!
//! Both counters only grow and never wrap: 2^64 bytes at 100 GB/s last five years.

use super::Word;
use crate::group::{Cause, CauseKind};
use crate::rules::Rules;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// Order in which a side publishes its counter.
pub const PUBLISH: Ordering = Ordering::Release;
/// Order in which a side reads the other's counter.
pub const OBSERVE: Ordering = Ordering::Acquire;

/// Bytes of a message header.
pub const HEADER_BYTES: usize = 16;

/// What precedes each message, so that a receiver that expects another one says so and takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Count of messages on this channel, from 1.
    pub sequence: u64,
    /// Bytes that follow.
    pub bytes: u64,
}

impl Header {
    /// As it stands in the ring.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// What a receiver that waits for this header from `sender` makes of the one that came.
    pub fn check<R: Rules>(self, sender: u32, came: Header) -> Result<(), Cause> {
        let corrupt = Cause { kind: CauseKind::Corrupt, rank: sender };
        if R::header_matches(self, came) { Ok(()) } else { Err(corrupt) }
    }

    /// Reads it.
    pub fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
        Header { sequence: word(0), bytes: word(8) }
    }
}

/// Leave to write `len` bytes at `offset` of the ring, around its end. Only [`Sender::claim`] makes one.
#[derive(Debug)]
pub struct WriteSpan {
    /// Where, from the start of the ring.
    offset: usize,
    len: usize,
}

/// Leave to read `len` bytes at `offset` of the ring, around its end. Only [`Receiver::claim`] makes one.
#[derive(Debug)]
pub struct ReadSpan {
    offset: usize,
    len: usize,
}

impl WriteSpan {
    /// Offset and length.
    pub fn range(&self) -> (usize, usize) {
        (self.offset, self.len)
    }
}

impl ReadSpan {
    /// Offset and length.
    pub fn range(&self) -> (usize, usize) {
        (self.offset, self.len)
    }
}

/// The shared memory of one channel.
pub trait Ring {
    /// Its words.
    type Word: Word;

    /// Bytes written since the beginning.
    fn written(&self) -> &Self::Word;
    /// Bytes consumed since the beginning.
    fn consumed(&self) -> &Self::Word;
    /// Bytes of the ring.
    fn capacity(&self) -> usize;
    /// Copies `bytes` to the span; they are as long as it is.
    fn write(&self, span: WriteSpan, bytes: &[u8]);
    /// Copies the span to `bytes`; they are as long as it is.
    fn read(&self, span: ReadSpan, bytes: &mut [u8]);
}

/// The sending side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sender<R> {
    written: u64,
    rules: PhantomData<R>,
}

impl<R: Rules> Sender<R> {
    /// Room for up to `want` bytes, given that the receiver has consumed `consumed`. `None` is no room.
    pub fn claim(&self, consumed: u64, capacity: usize, want: usize) -> Option<WriteSpan> {
        let used = if R::channel_waits_for_room() { self.written.wrapping_sub(consumed) as usize } else { 0 };
        let len = want.min(capacity - used.min(capacity));
        let offset = (self.written % capacity as u64) as usize;
        (len > 0).then_some(WriteSpan { offset, len })
    }

    /// What `written` holds once the bytes of a span are in the ring.
    pub fn advance(&mut self, len: usize) -> u64 {
        self.written += len as u64;
        self.written
    }
}

/// The receiving side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Receiver<R> {
    consumed: u64,
    rules: PhantomData<R>,
}

impl<R: Rules> Receiver<R> {
    /// Up to `want` bytes, given that the sender has written `written`. `None` is nothing there.
    pub fn claim(&self, written: u64, capacity: usize, want: usize) -> Option<ReadSpan> {
        let len = want.min(written.wrapping_sub(self.consumed) as usize).min(capacity);
        let offset = (self.consumed % capacity as u64) as usize;
        (len > 0).then_some(ReadSpan { offset, len })
    }

    /// What `consumed` holds once the bytes of a span are out of the ring.
    pub fn advance(&mut self, len: usize) -> u64 {
        self.consumed = R::consumed_after(self.consumed, len as u64);
        self.consumed
    }
}

/// Writes as much of `bytes` as there is room for; gives how much.
pub fn push<R: Rules, M: Ring>(ring: &M, sender: &mut Sender<R>, bytes: &[u8]) -> usize {
    let consumed = ring.consumed().load(OBSERVE);
    let Some(span) = sender.claim(consumed, ring.capacity(), bytes.len()) else { return 0 };
    let len = span.len;
    ring.write(span, &bytes[..len]);
    ring.written().store(sender.advance(len), PUBLISH);
    len
}

/// Reads as much into `bytes` as is there; gives how much.
pub fn pull<R: Rules, M: Ring>(ring: &M, receiver: &mut Receiver<R>, bytes: &mut [u8]) -> usize {
    let written = ring.written().load(OBSERVE);
    let Some(span) = receiver.claim(written, ring.capacity(), bytes.len()) else { return 0 };
    let len = span.len;
    ring.read(span, &mut bytes[..len]);
    ring.consumed().store(receiver.advance(len), PUBLISH);
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Shipped;

    #[test]
    fn a_full_ring_has_no_room_until_the_receiver_has_consumed() {
        let mut sender = Sender::<Shipped>::default();
        assert_eq!(sender.claim(0, 8, 10).unwrap().range(), (0, 8));
        sender.advance(8);
        assert!(sender.claim(0, 8, 1).is_none());
        assert_eq!(sender.claim(3, 8, 10).unwrap().range(), (0, 3));
    }

    #[test]
    fn a_header_survives_its_bytes() {
        let header = Header { sequence: 7, bytes: u64::MAX };
        assert_eq!(Header::from_bytes(header.to_bytes()), header);
    }
}
