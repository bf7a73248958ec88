//! Cases that users of other systems met, each with the outcome that is right here. A case's name is the test's.

use rankwise_check::waits::{self, Meaning};
use rankwise_protocol::bands::Bands;
use rankwise_protocol::call::{CallRecord, Field, Op, Override, Refusal, Text};
use rankwise_protocol::group::{Cause, CauseKind, Input, Member, Outcome, ReadClaim, Step, Tag, WriteClaim};
use rankwise_protocol::halo::{Effect, Exchange, Failure, Local, Stream, prepare};
use rankwise_protocol::layout::{BandShape, Dtype};
use rankwise_protocol::legs::{Arm, Direction, Group, Leg, schedule};
use rankwise_protocol::policy::{Policy, SHIPPED, SHIPPED_FILE};
use rankwise_protocol::rules::Shipped;
use rankwise_protocol::shared::board::{Board, perform};
use rankwise_protocol::subgroup::Proposal;
use rankwise_protocol::wire::RECORD_BYTES;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

/// The groups of every rank, as shipped.
fn schedules(arm: Arm, world: u32) -> Vec<Vec<Group>> {
    (0..world).map(|rank| schedule::<Shipped>(arm, true, world, rank)).collect()
}

/// A transport cuts one group into plans, in other places on other ranks.
#[test]
fn big_group_split() {
    for arm in Arm::ALL {
        for world in 2..=64 {
            for seed in 0..16u32 {
                let cut = |rank: u32, leg: u32| {
                    (seed ^ rank.wrapping_mul(0x9e37) ^ leg.wrapping_mul(0x85eb)).count_ones() % 2 == 1
                };
                let plans = |(rank, groups): (u32, Vec<Group>)| {
                    let plans = |group: Group| {
                        let mut plans: Vec<Group> = vec![Vec::new()];
                        for (at, leg) in (0..).zip(group) {
                            if at > 0 && cut(rank, at) {
                                plans.push(Vec::new());
                            }
                            plans.last_mut().expect("never empty").push(leg);
                        }
                        plans
                    };
                    groups.into_iter().flat_map(plans).collect()
                };
                let split: Vec<_> = (0..).zip(schedules(arm, world)).map(plans).collect();
                assert_eq!(waits::run(&split), Ok(()), "{arm}, world {world}, seed {seed}");
            }
        }
    }
}

/// One rank has {send, receive}, its peer {receive}: the leg without a partner is found, and no table has one.
#[test]
fn asymmetric_batch() {
    let mut legs = schedules(Arm::Neighbour, 2);
    let lost = legs[1][0].remove(0);
    let stuck = waits::run(&legs).expect_err("a leg has no partner");
    let due = if lost.direction == Direction::Send { Direction::Receive } else { Direction::Send };
    let blocked = stuck.blocked[0].as_ref().expect("rank 0 waits");
    assert_eq!(blocked.1.iter().map(|leg| (leg.direction, leg.peer)).collect::<Vec<_>>(), [(due, 1)]);
    // Edges of other sizes are refused before a leg is posted.
    let locals = [local(0, 2), Local { shape: BandShape { width: 9, ..SHAPE }, ..local(1, 2) }];
    assert!(matches!(agree(&locals), Err(Refusal::Mismatch { field: Field::Width, .. })));
}

/// The first collective sets up what later ones use, so every rank takes part in it: nobody goes on without the
/// record of a rank that has nothing to send.
#[test]
fn first_group_initialises() {
    let board = PlainBoard::new(3);
    let mut members = [member(0), member(1)];
    wait_for_the_last(&board, &mut members);
    let [first, second] = &mut members;
    for member in [&mut member(2), first, second] {
        assert!(matches!(advance(&board, member), Step::Ended(Outcome::Complete(_))));
    }
}

/// A transport replays a group leg by leg, each until it is complete.
#[test]
fn in_order_groups() {
    for arm in Arm::ALL {
        for world in 1..=64 {
            let in_order: Vec<_> =
                schedules(arm, world).into_iter().map(|groups| Meaning::InOrder.apply(groups)).collect();
            assert_eq!(waits::run(&in_order), Ok(()), "{arm}, world {world}");
        }
    }
}

/// The legs of a subgroup, by rank of its parent of four. `peer` says which rank of the parent a leg goes to.
fn legs_in_parent(arm: Arm, list: &[u32], peer: impl Fn(u32) -> u32) -> Vec<Vec<Group>> {
    let proposals: Vec<_> = (0..4).map(|rank| Proposal::<Shipped>::new(rank, 4, list)).collect();
    let records: Vec<_> = proposals.iter().map(|proposal| proposal.record()).collect();
    let legs = |proposal: Proposal<'_, Shipped>| {
        let seat = proposal.seat(&records).expect("all gave one list");
        let groups = seat.map_or(Vec::new(), |seat| schedule::<Shipped>(arm, true, list.len() as u32, seat));
        let renamed =
            |group: Group| group.into_iter().map(|leg| Leg { peer: peer(leg.peer), ..leg }).collect();
        groups.into_iter().map(renamed).collect()
    };
    proposals.into_iter().map(legs).collect()
}

