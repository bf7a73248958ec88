//! Calls that ranks do not agree on, and groups that end.

use crate::common::{Case, all_say, both, each, exchange_and_compare, options};
use rankwise::halo::Halo;
use rankwise::{BandShape, Cause, CauseKind, Dtype, Group, GroupError, HaloError, Options, Phase};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// HAL-1.
#[test]
fn an_override_that_differs_is_refused_by_name_on_all_ranks() {
    for groups in both("override", 3, &options(5000, &[])) {
        let results = each(groups, |group| {
            let value = (group.rank() == 1).then_some("ring");
            let refused =
                exchange_and_compare(&mut Halo::with_override(&group, value), &group, &Case::small(1));
            // The group lives on.
            let mut halo = Halo::with_override(&group, Some("ag"));
            exchange_and_compare(&mut halo, &group, &Case::small(1)).unwrap();
            refused
        });
        all_say(&results, "override differs by rank: unset on ranks 0 2, ring on rank 1");
    }
}

/// HAL-1.
#[test]
fn an_unknown_or_empty_override_is_refused_by_name() {
    let expected = [
        ("rng", "rank 2: the override is no arm (expected ring or neighbour): found \"rng\""),
        ("", "rank 2: the override is empty"),
    ];
    for (value, text) in expected {
        let groups = Group::threads(3, &options(5000, &[])).unwrap();
        let results = each(groups, move |group| {
            let value = (group.rank() == 2).then_some(value);
            exchange_and_compare(&mut Halo::with_override(&group, value), &group, &Case::small(2))
        });
        all_say(&results, text);
    }
}

#[test]
fn a_shape_that_differs_is_refused_by_name_on_all_ranks() {
    let groups = Group::threads(3, &options(5000, &[])).unwrap();
    let results = each(groups, |group| {
        let width = if group.rank() == 1 { 4 } else { 3 };
        let case = Case { width, ..Case::small(3) };
        exchange_and_compare(&mut Halo::with_override(&group, None), &group, &case)
    });
    all_say(&results, "width differs by rank: 3 on ranks 0 2, 4 on rank 1");
}

#[test]
fn a_buffer_that_does_not_fit_is_refused_on_all_ranks() {
    let groups = Group::threads(2, &options(5000, &[])).unwrap();
    let results = each(groups, |group| {
        let shape = BandShape { frames: 1, rows: 2, width: 2, channels: 1, dtype: Dtype::U8 };
        let mut band = vec![0; if group.rank() == 1 { 7 } else { 8 }];
        Halo::with_override(&group, None).exchange(&shape, &mut band)
    });
    all_say(
        &results,
        "rank 1: shape and buffer do not fit: found \"the band's buffer has 7 bytes, expected 8\"",
    );
}

/// HAL-1: the digest tells policies apart that take the same arm here.
#[test]
fn another_policy_is_refused_in_shared_memory_by_name() {
    let address = crate::common::address("policy");
    let results = each(0..2, move |rank| {
        let sets: &[_] = if rank == 1 { &[("halo.coalesce", "false")] } else { &[] };
        Group::shm(&address, rank, 2, &options(5000, sets))
    });
    all_say(&results, "refused by all ranks: policy differs by rank");
}

/// Case one-rank-skips.
#[test]
fn a_rank_that_skips_the_call_is_named_by_all_others_at_the_deadline() {
    for groups in both("skips", 3, &options(300, &[])) {
        let start = Instant::now();
        let results = each(groups, |group| {
            if group.rank() == 2 {
                thread::sleep(Duration::from_millis(1000));
                return group.barrier().map_err(|error| error.to_string());
            }
            let mut halo = Halo::with_override(&group, None);
            let result = exchange_and_compare(&mut halo, &group, &Case::small(4));
            result.map(|_| ()).map_err(|error| error.to_string())
        });
        all_say(&results, "rank 2 did not come before the deadline");
        assert!(start.elapsed() < Duration::from_secs(3));
    }
}

#[test]
fn ranks_that_make_different_calls_are_named_with_them() {
    let groups = Group::threads(3, &options(5000, &[])).unwrap();
    let results = each(groups, |group| {
        if group.rank() == 1 {
            return group.barrier().map_err(|error| error.to_string());
        }
        let result = exchange_and_compare(&mut Halo::with_override(&group, None), &group, &Case::small(5));
        result.map(|_| ()).map_err(|error| error.to_string())
    });
    // A rank that was slow to read may learn of the end alone.
    assert!(
        results.iter().any(|result| {
            result.as_ref().unwrap_err().contains("halo 1 on ranks 0 2, barrier 1 on rank 1")
        })
    );
    for result in results {
        let error = result.unwrap_err();
        assert!(error.contains("different calls") || error.contains("rank 1 made another call"), "{error}");
    }
}

#[test]
fn abort_from_another_thread_ends_a_wait_at_once_and_the_first_cause_stays() {
    for groups in both("abort", 2, &Options::default()) {
        let start = Instant::now();
        let aborted = Cause { kind: CauseKind::Aborted, rank: 0 };
        let results = each(groups, move |group| {
            if group.rank() == 1 {
                thread::sleep(Duration::from_millis(400));
                let error = group.barrier().unwrap_err();
                assert_eq!(group.abort(), aborted);
                return error;
            }
            let other = group.clone();
            let abort = thread::spawn(move || {
                thread::sleep(Duration::from_millis(100));
                other.abort()
            });
            let error = group.barrier().unwrap_err();
            assert_eq!(abort.join().unwrap(), aborted);
            error
        });
        for error in results {
            assert!(matches!(error, GroupError::Poisoned(cause) if cause == aborted), "{error}");
        }
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_rank_whose_last_handle_is_dropped_is_gone() {
    for groups in both("left", 3, &Options::default()) {
        let start = Instant::now();
        let results = each(groups, |group| {
            group.barrier().unwrap();
            if group.rank() == 1 {
                return Ok(());
            }
            let mut halo = Halo::with_override(&group, None);
            exchange_and_compare(&mut halo, &group, &Case::small(6)).map(|_| ())
        });
        let gone = Cause { kind: CauseKind::Gone, rank: 1 };
        for rank in [0, 2] {
            let error = results[rank].as_ref().unwrap_err();
            assert!(matches!(error, HaloError::Poisoned(cause) if *cause == gone), "rank {rank}: {error}");
        }
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

/// What a rank wrote before it left still counts.
#[test]
fn a_rank_may_leave_as_soon_as_its_own_part_is_done() {
    for _ in 0..50 {
        for groups in both("leaves", 2, &Options::default()) {
            each(groups, |group| {
                let mut halo = Halo::with_override(&group, None);
                exchange_and_compare(&mut halo, &group, &Case::small(7)).unwrap();
                group.barrier().unwrap();
            });
        }
    }
}

#[test]
fn an_observer_sees_the_phases_of_a_call_in_order() {
    let groups = Group::threads(2, &options(5000, &[])).unwrap();
    let seen = each(groups, |group| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        group.observe(Arc::new(move |phase| log.lock().unwrap().push(phase)));
        let mut halo = Halo::with_override(&group, None);
        exchange_and_compare(&mut halo, &group, &Case::small(8)).unwrap();
        seen.lock().unwrap().clone()
    });
    use Phase::{Exchange, Idle, Pack, Post, Unpack, Wait};
    assert!(
        seen.iter().all(|phases| *phases == [Exchange, Pack, Post, Idle, Wait, Unpack, Idle]),
        "{seen:?}"
    );
}
