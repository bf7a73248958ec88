//! A channel between two ranks.

use super::{Instead, Shared, assert_refuted, in_every_order};
use loom::cell::UnsafeCell;
use loom::thread::{spawn, yield_now};
use rankwise_protocol::rules::{Rules, Shipped};
use rankwise_protocol::shared::channel::{ReadSpan, Receiver, Ring, Sender, WriteSpan, pull, push};
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// A channel's orderings, by word.
#[derive(Clone, Copy, Default)]
struct RingOrderings {
    written: Instead,
    consumed: Instead,
}

struct LoomRing {
    written: Shared,
    consumed: Shared,
    bytes: Vec<UnsafeCell<u8>>,
}

impl LoomRing {
    fn new(capacity: usize, orderings: RingOrderings) -> Rc<Self> {
        Rc::new(LoomRing {
            written: Shared::new(orderings.written),
            consumed: Shared::new(orderings.consumed),
            bytes: (0..capacity).map(|_| UnsafeCell::new(0)).collect(),
        })
    }
}

impl Ring for LoomRing {
    type Word = Shared;

    fn written(&self) -> &Shared {
        &self.written
    }

    fn consumed(&self) -> &Shared {
        &self.consumed
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }

    fn write(&self, span: WriteSpan, bytes: &[u8]) {
        let (offset, _) = span.range();
        for (at, byte) in (offset..).zip(bytes) {
            // SAFETY: loom has checked the access, and coroutines do not switch inside the closure.
            self.bytes[at % self.bytes.len()].with_mut(|cell| unsafe { *cell = *byte });
        }
    }

    fn read(&self, span: ReadSpan, bytes: &mut [u8]) {
        let (offset, _) = span.range();
        for (at, byte) in (offset..).zip(bytes) {
            // SAFETY: loom has checked the access, and coroutines do not switch inside the closure.
            *byte = self.bytes[at % self.bytes.len()].with(|cell| unsafe { *cell });
        }
    }
}

const SENT: [u8; 5] = [1, 2, 3, 4, 5];

/// A sender and a receiver, five bytes through a ring of two.
///
/// Sees: a byte read before it is written, and one written over before it is read, more than once around the ring.
/// Does not see: other sizes of pieces than come of themselves (`models::channel` goes through them), counters that
/// are large.
fn stream<R: Rules>(orderings: RingOrderings) {
    in_every_order(Some(3), move || {
        let ring = LoomRing::new(2, orderings);
        let sending = Rc::clone(&ring);
        let sender = spawn(move || {
            let (mut sender, mut sent) = (Sender::<R>::default(), 0);
            while sent < SENT.len() {
                match push(&*sending, &mut sender, &SENT[sent..]) {
                    0 => yield_now(),
                    bytes => sent += bytes,
                }
            }
        });
        let (mut receiver, mut taken, mut got) = (Receiver::<R>::default(), 0, [0; SENT.len()]);
        while taken < SENT.len() {
            match pull(&*ring, &mut receiver, &mut got[taken..]) {
                0 => yield_now(),
                bytes => taken += bytes,
            }
        }
        sender.join().expect("loom passes panics on");
        assert_eq!(got, SENT);
    });
}

#[test]
fn bytes_arrive_in_order_in_every_order_of_steps() {
    stream::<Shipped>(RingOrderings::default());
}

/// The rules of the mutant sender-ignores-room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct NoRoom;

impl Rules for NoRoom {
    fn channel_waits_for_room() -> bool {
        false
    }
}

#[test]
fn a_sender_that_does_not_wait_for_room_is_refuted() {
    assert_refuted(|| stream::<NoRoom>(RingOrderings::default()));
}

#[test]
fn a_counter_published_or_observed_relaxed_is_refuted_on_either_side() {
    let published = Instead { store: Some(Ordering::Relaxed), ..Default::default() };
    let observed = Instead { load: Some(Ordering::Relaxed), ..Default::default() };
    for relaxed in [published, observed] {
        assert_refuted(|| stream::<Shipped>(RingOrderings { written: relaxed, ..Default::default() }));
        assert_refuted(|| stream::<Shipped>(RingOrderings { consumed: relaxed, ..Default::default() }));
    }
}