/// A leg's peer is a rank of its group: taken for a rank of the parent, it is another process.
#[test]
fn wrong_peer_in_subgroup() {
    for list in [&[2, 3][..], &[3, 2], &[1, 3], &[0, 2, 3], &[3, 0, 2], &[3, 1, 0, 2]] {
        for arm in Arm::ALL {
            let right = legs_in_parent(arm, list, |seat| list[seat as usize]);
            assert_eq!(waits::run(&right), Ok(()), "{list:?}, {arm}");
            for (rank, groups) in (0..).zip(&right) {
                let peers: Vec<_> = groups.iter().flatten().map(|leg| leg.peer).collect();
                assert_eq!(peers.is_empty(), !list.contains(&rank));
                assert!(peers.iter().all(|peer| *peer != rank && list.contains(peer)));
            }
        }
    }
    assert!(waits::run(&legs_in_parent(Arm::Neighbour, &[2, 3], |seat| seat)).is_err());
}

/// One rank never calls: the others' waits end with an error that names it.
#[test]
fn one_rank_skips() {
    let board = PlainBoard::new(3);
    let mut members = [member(0), member(1)];
    wait_for_the_last(&board, &mut members);
    let cause = Cause { kind: CauseKind::Late, rank: 2 };
    for member in &mut members {
        assert_eq!(member.handle(Input::Expired), Step::Continue);
        assert_eq!(advance(&board, member), Step::Ended(Outcome::Poisoned(cause)));
    }
    assert_eq!(cause.to_string(), "rank 2 did not come before the deadline");
    // The one who comes too late learns the same.
    assert_eq!(advance(&board, &mut member(2)), Step::Ended(Outcome::Poisoned(cause)));
}

/// A leg with nothing to carry is issued by both sides or by neither; here by neither, and no group is empty.
#[test]
fn zero_size_leg() {
    for arm in Arm::ALL {
        for coalesce in [true, false] {
            for world in 1..=64 {
                for rank in 0..world {
                    let groups = schedule::<Shipped>(arm, coalesce, world, rank);
                    assert!(groups.iter().all(|group| !group.is_empty()));
                    assert!(groups.iter().flatten().all(|leg| leg.place.edges() > 0 && leg.peer != rank));
                }
            }
        }
    }
}

/// The arm follows from what all ranks have said: the policy, the world and the override.
#[test]
fn local_topology_decides() {
    let policy = Policy::shipped();
    for world in 1..=9 {
        assert_eq!(Exchange::<Shipped>::new(&policy, local(0, world)).arm(), policy.halo().arm(world));
    }
    let set = ("halo.coalesce".to_owned(), "false".to_owned());
    let other = Policy::parse(SHIPPED_FILE, SHIPPED, &[set]).expect("a policy");
    let records = [record(&policy, local(0, 2)), record(&other, local(1, 2))];
    let refused = Refusal::Mismatch { field: Field::Policy, values: vec![policy.digest(), other.digest()] };
    assert_eq!(outcome(&policy, local(0, 2), &records), Err(refused.clone()));
    assert_eq!(outcome(&other, local(1, 2), &records), Err(refused));
}

/// A choice that differs by rank is refused, even where the rank would have chosen the same by itself.
#[test]
fn launch_choice_differs() {
    for forced in Arm::ALL.map(Override::Forced) {
        let mut locals = [local(0, 3), local(1, 3), local(2, 3)];
        locals[1].forced = forced;
        assert!(matches!(agree(&locals), Err(Refusal::Mismatch { field: Field::Override, .. })));
        locals = locals.map(|local| Local { forced, ..local });
        assert_eq!(agree(&locals), Ok(()));
    }
}

/// A band without rows is refused by name: where bands are planned, and on every rank where a caller cut its own.
#[test]
fn too_many_ranks_for_rows() {
    let error = Bands::<Shipped>::new(3, 4).expect_err("a rank has no row").to_string();
    assert_eq!(error, "height is 3 rows for 4 ranks, expected at least one row a rank");
    let mut locals = [0, 1, 2, 3].map(|rank| local(rank, 4));
    let shape = BandShape { rows: 0, ..SHAPE };
    locals[3].prepared = prepare::<Shipped>(&shape, shape.padded_bytes(), 4);
    let refusal = agree(&locals).expect_err("a rank cannot take part").to_string();
    assert!(refusal.starts_with("rank 3: there are more ranks than rows"), "{refusal}");
}

