//! Tables of the halo exchange, case by case: legs match (HAL-2), bands cover (HAL-8), statistics add up (HAL-9).

use super::super::mutant;
use super::hal;
use crate::registry::{Cases, Engine, Mutant, Promise, Report, Setup, Study, SweepClaim, sweep};
use rankwise_protocol::bands::Bands;
use rankwise_protocol::halo::prepare;
use rankwise_protocol::layout::{BandShape, Dtype};
use rankwise_protocol::legs::{Arm, Direction, Leg, Place, Side, Statistics, schedule};
use rankwise_protocol::rules::{Rules, Shipped};
use std::collections::HashMap;

const MATCHED: &str = "every send has exactly one receive, which puts its edge where it belongs";
pub(super) const COVERED: &str = "bands cover all rows once, in order, and every rank has a row";
pub(super) const WHOLE: &str = "a band whose buffer is not what its shape says is refused before the call";
const COUNTED: &str = "statistics equal the bytes that the arm must move";

const TABLE: &str = "halo/table";
pub(super) const BANDS: &str = "halo/bands";
pub(super) const SHAPES: &str = "halo/shapes";
const STATISTICS: &str = "halo/statistics";

/// Largest world of the sweeps: every world up to it is gone through.
const WORLD_MAX: u32 = 64;

fn table<R: Rules>(setup: &Setup) -> Report {
    let promise = Promise { requirement: hal(2), name: MATCHED };
    let cases = |cases: &mut Cases| {
        for world in setup.worlds_of((1, WORLD_MAX)) {
            for arm in Arm::ALL {
                for coalesce in [true, false] {
                    let failure = unmatched::<R>(arm, coalesce, world)
                        .map(|what| (format!("{arm} arm, coalesce = {coalesce}"), what));
                    cases.case(world, world > 1, failure);
                }
            }
        }
    };
    sweep(TABLE, setup, &[SweepClaim { promise, cases: &cases }])
}

/// What does not match in the table of all ranks.
fn unmatched<R: Rules>(arm: Arm, coalesce: bool, world: u32) -> Option<String> {
    let mut pairs: HashMap<(u32, u32), (Vec<Leg>, Vec<Leg>)> = HashMap::new();
    for rank in 0..world {
        for leg in schedule::<R>(arm, coalesce, world, rank).into_iter().flatten() {
            if leg.peer >= world || leg.peer == rank {
                return Some(format!("rank {rank} has a leg with rank {}: {leg}", leg.peer));
            }
            match leg.direction {
                Direction::Send => pairs.entry((rank, leg.peer)).or_default().0.push(leg),
                Direction::Receive => pairs.entry((leg.peer, rank)).or_default().1.push(leg),
            }
        }
    }
    let mut sorted: Vec<_> = pairs.into_iter().collect();
    sorted.sort_by_key(|(pair, _)| *pair);
    sorted.into_iter().find_map(|((from, to), (sends, receives))| {
        if sends.len() != receives.len() {
            let (sends, receives) = (sends.len(), receives.len());
            return Some(format!(
                "Rank {from} has {sends} sends to rank {to}, which has {receives} receives."
            ));
        }
        let wrong = |(send, receive): &(&Leg, &Leg)| lands(from, send.place) != Some(receive.place);
        let (send, receive) = sends.iter().zip(&receives).find(wrong)?;
        Some(format!("Rank {from} would {send}, and rank {to} {receive}, which is another place."))
    })
}

/// Where what a rank sends has to land: an edge in its sender's slot, what was passed on in the slot it is of.
fn lands(from: u32, sent: Place) -> Option<Place> {
    Some(match sent {
        Place::Packed(edge) => Place::Slot(from, edge),
        Place::PackedBoth => Place::SlotBoth(from),
        passed_on => passed_on,
    })
}

pub(super) fn bands<R: Rules>(setup: &Setup) -> Report {
    let promise = Promise { requirement: hal(8), name: COVERED };
    let cases = |cases: &mut Cases| {
        for world in setup.worlds_of((1, WORLD_MAX)) {
            for rows in (0..=200).chain([1 << 32, u64::MAX]) {
                let failure = uncovered::<R>(rows, world).map(|what| (format!("{rows} rows"), what));
                cases.case(world, rows < u64::from(world), failure);
            }
        }
    };
    sweep(BANDS, setup, &[SweepClaim { promise, cases: &cases }])
}

fn uncovered<R: Rules>(rows: u64, world: u32) -> Option<String> {
    let Ok(bands) = Bands::<R>::new(rows, world) else {
        return (rows >= u64::from(world))
            .then(|| "It is refused, though every rank could have a row.".into());
    };
    let mut next = 0;
    let (mut shortest, mut longest) = (u64::MAX, 0);
    for rank in 0..world {
        let band = bands.rows_of(rank);
        if band.start != next || band.is_empty() {
            return Some(format!("Rank {rank} owns rows {band:?}, and row {next} is next."));
        }
        next = band.end;
        shortest = shortest.min(band.end - band.start);
        longest = longest.max(band.end - band.start);
    }
    (next != rows || longest - shortest > 1)
        .then(|| format!("Bands end at row {next} and have {shortest} to {longest} rows."))
}

