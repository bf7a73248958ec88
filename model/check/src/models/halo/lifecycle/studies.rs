//! The studies of halo calls and their mutants.

use super::*;

const REDUCED: &str =
    "at world 3 local steps of the lowest rank first; cross-checked at world 2 by tests/check/cross_check.rs";
const CLEAN_RUNS: &str = "halo/clean";
const STOPS_BOUNDED: &str = "halo/stops-bounded";
const STOPS_ANY_TIME: &str = "halo/stops-any-time";
const CONTEXTS: &str = "halo/one-context";
pub(in crate::models::halo) const ARMS: &str = "halo/one-arm";
pub(in crate::models::halo) const ORDER: &str = "halo/stream-order";
pub(in crate::models::halo) const FAILURE: &str = "halo/failure-after-agreement";

fn calls<R: Rules>(setup: &Setup, world: u32, attack: Attack, claims: &'static [&'static str]) -> Calls<R> {
    Calls::new(&setup.policy, world, attack, claims)
}

pub(super) fn same(world: u32, forced: Override) -> Vec<Brought> {
    vec![Brought::forced(forced); world as usize]
}

pub(super) fn attack(locals: Vec<Brought>, setting: String) -> Attack {
    Attack {
        locals,
        raising: Vec::new(),
        stops: false,
        unreadable: None,
        regime: Regime::T0,
        any_use: false,
        blocking: true,
        reduced: false,
        setting,
    }
}

/// Every way to give each rank one of `choices`.
fn mixed<R: Rules>(
    setup: &Setup,
    choices: Vec<Brought>,
    told: fn(&Brought) -> String,
    claims: &'static [&'static str],
) -> impl Iterator<Item = Calls<R>> {
    setup.worlds_of((2, 3)).flat_map(move |world| {
        let choices = choices.clone();
        (0..choices.len().pow(world)).map(move |way| {
            let locals: Vec<_> =
                (0..world).map(|rank| choices[way / choices.len().pow(rank) % choices.len()]).collect();
            let setting: Vec<String> = locals
                .iter()
                .enumerate()
                .map(|(rank, local)| format!("rank {rank}: {}", told(local)))
                .collect();
            calls::<R>(setup, world, attack(locals, setting.join("; ")), claims)
        })
    })
}

/// Ranks differ in override, in being able to take part, in width, or in policy.
pub(in crate::models::halo) fn one_arm_study<R: Rules>(setup: &Setup) -> Report {
    let overrides = [
        Override::Unset,
        Override::Forced(Arm::Ring),
        Override::Forced(Arm::Neighbour),
        Override::Empty,
        Override::Unknown,
    ];
    let unset = Brought::forced(Override::Unset);
    let choices = overrides.map(Brought::forced).into_iter();
    let choices = choices.chain([
        Brought { able: false, ..unset },
        Brought { width: 2, ..unset },
        Brought { other_policy: true, ..unset },
    ]);
    let told = |local: &Brought| {
        let able = if local.able { "" } else { ", out of memory" };
        let policy = if local.other_policy { ", another policy" } else { "" };
        format!("override {}, width {}{able}{policy}", local.forced, local.width)
    };
    explore(ARMS, setup, mixed::<R>(setup, choices.collect(), told, &[ONE_ARM]))
}

/// Ranks differ in which of their contexts they call.
fn one_context_study<R: Rules>(setup: &Setup) -> Report {
    let choices = [0, 1].map(|context| Brought { context, ..Brought::forced(Override::Unset) });
    let told = |local: &Brought| format!("context {}", local.context);
    explore(CONTEXTS, setup, mixed::<R>(setup, choices.to_vec(), told, &[ONE_CONTEXT]))
}

