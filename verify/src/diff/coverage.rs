//! Whether the evidence of a rung covers it, and what evidence a change gains and loses.

use super::MEASUREMENTS;
use super::arms::{Stretch, changed_evidence, named};
use super::evidence::{Row, Says};
use rankwise_protocol::legs::Arm;
use rankwise_protocol::policy::{Evidence, HaloPolicy, Policy, Rung};
use serde::Serialize;
use std::cmp::Ordering;

/// Whether a rung's evidence covers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Coverage {
    /// What is covered, and what the row says.
    pub(super) covers: Vec<String>,
    /// What is not stated, or not measured.
    pub(super) lacks: Vec<String>,
    /// What speaks against it, or is of something else.
    pub(super) wrong: Vec<String>,
}

/// Looks at the evidence of a rung: does its row have this arm, another arm to choose, a world of this rung, machine
/// and date, and is the arm not slower beyond the noise?
/// `rows` is `None` where there are no measurements to look at.
pub(super) fn coverage(rows: Option<&[Row]>, halo: &HaloPolicy, position: usize, rung: &Rung) -> Coverage {
    let mut coverage = Coverage::default();
    let Evidence::Measured { file, row: name } = &rung.evidence else {
        coverage.lacks.push("not measured".to_owned());
        return coverage;
    };
    let Some(rows) = rows else {
        coverage.lacks.push(format!("there is no {MEASUREMENTS} here"));
        return coverage;
    };
    let Some(row) = Row::named(rows, &rung.evidence) else {
        coverage.wrong.push(format!("{MEASUREMENTS} has no row {file}#{name}"));
        return coverage;
    };
    coverage.arms(row, rung);
    coverage.worlds(row, halo, position, rung);
    for (what, stated) in [("machine", &row.machine), ("date", &row.date)] {
        match stated {
            Some(stated) => coverage.covers.push(format!("{what} {stated}")),
            None => coverage.lacks.push(format!("{what} not stated")),
        }
    }
    coverage
}

impl Coverage {
    fn arms(&mut self, row: &Row, rung: &Rung) {
        let (ours, row_arm, row_rival) = (rung.arm.name(), row.arm.0.as_str(), row.rival.0.as_str());
        if row_arm == ours {
            self.covers.push(format!("arm {ours}"));
        } else {
            self.wrong.push(format!("the row speaks for {row_arm}, not {ours}"));
        }
        let other = if row_arm == ours { row_rival } else { row_arm };
        if Arm::ALL.iter().any(|known| known.name() == other && *known != rung.arm) {
            self.covers.push(format!("rival {other}"));
        } else {
            self.wrong.push(format!("{other} is no other arm"));
        }
        let Some(opinion) = row.opinion(ours, other) else { return };
        match opinion.says {
            Says::For => self.covers.push(format!("faster beyond its noise: {}", opinion.figures)),
            Says::Even => self.covers.push(format!("not slower beyond its noise: {}", opinion.figures)),
            Says::Against => self.wrong.push(format!("slower beyond its noise: {}", opinion.figures)),
            Says::Unknown => {
                self.lacks.push(format!("one sample of each, so no noise to judge by: {}", opinion.figures));
            }
        }
    }

    fn worlds(&mut self, row: &Row, halo: &HaloPolicy, position: usize, rung: &Rung) {
        let world = row.world;
        if halo.rung(world).is_none_or(|(taker, _)| taker != position) {
            self.wrong.push(format!("measured at world {world}, which this rung does not take"));
            return;
        }
        self.covers.push(format!("world {world}"));
        if rung.worlds.first != world || rung.worlds.last != Some(world) {
            self.lacks.push(format!("the other worlds of {}", rung.worlds));
        }
    }
}

/// How evidence changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    /// Measured or counted, and no more.
    Lost,
    /// Measured otherwise.
    Changed,
    /// Counted or measured, and not before.
    Gained,
}

/// Worlds that have other evidence, and what is to be said against the new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Exchanged {
    worlds: Vec<Stretch>,
    change: Change,
    doubts: Vec<String>,
}

