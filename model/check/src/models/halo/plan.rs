//! Legs of all ranks on a transport: do they end (HAL-3), and are the pad rows filled from what arrived (HAL-4,
//! HAL-5)?
//!
//! A send and a receive complete together once both run, first posted first matched on each ordered pair of ranks:
//! the strictest meaning that a transport may give them, since one that buffers sends frees ranks earlier. A rank's
//! groups run one after the other. What a group means differs: all its legs at once, one by one, or split into
//! consecutive plans, differently on each rank. One by one is the finest split, and a coarser one runs legs
//! earlier, never later; worlds up to 4 go through every split all the same.

use super::super::mutant;
use super::hal;
use crate::explore::{Claim, Step, Wait, When, World, properties};
use crate::registry::{
    Cases, Engine, Mutant, Promise, Regime, Report, Setup, Study, SweepClaim, explore, sweep,
};
use crate::waits::{self, Meaning};
use rankwise_protocol::layout::{PadFill, pad_fill};
use rankwise_protocol::legs::{Arm, Direction, Edge, Group, Leg, Place, Side, schedule};
use rankwise_protocol::rules::{Rules, Shipped};
use stateright::{Model, Property};
use std::fmt::Write;
use std::marker::PhantomData;

const COMPLETE: &str = "every leg completes, whatever a group means to the transport";
const FORCED: &str = "every leg completes on an arm that the environment forces";
const ANY_WORLD: &str = "every leg completes, to world 65,536";
const FILLED: &str = "unpack reads what the arm filled, the neighbours' facing edges";
const ZEROS: &str = "the outermost pad rows are zeros";

/// The legs of all ranks.
#[derive(Clone, Debug)]
pub struct Legs<R> {
    /// By rank, the groups that run.
    groups: Vec<Vec<Group>>,
    setting: String,
    claims: &'static [&'static str],
    rules: PhantomData<R>,
}

/// An edge by its owner.
type Content = Option<(u32, Edge)>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rank {
    group: usize,
    /// Legs of the group that are complete, a bit each.
    complete: u32,
    /// Receive buffer: slots of two edges.
    received: Vec<Content>,
}

/// How far each rank is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    ranks: Vec<Rank>,
}

/// A send and the receive that it meets complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    from: u32,
    send: usize,
    to: u32,
    receive: usize,
}

impl<R: Rules> Legs<R> {
    /// Any groups of legs, by rank; the claim is that every leg completes.
    pub fn of(groups: Vec<Vec<Group>>) -> Self {
        Self::new(groups, String::new(), &[COMPLETE])
    }

    fn new(groups: Vec<Vec<Group>>, setting: String, claims: &'static [&'static str]) -> Self {
        Legs { groups, setting, claims, rules: PhantomData }
    }

    fn group(&self, state: &State, rank: usize) -> &[Leg] {
        self.groups[rank].get(state.ranks[rank].group).map_or(&[], Vec::as_slice)
    }

    /// Position of the first leg of `rank`'s group that is open, goes `direction`, and has `peer`.
    fn first_open(&self, state: &State, rank: u32, direction: Direction, peer: u32) -> Option<usize> {
        let complete = state.ranks[rank as usize].complete;
        let group = self.group(state, rank as usize).iter().enumerate();
        group
            .filter(|(position, _)| complete >> position & 1 == 0)
            .find(|(_, leg)| leg.direction == direction && leg.peer == peer)
            .map(|(position, _)| position)
    }

    /// Open legs of a rank.
    fn open<'a>(&'a self, state: &'a State, rank: usize) -> impl Iterator<Item = (usize, &'a Leg)> + 'a {
        let complete = state.ranks[rank].complete;
        self.group(state, rank).iter().enumerate().filter(move |(position, _)| complete >> position & 1 == 0)
    }

    fn done(&self, state: &State) -> bool {
        state.ranks.iter().zip(&self.groups).all(|(rank, groups)| rank.group == groups.len())
    }

    fn finish_leg(&self, state: &mut State, rank: u32, position: usize) {
        let legs = self.group(state, rank as usize).len();
        let rank = &mut state.ranks[rank as usize];
        rank.complete |= 1 << position;
        if rank.complete.count_ones() as usize == legs {
            rank.group += 1;
            rank.complete = 0;
        }
    }
}