/// Any use of the handle, streams that run when they like, one rank that may raise.
pub(in crate::models::halo) fn stream_order<R: Rules>(setup: &Setup) -> Report {
    let models = setup.worlds_of((2, 2)).flat_map(|world| {
        Arm::ALL.into_iter().flat_map(move |arm| {
            [vec![], vec![0]].map(|raising| Calls::<R>::used(&setup.policy, world, arm, raising))
        })
    });
    explore(ORDER, setup, models)
}

/// Any subset of ranks may raise once, at any effect after the agreement, and callers may use handles as they like.
pub(in crate::models::halo) fn failure<R: Rules>(setup: &Setup) -> Report {
    let failing = setup.worlds_of((2, 3)).flat_map(|world| {
        // Both arms at world 2; the policy's at world 3.
        let arms =
            Arm::ALL.into_iter().filter(move |&arm| world == 2 || arm == setup.policy.halo().arm(world));
        arms.map(move |arm| Calls::<R>::failing(&setup.policy, world, arm, world > 2))
    });
    explore(FAILURE, setup, failing)
}

/// No fault at all.
fn clean<R: Rules>(setup: &Setup) -> Report {
    let models = setup.worlds_of((1, 3)).flat_map(|world| {
        Arm::ALL.into_iter().map(move |arm| {
            let attack = attack(same(world, Override::Forced(arm)), format!("{arm} arm"));
            calls::<R>(setup, world, attack, &[CLEAN])
        })
    });
    explore(CLEAN_RUNS, setup, models)
}

/// Ranks that stop, with deadlines that pass when nothing moves.
fn stops_bounded<R: Rules>(setup: &Setup) -> Report {
    let models = setup.worlds_of((2, 2)).flat_map(|world| {
        Arm::ALL.into_iter().map(move |arm| {
            let calls = Calls::<R>::stopping(&setup.policy, world, arm, Regime::T1, None);
            Calls { claims: &[ENDS], ..calls }
        })
    });
    explore(STOPS_BOUNDED, setup, models)
}

/// Ranks that stop, with deadlines that pass at any time, and a record that none can read.
fn stops_any_time<R: Rules>(setup: &Setup) -> Report {
    let models = setup.worlds_of((2, 2)).flat_map(|world| {
        Arm::ALL.into_iter().flat_map(move |arm| {
            [None, Some(world - 1)].map(|unreadable| {
                let calls = Calls::<R>::stopping(&setup.policy, world, arm, Regime::T2, unreadable);
                Calls { claims: &[RIGHT, UNREADABLE], ..calls }
            })
        })
    });
    explore(STOPS_ANY_TIME, setup, models)
}

mutant!(
    /// The override is not in the record: each rank obeys its own.
    OverrideUnsaid { fn override_in_record() -> bool { false } }
);
mutant!(
    /// The context is not in the record: edges of equal shape are taken whatever tensor they are of.
    ContextUnsaid { fn context_in_record() -> bool { false } }
);
mutant!(
    /// Unpack goes to the stream that packed, whichever was ordered after the transport.
    UnpackElsewhere { fn unpack_stream(_: Stream) -> Stream { FIRST } }
);
mutant!(
    /// Buffers are freed when the handle goes, in flight or not.
    FreedInFlight { fn release_after(_: Stream) -> Option<Stream> { None } }
);
mutant!(
    /// An error inside a group leaves it open.
    GroupLeftOpen { fn group_closed_after_error() -> bool { false } }
);
mutant!(
    /// A rank that fails keeps it to itself.
    FailureUntold { fn failure_poisons_group() -> bool { false } }
);

mutant!(
    /// A rank that waits for its legs ignores its deadline.
    LatenessUnseen {
        fn lost(sight: Sight) -> Option<Cause> { Shipped::lost(Sight { late: None, ..sight }) }
    }
);
mutant!(
    /// A call whose legs are lost goes on to unpack.
    LostLegsPass { fn lost_legs_are_an_error() -> bool { false } }
);
mutant!(
    /// A rank that cannot read a record errs and tells nobody.
    UnreadableIgnored { fn unreadable_record_ends_group() -> bool { false } }
);

