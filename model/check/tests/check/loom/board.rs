//! The board of a control group.

use super::{Instead, Shared, assert_refuted, in_every_order, seen};
use loom::cell::UnsafeCell;
use loom::thread::{spawn, yield_now};
use rankwise_protocol::call::Op;
use rankwise_protocol::group::{
    Cause, CauseKind, Input, Member, Operation, Outcome, Poisoner, ReadClaim, Step, Tag, WriteClaim,
};
use rankwise_protocol::rules::{Rules, Shipped};
use rankwise_protocol::shared::board::{Board, perform};
use rankwise_protocol::wire::RECORD_BYTES;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A board's orderings, by word.
#[derive(Clone, Copy, Default)]
struct BoardOrderings {
    decision: Instead,
    posted: Instead,
}

/// loom's threads are coroutines of one thread of the system, so an `Rc` shares it.
struct LoomBoard {
    decision: Shared,
    posted: Vec<Shared>,
    slots: Vec<Vec<UnsafeCell<[u8; RECORD_BYTES]>>>,
}

impl LoomBoard {
    fn new<R: Rules>(world: u32, orderings: BoardOrderings) -> Rc<Self> {
        let slots = || (0..R::board_slots()).map(|_| UnsafeCell::new([0; RECORD_BYTES])).collect();
        Rc::new(LoomBoard {
            decision: Shared::new(orderings.decision),
            posted: (0..world).map(|_| Shared::new(orderings.posted)).collect(),
            slots: (0..world).map(|_| slots()).collect(),
        })
    }
}

impl Board for LoomBoard {
    type Word = Shared;

    fn decision(&self) -> &Shared {
        &self.decision
    }

    fn posted(&self, rank: u32) -> &Shared {
        &self.posted[rank as usize]
    }

    fn write(&self, claim: WriteClaim, record: &[u8; RECORD_BYTES]) {
        let (rank, slot) = claim.slot();
        self.slots[rank as usize][slot as usize].with_mut(|bytes| {
            // SAFETY: loom has checked that no access of another thread is unordered with this one, and panics
            // before the closure runs if one is; coroutines do not switch inside it.
            unsafe { *bytes = *record }
        });
    }

    fn read(&self, claim: ReadClaim) -> [u8; RECORD_BYTES] {
        let (rank, slot) = claim.slot();
        self.slots[rank as usize][slot as usize].with(|bytes| {
            // SAFETY: as in `write`.
            unsafe { *bytes }
        })
    }
}

/// What a rank does when it has looked in vain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// It looks again.
    Endless,
    /// Its deadline has passed.
    Expired,
    /// It looks this many times in all, then takes no further step. loom may leave one of three threads aside while
    /// the other two yield to each other; this ends such orders.
    Looks(u8),
}

/// One rank's exchanges, in which it says its rank and the exchange, up to the first that is not complete. One that
/// it walks away from has no outcome.
fn exchange<R: Rules>(
    board: &LoomBoard,
    rank: u32,
    world: u32,
    exchanges: u8,
    patience: Patience,
) -> Vec<Outcome> {
    let mut member = Member::<R>::new(rank, world, 7);
    let mut outcomes = Vec::new();
    for call in 1..=exchanges {
        let begun = member.begin(Tag { op: Op::Barrier, call: call.into() }, vec![rank as u8, call]);
        let outcome = match begun {
            Ok(()) => drive(board, &mut member, patience),
            Err(cause) => Some(Outcome::Poisoned(cause)),
        };
        let Some(outcome) = outcome else { break };
        if let Outcome::Complete(records) = &outcome {
            let said: Vec<_> = records.iter().map(|record| record.payload.clone()).collect();
            let due: Vec<_> = (0..world).map(|peer| vec![peer as u8, call]).collect();
            assert_eq!(said, due);
        }
        let over = !matches!(outcome, Outcome::Complete(_));
        outcomes.push(outcome);
        if over {
            break;
        }
    }
    outcomes
}

