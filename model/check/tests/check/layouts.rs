//! Bytes: what `pack`, the legs of either arm and `unpack` do to random bands, against a reference that reads the
//! tensor itself; and what records become on the wire.

use proptest::prelude::*;
use rankwise_protocol::bands::Bands;
use rankwise_protocol::call::{CallRecord, FIELDS_MAX, Field, Op, Reason, Status, Text};
use rankwise_protocol::group::{Record, Tag};
use rankwise_protocol::layout::{BandShape, Dtype, pack, unpack};
use rankwise_protocol::legs::{Arm, Buffer, Direction, Edge, Group, Leg, Side, schedule};
use rankwise_protocol::rules::{Rules, Shipped};
use rankwise_protocol::wire::{PAYLOAD_BYTES_MAX, decode, decode_call, encode, encode_call};
use std::collections::{HashMap, VecDeque};

/// A tensor `[frames, height, width x channels x bytes]` and how many ranks share it.
#[derive(Clone, Debug)]
struct Tensor {
    world: u32,
    frames: usize,
    height: usize,
    width: usize,
    channels: usize,
    dtype: Dtype,
    bytes: Vec<u8>,
}

impl Tensor {
    fn row_bytes(&self) -> usize {
        self.width * self.channels * self.dtype.bytes() as usize
    }

    /// A row of a frame; zeros above the first and below the last.
    fn row(&self, frame: usize, row: i64) -> Vec<u8> {
        if !(0..self.height as i64).contains(&row) {
            return vec![0; self.row_bytes()];
        }
        let start = (frame * self.height + row as usize) * self.row_bytes();
        self.bytes[start..start + self.row_bytes()].to_vec()
    }

    fn rows_of(&self, rank: u32) -> std::ops::Range<i64> {
        let rows = Bands::<Shipped>::new(self.height as u64, self.world).expect("a row a rank").rows_of(rank);
        rows.start as i64..rows.end as i64
    }

    fn shape(&self, rank: u32) -> BandShape {
        BandShape {
            frames: self.frames as u64,
            rows: self.rows_of(rank).count() as u64,
            width: self.width as u64,
            channels: self.channels as u64,
            dtype: self.dtype,
        }
    }

    /// The band of a rank. Its pad rows hold `pads`, or what belongs there.
    fn band(&self, rank: u32, mut pads: Option<&mut Poison>) -> Vec<u8> {
        let rows = self.rows_of(rank);
        let mut band = Vec::new();
        for frame in 0..self.frames {
            for row in rows.start - 1..rows.end + 1 {
                match &mut pads {
                    Some(poison) if !rows.contains(&row) => band.extend(poison.take(self.row_bytes())),
                    _ => band.extend(self.row(frame, row)),
                }
            }
        }
        band
    }
}

/// Bytes that nobody should read.
struct Poison(u64);

impl Poison {
    fn take(&mut self, bytes: usize) -> Vec<u8> {
        let mut next = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }
}

/// One rank's side of an exchange.
struct Rank {
    groups: VecDeque<Group>,
    /// Whether the sends of the first group are under way.
    begun: bool,
    packed: Vec<u8>,
    received: Vec<u8>,
}

impl Rank {
    fn range(leg: &Leg, edge_bytes: u64) -> (Buffer, std::ops::Range<usize>) {
        let (buffer, range) = leg.place.bytes(edge_bytes);
        (buffer, range.start as usize..range.end as usize)
    }
}

/// Carries all legs: a send's bytes leave when its group begins; each ordered pair of ranks is a queue.
fn carry(ranks: &mut [Rank], edge_bytes: u64) {
    let mut on_the_way: HashMap<(u32, u32), VecDeque<Vec<u8>>> = HashMap::new();
    let mut moved = true;
    while moved {
        moved = false;
        for (own, rank) in (0..).zip(ranks.iter_mut()) {
            let Some(group) = rank.groups.front_mut() else { continue };
            if !rank.begun {
                for leg in group.extract_if(.., |leg| leg.direction == Direction::Send) {
                    let (buffer, range) = Rank::range(&leg, edge_bytes);
                    let bytes = match buffer {
                        Buffer::Packed => &rank.packed[range],
                        Buffer::Received => &rank.received[range],
                    };
                    on_the_way.entry((own, leg.peer)).or_default().push_back(bytes.to_vec());
                }
                (rank.begun, moved) = (true, true);
            }
            group.retain(|leg| {
                let arrived = on_the_way.get_mut(&(leg.peer, own)).and_then(VecDeque::pop_front);
                let Some(bytes) = arrived else { return true };
                let (buffer, range) = Rank::range(leg, edge_bytes);
                assert_eq!(buffer, Buffer::Received);
                rank.received[range].copy_from_slice(&bytes);
                moved = true;
                false
            });
            if group.is_empty() {
                rank.groups.pop_front();
                (rank.begun, moved) = (false, true);
            }
        }
    }
    assert!(ranks.iter().all(|rank| rank.groups.is_empty()), "a leg has no partner");
    assert!(on_the_way.values().all(VecDeque::is_empty), "a message has no receiver");
}

