//! Each rung of a policy: to which world its legs are proved, and what its evidence covers.

use super::coverage::{Coverage, coverage};
use super::evidence::Row;
use crate::choice::Choice;
use crate::complaint::Complaint;
use crate::keys::{Key, text_of};
use crate::proof::Settings;
use rankwise_check::models::halo::passed_worlds;
use rankwise_check::registry::{Report, Setup, Verdict, modules};
use rankwise_check::waits::{self, Meaning};
use rankwise_protocol::legs::schedule;
use rankwise_protocol::policy::{HaloPolicy, Policy, Rung};
use rankwise_protocol::rules::Shipped;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The study that explores the legs of the policy's arms.
const LEGS: &str = "halo/legs";

/// How far something is proved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Bound {
    /// In every world of the rung up to this one that was looked at.
    To(u32),
    /// Not in this world.
    Refuted(u32),
    /// Neither was shown.
    Inconclusive(String),
    /// The engine has none of the rung's worlds.
    Nowhere,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::To(world) => f.write_str(&crate::report::grouped((*world).into())),
            Bound::Refuted(world) => write!(f, "REFUTED at {world}"),
            Bound::Inconclusive(why) => write!(f, "inconclusive: {why}"),
            Bound::Nowhere => f.write_str("-"),
        }
    }
}

/// A rung, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Known {
    /// From 1.
    pub(super) rung: usize,
    pub(super) worlds: String,
    pub(super) arm: &'static str,
    pub(super) evidence: String,
    /// By exploration of every order of its legs.
    pub(super) explored: Bound,
    /// By the wait-for pass.
    pub(super) waited: Bound,
    pub(super) coverage: Coverage,
}

/// What is known of every rung of a policy.
pub(super) fn known(
    choice: &Choice,
    keys: &[Key],
    rows: Option<&[Row]>,
    settings: &Settings,
) -> Result<Vec<Known>, Complaint> {
    let halo = choice.policy.halo();
    let one = |(position, rung): (usize, &Rung)| {
        Ok(Known {
            rung: position + 1,
            worlds: rung.worlds.to_string(),
            arm: rung.arm.name(),
            evidence: rung.evidence.to_string(),
            explored: explored(keys, rung, settings)?,
            waited: waited(halo, position, settings),
            coverage: coverage(rows, halo, position, rung),
        })
    };
    halo.rungs.iter().enumerate().map(one).collect()
}

/// Explores the legs of a rung's arm at the rung's worlds.
fn explored(keys: &[Key], rung: &Rung, settings: &Settings) -> Result<Bound, Complaint> {
    let everywhere = format!("[{{ worlds = \"2-\", arm = \"{}\", evidence = \"none\" }}]", rung.arm);
    let policy = Policy::parse("rung", &text_of(keys), &[("halo.rungs".to_owned(), everywhere)])?;
    let (first, last) = (rung.worlds.first, rung.worlds.last.unwrap_or(u32::MAX));
    let (from, to) = settings.worlds.unwrap_or((1, u32::MAX));
    let worlds = (first.max(from), last.min(to));
    let studies = modules().into_iter().flat_map(|module| module.studies);
    let Some(study) = studies.into_iter().find(|study| study.name == LEGS) else { return Ok(Bound::Nowhere) };
    let judged = settings.run(|setup| (study.run)(&Setup { policy, worlds: Some(worlds), ..setup.clone() }));
    Ok(judged.map_or_else(|| Bound::Inconclusive("interrupted".to_owned()), |report| bound(&report)))
}

fn bound(report: &Report) -> Bound {
    let Some((_, last)) = report.worlds else { return Bound::Nowhere };
    if let Some((_, found)) = report.refuted().next() {
        return Bound::Refuted(found.world);
    }
    let open = report.verdicts.iter().find_map(|(_, verdict)| match verdict {
        Verdict::Inconclusive(why) => Some(why.clone()),
        _ => None,
    });
    open.map_or(Bound::To(last), Bound::Inconclusive)
}

/// Runs the wait-for pass on the worlds that a rung takes: those that the pass always has, and the rung's first and
/// last.
fn waited(halo: &HaloPolicy, position: usize, settings: &Settings) -> Bound {
    let rung = &halo.rungs[position];
    let passed = passed_worlds(rung.arm);
    let largest = passed.iter().copied().max().unwrap_or(0);
    let (from, to) = settings.worlds.unwrap_or((1, u32::MAX));
    let taken = |world: &u32| halo.rung(*world).is_some_and(|(taker, _)| taker == position);
    let edges = [Some(rung.worlds.first), rung.worlds.last].into_iter().flatten();
    let worlds: BTreeSet<u32> = passed.into_iter().chain(edges).filter(taken).collect();
    let mut bound = Bound::Nowhere;
    for world in worlds.into_iter().filter(|world| (from..=to.min(largest)).contains(world)) {
        let groups: Vec<_> =
            (0..world).map(|rank| schedule::<Shipped>(rung.arm, halo.coalesce, world, rank)).collect();
        let stuck = |meaning: Meaning| {
            let groups: Vec<_> = groups.iter().map(|rank| meaning.apply(rank.clone())).collect();
            waits::run(&groups).is_err()
        };
        if Meaning::ALL.into_iter().any(stuck) {
            return Bound::Refuted(world);
        }
        bound = Bound::To(world);
    }
    bound
}