/// Edges that lie at `place` of a rank's buffers.
fn contents(rank: u32, received: &[Content], place: Place) -> Vec<Content> {
    match place {
        Place::Packed(edge) => vec![Some((rank, edge))],
        Place::PackedBoth => vec![Some((rank, Edge::First)), Some((rank, Edge::Last))],
        Place::Slot(slot, edge) => vec![received[slot as usize * 2 + edge as usize]],
        Place::SlotBoth(slot) => received[slot as usize * 2..][..2].to_vec(),
    }
}

fn put(received: &mut [Content], place: Place, edges: &[Content]) {
    let start = match place {
        Place::Slot(slot, edge) => slot as usize * 2 + edge as usize,
        Place::SlotBoth(slot) => slot as usize * 2,
        Place::Packed(_) | Place::PackedBoth => unreachable!("legs receive into slots"),
    };
    for (at, edge) in edges.iter().enumerate().take(place.edges() as usize) {
        received[start + at] = *edge;
    }
}

impl<R: Rules> Model for Legs<R> {
    type State = State;
    type Action = Transfer;

    fn init_states(&self) -> Vec<State> {
        let world = self.groups.len();
        let rank = Rank { group: 0, complete: 0, received: vec![None; 2 * world] };
        vec![State { ranks: vec![rank; world] }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Transfer>) {
        for from in 0..self.groups.len() {
            for (send, leg) in self.open(state, from).filter(|(_, leg)| leg.direction == Direction::Send) {
                let (from, to) = (from as u32, leg.peer);
                let first = self.first_open(state, from, Direction::Send, to) == Some(send);
                let receive = self.first_open(state, to, Direction::Receive, from);
                if let (true, Some(receive)) = (first, receive) {
                    actions.push(Transfer { from, send, to, receive });
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Transfer) -> Option<State> {
        let Transfer { from, send, to, receive } = action;
        let mut state = last.clone();
        let source = self.group(last, from as usize)[send].place;
        let target = self.group(last, to as usize)[receive].place;
        let edges = contents(from, &last.ranks[from as usize].received, source);
        put(&mut state.ranks[to as usize].received, target, &edges);
        self.finish_leg(&mut state, from, send);
        self.finish_leg(&mut state, to, receive);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(self)
    }
}

impl<R: Rules> World for Legs<R> {
    fn world(&self) -> u32 {
        self.groups.len() as u32
    }

    fn claims(&self) -> Vec<Claim<Self>> {
        let when = When::AtRest;
        let done: fn(&Self, &State) -> bool = |model, state| model.done(state);
        let some_legs: fn(&Self, &State) -> bool = |model, state| model.done(state) && state.ranks.len() > 1;
        let all: [Claim<Self>; 4] = [
            Claim { requirement: hal(3), name: COMPLETE, when, holds: done, reached: some_legs },
            Claim { requirement: hal(3), name: FORCED, when, holds: done, reached: some_legs },
            Claim { requirement: hal(4), name: FILLED, when, holds: filled, reached: some_legs },
            Claim { requirement: hal(5), name: ZEROS, when, holds: zeros, reached: done },
        ];
        all.into_iter().filter(|claim| self.claims.contains(&claim.name)).collect()
    }

    fn lanes(&self) -> Vec<String> {
        (0..self.groups.len()).map(|rank| format!("rank {rank}")).collect()
    }

    fn draw(&self, before: &State, action: &Transfer) -> Step {
        let leg = self.group(before, action.from as usize)[action.send];
        Step { lane: action.from as usize, text: leg.to_string(), peer: Some(action.to as usize) }
    }

    fn begun(&self, state: &State) -> Vec<Step> {
        let begun = |lane: usize| {
            let (group, groups) = (state.ranks[lane].group + 1, self.groups[lane].len());
            self.open(state, lane).map(move |(_, leg)| {
                let text = format!("posts {leg} (group {group} of {groups})");
                Step { lane, text, peer: None }
            })
        };
        (0..self.groups.len()).flat_map(begun).collect()
    }

    fn waits(&self, state: &State) -> Vec<Wait> {
        let waits = |lane: usize| {
            self.open(state, lane).map(move |(_, leg)| {
                let on = leg.peer as usize;
                let missing = match leg.direction {
                    Direction::Send => "receive",
                    Direction::Receive => "send",
                };
                let (group, groups) = (state.ranks[on].group + 1, self.groups[on].len());
                let why = if group > groups {
                    format!("rank {on} to {missing}, which has no leg left")
                } else {
                    format!("rank {on} to {missing}, which is still at group {group} of {groups}")
                };
                Wait { lane, on, why }
            })
        };
        (0..self.groups.len()).flat_map(waits).collect()
    }

    fn sentence(&self, claim: &Claim<Self>, state: &State) -> String {
        if claim.requirement == hal(3) {
            return stuck_sentence(self.groups.len(), &self.waits(state));
        }
        let mut told = format!("This must hold: {}.", claim.name);
        for rank in 0..self.groups.len() as u32 {
            for side in Side::BOTH {
                let fill = pad_fill::<R>(side, rank, self.groups.len() as u32);
                if let Some(wrong) = wrong_pad(self.groups.len() as u32, state, rank, side, fill) {
                    let _ = write!(told, " {wrong}");
                }
            }
        }
        told
    }

    fn setting(&self, _: &State) -> String {
        self.setting.clone()
    }
}

/// Who waits in a circle, in a sentence.
fn stuck_sentence(lanes: usize, waits: &[Wait]) -> String {
    let cycle = crate::lanes::cycle(lanes, waits);
    if cycle.len() < 2 {
        return "A leg waits for a peer that has none for it, and no rank can go on.".to_owned();
    }
    let ranks: Vec<String> = cycle.iter().map(usize::to_string).collect();
    let ranks = match ranks.as_slice() {
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
        [] => String::new(),
    };
    format!(
        "Deadlock: ranks {ranks} wait for each other in a circle, each for a leg that its peer posts only after the \
         one it waits in."
    )
}

/// What is wrong with one pad row once all legs are done.
fn wrong_pad(world: u32, state: &State, rank: u32, side: Side, fill: PadFill) -> Option<String> {
    let due = side.neighbour(rank, world).map(|peer| (peer, side.facing_edge()));
    let got = match fill {
        PadFill::Zeros => {
            return due.map(|due| format!("Rank {rank} fills a pad row with zeros, not {due:?}."));
        }
        PadFill::From(place) => contents(rank, &state.ranks[rank as usize].received, place)[0],
    };
    (got != due).then(|| {
        let got =
            got.map_or("a slot that no leg filled".to_owned(), |(of, edge)| format!("{edge:?} of {of}"));
        let due = due.map_or("zeros".to_owned(), |(of, edge)| format!("{edge:?} of {of}"));
        format!("Rank {rank} reads {got} for the pad row on side {side:?}, where {due} belongs.")
    })
}

fn pads_are_right<R: Rules>(model: &Legs<R>, state: &State, has_neighbour: bool) -> bool {
    let world = model.groups.len() as u32;
    !model.done(state)
        || (0..world).all(|rank| {
            Side::BOTH
                .into_iter()
                .filter(|side| side.neighbour(rank, world).is_some() == has_neighbour)
                .all(|side| wrong_pad(world, state, rank, side, pad_fill::<R>(side, rank, world)).is_none())
        })
}

fn filled<R: Rules>(model: &Legs<R>, state: &State) -> bool {
    pads_are_right(model, state, true)
}

fn zeros<R: Rules>(model: &Legs<R>, state: &State) -> bool {
    pads_are_right(model, state, false)
}

/// The groups of every rank.
fn schedules<R: Rules>(arm: Arm, coalesce: bool, world: u32) -> Vec<Vec<Group>> {
    (0..world).map(|rank| schedule::<R>(arm, coalesce, world, rank)).collect()
}

/// Every way to split a rank's groups into consecutive plans.
fn splits(groups: &[Group]) -> Vec<Vec<Group>> {
    groups.iter().fold(vec![Vec::new()], |before: Vec<Vec<Group>>, group| {
        let cuts = group.len().saturating_sub(1);
        let ways = (0..1u32 << cuts).map(|mask| {
            let mut plans: Vec<Group> = vec![Vec::new()];
            for (position, leg) in group.iter().enumerate() {
                plans.last_mut().expect("never empty").push(*leg);
                if position < cuts && mask >> position & 1 == 1 {
                    plans.push(Vec::new());
                }
            }
            plans
        });
        let ways: Vec<Vec<Group>> = ways.collect();
        before
            .iter()
            .flat_map(|head| ways.iter().map(move |tail| [head.clone(), tail.clone()].concat()))
            .collect()
    })
}

/// One choice out of each list, in every way.
fn product<T: Clone>(lists: &[Vec<T>]) -> Vec<Vec<T>> {
    lists.iter().fold(vec![Vec::new()], |before, list| {
        before
            .iter()
            .flat_map(|head| list.iter().map(move |one| [head.clone(), vec![one.clone()]].concat()))
            .collect()
    })
}

const LEGS: &str = "halo/legs";
const FORCED_LEGS: &str = "halo/legs-forced";
const SPLITS: &str = "halo/plan-splits";
const WAIT_FOR: &str = "halo/wait-for";
const PADS: &str = "halo/pads";

fn by_meaning<R: Rules>(
    setup: &Setup,
    world: u32,
    arm: Arm,
    claims: &'static [&'static str],
) -> impl Iterator<Item = Legs<R>> {
    let groups = schedules::<R>(arm, setup.policy.halo().coalesce, world);
    Meaning::ALL.into_iter().map(move |meaning| {
        let groups = groups.iter().map(|rank| meaning.apply(rank.clone())).collect();
        Legs::new(groups, format!("{arm} arm, {}", meaning.name()), claims)
    })
}

fn legs<R: Rules>(setup: &Setup) -> Report {
    let models = setup
        .worlds_of((1, 8))
        .flat_map(|world| by_meaning::<R>(setup, world, setup.policy.halo().arm(world), &[COMPLETE]));
    explore(LEGS, setup, models)
}

fn forced<R: Rules>(setup: &Setup) -> Report {
    let models = setup.worlds_of((1, 8)).flat_map(|world| {
        let others = Arm::ALL.into_iter().filter(move |&arm| arm != setup.policy.halo().arm(world));
        others.flat_map(move |arm| by_meaning::<R>(setup, world, arm, &[FORCED]))
    });
    explore(FORCED_LEGS, setup, models)
}

fn plan_splits<R: Rules>(setup: &Setup) -> Report {
    let models = setup.worlds_of((2, 4)).flat_map(|world| {
        let all = schedules::<R>(Arm::Neighbour, setup.policy.halo().coalesce, world);
        let by_rank: Vec<Vec<Vec<Group>>> = all.iter().map(|groups| splits(groups)).collect();
        product(&by_rank).into_iter().map(|groups| {
            let plans: Vec<String> = groups
                .iter()
                .map(|plans| plans.iter().map(|plan| plan.len().to_string()).collect::<Vec<_>>().join("+"))
                .collect();
            let setting = format!("neighbour arm, legs split by rank into {}", plans.join(", "));
            Legs::<R>::new(groups, setting, &[COMPLETE])
        })
    });
    explore(SPLITS, setup, models)
}

fn pads<R: Rules>(setup: &Setup) -> Report {
    let models = setup.worlds_of((1, 8)).flat_map(|world| {
        Arm::ALL.into_iter().map(move |arm| {
            let groups = schedules::<R>(arm, true, world);
            Legs::<R>::new(groups, format!("{arm} arm"), &[FILLED, ZEROS])
        })
    });
    explore(PADS, setup, models)
}

/// Worlds of the wait-for pass. The ring has world x (world-1) legs a rank and is gone through to 512.
pub fn passed_worlds(arm: Arm) -> Vec<u32> {
    let largest = if arm == Arm::Ring { 512 } else { 65_536 };
    (2..=64).chain([100, 255, 512, 1_000, 4_096, 65_536]).filter(|&world| world <= largest).collect()
}

fn wait_for<R: Rules>(setup: &Setup) -> Report {
    let promise = Promise { requirement: hal(3), name: ANY_WORLD };
    let asked = setup.worlds_of((2, 65_536));
    let cases = |cases: &mut Cases| {
        for arm in Arm::ALL {
            for world in passed_worlds(arm).into_iter().filter(|world| asked.contains(world)) {
                let policy = setup.policy.halo().arm(world) == arm;
                let groups = schedules::<R>(arm, setup.policy.halo().coalesce, world);
                for meaning in Meaning::ALL {
                    let groups: Vec<Vec<Group>> =
                        groups.iter().map(|rank| meaning.apply(rank.clone())).collect();
                    let failure = waits::run(&groups).err().map(|stuck| {
                        let blocked = stuck.blocked.iter().flatten().count();
                        let by = if policy { "by policy" } else { "forced" };
                        let setting = format!("{arm} arm {by}, {}", meaning.name());
                        (setting, format!("{blocked} of {world} ranks never finish."))
                    });
                    cases.case(world, true, failure);
                }
            }
        }
    };
    sweep(WAIT_FOR, setup, &[SweepClaim { promise, cases: &cases }])
}

mutant!(
    /// Each leg is a group of its own, whatever the policy says.
    Uncoalesced { fn coalesced(_: bool) -> bool { false } }
);
mutant!(
    /// Every rank of the ring sends first.
    RingSendsFirst { fn ring_sends_first(_: u32) -> bool { true } }
);
mutant!(
    /// Unpack reads the slot of its own rank, which no arm fills.
    ReadUnfilled {
        fn pad_source(side: Side, rank: u32, world: u32) -> Option<(u32, Edge)> {
            side.neighbour(rank, world).map(|_| (rank, side.facing_edge()))
        }
    }
);
mutant!(
    /// Bands are taken for a circle: the first has the last above it.
    EndsMeet {
        fn pad_source(side: Side, rank: u32, world: u32) -> Option<(u32, Edge)> {
            let peer = match side {
                Side::Above => (rank + world - 1) % world,
                Side::Below => (rank + 1) % world,
            };
            Some((peer, side.facing_edge()))
        }
    }
);

/// Studies and mutants of this file.
pub(super) fn part() -> (Vec<Study>, Vec<Mutant>) {
    let study = |name, engine, worlds, run, reads, claims: &[(u32, &'static str)]| Study {
        name,
        engine,
        regime: Some(Regime::T0),
        worlds,
        faults: "none",
        axioms: &["legs of an ordered pair match in the order they are posted"],
        reductions: &[],
        reads,
        claims: claims.iter().map(|&(number, name)| Promise { requirement: hal(number), name }).collect(),
        run,
    };
    let schedule: &[&str] = &["halo.rungs", "halo.coalesce"];
    let order: &[&str] = &["halo.coalesce", "halo.rungs"];
    let explored = Engine::Explore;
    let studies = vec![
        study(LEGS, explored, (1, 8), legs::<Shipped>, order, &[(3, COMPLETE)]),
        study(FORCED_LEGS, explored, (1, 8), forced::<Shipped>, order, &[(3, FORCED)]),
        study(SPLITS, explored, (2, 4), plan_splits::<Shipped>, &["halo.coalesce"], &[(3, COMPLETE)]),
        study(WAIT_FOR, Engine::WaitFor, (2, 65_536), wait_for::<Shipped>, schedule, &[(3, ANY_WORLD)]),
        study(PADS, explored, (1, 8), pads::<Shipped>, &[], &[(4, FILLED), (5, ZEROS)]),
    ];
    let mutant =
        |name, number, study, claim, run| Mutant { name, requirement: hal(number), study, claim, run };
    let mutants = vec![
        mutant("uncoalesced", 3, LEGS, COMPLETE, legs::<Uncoalesced>),
        mutant("ring-sends-first", 3, LEGS, COMPLETE, legs::<RingSendsFirst>),
        mutant("read-unfilled-slot", 4, PADS, FILLED, pads::<ReadUnfilled>),
        mutant("ends-meet", 5, PADS, ZEROS, pads::<EndsMeet>),
    ];
    (studies, mutants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_legs_split_in_four_ways() {
        let group = schedules::<Shipped>(Arm::Neighbour, true, 3).swap_remove(1);
        assert_eq!(splits(&group).len(), 8);
        assert_eq!(splits(&group)[0], group);
    }
}
