//! Two engines, one answer: stateright's own checker visits as many states as ours, and the wait-for pass says
//! what the explorer says. A reduction leaves verdicts and results as they are. And the explorer does what its
//! users rely on, on a model small enough to see through.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rankwise_check::explore::{Budget, Claim, Search, Step, Stopped, When, World, search};
use rankwise_check::models::halo::{Calls, Legs};
use rankwise_check::models::{channel, group};
use rankwise_check::registry::{Requirement, Setup, Verdict, explore};
use rankwise_check::waits::{self, Meaning};
use rankwise_protocol::halo::Failure;
use rankwise_protocol::legs::{Arm, Direction, Edge, Group, Leg, Place, schedule};
use rankwise_protocol::policy::Policy;
use rankwise_protocol::rules::{Rules, Shipped};
use stateright::{Checker, Model};
use std::cell::Cell;
use std::collections::HashSet;
use std::time::Duration;

/// Searches with the model's own claims and the default budget.
fn searched<M: World>(model: &M) -> Search<M> {
    search(model, &model.claims(), &Budget::default(), &|_| false)
}

/// States that ours and stateright's breadth-first search visit. No claim is judged, so none ends it early.
fn counts<M: World + Clone>(model: &M) -> (usize, usize) {
    let ours = search(model, &[], &Budget::default(), &|_| false);
    assert_eq!(ours.stopped, None);
    let theirs = model.clone().checker().spawn_bfs().join();
    (ours.states as usize, theirs.unique_state_count())
}

#[test]
fn stateright_visits_as_many_states_of_the_control_group() {
    for model in group::small_models() {
        let (ours, theirs) = counts(&model);
        assert!(ours == theirs && ours > 50, "{ours} against {theirs}: {model:?}");
    }
}

#[test]
fn stateright_visits_as_many_states_of_channels() {
    for model in channel::streams::<Shipped>(&[]) {
        let (ours, theirs) = counts(&model);
        assert!(ours == theirs && ours > 10, "{ours} against {theirs}: {model:?}");
    }
}

#[test]
fn stateright_visits_as_many_states_of_legs() {
    for (groups, told) in every_schedule(4) {
        let (ours, theirs) = counts(&Legs::<Shipped>::of(groups));
        assert_eq!(ours, theirs, "{told}");
    }
}

#[test]
fn stateright_visits_as_many_states_of_halo_calls() {
    let policy = Policy::shipped();
    for arm in Arm::ALL {
        let models = [
            Calls::<Shipped>::failing(&policy, 2, arm, false),
            Calls::failing(&policy, 2, arm, true),
            Calls::used(&policy, 2, arm, vec![0]),
        ];
        for model in models {
            let (ours, theirs) = counts(&model);
            assert!(ours == theirs && ours > 100, "{ours} against {theirs}: {model:?}");
        }
    }
}

/// The groups of all ranks, for every arm, coalesced or not, under both meanings, at worlds from 2.
fn every_schedule(world_max: u32) -> Vec<(Vec<Vec<Group>>, String)> {
    let mut schedules = Vec::new();
    for world in 2..=world_max {
        for arm in Arm::ALL {
            for coalesce in [true, false] {
                for meaning in Meaning::ALL {
                    let groups = |rank| meaning.apply(schedule::<Shipped>(arm, coalesce, world, rank));
                    let told = format!("{arm}, world {world}, coalesce = {coalesce}, {}", meaning.name());
                    schedules.push(((0..world).map(groups).collect(), told));
                }
            }
        }
    }
    schedules
}

/// Legs that never complete, each as its rank and its peer, sorted; `None` if all complete.
type Blocked = Option<Vec<(usize, usize)>>;

fn blocked_by_pass(groups: &[Vec<Group>]) -> Blocked {
    let stuck = waits::run(groups).err()?;
    let mut blocked: Vec<_> = (0..)
        .zip(stuck.blocked)
        .flat_map(|(rank, open)| {
            open.into_iter()
                .flat_map(move |(_, legs)| legs.into_iter().map(move |leg| (rank, leg.peer as usize)))
        })
        .collect();
    blocked.sort_unstable();
    Some(blocked)
}

