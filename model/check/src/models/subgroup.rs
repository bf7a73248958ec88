//! Agreement on a subgroup, case by case (GRP-6).
//!
//! Every list of up to three entries, ranks of the parent or not, at each rank the same or at one rank another;
//! also a leader that cannot make what the subgroup needs. How the ranks of an agreed subgroup find each other is
//! the backend's, and not modelled.

use super::mutant;
use crate::registry::{Cases, Engine, Mutant, Promise, Report, Requirement, Setup, Study, SweepClaim, sweep};
use rankwise_protocol::call::{Reason, Refusal};
use rankwise_protocol::rules::{Rules, Shipped};
use rankwise_protocol::subgroup::Proposal;

const GRP_6: Requirement = Requirement::new("GRP", 6);

const ONE_LIST: &str = "all ranks take one list in one order, each with its own place, or all refuse by name";

const SUBGROUP: &str = "group/subgroup";

const WORLDS: (u32, u32) = (2, 4);
const ENTRIES_MAX: usize = 3;

/// What one rank gets.
type Seat = Result<Option<u32>, Refusal>;

fn subgroups<R: Rules>(setup: &Setup) -> Report {
    let promise = Promise { requirement: GRP_6, name: ONE_LIST };
    let cases = |cases: &mut Cases| {
        for world in setup.worlds_of(WORLDS) {
            let lists = lists(world);
            for list in &lists {
                let given = vec![list.as_slice(); world as usize];
                case::<R>(cases, &given, true);
                case::<R>(cases, &given, false);
            }
            let pairs = lists.iter().flat_map(|list| lists.iter().map(move |other| (list, other)));
            for (list, other) in pairs.filter(|(list, other)| list != other) {
                for at in 0..world as usize {
                    let mut given = vec![list.as_slice(); world as usize];
                    given[at] = other;
                    case::<R>(cases, &given, true);
                }
            }
        }
    };
    sweep(SUBGROUP, setup, &[SweepClaim { promise, cases: &cases }])
}

/// Every list of up to [`ENTRIES_MAX`] entries, of which `world` is the one that is no rank.
fn lists(world: u32) -> Vec<Vec<u32>> {
    let mut lists = vec![Vec::new()];
    let mut start = 0;
    for _ in 0..ENTRIES_MAX {
        let end = lists.len();
        for at in start..end {
            lists.extend(
                (0..=world).map(|entry| [lists[at].as_slice(), &[entry]].concat()).collect::<Vec<_>>(),
            );
        }
        start = end;
    }
    lists
}

/// All ranks make their proposals; a leader makes the group's memory, or cannot.
fn case<R: Rules>(cases: &mut Cases, lists: &[&[u32]], prepares: bool) {
    let world = lists.len() as u32;
    let proposal = |rank: u32| {
        let mut proposal = Proposal::<R>::new(rank, world, lists[rank as usize]);
        if proposal.leads() && !prepares {
            proposal.unprepared("no memory");
        }
        proposal
    };
    let records: Vec<_> = (0..world).map(|rank| proposal(rank).record()).collect();
    let seats: Vec<Seat> = (0..world).map(|rank| proposal(rank).seat(&records)).collect();
    let may_be = prepares && lists.iter().all(|list| *list == lists[0]) && is_good(lists[0], world);
    let failure =
        (!is_right(lists, prepares, may_be, &seats)).then(|| (setting(lists, prepares), told(&seats)));
    cases.case(world, !may_be, failure);
}

/// The list has an entry, and its entries are ranks of the parent, each once.
fn is_good(list: &[u32], world: u32) -> bool {
    let times = |rank: u32| list.iter().filter(|&&entry| entry == rank).count();
    !list.is_empty() && list.iter().all(|&entry| entry < world && times(entry) == 1)
}

fn is_right(lists: &[&[u32]], prepares: bool, may_be: bool, seats: &[Seat]) -> bool {
    if may_be {
        let place = |rank: usize| lists[0].iter().position(|&entry| entry as usize == rank);
        return (0..seats.len()).all(|rank| seats[rank] == Ok(place(rank).map(|place| place as u32)));
    }
    let Err(refusal) = &seats[0] else { return false };
    let named_rightly = match refusal {
        Refusal::Rank { rank, reason: Reason::Unprepared, .. } => {
            !prepares && lists[*rank as usize][0] == *rank
        }
        Refusal::Rank { rank, .. } => !is_good(lists[*rank as usize], lists.len() as u32),
        Refusal::Mismatch { .. } => lists.iter().all(|list| is_good(list, lists.len() as u32)),
        Refusal::Fields { .. } => false,
    };
    named_rightly && seats.iter().all(|seat| seat.as_ref() == Err(refusal))
}

fn setting(lists: &[&[u32]], prepares: bool) -> String {
    let listed: Vec<String> =
        lists.iter().enumerate().map(|(rank, list)| format!("rank {rank} lists {list:?}")).collect();
    let able = if prepares { "" } else { "; the leader has no memory" };
    listed.join(", ") + able
}

fn told(seats: &[Seat]) -> String {
    let seat = |(rank, seat): (usize, &Seat)| match seat {
        Ok(Some(seat)) => format!("rank {rank} becomes rank {seat} of the subgroup"),
        Ok(None) => format!("rank {rank} is not in the subgroup"),
        Err(refusal) => format!("rank {rank} refuses: {refusal}"),
    };
    let told: Vec<String> = seats.iter().enumerate().map(seat).collect();
    format!("Of one call, {}.", told.join("; "))
}

mutant!(
    /// Lists are compared as sets: the order of the ranks is ignored.
    OrderIgnored {
        fn entries_compared(ranks: &[u32]) -> Vec<u32> {
            let mut sorted = ranks.to_vec();
            sorted.sort_unstable();
            sorted
        }
    }
);
mutant!(
    /// Entries are only compared with the world.
    TwiceAccepted {
        fn entry_refused(entry: u32, _: &[u32], world: u32) -> Option<Reason> {
            (entry >= world).then_some(Reason::NoSuchRank)
        }
    }
);

/// Studies and mutants of this file.
pub(super) fn part() -> (Vec<Study>, Vec<Mutant>) {
    let study = Study {
        name: SUBGROUP,
        engine: Engine::Sweep,
        regime: None,
        worlds: WORLDS,
        faults: "one rank gives another list, lists that cannot be, a leader without memory",
        axioms: &["an exchange of records is one step (GRP-1..4)", "two lists of one call differ in digest"],
        reductions: &[],
        reads: &[],
        claims: vec![Promise { requirement: GRP_6, name: ONE_LIST }],
        run: subgroups::<Shipped>,
    };
    let mutant = |name, run| Mutant { name, requirement: GRP_6, study: SUBGROUP, claim: ONE_LIST, run };
    let mutants = vec![
        mutant("list-order-ignored", subgroups::<OrderIgnored>),
        mutant("rank-listed-twice", subgroups::<TwiceAccepted>),
    ];
    (vec![study], mutants)
}