/// Shapes of every small size, with buffers around the right length, and sizes that overflow.
pub(super) fn shapes<R: Rules>(setup: &Setup) -> Report {
    let promise = Promise { requirement: hal(12), name: WHOLE };
    let cases = |cases: &mut Cases| {
        const SIZES: [u64; 5] = [0, 1, 2, 3, u64::MAX / 2];
        for (position, dtype) in (0..SIZES.len().pow(3)).flat_map(|at| Dtype::ALL.map(|dtype| (at, dtype))) {
            let size = |digit: u32| SIZES[position / SIZES.len().pow(digit) % SIZES.len()];
            let (frames, rows, width) = (size(0), size(1), size(2));
            let shape = BandShape { frames, rows, width, channels: 3, dtype };
            let right = right_bytes(&shape);
            let near = right.unwrap_or(0);
            for bytes in [near.wrapping_sub(1), near, near.saturating_add(1), 0] {
                let whole = right == Some(bytes) && shape.frames * shape.rows * shape.width > 0;
                let taken = prepare::<R>(&shape, bytes, 2).is_ok();
                let failure = (taken != whole)
                    .then(|| (format!("{shape:?}"), format!("A buffer of {bytes} bytes is taken: {taken}.")));
                cases.case(2, !whole, failure);
            }
        }
    };
    sweep(SHAPES, setup, &[SweepClaim { promise, cases: &cases }])
}

/// Bytes of a padded band by its sizes, if they can be counted at all.
fn right_bytes(shape: &BandShape) -> Option<u64> {
    let factors =
        [shape.frames, shape.rows.checked_add(2)?, shape.width, shape.channels, shape.dtype.bytes()];
    factors.into_iter().try_fold(1u64, u64::checked_mul).filter(|&bytes| bytes <= i64::MAX as u64)
}

fn statistics<R: Rules>(setup: &Setup) -> Report {
    let promise = Promise { requirement: hal(9), name: COUNTED };
    let cases = |cases: &mut Cases| {
        for world in setup.worlds_of((1, WORLD_MAX)) {
            for arm in Arm::ALL {
                for (rank, coalesce) in (0..world).flat_map(|rank| [(rank, true), (rank, false)]) {
                    let failure = miscounted::<R>(arm, coalesce, world, rank)
                        .map(|what| (format!("{arm} arm, rank {rank}"), what));
                    cases.case(world, world > 1, failure);
                }
            }
        }
    };
    sweep(STATISTICS, setup, &[SweepClaim { promise, cases: &cases }])
}

/// The bytes that an arm must move, by the arm's definition: the ring passes both edges on world-1 times, a
/// neighbour gets one edge and gives one.
fn miscounted<R: Rules>(arm: Arm, coalesce: bool, world: u32, rank: u32) -> Option<String> {
    let edge_bytes = 10;
    let neighbours = Side::BOTH.iter().filter(|side| side.neighbour(rank, world).is_some()).count() as u64;
    let (bytes, legs) = match arm {
        Arm::Ring => (u64::from(world - 1) * 2 * edge_bytes, u64::from(world - 1)),
        Arm::Neighbour => (neighbours * edge_bytes, neighbours),
    };
    let due = Statistics { bytes_sent: bytes, bytes_received: bytes, legs_sent: legs, legs_received: legs };
    let counted = Statistics::of::<R>(&schedule::<R>(arm, coalesce, world, rank), edge_bytes);
    (counted != due).then(|| format!("Counted {counted:?}, due {due:?}."))
}

mutant!(
    /// A rank takes for the edge on one side what comes from the rank on the other.
    WrongSide {
        fn receives_from(side: Side, rank: u32, world: u32) -> Option<u32> {
            match side {
                Side::Above => Side::Below.neighbour(rank, world),
                Side::Below => Side::Above.neighbour(rank, world),
            }
        }
    }
);
mutant!(
    /// A band may be without rows.
    EmptyBand { fn band_needs_a_row() -> bool { false } }
);
mutant!(
    /// A band's buffer is taken for what its shape says.
    BandUnchecked { fn band_is_checked() -> bool { false } }
);
mutant!(
    /// Statistics count whole slots, whatever a leg carries.
    CountsSlots { fn edges_counted(_: &Leg) -> u64 { 2 } }
);

/// Studies and mutants of this file.
pub(super) fn part() -> (Vec<Study>, Vec<Mutant>) {
    let study = |name, number, claim, run| Study {
        name,
        engine: Engine::Sweep,
        regime: None,
        worlds: (1, WORLD_MAX),
        faults: "none",
        axioms: &[],
        reductions: &[],
        reads: &[],
        claims: vec![Promise { requirement: hal(number), name: claim }],
        run,
    };
    let studies = vec![
        study(TABLE, 2, MATCHED, table::<Shipped>),
        study(BANDS, 8, COVERED, bands::<Shipped>),
        study(STATISTICS, 9, COUNTED, statistics::<Shipped>),
        Study { worlds: (2, 2), ..study(SHAPES, 12, WHOLE, shapes::<Shipped>) },
    ];
    let mutant =
        |name, number, study, claim, run| Mutant { name, requirement: hal(number), study, claim, run };
    let mutants = vec![
        mutant("legs-of-the-wrong-side", 2, TABLE, MATCHED, table::<WrongSide>),
        mutant("band-without-rows", 8, BANDS, COVERED, bands::<EmptyBand>),
        mutant("band-unchecked", 12, SHAPES, WHOLE, shapes::<BandUnchecked>),
        mutant("statistics-count-slots", 9, STATISTICS, COUNTED, statistics::<CountsSlots>),
    ];
    (studies, mutants)
}