const STOPS: &str = "any subset dies, stalls or garbles a message, at any step";

/// Studies and mutants of this file.
pub(in crate::models::halo) fn part() -> (Vec<Study>, Vec<Mutant>) {
    let study = |name, worlds, faults, run, claims: &[(u32, &'static str)]| Study {
        name,
        engine: Engine::Explore,
        regime: Some(Regime::T0),
        worlds,
        faults,
        axioms: &["an exchange of records is one step (GRP-1..4)"],
        reductions: &[],
        reads: &["halo.rungs", "halo.coalesce"],
        claims: claims.iter().map(|&(number, name)| Promise { requirement: hal(number), name }).collect(),
        run,
    };
    let studies = vec![
        study(
            ARMS,
            (2, 3),
            "any override, shape, policy and shortage of memory on any rank",
            one_arm_study::<Shipped>,
            &[(1, ONE_ARM)],
        ),
        study(
            CONTEXTS,
            (2, 3),
            "any rank calls another of its contexts",
            one_context_study::<Shipped>,
            &[(11, ONE_CONTEXT)],
        ),
        Study {
            // Both arms are forced, whatever the rungs say.
            reads: &["halo.coalesce"],
            ..study(
                ORDER,
                (2, 2),
                "streams run in any order, any use of the handle, one rank raises",
                stream_order::<Shipped>,
                &[(6, IN_ORDER)],
            )
        },
        Study {
            reductions: &[REDUCED],
            ..study(
                FAILURE,
                (2, 3),
                "any subset raises once at any step after the agreement; any use of handles and the ring at world 2 only",
                failure::<Shipped>,
                &[(6, IN_ORDER), (7, CLOSED), (10, TOLD)],
            )
        },
        study(CLEAN_RUNS, (1, 3), "none", clean::<Shipped>, &[(10, CLEAN)]),
        Study {
            regime: Some(Regime::T1),
            ..study(STOPS_BOUNDED, (2, 2), STOPS, stops_bounded::<Shipped>, &[(10, ENDS)])
        },
        Study {
            regime: Some(Regime::T2),
            claims: vec![
                Promise { requirement: hal(10), name: RIGHT },
                Promise { requirement: Requirement::new("GRP", 2), name: UNREADABLE },
            ],
            ..study(STOPS_ANY_TIME, (2, 2), STOPS, stops_any_time::<Shipped>, &[])
        },
    ];
    let mutant =
        |name, number, study, claim, run| Mutant { name, requirement: hal(number), study, claim, run };
    let mutants = vec![
        mutant("override-not-in-record", 1, ARMS, ONE_ARM, one_arm_study::<OverrideUnsaid>),
        mutant("context-not-in-record", 11, CONTEXTS, ONE_CONTEXT, one_context_study::<ContextUnsaid>),
        mutant("unpack-on-another-stream", 6, ORDER, IN_ORDER, stream_order::<UnpackElsewhere>),
        mutant("handle-freed-in-flight", 6, ORDER, IN_ORDER, stream_order::<FreedInFlight>),
        mutant("group-left-open", 7, FAILURE, CLOSED, failure::<GroupLeftOpen>),
        mutant("lateness-unseen", 10, STOPS_BOUNDED, ENDS, stops_bounded::<LatenessUnseen>),
        mutant("lost-legs-pass", 10, STOPS_ANY_TIME, RIGHT, stops_any_time::<LostLegsPass>),
        Mutant {
            requirement: Requirement::new("GRP", 2),
            ..mutant(
                "unreadable-record-ignored",
                2,
                STOPS_ANY_TIME,
                UNREADABLE,
                stops_any_time::<UnreadableIgnored>,
            )
        },
        mutant("failure-untold", 10, FAILURE, TOLD, failure::<FailureUntold>),
    ];
    (studies, mutants)
}