fn drive<R: Rules>(board: &LoomBoard, member: &mut Member<R>, mut patience: Patience) -> Option<Outcome> {
    let carry = |member: &mut Member<R>, operation: Option<Operation>| {
        let operation = operation.expect("an exchange is under way");
        let input = perform(board, member.rank(), operation);
        member.handle(input)
    };
    let mut step = Step::Continue;
    loop {
        step = match step {
            Step::Continue => carry(member, member.operation()),
            Step::Waiting { .. } => match carry(member, member.glance()) {
                Step::Waiting { .. } => match patience {
                    Patience::Endless => {
                        yield_now();
                        carry(member, member.operation())
                    }
                    Patience::Expired => member.handle(Input::Expired),
                    Patience::Looks(1) => return None,
                    Patience::Looks(looks) => {
                        patience = Patience::Looks(looks - 1);
                        yield_now();
                        carry(member, member.operation())
                    }
                },
                step => step,
            },
            Step::Ended(outcome) => return Some(outcome),
        };
    }
}

/// Ends the group; gives the cause that stands.
fn abort(board: &LoomBoard, rank: u32) -> Cause {
    let mut poisoner = Poisoner::<Shipped>::new(Cause { kind: CauseKind::Aborted, rank });
    loop {
        let input = perform(board, rank, poisoner.operation());
        if let Some(cause) = poisoner.handle(input) {
            return cause;
        }
    }
}

fn completed(outcomes: &[Outcome]) -> usize {
    outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Complete(_))).count()
}

/// Two ranks, `exchanges` exchanges.
///
/// Sees: a record read before it is announced, or by way of the decision alone; a slot written again while it is
/// read (from three exchanges on, two of which share a slot). Does not see: what a third rank's announcement passes
/// on, since with two ranks each sees the other's own; what a rank that gives up reads.
fn two_ranks<R: Rules>(exchanges: u8, preemptions: Option<usize>, orderings: BoardOrderings) {
    in_every_order(preemptions, move || {
        let board = LoomBoard::new::<R>(2, orderings);
        let other = Rc::clone(&board);
        let peer = spawn(move || exchange::<R>(&other, 1, 2, exchanges, Patience::Endless));
        let own = exchange::<R>(&board, 0, 2, exchanges, Patience::Endless);
        let peers = peer.join().expect("loom passes panics on");
        assert_eq!((completed(&own), completed(&peers)), (exchanges.into(), exchanges.into()));
    });
}

/// Two ranks, one exchange; rank 0 gives up as soon as it has looked in vain.
///
/// Sees: what a rank that loses its swap to completion reads. Does not see: a rank that gives up in the middle of
/// several exchanges; causes other than a deadline.
fn one_gives_up(orderings: BoardOrderings) {
    let (complete, late) = (seen(), seen());
    let (completes, ends) = (Arc::clone(&complete), Arc::clone(&late));
    in_every_order(None, move || {
        let board = LoomBoard::new::<Shipped>(2, orderings);
        let other = Rc::clone(&board);
        let peer = spawn(move || exchange::<Shipped>(&other, 1, 2, 1, Patience::Endless));
        let own = exchange::<Shipped>(&board, 0, 2, 1, Patience::Expired);
        let peers = peer.join().expect("loom passes panics on");
        assert_eq!(own, peers);
        match own[0] {
            Outcome::Complete(_) => completes.store(true, Ordering::Relaxed),
            Outcome::Poisoned(cause) => {
                assert_eq!(cause, Cause { kind: CauseKind::Late, rank: 1 });
                ends.store(true, Ordering::Relaxed);
            }
            ref other => panic!("{other:?}"),
        }
    });
    assert!(complete.load(Ordering::Relaxed) && late.load(Ordering::Relaxed));
}

/// Two ranks, one exchange, while a third thread aborts.
///
/// Sees: three threads that swap one word. Does not see: orderings, since a rank that learns of poison reads no
/// record; an abort between exchanges.
fn one_aborts(orderings: BoardOrderings) {
    let (complete, aborted) = (seen(), seen());
    let (completes, ends) = (Arc::clone(&complete), Arc::clone(&aborted));
    in_every_order(Some(2), move || {
        let board = LoomBoard::new::<Shipped>(2, orderings);
        let (other, third) = (Rc::clone(&board), Rc::clone(&board));
        let peer = spawn(move || exchange::<Shipped>(&other, 1, 2, 1, Patience::Endless));
        let aborting = spawn(move || abort(&third, 1));
        let own = exchange::<Shipped>(&board, 0, 2, 1, Patience::Endless);
        let peers = peer.join().expect("loom passes panics on");
        let cause = aborting.join().expect("loom passes panics on");
        assert_eq!(own, peers);
        match own[0] {
            Outcome::Complete(_) => completes.store(true, Ordering::Relaxed),
            _ => {
                assert_eq!(own[0], Outcome::Poisoned(cause));
                ends.store(true, Ordering::Relaxed);
            }
        }
    });
    assert!(complete.load(Ordering::Relaxed) && aborted.load(Ordering::Relaxed));
}