/// The worlds that have other evidence on the head.
pub(super) fn exchanged(rows: Option<&[Row]>, base: &Policy, head: &Policy) -> Vec<Exchanged> {
    let worth = |text: &str| ["none", "counted"].iter().position(|known| *known == text).unwrap_or(2);
    let of = |stretch: Stretch| {
        let change = match worth(&stretch.head).cmp(&worth(&stretch.base)) {
            Ordering::Less => Change::Lost,
            Ordering::Equal => Change::Changed,
            Ordering::Greater => Change::Gained,
        };
        let doubts = head.halo().rung(stretch.worlds.first).map_or(Vec::new(), |(position, rung)| {
            let mut doubts = coverage(rows, head.halo(), position, rung).wrong;
            let world = rows.and_then(|rows| Row::named(rows, &rung.evidence)).map(|row| row.world);
            let taken = |world: &u32| head.halo().rung(*world).is_some_and(|(taker, _)| taker == position);
            let alone = |world: u32| stretch.is_one() && stretch.worlds.contains(world);
            if let Some(world) = world.filter(taken).filter(|&world| !alone(world)) {
                doubts.push(format!("measured at world {world} only"));
            }
            doubts
        });
        Exchanged { worlds: vec![stretch], change, doubts }
    };
    let mut all: Vec<Exchanged> = Vec::new();
    for one in changed_evidence(base, head).into_iter().map(of) {
        match all.iter_mut().find(|known| known.says_the_same(&one)) {
            Some(known) => known.worlds.extend(one.worlds),
            None => all.push(one),
        }
    }
    all
}

impl Exchanged {
    fn says_the_same(&self, other: &Exchanged) -> bool {
        self.worlds[0].same_pair(&other.worlds[0]) && self.doubts == other.doubts
    }

    /// "world 4 loses its evidence (measured:... -> counted)".
    pub(super) fn told(&self) -> String {
        let Stretch { base, head, .. } = &self.worlds[0];
        let (names, one) = named(&self.worlds.iter().collect::<Vec<_>>());
        let (s, own) = if one { ("s", "its") } else { ("", "their") };
        let how = match self.change {
            Change::Lost => format!("lose{s} {own} evidence"),
            Change::Changed => format!("change{s} {own} evidence"),
            Change::Gained => format!("gain{s} evidence"),
        };
        let doubts =
            if self.doubts.is_empty() { String::new() } else { format!(", but {}", self.doubts.join(", ")) };
        format!("{names} {how} ({base} -> {head}{doubts})")
    }
}

#[cfg(test)]
mod tests {
    use super::super::evidence::rows;
    use super::*;
    use rankwise_protocol::policy::{SHIPPED, SHIPPED_FILE};
    use std::path::Path;

    fn shipped_rows() -> Vec<Row> {
        rows(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/measurements")).unwrap().unwrap()
    }

    #[test]
    fn the_shipped_rungs_are_covered_but_for_machine_date_and_noise() {
        let (rows, policy) = (shipped_rows(), Policy::shipped());
        let of =
            |position: usize| coverage(Some(&rows), policy.halo(), position, &policy.halo().rungs[position]);
        assert_eq!(of(1).lacks, ["machine not stated", "date not stated"]);
        assert!(of(1).covers.contains(&"rival ring".to_owned()), "{:?}", of(1));
        assert!(of(0).lacks.iter().any(|lack| lack.contains("one sample of each")), "{:?}", of(0));
        assert_eq!(of(2).lacks, ["not measured"]);
    }

    #[test]
    fn evidence_for_another_arm_or_world_does_not_cover() {
        let mut policy = Policy::shipped().halo().clone();
        policy.rungs[1].arm = Arm::Ring;
        let found = coverage(Some(&shipped_rows()), &policy, 1, &policy.rungs[1]);
        assert_eq!(found.wrong[0], "the row speaks for neighbour, not ring");
        assert!(found.wrong[1].starts_with("slower beyond its noise"), "{found:?}");
        policy.rungs[2].evidence =
            Evidence::Measured { file: "seed-halo.json".into(), row: "world-2".into() };
        let found = coverage(Some(&shipped_rows()), &policy, 2, &policy.rungs[2]);
        assert!(
            found.wrong.contains(&"measured at world 2, which this rung does not take".to_owned()),
            "{found:?}"
        );
        policy.rungs[2].evidence = Evidence::Measured { file: "no.json".into(), row: "x".into() };
        let found = coverage(Some(&shipped_rows()), &policy, 2, &policy.rungs[2]);
        assert_eq!(found.wrong, ["docs/measurements has no row no.json#x"]);
    }

    #[test]
    fn evidence_that_goes_or_is_of_another_world_is_told() {
        let shipped = Policy::shipped();
        let told = |from: &str, to: &str| {
            let head = Policy::parse(SHIPPED_FILE, &SHIPPED.replacen(from, to, 1), &[]).unwrap();
            let list = exchanged(Some(&shipped_rows()), &shipped, &head);
            list.iter().map(Exchanged::told).collect::<Vec<_>>()
        };
        let lost = "world 4 loses its evidence (measured:seed-halo.json#world-4 -> none)";
        assert_eq!(told("measured:seed-halo.json#world-4", "none"), [lost]);
        let wider = "worlds 5-6 gain evidence (counted -> measured:seed-halo.json#world-4, but measured at world 4 only)";
        assert_eq!(told("worlds = \"4\"", "worlds = \"4-6\""), [wider]);
    }
}
