/// HAL-3: every leg completes, whatever a group means to the transport.
///
/// halo/legs, 2 ranks, ring arm, legs one by one, mutant ring-sends-first.
/// Deadlock: ranks 0 and 1 wait for each other in a circle, each for a leg that its peer posts only after the one it waits in.
#[test]
fn hal_3_rejects_ring_sends_first() {
    use rankwise_check::registry::{Setup, Verdict, modules};
    use rankwise_protocol::policy::Policy;

    let policy = Policy::shipped();
    let modules = modules();
    let mut mutants = modules.iter().flat_map(|module| &module.mutants);
    let run = mutants.find(|mutant| mutant.name == "ring-sends-first").expect("the mutant").run;
    let report = run(&Setup { worlds: Some((2, 2)), ..Setup::new(policy) });
    let claim = "every leg completes, whatever a group means to the transport";
    let judged = report.verdicts.iter().find(|(promise, _)| promise.name == claim);
    let (_, verdict) = judged.expect("the study judges the claim");
    // A mutant stays refuted. Should its rule become the right one, this must hold in place of the rest:
    // assert!(matches!(verdict, Verdict::Proved), "{verdict:?}");
    let Verdict::Refuted(found) = verdict else { panic!("not refuted: {verdict:?}") };
    assert_eq!((found.world, found.steps.len()), (2, 2));
}
