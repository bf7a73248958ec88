//! What the measurements of `docs/measurements` say of a choice of arm.

use crate::complaint::Complaint;
use rankwise_protocol::policy::Evidence;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// A row of a file of measurements.
#[derive(Clone, Debug)]
pub(super) struct Row {
    file: String,
    name: String,
    pub(super) world: u32,
    unit: String,
    pub(super) arm: (String, Vec<f64>),
    pub(super) rival: (String, Vec<f64>),
    pub(super) machine: Option<String>,
    pub(super) date: Option<String>,
}

/// A row as it is written, but for its samples.
#[derive(Deserialize)]
struct Written {
    row: String,
    world: u32,
    unit: String,
    arm: String,
    rival: String,
    machine: Option<String>,
    date: Option<String>,
}

/// What a row says of an arm beside its rival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Says {
    /// Slower by more than the samples of either spread.
    Against,
    /// A sample of each: which is faster may be chance.
    Unknown,
    /// The difference is within the spread.
    Even,
    /// Faster by more than the samples of either spread.
    For,
}

/// A row beside a choice of arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Opinion {
    pub(super) world: u32,
    /// As `seed-halo.json#world-4`.
    pub(super) row: String,
    pub(super) says: Says,
    /// The figures, those of the chosen arm first.
    pub(super) figures: String,
    /// Machine and date, or that they are not stated.
    pub(super) origin: String,
}

/// Every row of every file of `folder`; `None` where there is no such folder.
pub(super) fn rows(folder: &Path) -> Result<Option<Vec<Row>>, Complaint> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(None) };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|e| e == "json")).collect();
    files.sort();
    let mut rows = Vec::new();
    for path in files {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let refused = |what: String| Complaint(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| refused(error.to_string()))?;
        let value: Value = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        for row in value["rows"].as_array().ok_or_else(|| refused("no rows".to_owned()))? {
            rows.push(read(&file, row).map_err(refused)?);
        }
    }
    Ok(Some(rows))
}

fn read(file: &str, row: &Value) -> Result<Row, String> {
    let written = Written::deserialize(row).map_err(|error| format!("a row: {error}"))?;
    let Written { row: name, world, unit, arm, rival, machine, date } = written;
    let samples = |side: &str| -> Option<Vec<f64>> {
        let list: Vec<f64> =
            row[format!("{side}_{unit}")].as_array()?.iter().filter_map(Value::as_f64).collect();
        Some(list).filter(|list| !list.is_empty())
    };
    let missing = || format!("{name}: no samples in {unit}");
    let arm = (arm, samples("arm").ok_or_else(missing)?);
    let rival = (rival, samples("rival").ok_or_else(missing)?);
    Ok(Row { file: file.to_owned(), name, world, unit, arm, rival, machine, date })
}

impl Row {
    /// The row that evidence names.
    pub(super) fn named<'a>(rows: &'a [Row], evidence: &Evidence) -> Option<&'a Row> {
        let Evidence::Measured { file, row } = evidence else { return None };
        rows.iter().find(|candidate| (&candidate.file, &candidate.name) == (file, row))
    }

    fn place(&self) -> String {
        format!("{}#{}", self.file, self.name)
    }

    /// The samples of `chosen` and of `other`, if the row has both.
    fn sides(&self, chosen: &str, other: &str) -> Option<(&[f64], &[f64])> {
        match (self.arm.0.as_str(), self.rival.0.as_str()) {
            (arm, rival) if (arm, rival) == (chosen, other) => Some((&self.arm.1, &self.rival.1)),
            (arm, rival) if (rival, arm) == (chosen, other) => Some((&self.rival.1, &self.arm.1)),
            _ => None,
        }
    }

    /// What it says of `chosen` beside `other`, if it has both.
    pub(super) fn opinion(&self, chosen: &str, other: &str) -> Option<Opinion> {
        let (ours, theirs) = self.sides(chosen, other)?;
        let unit = if self.unit == "gb_per_s" { "GB/s" } else { &self.unit };
        let figures = format!("{chosen} {} {unit}, {other} {} {unit}", listed(ours), listed(theirs));
        let origin = match (&self.machine, &self.date) {
            (None, None) => "machine and date not stated".to_owned(),
            (machine, date) => format!(
                "{}, {}",
                machine.as_deref().unwrap_or("machine not stated"),
                date.as_deref().unwrap_or("date not stated")
            ),
        };
        let says = says(ours, theirs, self.unit == "gb_per_s");
        Some(Opinion { world: self.world, row: self.place(), says, figures, origin })
    }
}

