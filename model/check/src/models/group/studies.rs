//! The studies of the control group and their mutants.

use super::*;

/// Runs `attack` at the asked worlds of a study; a world's number of exchanges comes with it.
fn run<R: Rules>(
    study: &'static str,
    setup: &Setup,
    worlds: &[(u32, u64)],
    attack: Attack,
    claims: &'static [&'static str],
) -> Report {
    let bounds = (worlds[0].0, worlds[worlds.len() - 1].0);
    let asked = setup.worlds_of(bounds);
    let models = worlds
        .iter()
        .filter(|(world, _)| asked.contains(world))
        .map(|&(world, exchanges)| Exchanges::<R> { world, exchanges, attack, claims, rules: PhantomData });
    explore(study, setup, models)
}

/// Two exchanges of two ranks under each kind of attack, the board without any axiom among them: what engines are
/// compared on.
pub fn small_models() -> Vec<Exchanges<Shipped>> {
    let any_time = Attack { regime: Regime::T2, ..Attack::NONE };
    let attacks = [
        Attack::NONE,
        Attack { regime: Regime::T1, deaths: true, stalls: true, abort: true, ..Attack::NONE },
        Attack { deaths: true, abort: true, ..any_time },
        Attack { divergence: true, ..any_time },
        Attack { stranger: true, ..any_time },
        Attack { axioms: &[], ..any_time },
    ];
    let model = |attack| Exchanges { world: 2, exchanges: 2, attack, claims: &[], rules: PhantomData };
    attacks.map(model).into()
}

const FAULT_FREE: &str = "group/fault-free";
const BOUNDED: &str = "group/bounded";
const ANY_TIME: &str = "group/any-time";
const RECORDS: &str = "group/records";
const DIVERGENCE: &str = "group/divergence";
const STRANGERS: &str = "group/stranger";
const PROMISES: &str = "group/promises";

fn fault_free<R: Rules>(setup: &Setup) -> Report {
    run::<R>(FAULT_FREE, setup, &[(1, 3), (2, 4), (3, 3), (4, 2)], Attack::NONE, &[CLEAN])
}

fn bounded<R: Rules>(setup: &Setup) -> Report {
    let attack = Attack { regime: Regime::T1, deaths: true, stalls: true, abort: true, ..Attack::NONE };
    run::<R>(BOUNDED, setup, &[(2, 3), (3, 2)], attack, &[ENDS])
}

fn any_time<R: Rules>(setup: &Setup) -> Report {
    let attack = Attack { regime: Regime::T2, deaths: true, abort: true, ..Attack::NONE };
    run::<R>(ANY_TIME, setup, &[(2, 3), (3, 2)], attack, &[UNSPLIT, FIRST_CAUSE])
}

fn records<R: Rules>(setup: &Setup) -> Report {
    let attack = Attack { regime: Regime::T2, deaths: true, ..Attack::NONE };
    run::<R>(RECORDS, setup, &[(2, 4), (3, 3)], attack, &[OWN_RECORDS])
}

fn divergence<R: Rules>(setup: &Setup) -> Report {
    let attack = Attack { regime: Regime::T2, divergence: true, ..Attack::NONE };
    run::<R>(DIVERGENCE, setup, &[(2, 2), (3, 1)], attack, &[NAMED])
}

fn stranger<R: Rules>(setup: &Setup) -> Report {
    let attack = Attack { regime: Regime::T1, stranger: true, ..Attack::NONE };
    run::<R>(STRANGERS, setup, &[(2, 2), (3, 1)], attack, &[STRANGER])
}

/// Each backend with what it promises and no more, first without deadlines, then with deadlines at any time.
fn promises<R: Rules>(setup: &Setup) -> Report {
    let attacks = Backend::ALL.into_iter().flat_map(|backend| {
        [Regime::T0, Regime::T2].map(|regime| Attack { regime, axioms: R::promises(backend), ..Attack::NONE })
    });
    let asked = setup.worlds_of((2, 3));
    let models = [(2, 2), (3, 1)].into_iter().filter(|(world, _)| asked.contains(world)).flat_map(
        |(world, exchanges)| {
            attacks.clone().map(move |attack| Exchanges::<R> {
                world,
                exchanges,
                attack,
                claims: &[PROMISED],
                rules: PhantomData,
            })
        },
    );
    explore(PROMISES, setup, models)
}