fn blocked_by_search(groups: Vec<Vec<Group>>) -> Blocked {
    let model = Legs::<Shipped>::of(groups);
    let path = searched(&model).found.swap_remove(0).violation?;
    let mut blocked: Vec<_> = model.waits(&path.last).iter().map(|wait| (wait.lane, wait.on)).collect();
    blocked.sort_unstable();
    Some(blocked)
}

#[test]
fn the_wait_for_pass_says_of_every_arm_what_the_explorer_says() {
    let mut stuck = 0;
    for (groups, told) in every_schedule(6) {
        let passed = blocked_by_pass(&groups);
        stuck += usize::from(passed.is_some());
        assert_eq!(passed, blocked_by_search(groups), "{told}");
    }
    assert!(stuck > 0);
}

/// Messages between ranks, each rank's legs shuffled and cut into groups; now and then a leg is missing.
fn any_schedule() -> impl Strategy<Value = Vec<Vec<Group>>> {
    let message = |world: u32| (0..world, 1..world, prop::bool::weighted(0.05), any::<(u32, u32)>());
    let legs =
        (2u32..=4).prop_flat_map(move |world| (Just(world), prop::collection::vec(message(world), 1..8)));
    (legs, any::<u64>()).prop_map(|((world, messages), cuts)| {
        let mut legs: Vec<Vec<Leg>> = vec![Vec::new(); world as usize];
        for (from, further, lost, (place, other)) in messages {
            let to = (from + further) % world;
            let send = Leg { direction: Direction::Send, peer: to, place: Place::Packed(Edge::First) };
            let receive =
                Leg { direction: Direction::Receive, peer: from, place: Place::Slot(from, Edge::First) };
            let mut insert = |rank: u32, leg, place: u32| {
                let legs = &mut legs[rank as usize];
                legs.insert(place as usize % (legs.len() + 1), leg);
            };
            insert(from, send, place);
            if !lost {
                insert(to, receive, other);
            }
        }
        let mut cuts = cuts;
        let mut cut = || {
            cuts = cuts.rotate_left(1);
            cuts & 1 == 1
        };
        let groups = |legs: Vec<Leg>| {
            legs.into_iter().fold(Vec::new(), |mut groups: Vec<Group>, leg| {
                match groups.last_mut() {
                    Some(group) if !cut() => group.push(leg),
                    _ => groups.push(vec![leg]),
                }
                groups
            })
        };
        legs.into_iter().map(groups).collect()
    })
}