/// Medians that differ by more than either side's samples spread are told apart.
fn says(ours: &[f64], theirs: &[f64], more_is_better: bool) -> Says {
    let sign = if more_is_better { -1.0 } else { 1.0 };
    let slower_by = sign * (median(ours) - median(theirs));
    let noise = spread(ours).max(spread(theirs));
    if ours.len().min(theirs.len()) < 2 {
        Says::Unknown
    } else if slower_by > noise {
        Says::Against
    } else if -slower_by > noise {
        Says::For
    } else {
        Says::Even
    }
}

fn listed(samples: &[f64]) -> String {
    samples.iter().map(f64::to_string).collect::<Vec<_>>().join("/")
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

fn spread(samples: &[f64]) -> f64 {
    let largest = samples.iter().copied().fold(f64::MIN, f64::max);
    let smallest = samples.iter().copied().fold(f64::MAX, f64::min);
    largest - smallest
}

impl Opinion {
    /// As a clause: "the measurement speaks against it: ring ..., neighbour ... at world 4".
    pub(super) fn clause(&self) -> String {
        let Opinion { world, figures, .. } = self;
        match self.says {
            Says::Against => format!("the measurement speaks against it: {figures} at world {world}"),
            Says::For => format!("the measurement speaks for it: {figures} at world {world}"),
            Says::Even => format!("the measurement tells no difference: {figures} at world {world}"),
            Says::Unknown => {
                format!(
                    "the measurement has one sample of each, so no noise to judge by: {figures} at world {world}"
                )
            }
        }
    }

    /// The clause, with the row and its origin.
    pub(super) fn told(&self) -> String {
        format!("{} ({}; {})", self.clause(), self.row, self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped_rows() -> Vec<Row> {
        rows(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/measurements")).unwrap().unwrap()
    }

    fn row(arm: &[f64], rival: &[f64], unit: &str) -> Row {
        let list = |samples: &[f64]| samples.to_vec();
        Row {
            file: "f.json".into(),
            name: "r".into(),
            world: 4,
            unit: unit.into(),
            arm: ("ring".into(), list(arm)),
            rival: ("neighbour".into(), list(rival)),
            machine: None,
            date: Some("2026-01-31".into()),
        }
    }

    #[test]
    fn the_seeds_measurement_speaks_against_the_ring_at_world_4() {
        let rows = shipped_rows();
        let at_4 = rows.iter().find(|row| row.place() == "seed-halo.json#world-4").unwrap();
        let opinion = at_4.opinion("ring", "neighbour").unwrap();
        let due =
            "the measurement speaks against it: ring 2462.9/2244.5 ms, neighbour 1010.6/1017.5 ms at world 4";
        assert_eq!((opinion.clause().as_str(), opinion.says), (due, Says::Against));
        assert_eq!(at_4.opinion("neighbour", "ring").unwrap().says, Says::For);
        assert!(at_4.opinion("ring", "direct").is_none());
    }

    #[test]
    fn a_difference_counts_when_it_is_larger_than_the_spread() {
        let told = |arm: &[f64], rival: &[f64], unit| {
            row(arm, rival, unit).opinion("ring", "neighbour").unwrap().says
        };
        assert_eq!(told(&[10.0, 11.0], &[9.5, 10.5], "ms"), Says::Even);
        assert_eq!(told(&[10.0, 11.0], &[8.0, 8.5], "ms"), Says::Against);
        assert_eq!(told(&[10.0, 11.0], &[8.0, 8.5], "gb_per_s"), Says::For);
        assert_eq!(told(&[10.0], &[1.0], "ms"), Says::Unknown);
        assert_eq!(told(&[1.0, 2.0, 30.0], &[3.0, 4.0, 5.0], "ms"), Says::Even);
    }
}