/// An override that is no arm is refused by name, on every rank, though only one has it.
#[test]
fn rank_local_override() {
    let mut locals = [local(0, 2), local(1, 2)];
    locals[1].forced = Override::parse(Some("rng"));
    locals[1].forced_text = Text::new("rng");
    let refusal = agree(&locals).expect_err("no arm").to_string();
    assert_eq!(refusal, "rank 1: the override is no arm (expected ring or neighbour): found \"rng\"");
    locals[1].forced = Override::parse(Some(""));
    assert!(agree(&locals).expect_err("no arm").to_string().contains("rank 1: the override is empty"));
}

const SHAPE: BandShape = BandShape { frames: 1, rows: 2, width: 3, channels: 4, dtype: Dtype::BF16 };

fn local(rank: u32, world: u32) -> Local {
    let (forced, forced_text) = (Override::Unset, Text::default());
    let stream = Stream::Caller(0);
    Local { rank, world, context: 0, shape: SHAPE, forced, forced_text, prepared: Ok(()), stream }
}

fn record(policy: &Policy, local: Local) -> CallRecord {
    match Exchange::<Shipped>::new(policy, local).effect() {
        Effect::Agree(record) => record,
        effect => panic!("{effect:?} before the agreement"),
    }
}

/// What a rank makes of the records: it goes on to pack, or refuses.
fn outcome(policy: &Policy, local: Local, records: &[CallRecord]) -> Result<(), Refusal> {
    let mut exchange = Exchange::<Shipped>::new(policy, local);
    exchange.handle(rankwise_protocol::halo::Input::Agreed(Ok(records.to_vec())));
    match exchange.effect() {
        Effect::Pack(_) => Ok(()),
        Effect::Return(Err(Failure::Refused(refusal))) => Err(refusal),
        effect => panic!("{effect:?} after the agreement"),
    }
}

/// What all ranks make of their call, which must be one thing.
fn agree(locals: &[Local]) -> Result<(), Refusal> {
    let policy = Policy::shipped();
    let records: Vec<_> = locals.iter().map(|local| record(&policy, local.clone())).collect();
    let mut outcomes = locals.iter().map(|local| outcome(&policy, local.clone(), &records));
    let first = outcomes.next().expect("a rank");
    assert!(outcomes.all(|other| other == first));
    first
}

/// A board for one thread.
struct PlainBoard {
    decision: AtomicU64,
    posted: Vec<AtomicU64>,
    slots: RefCell<HashMap<(u32, u64), [u8; RECORD_BYTES]>>,
}

impl PlainBoard {
    fn new(world: u32) -> Self {
        let posted = (0..world).map(|_| AtomicU64::new(0)).collect();
        PlainBoard { decision: AtomicU64::new(0), posted, slots: RefCell::default() }
    }
}

impl Board for PlainBoard {
    type Word = AtomicU64;

    fn decision(&self) -> &AtomicU64 {
        &self.decision
    }

    fn posted(&self, rank: u32) -> &AtomicU64 {
        &self.posted[rank as usize]
    }

    fn write(&self, claim: WriteClaim, record: &[u8; RECORD_BYTES]) {
        self.slots.borrow_mut().insert(claim.slot(), *record);
    }

    fn read(&self, claim: ReadClaim) -> [u8; RECORD_BYTES] {
        self.slots.borrow()[&claim.slot()]
    }
}

/// A rank of three that has begun its first exchange.
fn member(rank: u32) -> Member<Shipped> {
    let mut member = Member::new(rank, 3, 1);
    member.begin(Tag { op: Op::Halo, call: 1 }, Vec::new()).expect("the group lives");
    member
}

/// Runs a rank until it waits or its exchange has ended.
fn advance(board: &PlainBoard, member: &mut Member<Shipped>) -> Step {
    let mut step = Step::Continue;
    while step == Step::Continue {
        let operation = member.operation().expect("an exchange is under way");
        step = member.handle(perform(board, member.rank(), operation));
        if let (Step::Waiting { .. }, Some(glance)) = (&step, member.glance()) {
            step = member.handle(perform(board, member.rank(), glance));
        }
    }
    step
}

/// Lets ranks 0 and 1 go as far as they come without rank 2.
fn wait_for_the_last(board: &PlainBoard, members: &mut [Member<Shipped>; 2]) {
    assert_eq!(advance(board, &mut members[0]), Step::Waiting { peer: 1 });
    for member in members.iter_mut().rev() {
        assert_eq!(advance(board, member), Step::Waiting { peer: 2 });
    }
}
