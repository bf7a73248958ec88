//! The bytes that an exchange leaves, and handles that wait late, in another order, or never.

use crate::common::{Case, Random, both, each, exchange_and_compare, options, shm};
use rankwise::halo::Halo;
use rankwise::{Arm, BandShape, Cause, CauseKind, Dtype, Group, HaloError, Options};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn pad_rows_equal_the_neighbours_rows_for_random_shapes_on_both_arms_and_backends() {
    let mut random = Random(0x5eed);
    let sizes = [Dtype::I8, Dtype::BF16, Dtype::F32];
    for world in 1..=5 {
        for groups in both("random", world, &Options::default()) {
            let cases: Vec<Case> = (0..24)
                .map(|at| Case {
                    frames: random.within(1, 4),
                    height: random.within(u64::from(world), 12),
                    width: random.within(1, 9),
                    channels: random.within(1, 17),
                    dtype: sizes[at % 3],
                    seed: random.within(0, u64::MAX - 1),
                })
                .collect();
            each(groups, move |group| {
                for arm in Arm::ALL {
                    let mut halo = Halo::with_override(&group, Some(arm.name()));
                    for case in &cases {
                        let exchanged = exchange_and_compare(&mut halo, &group, case).unwrap();
                        assert_eq!(exchanged.arm, arm);
                    }
                }
            });
        }
    }
}

#[test]
fn statistics_count_what_the_legs_move() {
    let edge = Case::small(1).shape(0, 4).edge_bytes();
    for (arm, bytes) in [("ring", [6 * edge; 4]), ("p2p", [edge, 2 * edge, 2 * edge, edge])] {
        let groups = Group::threads(4, &Options::default()).unwrap();
        let came = each(groups, move |group| {
            let mut halo = Halo::with_override(&group, Some(arm));
            let case = Case::small(1);
            let pending = halo.post(&case.shape(group.rank(), 4), &case.band(group.rank(), 4)).unwrap();
            let said = pending.statistics();
            let did = pending.wait(&mut case.band(group.rank(), 4)).unwrap().statistics;
            assert_eq!(said, did);
            (did.bytes_sent, did.bytes_received)
        });
        assert_eq!(came, bytes.map(|bytes| (bytes, bytes)), "{arm}");
    }
}

#[test]
fn the_policy_picks_the_arm_by_world() {
    for (world, arm) in [(2, Arm::Ring), (3, Arm::Neighbour), (4, Arm::Neighbour)] {
        let groups = Group::threads(world, &Options::default()).unwrap();
        let ran = each(groups, |group| {
            let mut halo = Halo::with_override(&group, None);
            exchange_and_compare(&mut halo, &group, &Case::small(2)).unwrap().arm
        });
        assert!(ran.iter().all(|&ran| ran == arm), "world {world}: {ran:?}");
    }
}

/// An edge of 1.5 MB: twelve rings full.
fn large(seed: u64) -> Case {
    Case { frames: 3, height: 4, width: 512, channels: 512, dtype: Dtype::BF16, seed }
}

#[test]
fn messages_larger_than_a_ring_flow_through_it() {
    for groups in both("large", 3, &Options::default()) {
        each(groups, |group| {
            for arm in ["ring", "neighbour"] {
                let mut halo = Halo::with_override(&group, Some(arm));
                exchange_and_compare(&mut halo, &group, &large(3)).unwrap();
            }
        });
    }
}

/// Small edges fit into the rings, so even legs in unlucky groups of their own go through.
#[test]
fn legs_apart_leave_the_same_bytes() {
    let groups = Group::threads(4, &options(5000, &[("halo.coalesce", "false")])).unwrap();
    each(groups, |group| {
        let mut halo = Halo::with_override(&group, Some("neighbour"));
        exchange_and_compare(&mut halo, &group, &Case::small(4)).unwrap();
    });
}

/// HAL-3: large edges do not fit, and then legs apart are the deadlock that the checker draws. It is bounded.
#[test]
fn large_legs_apart_end_by_the_deadline() {
    let groups = Group::threads(2, &options(300, &[("halo.coalesce", "false")])).unwrap();
    let results = each(groups, |group| {
        let mut halo = Halo::with_override(&group, Some("neighbour"));
        exchange_and_compare(&mut halo, &group, &large(5)).map(|_| ())
    });
    for result in results {
        assert!(matches!(result, Err(HaloError::Poisoned(_))), "{result:?}");
    }
}

#[test]
fn an_exchange_whose_handle_was_dropped_is_done_for_the_peers_sake() {
    for groups in both("dropped", 3, &options(5000, &[])) {
        each(groups, |group| {
            for arm in ["ring", "neighbour"] {
                let mut halo = Halo::with_override(&group, Some(arm));
                for (turn, case) in [large(6), Case::small(7), large(8)].iter().enumerate() {
                    let (rank, world) = (group.rank(), group.world());
                    let shape = case.shape(rank, world);
                    let pending = halo.post(&shape, &case.band(rank, world)).unwrap();
                    if rank as usize == turn {
                        drop(pending);
                        continue;
                    }
                    let mut band = case.band(rank, world);
                    pending.wait(&mut band).unwrap();
                    assert!(band == case.expected(rank, world));
                }
                exchange_and_compare(&mut halo, &group, &Case::small(9)).unwrap();
            }
        });
    }
}