/// Three ranks, `exchanges` exchanges; each walks away from one in which it has looked twice in vain.
///
/// Sees: a record that a rank knows to be announced only because another rank has seen it; with three exchanges,
/// slots that are written again. Does not see: that waits end; three exchanges with a switch that no thread offers.
fn three_ranks(exchanges: u8, preemptions: Option<usize>, orderings: BoardOrderings) {
    let complete = seen();
    let completes = Arc::clone(&complete);
    in_every_order(preemptions, move || {
        let board = LoomBoard::new::<Shipped>(3, orderings);
        let run =
            move |board: &LoomBoard, rank| exchange::<Shipped>(board, rank, 3, exchanges, Patience::Looks(2));
        let peers = [1, 2].map(|rank| {
            let board = Rc::clone(&board);
            spawn(move || run(&board, rank))
        });
        let own = completed(&run(&board, 0));
        let others = peers.map(|peer| completed(&peer.join().expect("loom passes panics on")));
        if own + others.iter().sum::<usize>() == 3 * usize::from(exchanges) {
            completes.store(true, Ordering::Relaxed);
        }
    });
    assert!(complete.load(Ordering::Relaxed));
}

#[test]
fn two_ranks_complete_their_exchanges_in_every_order() {
    two_ranks::<Shipped>(2, Some(3), BoardOrderings::default());
    two_ranks::<Shipped>(3, Some(2), BoardOrderings::default());
}

#[test]
fn what_three_ranks_read_was_written_in_every_order() {
    three_ranks(1, Some(2), BoardOrderings::default());
    three_ranks(3, Some(0), BoardOrderings::default());
}

#[test]
fn ranks_learn_one_outcome_when_one_of_them_gives_up() {
    one_gives_up(BoardOrderings::default());
}

#[test]
fn ranks_learn_one_outcome_when_a_thread_aborts() {
    one_aborts(BoardOrderings::default());
}

/// The rules of the mutant board-one-slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct BoardOneSlot;

impl Rules for BoardOneSlot {
    fn board_slots() -> u64 {
        1
    }
}

#[test]
fn one_record_slot_a_rank_is_refuted() {
    assert_refuted(|| two_ranks::<BoardOneSlot>(2, Some(3), BoardOrderings::default()));
}

fn decision(instead: Instead) -> BoardOrderings {
    BoardOrderings { decision: instead, ..Default::default() }
}

fn posted(instead: Instead) -> BoardOrderings {
    BoardOrderings { posted: instead, ..Default::default() }
}

#[test]
fn a_relaxed_announcement_is_refuted() {
    let relaxed = posted(Instead { store: Some(Ordering::Relaxed), ..Default::default() });
    assert_refuted(|| two_ranks::<Shipped>(1, None, relaxed));
}

#[test]
fn a_relaxed_watch_is_refuted() {
    let relaxed = posted(Instead { load: Some(Ordering::Relaxed), ..Default::default() });
    assert_refuted(|| two_ranks::<Shipped>(1, None, relaxed));
}

#[test]
fn a_relaxed_look_at_the_decision_is_refuted() {
    let relaxed = decision(Instead { load: Some(Ordering::Relaxed), ..Default::default() });
    assert_refuted(|| two_ranks::<Shipped>(1, None, relaxed));
}

#[test]
fn a_relaxed_lost_swap_is_refuted() {
    let relaxed = decision(Instead { not_swapped: Some(Ordering::Relaxed), ..Default::default() });
    assert_refuted(|| one_gives_up(relaxed));
}

#[test]
fn a_swap_that_passes_nothing_on_is_refuted() {
    let acquire = decision(Instead { swapped: Some(Ordering::Acquire), ..Default::default() });
    assert_refuted(|| two_ranks::<Shipped>(1, None, acquire));
}

/// Before a rank swaps it has seen every announcement itself, or reads no record; so a swap need not learn what
/// others passed on.
#[test]
fn a_swap_that_only_passes_on_is_enough() {
    let release = decision(Instead { swapped: Some(Ordering::Release), ..Default::default() });
    two_ranks::<Shipped>(2, Some(3), release);
    two_ranks::<Shipped>(3, Some(2), release);
    three_ranks(1, Some(2), release);
    three_ranks(3, Some(0), release);
    one_gives_up(release);
    one_aborts(release);
}