/// The bands of all ranks after an exchange. What no leg fills and what a pad row held before is poison.
fn exchanged<R: Rules>(tensor: &Tensor, arm: Arm, coalesce: bool, poison: u64) -> Vec<Vec<u8>> {
    let world = tensor.world;
    let edge_bytes = tensor.shape(0).edge_bytes();
    let mut poison = Poison(poison);
    let mut bands: Vec<_> = (0..world).map(|rank| tensor.band(rank, Some(&mut poison))).collect();
    let mut ranks: Vec<_> = (0..world)
        .map(|own| {
            let mut packed = poison.take(2 * edge_bytes as usize);
            pack(&tensor.shape(own), &bands[own as usize], &mut packed);
            let received = poison.take((u64::from(world) * 2 * edge_bytes) as usize);
            let groups = schedule::<Shipped>(arm, coalesce, world, own).into();
            Rank { groups, begun: false, packed, received }
        })
        .collect();
    carry(&mut ranks, edge_bytes);
    for (own, (rank, band)) in (0..).zip(ranks.iter().zip(&mut bands)) {
        unpack::<R>(&tensor.shape(own), own, world, &rank.received, band);
    }
    bands
}

fn any_tensor() -> impl Strategy<Value = Tensor> {
    let sizes = (1u32..=6).prop_flat_map(|world| {
        let height = world as usize..=world as usize + 7;
        (Just(world), 1usize..4, height, 1usize..5, 1usize..5, prop::sample::select(&Dtype::ALL[..]))
    });
    sizes.prop_flat_map(|(world, frames, height, width, channels, dtype)| {
        let length = frames * height * width * channels * dtype.bytes() as usize;
        prop::collection::vec(any::<u8>(), length).prop_map(move |bytes| Tensor {
            world,
            frames,
            height,
            width,
            channels,
            dtype,
            bytes,
        })
    })
}

/// The rules of the mutant read-unfilled-slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ReadUnfilled;

impl Rules for ReadUnfilled {
    fn pad_source(side: Side, rank: u32, world: u32) -> Option<(u32, Edge)> {
        side.neighbour(rank, world).map(|_| (rank, side.facing_edge()))
    }
}

#[test]
fn a_slot_that_no_leg_fills_is_seen_when_it_is_read() {
    let bytes = (0..2 * 6 * 8).collect();
    let tensor = Tensor { world: 3, frames: 2, height: 6, width: 2, channels: 2, dtype: Dtype::U16, bytes };
    for arm in Arm::ALL {
        let [first, second] = [1, 2].map(|poison| exchanged::<ReadUnfilled>(&tensor, arm, true, poison));
        assert_ne!(first, second, "{arm}");
    }
}

fn any_call_record() -> impl Strategy<Value = CallRecord> {
    let refused = (prop::sample::select(&Reason::ALL[..]), any::<String>())
        .prop_map(|(reason, text)| Status::Refused { reason, text: Text::new(&text) });
    let status = prop_oneof![Just(Status::Ready), refused];
    let field = (prop::sample::select(&Field::ALL[..]), any::<u64>());
    (status, prop::collection::vec(field, 0..=FIELDS_MAX))
        .prop_map(|(status, signature)| CallRecord { status, signature })
}

fn any_record() -> impl Strategy<Value = Record> {
    let tag = (prop::sample::select(&Op::ALL[..]), any::<u64>()).prop_map(|(op, call)| Tag { op, call });
    let payload = prop::collection::vec(any::<u8>(), 0..=PAYLOAD_BYTES_MAX);
    (any::<(u64, u32, u64)>(), tag, payload).prop_map(|((nonce, rank, index), tag, payload)| Record {
        nonce,
        rank,
        index,
        tag,
        payload,
    })
}

/// Changes bytes here and there.
fn any_damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..6)
}

fn damage(bytes: &mut [u8], by: &[(prop::sample::Index, u8)]) {
    for (at, byte) in by {
        bytes[at.index(bytes.len())] = *byte;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn every_arm_fills_the_pad_rows_from_the_tensor_and_touches_nothing_else(
        tensor in any_tensor(), poison in any::<[u64; 2]>()
    ) {
        let due: Vec<_> = (0..tensor.world).map(|rank| tensor.band(rank, None)).collect();
        for arm in Arm::ALL {
            for coalesce in [true, false] {
                for poison in poison {
                    prop_assert_eq!(&exchanged::<Shipped>(&tensor, arm, coalesce, poison), &due, "{}, {}", arm, coalesce);
                }
            }
        }
    }

    #[test]
    fn a_record_survives_the_wire(record in any_record()) {
        prop_assert_eq!(decode(&encode(&record)), Ok(record));
    }

    #[test]
    fn a_call_record_survives_the_wire(record in any_call_record()) {
        prop_assert_eq!(decode_call(&encode_call(&record)), Ok(record));
    }

    #[test]
    fn bytes_that_are_no_record_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decode(&bytes).is_err());
        let _ = decode_call(&bytes);
    }

    #[test]
    fn a_damaged_record_is_refused_or_another_record(record in any_record(), by in any_damage()) {
        let mut bytes = encode(&record);
        damage(&mut bytes, &by);
        if let Ok(other) = decode(&bytes) {
            prop_assert_eq!(decode(&encode(&other)), Ok(other));
        }
    }

    #[test]
    fn a_damaged_call_record_is_refused_or_another_call_record(record in any_call_record(), by in any_damage()) {
        let mut bytes = encode_call(&record);
        damage(&mut bytes, &by);
        if let Ok(other) = decode_call(&bytes) {
            prop_assert_eq!(decode_call(&encode_call(&other)), Ok(other));
        }
    }
}
