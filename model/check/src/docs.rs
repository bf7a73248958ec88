//! Pages that are generated: what is proved and what is not, and what was found in the seeds' designs.
//!
//! `docs/proved.md` and `docs/findings.md` are these texts; a test compares them and writes them anew when
//! `UPDATE_DOCS` is set.

use crate::registry::{Module, Report, Requirement, Setup, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

/// First line of a generated page.
const GENERATED: &str =
    "<!-- Generated: UPDATE_DOCS=1 cargo test -p rankwise-check. Edit the registry, not this page. -->\n";

/// What the findings end with.
const COALESCING: &str = "
## What coalescing buys

A comment of the original says that its sends and receives must go in one group because a rank's unbatched operations
run one after the other, and two ranks that each wait to send into the other's receive are a cycle. For legs ordered
send-then-receive that is so: `rankwise prove --set halo.coalesce=false` draws it. For the order that the original has
(receive from below, send up, receive from above, send down) it is not: the study `halo/legs` runs the same legs one by
one, each until it is complete, at worlds 1 to 8, and `halo/wait-for` to 65,536, and all complete. The last rank has
nothing to receive from below, so it sends first, and the others follow in a chain of world-1 hops. What the group buys
is one hop in place of that chain, and freedom from having to know this.

The same study refutes a ring in which every rank sends first (mutant `ring-sends-first`, a deadlock at world 2). Ours
has even ranks send first and odd ranks receive first.
";

/// What the proofs leave out.
const NOT_PROVED: &str = "\
- Worlds past those stated. The agreement is explored to the worlds in the table; schedules are gone through to
  65,536 ranks by the wait-for pass.
- The compiler, the kernel's mappings and locks, and the processor beyond the axioms named. The axioms of a backend
  are what its memory must give; that the machine gives them is the machine's word.
- Orderings of shared words under a weak memory model are loom's part (`model/check/tests`), in shapes of two
  threads. loom treats SeqCst as AcqRel and does not buffer loads; each shape says what it cannot see.
- Halo calls are explored one at a time, and with ranks that stop at world 2. Several handles in flight, contexts used
  in turn and calls after a failure are tested on the real driver.
- The order of messages in a channel over several calls, a header before its bytes, and which rank is blamed among
  several that are late, are the driver's. `rankwise replay` checks them for runs that were recorded.
- In the models legs go on by themselves. In host memory they move while a rank is inside a call on their group; one
  that stays away longer than its peers' deadline ends the group.
- That ranks of another build or policy are refused when a group meets, and that a rank is claimed once, is tested.
- Bytes: that records and messages encode and decode what the models exchange is tested (unit tests, proptest), not
  proved.
- Time itself. A deadline is an input: it may pass when nothing moves (T1) or at any moment (T2). That the driver
  reports it in time is tested on real processes.
- 64-bit fingerprints stand for states. Two states with one fingerprint would be taken for one; at ten million states
  the chance of any such pair is below 3 in a million.
";

/// `docs/proved.md`: requirement, claim, worlds, regime, faults, states; axioms; what is not proved. `reports` are
/// those of the shipped policy, by study name.
pub fn proved(modules: &[Module], reports: &BTreeMap<&'static str, Report>) -> String {
    let mut page = format!("{GENERATED}\n# What is proved, and what is not\n\n");
    let _ = writeln!(
        page,
        "Each line is an obligation of the shipped policy. It holds in every state that the adversary of its study can\n\
         reach at the stated worlds. Regimes: T0 no deadline exists, T1 a deadline passes only when no live rank can\n\
         move, T2 it may pass at any time.\n"
    );
    for module in modules {
        let _ = writeln!(page, "## {}\n", module.name);
        page.push_str("| | claim | study | worlds | regime | faults | states |\n");
        page.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
        for study in &module.studies {
            for claim in &study.claims {
                let report = &reports[study.name];
                let found = report.verdicts.iter().find(|(promise, _)| promise == claim);
                let held = matches!(found, Some((_, Verdict::Proved)));
                let _ = writeln!(
                    page,
                    "| {} | {}{} | {} | {} | {} | {} | {} |",
                    claim.requirement,
                    claim.name,
                    if held { "" } else { " (NOT PROVED)" },
                    study.name,
                    span(study.worlds),
                    study.regime.map_or("-", |regime| regime.name()),
                    study.faults,
                    report.states
                );
            }
        }
        page.push_str("\nTaken for granted:\n\n");
        let mut axioms: Vec<&str> = module.studies.iter().flat_map(|study| study.axioms).copied().collect();
        axioms.sort_unstable();
        axioms.dedup();
        for axiom in axioms {
            let _ = writeln!(page, "- {axiom}");
        }
        page.push_str("\nMutants, each refuted by the claim it names and by no other of its study:\n\n");
        for mutant in &module.mutants {
            let _ = writeln!(page, "- `{}` ({}): {}", mutant.name, mutant.requirement, mutant.claim);
        }
        page.push('\n');
    }
    let _ = write!(page, "## Not proved\n\n{NOT_PROVED}");
    page
}

/// Every requirement that a claim stands for, in order.
pub fn requirements(modules: &[Module]) -> Vec<Requirement> {
    let mut all: Vec<Requirement> = modules
        .iter()
        .flat_map(|module| &module.studies)
        .flat_map(|study| &study.claims)
        .map(|claim| claim.requirement)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// `docs/findings.md`: each hole of a seed's design as its model shows it, and what closes it here.
pub fn findings(modules: &[Module], setup: &Setup) -> String {
    let mut page =
        format!("{GENERATED}\n# What the models found in the designs that rankwise started from\n\n");
    page.push_str(
        "Each section is a rule of the original design that its model refutes, with the shortest run that shows it. The\n\
         first paragraph is for those who run the original; the last says what closes the hole here.\n",
    );
    for variant in modules.iter().flat_map(|module| &module.seeds) {
        let report = (variant.as_mutant.run)(setup);
        let _ = writeln!(page, "\n## {}\n\n{}\n", variant.title, variant.story);
        for (promise, found) in report.refuted() {
            if promise.name == variant.as_mutant.claim {
                let drawn = crate::lanes::render(found, 110, false);
                let _ = writeln!(page, "```text\n{}\n```\n", drawn.trim_end());
            }
        }
        let _ = writeln!(page, "{}", variant.closed_by);
    }
    page.push_str(COALESCING);
    page
}

fn span((first, last): (u32, u32)) -> String {
    if first == last { first.to_string() } else { format!("{first} to {last}") }
}
