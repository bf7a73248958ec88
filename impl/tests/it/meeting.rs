//! How groups are made, and how they refuse to be.

use crate::common::{address, each, options, shm, text};
use rankwise::{Backend, Cause, CauseKind, Group, GroupError, Options, Phase, WORLD_MAX};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn worlds_and_ranks_that_cannot_be_are_refused_by_name() {
    let options = Options::default();
    let error = text(Group::threads(WORLD_MAX, &options));
    assert!(error.starts_with("world is 4096: the memory of its group has "), "{error}");
    assert!(error.ends_with(" bytes, at most 1073741824 are taken"), "{error}");
    assert_eq!(text(Group::shm(&address("memory"), 0, WORLD_MAX, &options)), error);
    for world in [0, WORLD_MAX + 1] {
        assert_eq!(text(Group::threads(world, &options)), format!("world is {world}, expected 1 to 4096"));
        assert!(text(Group::shm(&address("world"), 0, world, &options)).starts_with("world is"));
    }
    let error = text(Group::shm(&address("rank"), 2, 2, &options));
    assert_eq!(error, "rank is 2, expected 0 to 1 in a world of 2");
}

#[test]
fn a_world_of_one_needs_nobody() {
    let group = Group::shm(&address("one"), 0, 1, &options(1000, &[])).unwrap();
    group.barrier().unwrap();
    assert_eq!((group.rank(), group.world(), group.backend()), (0, 1, Backend::Shm));
}

#[test]
fn ranks_that_do_not_come_are_named_by_those_who_did() {
    let meeting = address("missing");
    let start = Instant::now();
    let results = each([0, 2], move |rank| Group::shm(&meeting, rank, 4, &options(300, &[])));
    let came: Vec<String> = results.into_iter().map(text).collect();
    assert!(came.iter().all(|error| error.contains("ranks 1 3 did not come to address")), "{came:?}");
    assert!(start.elapsed() < Duration::from_secs(3));
}

#[test]
fn a_rank_without_a_rank_0_says_so_at_the_deadline() {
    let error = text(Group::shm(&address("alone"), 1, 2, &options(100, &[])));
    assert!(
        error.starts_with("rank 0 did not come to address") && error.ends_with("within 100 ms"),
        "{error}"
    );
}

/// GRP-4: two processes can't claim one rank, and the one that failed harms nobody.
#[test]
fn a_second_claim_of_a_rank_is_refused_and_the_others_meet() {
    let meeting = address("twice");
    let mut results = each([0, 1, 1, 2], move |rank| {
        if rank == 2 {
            thread::sleep(Duration::from_millis(200));
        }
        let group = Group::shm(&meeting, rank, 3, &options(5000, &[]))?;
        group.barrier()?;
        Ok::<_, GroupError>(group.rank())
    });
    let taken = results.iter().position(|result| result.is_err()).unwrap();
    let error = results.remove(taken).unwrap_err();
    assert!(matches!(error, GroupError::RankTaken { rank: 1, .. }), "{error}");
    let ranks: Vec<u32> = results.into_iter().map(|result| result.unwrap()).collect();
    assert_eq!(ranks, [0, 1, 2]);
}

#[test]
fn a_rank_of_another_world_is_refused_by_name_and_the_others_meet() {
    let meeting = address("stranger");
    let mut results = each([(0, 2), (1, 3), (1, 2)], move |(rank, world)| {
        if (rank, world) == (1, 2) {
            thread::sleep(Duration::from_millis(200));
        }
        Group::shm(&meeting, rank, world, &options(5000, &[]))?.barrier()
    });
    let stranger = results.remove(1);
    let error = text(stranger);
    assert!(error.starts_with("world of the group at address"), "{error}");
    assert!(error.ends_with("is 2, expected 3"), "{error}");
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn an_address_in_use_is_refused_and_free_again_once_the_group_has_met() {
    let meeting = address("in-use");
    let first = {
        let meeting = meeting.clone();
        thread::spawn(move || Group::shm(&meeting, 0, 2, &options(5000, &[])))
    };
    thread::sleep(Duration::from_millis(200));
    let error = text(Group::shm(&meeting, 0, 2, &options(5000, &[])));
    assert!(error.ends_with("is in use: a rank 0 already waits there"), "{error}");
    let one = Group::shm(&meeting, 1, 2, &options(5000, &[])).unwrap();
    let zero = first.join().unwrap().unwrap();
    let other = each(0..2, {
        let meeting = meeting.clone();
        move |rank| Group::shm(&meeting, rank, 2, &options(5000, &[])).unwrap()
    });
    for groups in [vec![zero, one], other] {
        each(groups, |group| group.barrier().unwrap());
    }
}

#[test]
fn a_group_that_met_has_no_name_left() {
    let groups = shm("no-name", 2, &options(5000, &[]));
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    assert!(!sockets.contains("no-name"));
    drop(groups);
}

/// Else this rank's next call would meet a call of its peers that is older.
#[test]
fn a_thread_whose_turn_does_not_come_by_its_deadline_ends_the_group() {
    let groups = Group::threads(2, &options(300, &[])).unwrap();
    let (entered, inside) = mpsc::channel();
    let (leave, stay) = mpsc::channel::<()>();
    let (entered, stay) = (Mutex::new(entered), Mutex::new(stay));
    groups[0].observe(Arc::new(move |phase| {
        if phase == Phase::Exchange {
            entered.lock().unwrap().send(()).unwrap();
            let _ = stay.lock().unwrap().recv();
        }
    }));
    let first = groups[0].clone();
    let first = thread::spawn(move || first.barrier());
    inside.recv().unwrap();
    let error = groups[0].barrier().unwrap_err();
    assert!(matches!(error, GroupError::Busy { deadline_ms: 300 }), "{error}");
    let failed = Cause { kind: CauseKind::Failed, rank: 0 };
    let error = groups[1].barrier().unwrap_err();
    assert!(matches!(error, GroupError::Poisoned(cause) if cause == failed), "{error}");
    drop(leave);
    let error = first.join().unwrap().unwrap_err();
    assert!(matches!(error, GroupError::Poisoned(cause) if cause == failed), "{error}");
}