#[test]
fn the_wait_for_pass_says_of_any_schedule_what_the_explorer_says() {
    let (finished, stuck) = (Cell::new(0), Cell::new(0));
    let outcome = TestRunner::default().run(&any_schedule(), |groups| {
        let passed = blocked_by_pass(&groups);
        let count = if passed.is_some() { &stuck } else { &finished };
        count.set(count.get() + 1);
        prop_assert_eq!(passed, blocked_by_search(groups));
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
    assert!(finished.get() > 20 && stuck.get() > 20, "{finished:?} {stuck:?}");
}

/// The rules of the mutant group-left-open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct GroupLeftOpen;

impl Rules for GroupLeftOpen {
    fn group_closed_after_error() -> bool {
        false
    }
}

/// The rules of the mutant failure-untold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct FailureUntold;

impl Rules for FailureUntold {
    fn failure_poisons_group() -> bool {
        false
    }
}

/// Names of the claims that fail.
fn refuted<R: Rules>(model: &Calls<R>) -> Vec<&'static str> {
    let found = searched(model).found.into_iter().filter(|found| found.violation.is_some());
    found.map(|found| found.claim.name).collect()
}

/// By rank, what a call gave.
type Results = Vec<Option<Result<(), Failure>>>;

/// What calls give in the states at rest, and how many states there are.
fn results_at_rest<R: Rules>(model: &Calls<R>) -> (HashSet<Results>, usize) {
    let mut seen: HashSet<_> = model.init_states().into_iter().collect();
    let mut left: Vec<_> = seen.iter().cloned().collect();
    let mut results = HashSet::new();
    while let Some(state) = left.pop() {
        let mut at_rest = true;
        for (action, next) in model.next_steps(&state) {
            at_rest &= next == state || model.is_fault(&action);
            if seen.insert(next.clone()) {
                left.push(next);
            }
        }
        if at_rest {
            results.insert(state.results());
        }
    }
    (results, seen.len())
}

/// The failure studies of world 2 in full and reduced, as callers only wait and with any use of the handle.
fn pairs<R: Rules>(arm: Arm) -> [[Calls<R>; 2]; 2] {
    [true, false].map(|only_waits| {
        let model = Calls::failing(&Policy::shipped(), 2, arm, only_waits);
        [false, true].map(|reduced| model.clone().reduced(reduced))
    })
}

fn assert_refuted_alike<R: Rules>(arm: Arm) {
    for [full, reduced] in pairs::<R>(arm) {
        assert!(!refuted(&full).is_empty());
        assert_eq!(refuted(&full), refuted(&reduced));
    }
}

#[test]
fn a_reduced_failure_study_gives_the_results_and_verdicts_of_the_full_one() {
    for arm in Arm::ALL {
        for [full, reduced] in pairs::<Shipped>(arm) {
            let [(due, full_states), (got, reduced_states)] = [&full, &reduced].map(results_at_rest);
            assert_eq!(due, got, "{arm}");
            assert!(due.len() > 2 && reduced_states < full_states, "{arm}");
            assert!(refuted(&full).is_empty() && refuted(&reduced).is_empty());
        }
        assert_refuted_alike::<GroupLeftOpen>(arm);
        assert_refuted_alike::<FailureUntold>(arm);
    }
}

/// A walk from 0 up to `top` by one or three; at `slips` the adversary may end it there.
#[derive(Clone)]
struct Walk {
    top: u8,
    slips: Option<u8>,
    claims: Vec<Claim<Walk>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Move {
    Rest,
    One,
    Three,
    Slip,
}

/// Where, and whether the adversary has ended it.
type At = (u8, bool);

impl Model for Walk {
    type State = At;
    type Action = Move;

    fn init_states(&self) -> Vec<At> {
        vec![(0, false)]
    }

    fn actions(&self, &(at, slipped): &At, moves: &mut Vec<Move>) {
        moves.push(Move::Rest);
        let reach = |by| at + by <= self.top && !slipped;
        moves.extend(reach(1).then_some(Move::One));
        moves.extend(reach(3).then_some(Move::Three));
        moves.extend((self.slips == Some(at) && !slipped).then_some(Move::Slip));
    }

    fn next_state(&self, &(at, slipped): &At, taken: Move) -> Option<At> {
        Some(match taken {
            Move::Rest => (at, slipped),
            Move::One => (at + 1, slipped),
            Move::Three => (at + 3, slipped),
            Move::Slip => (at, true),
        })
    }
}

impl World for Walk {
    fn world(&self) -> u32 {
        1
    }

    fn claims(&self) -> Vec<Claim<Self>> {
        self.claims.clone()
    }

    fn is_fault(&self, taken: &Move) -> bool {
        *taken == Move::Slip
    }

    fn lanes(&self) -> Vec<String> {
        vec!["walker".to_owned()]
    }

    fn draw(&self, _: &At, taken: &Move) -> Step {
        Step { lane: 0, text: format!("{taken:?}"), peer: None }
    }
}

type Judge = fn(&Walk, &At) -> bool;

fn walk(slips: Option<u8>, when: When, holds: Judge, reached: Judge) -> Walk {
    let requirement = Requirement::new("GRP", 1);
    Walk { top: 10, slips, claims: vec![Claim { requirement, name: "claim", when, holds, reached }] }
}

fn verdict(walk: Walk, budget: Budget) -> Verdict {
    let setup = Setup { budget, ..Setup::new(Policy::shipped()) };
    explore("walk", &setup, [walk]).verdicts.swap_remove(0).1
}

/// Moves of the counterexample, which must lead from the first state to the last.
fn violation(walk: &Walk) -> Option<Vec<Move>> {
    let path = searched(walk).found.swap_remove(0).violation?;
    let mut at = (0, false);
    for (before, taken) in &path.steps {
        assert_eq!(at, *before);
        at = walk.next_state(&at, taken.clone()).expect("a move that there is");
    }
    assert_eq!(at, path.last);
    Some(path.steps.into_iter().map(|(_, taken)| taken).collect())
}

#[test]
fn a_counterexample_is_of_the_least_length() {
    let never_at_8 = walk(None, When::Always, |_, at| at.0 != 8, |_, _| true);
    assert_eq!(violation(&never_at_8).map(|moves| moves.len()), Some(4));
    let at_once = walk(None, When::Always, |_, at| at.0 != 0, |_, _| true);
    assert_eq!(violation(&at_once), Some(vec![]));
}

#[test]
fn a_claim_at_rest_is_judged_where_only_the_adversary_can_move_and_nowhere_else() {
    let never_at_top = walk(Some(10), When::AtRest, |_, at| *at != (10, false), |_, _| true);
    assert_eq!(violation(&never_at_top).map(|moves| moves.len()), Some(4));
    let slip = walk(Some(4), When::AtRest, |_, at| at.0 == 10, |_, _| true);
    let moves = violation(&slip).expect("the adversary ends the walk at 4");
    assert_eq!((moves.len(), moves.last()), (3, Some(&Move::Slip)));
    let none = walk(None, When::AtRest, |_, at| at.0 == 10, |_, _| true);
    assert_eq!(violation(&none), None);
}

#[test]
fn a_claim_whose_state_of_interest_is_not_met_is_inconclusive() {
    let holds = |reached| verdict(walk(None, When::Always, |_, _| true, reached), Budget::default());
    assert!(matches!(holds(|_, at| at.0 == 10), Verdict::Proved));
    assert!(
        matches!(holds(|_, at| at.0 == 11), Verdict::Inconclusive(why) if why.contains("no state was met"))
    );
    // What is met in a state that is not judged has not been met.
    let at_rest = walk(None, When::AtRest, |_, _| true, |_, at| at.0 == 9);
    assert!(matches!(verdict(at_rest, Budget::default()), Verdict::Inconclusive(_)));
}

#[test]
fn every_budget_stops_a_search_and_what_it_has_not_refuted_is_inconclusive() {
    let fine = || walk(None, When::Always, |_, _| true, |_, _| true);
    let full = Budget::default();
    let budgets = [
        (Budget { states: 3, ..full }, Stopped::States, "the budget of states ran out"),
        (Budget { time: Duration::ZERO, ..full }, Stopped::Time, "the budget of time ran out"),
        (Budget { bytes: 1, ..full }, Stopped::Bytes, "the budget of memory ran out"),
    ];
    for (budget, stopped, told) in budgets {
        let found = search(&fine(), &fine().claims, &budget, &|_| false);
        assert_eq!(found.stopped, Some(stopped));
        assert!(found.states < 11);
        assert!(matches!(verdict(fine(), budget), Verdict::Inconclusive(why) if why == told));
    }
    let found = search(&fine(), &fine().claims, &full, &|_| true);
    assert_eq!(found.stopped, Some(Stopped::Interrupted));

    let early = walk(None, When::Always, |_, at| at.0 < 3, |_, _| true);
    assert!(matches!(verdict(early, Budget { states: 3, ..full }), Verdict::Refuted(_)));
}