#[test]
fn two_contexts_may_be_waited_for_in_any_order() {
    for groups in both("contexts", 3, &options(5000, &[])) {
        each(groups, |group| {
            let (rank, world) = (group.rank(), group.world());
            let mut ring = Halo::with_override(&group, Some("ring"));
            let mut neighbour = Halo::with_override(&group, Some("neighbour"));
            let cases = [large(10), large(11)];
            let mut bands = cases.clone().map(|case| case.band(rank, world));
            let first = ring.post(&cases[0].shape(rank, world), &bands[0]).unwrap();
            let second = neighbour.post(&cases[1].shape(rank, world), &bands[1]).unwrap();
            if rank == 1 {
                first.wait(&mut bands[0]).unwrap();
                second.wait(&mut bands[1]).unwrap();
            } else {
                second.wait(&mut bands[1]).unwrap();
                first.wait(&mut bands[0]).unwrap();
            }
            for (band, case) in bands.iter().zip(&cases) {
                assert!(*band == case.expected(rank, world));
            }
        });
    }
}

/// A rank that is already in its next call moves the legs that a slower peer still waits for.
#[test]
fn a_rank_that_went_ahead_serves_those_who_still_wait() {
    let groups = shm("ahead", 2, &options(5000, &[]));
    each(groups, |group| {
        let mut halo = Halo::with_override(&group, None);
        let (rank, case) = (group.rank(), large(12));
        let mut band = case.band(rank, 2);
        let pending = halo.post(&case.shape(rank, 2), &band).unwrap();
        if rank == 0 {
            group.barrier().unwrap();
            pending.wait(&mut band).unwrap();
        } else {
            pending.wait(&mut band).unwrap();
            group.barrier().unwrap();
        }
        assert!(band == case.expected(rank, 2));
    });
}

/// A post leaves nothing behind that has room in the channels, so its rank may do other work.
#[test]
fn a_message_that_fits_into_a_ring_needs_no_call_after_its_post() {
    let groups = Group::threads(2, &options(5000, &[])).unwrap();
    let met = Arc::new(Barrier::new(2));
    each(groups, move |group| {
        let mut halo = Halo::with_override(&group, Some("ring"));
        let rank = group.rank();
        let case = Case { frames: 1, height: 2, width: 50, channels: 500, dtype: Dtype::BF16, seed: 15 };
        let mut band = case.band(rank, 2);
        let pending = halo.post(&case.shape(rank, 2), &band).unwrap();
        if rank == 0 {
            met.wait();
            pending.wait(&mut band).unwrap();
        } else {
            pending.wait(&mut band).unwrap();
            met.wait();
        }
        assert!(band == case.expected(rank, 2));
    });
}

/// GRP-3: what is left of the deadline after the post is what the wait has.
#[test]
fn an_exchange_has_one_deadline_for_its_post_and_its_wait() {
    let groups = Group::threads(2, &options(1500, &[])).unwrap();
    each(groups, |group| {
        let mut halo = Halo::with_override(&group, None);
        let (rank, case) = (group.rank(), large(16));
        let mut band = case.band(rank, 2);
        if rank == 1 {
            thread::sleep(Duration::from_millis(1000));
            let pending = halo.post(&case.shape(rank, 2), &band).unwrap();
            thread::sleep(Duration::from_millis(2500));
            assert!(pending.wait(&mut band).is_err());
            return;
        }
        let start = Instant::now();
        let error = halo.exchange(&case.shape(rank, 2), &mut band).unwrap_err();
        let late = Cause { kind: CauseKind::Late, rank: 1 };
        assert!(matches!(error, HaloError::Poisoned(cause) if cause == late), "{error}");
        assert!(start.elapsed() < Duration::from_millis(2300), "{:?}", start.elapsed());
    });
}

#[test]
fn a_band_of_another_size_is_an_error_of_its_rank_alone() {
    let groups = Group::threads(2, &options(5000, &[])).unwrap();
    each(groups, |group| {
        let mut halo = Halo::with_override(&group, None);
        let (rank, case) = (group.rank(), Case::small(13));
        let mut band = case.band(rank, 2);
        let pending = halo.post(&case.shape(rank, 2), &band).unwrap();
        if rank == 0 {
            let error = pending.wait(&mut band[1..]).unwrap_err();
            assert!(matches!(error, HaloError::Band { .. }), "{error}");
        } else {
            pending.wait(&mut band).unwrap();
        }
        exchange_and_compare(&mut halo, &group, &Case::small(14)).unwrap();
    });
}

#[test]
fn threads_of_one_rank_take_turns() {
    let groups = Group::threads(2, &options(10_000, &[])).unwrap();
    each(groups, |group| {
        let call = || (0..20).for_each(|_| group.barrier().unwrap());
        thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(call))));
    });
}

/// HAL-11: nothing keeps the threads of two ranks in one order.
#[test]
fn contexts_that_threads_use_in_any_order_are_refused_or_get_their_own_edges() {
    let groups = Group::threads(2, &options(10_000, &[])).unwrap();
    each(groups, |group| {
        let contexts = [1, 2, 3].map(|context| (context, Halo::with_override(&group, None)));
        let call = |(context, mut halo): (u8, Halo)| {
            let shape = BandShape { frames: 1, rows: 1, width: 4, channels: 1, dtype: Dtype::U8 };
            let (own, other) = (group.rank() as u8, 1 - group.rank() as u8);
            for _ in 0..20 {
                let mut band = [[99; 4], [10 * own + context; 4], [99; 4]].concat();
                match halo.exchange(&shape, &mut band) {
                    Ok(_) => {
                        let pads = [[band[0], band[11]], [band[11], band[0]]][own as usize];
                        assert_eq!(pads, [0, 10 * other + context]);
                    }
                    Err(error) => assert!(error.to_string().contains("context differs by rank"), "{error}"),
                }
            }
        };
        thread::scope(|scope| contexts.into_iter().for_each(|context| drop(scope.spawn(|| call(context)))));
    });
}
