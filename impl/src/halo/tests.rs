//! Faults that only the inside can make.

use super::*;
use crate::group::Options;
use crate::observe::Phase;
use rankwise_protocol::call::Op;
use rankwise_protocol::group::{Cause, CauseKind, Outcome};
use rankwise_protocol::layout::Dtype;
use rankwise_protocol::legs::{Direction, Leg, Place};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const SHAPE: BandShape = BandShape { frames: 2, rows: 2, width: 3, channels: 1, dtype: Dtype::U16 };

fn band() -> Vec<u8> {
    vec![1; SHAPE.padded_bytes() as usize]
}

/// HAL-10.
#[test]
fn a_rank_that_fails_between_agreement_and_post_ends_its_neighbours_waits() {
    for arm in ["ring", "neighbour"] {
        let groups = Group::threads(3, &Options::default()).unwrap();
        let start = Instant::now();
        let ranks = groups.into_iter().map(|group| {
            thread::spawn(move || {
                if group.rank() == 1 {
                    group.inner().transport().raise();
                }
                let result = Halo::with_override(&group, Some(arm)).exchange(&SHAPE, &mut band());
                (result.unwrap_err(), group.barrier().unwrap_err())
            })
        });
        let ranks: Vec<_> = ranks.collect();
        for rank in ranks {
            let (error, later) = rank.join().unwrap();
            let failed = Cause { kind: CauseKind::Failed, rank: 1 };
            assert!(matches!(error, HaloError::Poisoned(cause) if cause == failed), "{error}");
            assert!(matches!(later, crate::GroupError::Poisoned(cause) if cause == failed), "{later}");
        }
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

/// GRP-2.
#[test]
fn a_call_record_that_cannot_be_read_ends_the_group() {
    for op in [Op::Halo, Op::Subgroup] {
        let groups = Group::threads(2, &Options::default()).unwrap();
        let ranks = groups.into_iter().map(|group| {
            thread::spawn(move || {
                let first = match (group.rank(), op) {
                    (1, _) => {
                        let rank = group.inner();
                        let deadline = rank.deadline();
                        let mut control = rank.enter(deadline).unwrap();
                        let outcome = rank.exchange(&mut control, op, vec![0xff; 3], deadline);
                        assert!(matches!(outcome, Outcome::Complete(_)), "{outcome:?}");
                        None
                    }
                    (_, Op::Halo) => {
                        let result = Halo::with_override(&group, None).exchange(&SHAPE, &mut band());
                        Some(result.unwrap_err().to_string())
                    }
                    _ => Some(group.subgroup(&[0]).unwrap_err().to_string()),
                };
                // Rank 1 may come to this before rank 0 has read its record.
                (first, group.barrier().unwrap_err())
            })
        });
        for rank in ranks.collect::<Vec<_>>() {
            let (first, later) = rank.join().unwrap();
            assert!(first.is_none_or(|error| error.contains("what was read of rank 1 is no record")));
            let corrupt = Cause { kind: CauseKind::Corrupt, rank: 1 };
            assert!(matches!(later, crate::GroupError::Poisoned(cause) if cause == corrupt), "{later}");
        }
    }
}

/// HAL-11.
#[test]
fn contexts_of_equal_shape_in_different_order_are_refused_by_name_and_swap_no_edges() {
    let groups = Group::threads(2, &Options::default()).unwrap();
    let ranks = groups.into_iter().map(|group| {
        thread::spawn(move || {
            let mut contexts = [(); 2].map(|()| Halo::with_override(&group, None));
            let mut bytes = band();
            let refused = contexts[group.rank() as usize].exchange(&SHAPE, &mut bytes).unwrap_err();
            assert!(bytes == band());
            for halo in &mut contexts {
                halo.exchange(&SHAPE, &mut bytes).unwrap();
            }
            refused.to_string()
        })
    });
    for rank in ranks.collect::<Vec<_>>() {
        let refused = rank.join().unwrap();
        assert_eq!(refused, "halo refused by all ranks: context differs by rank: 0 on rank 0, 1 on rank 1");
    }
}

/// CHN-3.
#[test]
fn a_message_that_was_not_announced_ends_the_wait_and_names_its_sender() {
    let groups = Group::threads(2, &Options::default()).unwrap();
    let tiny = BandShape { frames: 1, rows: 1, width: 1, channels: 1, dtype: Dtype::U8 };
    let mut transport = groups[0].inner().transport();
    let ticket = transport.begin(Pool::default().take(&tiny, 2).unwrap(), tiny.edge_bytes(), 0);
    transport.open();
    transport.post(Leg { direction: Direction::Send, peer: 1, place: Place::PackedBoth }).unwrap();
    transport.close(ticket);
    drop(transport);
    let ranks: Vec<_> = groups
        .into_iter()
        .map(|group| {
            thread::spawn(move || {
                let mut received = band();
                let result = Halo::with_override(&group, None).exchange(&SHAPE, &mut received);
                (group.rank(), result, received)
            })
        })
        .collect();
    for rank in ranks {
        let (rank, result, received) = rank.join().unwrap();
        let corrupt = Cause { kind: CauseKind::Corrupt, rank: 0 };
        match result {
            Err(HaloError::Poisoned(cause)) => assert_eq!(cause, corrupt),
            // Rank 0 has got all it needs before rank 1 found out.
            other => assert!(rank == 0 && other.is_ok(), "rank {rank}: {other:?}"),
        }
        assert!(rank == 0 || received == band());
    }
}

/// CHN-3.
#[test]
fn a_message_that_was_not_announced_ends_the_group_though_nobody_waits_for_it() {
    let groups = Group::threads(2, &Options::default()).unwrap();
    let tiny = BandShape { frames: 1, rows: 1, width: 1, channels: 1, dtype: Dtype::U8 };
    let post = |rank: usize, shape: &BandShape, leg| {
        let mut transport = groups[rank].inner().transport();
        let buffers = Pool::default().take(shape, 2).unwrap();
        let ticket = transport.begin(buffers, shape.edge_bytes(), 0);
        transport.open();
        transport.post(leg).unwrap();
        transport.close(ticket);
        transport.abandon(ticket, Pool::default());
    };
    post(0, &tiny, Leg { direction: Direction::Send, peer: 1, place: Place::PackedBoth });
    post(1, &SHAPE, Leg { direction: Direction::Receive, peer: 0, place: Place::SlotBoth(0) });
    assert!(groups[0].inner().sweep());
    assert!(!groups[1].inner().sweep());
    let corrupt = Cause { kind: CauseKind::Corrupt, rank: 0 };
    for group in &groups {
        let error = group.barrier().unwrap_err();
        assert!(matches!(error, crate::GroupError::Poisoned(cause) if cause == corrupt), "{error}");
    }
}

/// HAL-10.
#[test]
fn a_rank_that_panics_in_any_phase_of_an_exchange_ends_the_group() {
    for bad in &Phase::ALL[1..] {
        let groups = Group::threads(2, &Options::default()).unwrap();
        let start = Instant::now();
        groups[0].observe(Arc::new(move |phase| assert!(phase != *bad, "an observer may not")));
        let ranks = groups.into_iter().map(|group| {
            thread::spawn(move || {
                let result = Halo::with_override(&group, None).exchange(&SHAPE, &mut band());
                (result, group.barrier())
            })
        });
        let mut ranks = ranks.collect::<Vec<_>>().into_iter();
        ranks.next().unwrap().join().unwrap_err();
        let (result, later) = ranks.next().unwrap().join().unwrap();
        let failed = Cause { kind: CauseKind::Failed, rank: 0 };
        // It may have had all it needs of rank 0 by then.
        assert!(
            match &result {
                Ok(_) => *bad > Phase::Post,
                Err(HaloError::Poisoned(cause)) => *cause == failed,
                Err(_) => false,
            },
            "{bad:?}: {result:?}"
        );
        let later = later.unwrap_err();
        assert!(matches!(later, crate::GroupError::Poisoned(cause) if cause == failed), "{bad:?}: {later}");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_handle_that_is_dropped_in_a_forked_child_takes_no_lock_of_the_parent() {
    let groups = Group::threads(2, &Options::default()).unwrap();
    let post = |group: &Group| Halo::with_override(group, None).post(&SHAPE, &band()).unwrap();
    let (pending, _peers) = thread::scope(|scope| {
        let peers = scope.spawn(|| post(&groups[1]));
        (post(&groups[0]), peers.join().unwrap())
    });
    let held = groups[0].inner().transport();
    // SAFETY: the child compares process ids, forgets the handle and ends; it takes no lock that another thread
    // of the parent may have held, and an alarm ends it if it does.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: sets a timer of the child.
        unsafe { libc::alarm(5) };
        drop(pending);
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) }
    }
    drop(held);
    let mut status = 0;
    // SAFETY: `child` is a child of this process and `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    pending.wait(&mut band()).unwrap();
}

#[test]
fn buffers_come_back_to_the_context_and_are_used_again() {
    let groups = Group::threads(1, &Options::default()).unwrap();
    let mut halo = Halo::with_override(&groups[0], None);
    for _ in 0..3 {
        halo.exchange(&SHAPE, &mut band()).unwrap();
        drop(halo.post(&SHAPE, &band()).unwrap());
        assert_eq!(halo.pool.idle(), 1);
    }
}

#[test]
fn a_shape_that_no_memory_holds_is_refused_by_all_ranks() {
    let groups = Group::threads(2, &Options::default()).unwrap();
    let ranks = groups.into_iter().map(|group| {
        thread::spawn(move || {
            let shape = BandShape { width: 1 << 50, ..SHAPE };
            Halo::with_override(&group, None).exchange(&shape, &mut band()).unwrap_err().to_string()
        })
    });
    let ranks: Vec<_> = ranks.collect();
    for rank in ranks {
        let error = rank.join().unwrap();
        assert!(
            error.starts_with("halo refused by all ranks: rank 0: shape and buffer do not fit"),
            "{error}"
        );
    }
}
