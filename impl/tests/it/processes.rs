//! Ranks that are processes of their own: this test binary, started again.

use crate::common::{Case, LIMIT, Random, address, each, exchange_and_compare, options};
use rankwise::halo::Halo;
use rankwise::{Address, Dtype, Group};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const ROLE: &str = "RANKWISE_TEST_ROLE";
const ADDRESS: &str = "RANKWISE_TEST_ADDRESS";
const RANK: &str = "RANKWISE_TEST_RANK";
const WORLD: &str = "RANKWISE_TEST_WORLD";

fn start(role: &str, name: &str, rank: u32, world: u32) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new(program)
        .args(["--exact", "processes::a_rank_of_its_own_process", "--nocapture"])
        .env(ROLE, role)
        .env(ADDRESS, name)
        .env(RANK, rank.to_string())
        .env(WORLD, world.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end of a child; gives what it said.
fn end(mut child: Child) -> String {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("a rank did not end");
        }
        thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().filter_map(|line| line.split_once("RANK SAYS ")).map(|(_, said)| said).collect()
}

/// The name of an address that no other test uses.
fn name(of: &str) -> String {
    format!("{of}.{}", std::process::id())
}

fn sockets() -> String {
    std::fs::read_to_string("/proc/net/unix").unwrap()
}

/// What the children run; a test that passes at once when it is run as one.
#[test]
fn a_rank_of_its_own_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let number = |variable| std::env::var(variable).unwrap().parse().unwrap();
    let address = Address::new(&std::env::var(ADDRESS).unwrap()).unwrap();
    let group = match Group::shm(&address, number(RANK), number(WORLD), &options(10_000, &[])) {
        Ok(group) => group,
        Err(error) => return println!("RANK SAYS {error}"),
    };
    let result = match role.as_str() {
        "some" => exchange_some(&group),
        _ => exchange_for_ever(&group, &role),
    };
    println!("RANK SAYS {}", result.map_or_else(|error| error, |()| "done".into()));
}

fn exchange_some(group: &Group) -> Result<(), String> {
    let mut random = Random(7);
    for arm in ["ring", "neighbour"] {
        let mut halo = Halo::with_override(group, Some(arm));
        for turn in 0..20 {
            let case = Case {
                frames: random.within(1, 3),
                height: random.within(4, 12),
                width: random.within(1, 200),
                channels: random.within(1, 200),
                dtype: Dtype::ALL[turn % 11],
                seed: random.within(0, 1 << 40),
            };
            exchange_and_compare(&mut halo, group, &case).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn exchange_for_ever(group: &Group, arm: &str) -> Result<(), String> {
    let case = Case { width: 300, channels: 300, ..Case::small(3) };
    let mut halo = Halo::with_override(group, Some(arm));
    loop {
        exchange_and_compare(&mut halo, group, &case).map_err(|error| error.to_string())?;
    }
}

#[test]
fn processes_exchange_right_bytes() {
    let name = name("bytes");
    let children: Vec<_> = (0..4).map(|rank| start("some", &name, rank, 4)).collect();
    for child in children {
        assert_eq!(end(child), "done");
    }
}

#[test]
fn a_killed_process_is_named_by_the_others_well_before_the_deadline() {
    for arm in ["ring", "neighbour"] {
        for victim in 0..3 {
            let name = name(&format!("kill.{arm}.{victim}"));
            let mut children: Vec<_> = (0..3).map(|rank| start(arm, &name, rank, 3)).collect();
            thread::sleep(Duration::from_millis(300));
            let start = Instant::now();
            let mut killed = children.remove(victim);
            killed.kill().unwrap();
            for child in children {
                let said = end(child);
                assert!(said.contains(&format!("rank {victim} is gone")), "{arm}, {victim} killed: {said}");
            }
            assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
            killed.wait().unwrap();
            assert!(!sockets().contains(&name));
        }
    }
}

#[test]
fn a_rank_0_that_is_killed_before_all_have_met_leaves_room_for_another() {
    let name = name("again");
    let mut first = start("some", &name, 0, 2);
    let begun = Instant::now();
    while !sockets().contains(&name) {
        assert!(begun.elapsed() < LIMIT);
        thread::sleep(Duration::from_millis(2));
    }
    let meeting = Address::new(&name).unwrap();
    let guest = {
        let meeting = meeting.clone();
        thread::spawn(move || Group::shm(&meeting, 1, 3, &options(10_000, &[])).map(|_| ()))
    };
    // It met a group of another world. Rank 0 is then killed, and takes the address along.
    let error = guest.join().unwrap().unwrap_err().to_string();
    assert!(error.ends_with("is 2, expected 3"), "{error}");
    first.kill().unwrap();
    first.wait().unwrap();
    let met = each(0..2, move |rank| Group::shm(&meeting, rank, 2, &options(10_000, &[])).map(|g| g.rank()));
    assert_eq!(met.into_iter().map(|rank| rank.unwrap()).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_guest_whose_rank_0_is_killed_waits_for_the_next() {
    let name = name("next");
    let mut first = start("some", &name, 0, 3);
    let meeting = Address::new(&name).unwrap();
    let guest = {
        let meeting = meeting.clone();
        thread::spawn(move || Group::shm(&meeting, 1, 3, &options(15_000, &[])))
    };
    thread::sleep(Duration::from_millis(500));
    first.kill().unwrap();
    first.wait().unwrap();
    let others = each([0, 2], move |rank| Group::shm(&meeting, rank, 3, &options(15_000, &[])).unwrap());
    let guest = guest.join().unwrap().unwrap();
    each(others.into_iter().chain([guest]), |group| group.barrier().unwrap());
}

#[test]
fn a_forked_child_is_refused_and_harms_nobody() {
    let meeting = address("fork");
    each(0..2, move |rank| {
        let group = Group::shm(&meeting, rank, 2, &options(10_000, &[])).unwrap();
        if rank == 0 {
            // SAFETY: the child calls a function that compares process ids and returns, then ends; it takes
            // no lock that another thread of the parent may have held.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let refused = matches!(group.barrier(), Err(rankwise::GroupError::Forked { .. }));
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::_exit(if refused { 0 } else { 1 }) }
            }
            let mut status = 0;
            // SAFETY: `child` is a child of this process and `status` outlives the call.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
        group.barrier().unwrap();
    });
}