mutant!(
    /// A rank that has seen every record announced calls the exchange complete by itself.
    DecideByCount { fn completion_is_decided_by_swap() -> bool { false } }
);
mutant!(
    /// A rank that loses the swap to poison, but has seen every record, calls the exchange complete.
    LateArrivalCompletes {
        fn settles(decision: Decision, index: u64, all_posted: bool) -> Option<Result<(), Cause>> {
            if all_posted { Some(Ok(())) } else { Shipped::settles(decision, index, all_posted) }
        }
    }
);
mutant!(
    /// One record slot a rank.
    BoardOneSlot { fn board_slots() -> u64 { 1 } }
);
mutant!(
    /// Tags are not compared.
    TagUnchecked { fn same_tag(_: Tag, _: Tag) -> bool { true } }
);
mutant!(
    /// A record's nonce is not compared.
    NonceUnchecked {
        fn record_belongs(record: &Record, _: u64, rank: u32, index: u64) -> bool {
            record.rank == rank && record.index == index
        }
    }
);
mutant!(
    /// A deadline that passes is ignored.
    DeadlineIgnored { fn deadline_ends_the_wait() -> bool { false } }
);
mutant!(
    /// A later cause takes the place of the first.
    LaterCauseWins {
        fn poisoned(decision: Decision, cause: Cause) -> Option<Decision> {
            (decision.cause != Some(cause)).then_some(Decision { cause: Some(cause), ..decision })
        }
    }
);
mutant!(
    /// Swaps are used, but a backend need not have them.
    SwapUnpromised {
        fn promises(_: Backend) -> &'static [Axiom] { &[Axiom::AnnounceAfterWrite, Axiom::GoneIsTrue] }
    }
);
mutant!(
    /// Announcements are relied on, but a backend need not order them after the record.
    AnnounceUnpromised {
        fn promises(_: Backend) -> &'static [Axiom] { &[Axiom::SwapIsAtomic, Axiom::GoneIsTrue] }
    }
);
mutant!(
    /// News of a rank that is gone is relied on, but a backend need not tell the truth.
    GoneUnpromised {
        fn promises(_: Backend) -> &'static [Axiom] { &[Axiom::SwapIsAtomic, Axiom::AnnounceAfterWrite] }
    }
);

/// Studies and mutants of the control group.
pub fn module() -> Module {
    let axioms: &[&str] = const {
        &[
            Axiom::SwapIsAtomic.statement(),
            Axiom::AnnounceAfterWrite.statement(),
            Axiom::GoneIsTrue.statement(),
        ]
    };
    let study = |name, regime, worlds, faults, run, claims: &[(Requirement, &'static str)]| Study {
        name,
        engine: Engine::Explore,
        regime: Some(regime),
        worlds,
        faults,
        axioms,
        reductions: &[],
        reads: &[],
        claims: claims.iter().map(|&(requirement, name)| Promise { requirement, name }).collect(),
        run,
    };
    let stops = "any subset dies or stalls, one thread aborts, at any step";
    let any = "any subset dies, one thread aborts, at any step";
    let mut studies = vec![
        study(FAULT_FREE, Regime::T0, (1, 4), "none", fault_free::<Shipped>, &[(GRP_3, CLEAN)]),
        study(BOUNDED, Regime::T1, (2, 3), stops, bounded::<Shipped>, &[(GRP_3, ENDS)]),
        study(
            ANY_TIME,
            Regime::T2,
            (2, 3),
            any,
            any_time::<Shipped>,
            &[(GRP_2, UNSPLIT), (GRP_3, FIRST_CAUSE)],
        ),
        study(
            RECORDS,
            Regime::T2,
            (2, 3),
            "any subset dies at any step",
            records::<Shipped>,
            &[(GRP_4, OWN_RECORDS)],
        ),
        study(
            DIVERGENCE,
            Regime::T2,
            (2, 3),
            "any rank comes with another tag",
            divergence::<Shipped>,
            &[(GRP_1, NAMED)],
        ),
        study(
            STRANGERS,
            Regime::T1,
            (2, 3),
            "one rank is of another incarnation",
            stranger::<Shipped>,
            &[(GRP_4, STRANGER)],
        ),
        study(
            PROMISES,
            Regime::T2,
            (2, 3),
            "whatever a backend does not promise",
            promises::<Shipped>,
            &[(GRP_5, PROMISED)],
        ),
    ];
    let mutant = |name, requirement, study, claim, run| Mutant { name, requirement, study, claim, run };
    let mut mutants = vec![
        mutant("tag-unchecked", GRP_1, DIVERGENCE, NAMED, divergence::<TagUnchecked>),
        mutant("decide-by-count-not-cas", GRP_2, ANY_TIME, UNSPLIT, any_time::<DecideByCount>),
        mutant("late-arrival-completes-poisoned", GRP_2, ANY_TIME, UNSPLIT, any_time::<LateArrivalCompletes>),
        mutant("deadline-ignored", GRP_3, BOUNDED, ENDS, bounded::<DeadlineIgnored>),
        mutant("later-cause-wins", GRP_3, ANY_TIME, FIRST_CAUSE, any_time::<LaterCauseWins>),
        mutant("board-one-slot", GRP_4, RECORDS, OWN_RECORDS, records::<BoardOneSlot>),
        mutant("nonce-unchecked", GRP_4, STRANGERS, STRANGER, stranger::<NonceUnchecked>),
        mutant("swap-unpromised", GRP_5, PROMISES, PROMISED, promises::<SwapUnpromised>),
        mutant("announce-unpromised", GRP_5, PROMISES, PROMISED, promises::<AnnounceUnpromised>),
        mutant("gone-unpromised", GRP_5, PROMISES, PROMISED, promises::<GoneUnpromised>),
    ];
    let (subgroup_studies, subgroup_mutants) = subgroup::part();
    studies.extend(subgroup_studies);
    mutants.extend(subgroup_mutants);
    Module { name: "group", studies, mutants, seeds: Vec::new() }
}
