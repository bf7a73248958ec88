//! Two ends over one region, swept by hand.

use super::*;
use crate::memory::Mapping;
use rankwise_protocol::group::CauseKind;
use rankwise_protocol::layout::{BandShape, Dtype};
use rankwise_protocol::legs::{Edge, Place};
use rankwise_protocol::rules::Shipped;
use rankwise_protocol::shared::channel::{Header, Sender, push};
use rankwise_protocol::wire::SharedLayout;

const SHAPE: BandShape = BandShape { frames: 1, rows: 1, width: 50, channels: 1, dtype: Dtype::U8 };

fn region() -> Region {
    let layout = SharedLayout { world: 2, slots: 2, ring_bytes: 64 };
    Region::new(Mapping::private(layout.bytes()).unwrap(), layout)
}

fn buffers(pool: &Pool, fill: u8) -> Buffers {
    let mut buffers = pool.take(&SHAPE, 2).unwrap();
    buffers.packed.fill(fill);
    buffers
}

fn post(end: &mut Transport, buffers: Buffers, legs: &[Leg]) -> Ticket {
    let ticket = end.begin(buffers, SHAPE.edge_bytes(), 0);
    end.open();
    legs.iter().for_each(|&leg| end.post(leg).unwrap());
    end.close(ticket);
    ticket
}

const SEND: Leg = Leg { direction: Direction::Send, peer: 1, place: Place::PackedBoth };
const RECEIVE: Leg = Leg { direction: Direction::Receive, peer: 0, place: Place::SlotBoth(0) };

#[test]
fn an_abandoned_exchange_goes_on_and_its_buffers_come_back_when_it_is_done() {
    let (region, pool) = (region(), Pool::default());
    let (mut above, mut below) = (Transport::new(0, 2, None), Transport::new(1, 2, None));
    let ticket = post(&mut above, buffers(&pool, 7), &[SEND]);
    above.abandon(ticket, pool.clone());
    above.sweep(&region).unwrap();
    assert_eq!((pool.idle(), above.waits_for()), (0, vec![1]));
    let wanted = post(&mut below, buffers(&pool, 0), &[RECEIVE]);
    while above.sweep(&region).unwrap() | below.sweep(&region).unwrap() {}
    assert_eq!(pool.idle(), 1);
    let came = below.take(wanted).unwrap();
    assert!(came.received[..100].iter().all(|&byte| byte == 7));
}

#[test]
fn two_messages_to_one_peer_in_one_group_keep_their_order() {
    let (region, pool) = (region(), Pool::default());
    let (mut above, mut below) = (Transport::new(0, 2, None), Transport::new(1, 2, None));
    let edge = |direction, peer, place| Leg { direction, peer, place };
    let mut packed = buffers(&pool, 1);
    packed.packed[50..].fill(2);
    let sends = [Edge::First, Edge::Last].map(|e| edge(Direction::Send, 1, Place::Packed(e)));
    let receives = [Edge::First, Edge::Last].map(|e| edge(Direction::Receive, 0, Place::Slot(0, e)));
    post(&mut above, packed, &sends);
    let ticket = post(&mut below, buffers(&pool, 0), &receives);
    while above.sweep(&region).unwrap() | below.sweep(&region).unwrap() {}
    let came = below.take(ticket).unwrap();
    assert_eq!((came.received[49], came.received[50]), (1, 2));
}

#[test]
fn a_message_that_was_not_announced_is_corrupt_and_nothing_of_it_is_taken() {
    let (region, pool) = (region(), Pool::default());
    let mut sender = Sender::<Shipped>::default();
    let header = Header { sequence: 2, bytes: 100 };
    push(&region.channel(0, 1), &mut sender, &header.to_bytes());
    let mut below = Transport::new(1, 2, None);
    let ticket = post(&mut below, buffers(&pool, 0), &[RECEIVE]);
    let corrupt = Cause { kind: CauseKind::Corrupt, rank: 0 };
    assert_eq!(below.sweep(&region), Err(corrupt));
    assert_eq!((below.sweep(&region), below.broken()), (Ok(false), Some(corrupt)));
    assert!(below.take(ticket).is_none());
}

#[test]
fn nothing_moves_after_a_stop() {
    let (region, pool) = (region(), Pool::default());
    let mut above = Transport::new(0, 2, None);
    let ticket = post(&mut above, buffers(&pool, 7), &[SEND]);
    above.stop();
    assert!(above.sweep(&region) == Ok(false) && above.take(ticket).is_none());
}
