/// HAL-3: every leg completes on an arm that the environment forces.
///
/// halo/legs-forced, 2 ranks, neighbour arm, legs of a group at once.
/// Deadlock: ranks 0 and 1 wait for each other in a circle, each for a leg that its peer posts only after the one it waits in.
#[test]
fn hal_3_fails_at_world_2_when_halo_coalesce_is_false() {
    use rankwise_check::registry::{Setup, Verdict, modules};
    use rankwise_protocol::policy::{Policy, SHIPPED, SHIPPED_FILE};

    let sets = [("halo.coalesce".to_owned(), "false".to_owned())];
    let policy = Policy::parse(SHIPPED_FILE, SHIPPED, &sets).expect("the policy");
    let modules = modules();
    let mut studies = modules.iter().flat_map(|module| &module.studies);
    let run = studies.find(|study| study.name == "halo/legs-forced").expect("the study").run;
    let report = run(&Setup { worlds: Some((2, 2)), ..Setup::new(policy) });
    let claim = "every leg completes on an arm that the environment forces";
    let judged = report.verdicts.iter().find(|(promise, _)| promise.name == claim);
    let (_, verdict) = judged.expect("the study judges the claim");
    // Once the hole is closed this must hold, in place of the rest:
    // assert!(matches!(verdict, Verdict::Proved), "{verdict:?}");
    let Verdict::Refuted(found) = verdict else { panic!("not refuted: {verdict:?}") };
    assert_eq!((found.world, found.steps.len()), (2, 2));
}
