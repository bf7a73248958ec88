//! Certificates: what was proved, of which policy and which sources, for another tree to be compared with.
//!
//! Everything but [`Time`] is the same, byte for byte, whenever the same tree is proved.

mod check;

use crate::choice::Choice;
use crate::complaint::Complaint;
use crate::keys::Key;
use crate::proof::{self, Selection, Settings, Task};
use crate::report::{Exit, count, say, say_json};
use crate::verdicts::{INCONCLUSIVE, Obligation, PROVED, REFUTED, Tried};
pub(crate) use check::check;
use rankwise_check::lanes::Counterexample;
use rankwise_check::registry::Mutant;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The form described here.
const SCHEMA: u32 = 1;

/// What was proved, and of what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Certificate {
    schema: u32,
    /// Name and version of the command.
    tool: String,
    /// Version of the compiler that built it.
    rustc: String,
    pub(crate) policy: PolicyOf,
    /// The sources that decide what is proved.
    pub(crate) sources: Vec<Sources>,
    /// In the order of the registry.
    pub(crate) obligations: Vec<Judged>,
    /// Those of all obligations, each once.
    axioms: Vec<String>,
    /// In the order of the registry.
    pub(crate) mutants: Vec<OnTrial>,
    /// Rules of the designs that this one started from, in the order of the registry.
    pub(crate) seeds: Vec<OnTrial>,
    pub(crate) time: Time,
}

/// A policy by meaning and by value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PolicyOf {
    /// Two policies share it only if they mean the same.
    pub(crate) digest: String,
    pub(crate) keys: Vec<Key>,
}

/// A crate and the SHA-256 of its manifest and sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sources {
    pub(crate) folder: String,
    sha256: String,
}

/// An obligation and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) requirement: String,
    pub(crate) claim: String,
    pub(crate) study: String,
    pub(crate) engine: String,
    pub(crate) regime: Option<String>,
    /// Smallest and largest world that was looked at.
    pub(crate) worlds: (u32, u32),
    pub(crate) faults: String,
    pub(crate) axioms: Vec<String>,
    pub(crate) reductions: Vec<String>,
    pub(crate) reads: Vec<String>,
    pub(crate) states: u64,
    pub(crate) transitions: u64,
    pub(crate) depth: u64,
    /// `None` where it was not run.
    pub(crate) verdict: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) counterexample: Option<Counterexample>,
}

/// Rules with one wrong decision, and how they fared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OnTrial {
    pub(crate) name: String,
    /// The hole of a seed's design, as a heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hole: Option<String>,
    pub(crate) requirement: String,
    pub(crate) claim: String,
    pub(crate) study: String,
    /// `None` where it was not put on trial.
    pub(crate) verdict: Option<String>,
}

/// When it was made; the one part that differs between two runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Time {
    seconds: f64,
    /// Year-month-day, UTC.
    pub(crate) date: String,
}

impl From<Obligation> for Judged {
    fn from(one: Obligation) -> Self {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        Judged {
            requirement: one.requirement,
            claim: one.claim.to_owned(),
            study: one.study.to_owned(),
            engine: one.engine.to_owned(),
            regime: one.regime.map(str::to_owned),
            worlds: one.worlds,
            faults: one.faults.to_owned(),
            axioms: owned(one.axioms),
            reductions: owned(one.reductions),
            reads: owned(one.reads),
            states: one.states.unwrap_or(0),
            transitions: one.transitions.unwrap_or(0),
            depth: one.depth.unwrap_or(0),
            verdict: one.verdict.map(str::to_owned),
            why: one.why,
            counterexample: one.counterexample,
        }
    }
}

impl Judged {
    /// Whether its verdict is `verdict`.
    pub(crate) fn is(&self, verdict: &str) -> bool {
        self.verdict.as_deref() == Some(verdict)
    }

    /// What makes it the same obligation in another tree.
    pub(crate) fn identity(&self) -> (&str, &str, &str) {
        (&self.requirement, &self.claim, &self.study)
    }

    /// As `HAL-9 statistics equal the bytes that the arm must move (halo/statistics)`.
    pub(crate) fn told(&self) -> String {
        format!("{} {} ({})", self.requirement, self.claim, self.study)
    }

    /// Without what came of it: what it would take to prove it.
    fn statement(&self) -> Judged {
        let (why, counterexample) = (None, None);
        Judged { states: 0, transitions: 0, depth: 0, verdict: None, why, counterexample, ..self.clone() }
    }
}

impl OnTrial {
    fn of(mutant: &Mutant, hole: Option<&str>, verdict: Option<&str>) -> Self {
        OnTrial {
            name: mutant.name.to_owned(),
            hole: hole.map(str::to_owned),
            requirement: mutant.requirement.to_string(),
            claim: mutant.claim.to_owned(),
            study: mutant.study.to_owned(),
            verdict: verdict.map(str::to_owned),
        }
    }

    /// Whether its verdict is `verdict`.
    pub(crate) fn is(&self, verdict: &str) -> bool {
        self.verdict.as_deref() == Some(verdict)
    }

    fn statement(&self) -> OnTrial {
        OnTrial { verdict: None, ..self.clone() }
    }
}

/// The obligations of `tasks` before they are run.
pub(crate) fn listed(tasks: &[Task]) -> Vec<Judged> {
    let of = |task: &Task| -> Vec<Judged> {
        task.claims.iter().map(|claim| Obligation::listed(task, *claim).into()).collect()
    };
    tasks.iter().flat_map(of).collect()
}

/// Mutants and seeds before their trial.
pub(crate) fn accused(selection: &Selection) -> (Vec<OnTrial>, Vec<OnTrial>) {
    let mutants = selection.mutants.iter().map(|mutant| OnTrial::of(mutant, None, None));
    let seeds = selection.seeds.iter().map(|(hole, mutant)| OnTrial::of(mutant, Some(hole), None));
    (mutants.collect(), seeds.collect())
}

/// Digests of the sources that this command was built from.
pub(crate) fn sources() -> Vec<Sources> {
    let of = |folder: &str, sha256: &str| Sources { folder: folder.to_owned(), sha256: sha256.to_owned() };
    vec![
        of("model/protocol", env!("RANKWISE_SHA256_PROTOCOL")),
        of("model/check", env!("RANKWISE_SHA256_CHECK")),
    ]
}

/// Runs the studies of `tasks` under `choice`.
pub(crate) fn judge(tasks: &[Task], settings: &Settings, choice: &Choice) -> Result<Vec<Judged>, Complaint> {
    let mut judged = Vec::new();
    proof::prove(tasks, settings, |task, report| {
        let of = |claim| Obligation::judged(task, claim, report.as_ref(), choice).into();
        judged.extend(task.claims.iter().copied().map(of));
        Ok(())
    })?;
    Ok(judged)
}

fn put_on_trial(accused: &[(Option<&str>, Mutant)], settings: &Settings) -> Result<Vec<OnTrial>, Complaint> {
    let mutants: Vec<Mutant> = accused.iter().map(|(_, mutant)| mutant.clone()).collect();
    let mut holes = accused.iter().map(|(hole, _)| *hole);
    let mut tried = Vec::new();
    proof::try_mutants(&mutants, settings, |mutant, result| {
        let verdict = Tried::judged(mutant, result).verdict;
        tried.push(OnTrial::of(mutant, holes.next().flatten(), verdict));
        Ok(())
    })?;
    Ok(tried)
}

/// Proves everything in `selection`, puts every mutant and seed on trial, and writes what came of it. Nothing is
/// written when interrupted.
pub(crate) fn write(
    file: &Path,
    choice: &Choice,
    settings: &Settings,
    selection: &Selection,
    as_json: bool,
) -> Result<Exit, Complaint> {
    let refused = |error: io::Error| {
        let path = file.display().to_string();
        Complaint::field("--certificate", &path, &error.to_string(), "a file that can be written")
    };
    let target = Target::of(file).map_err(refused)?;
    let made = make(choice, settings, selection)?;
    if settings.interrupted.load(Ordering::Relaxed) {
        if as_json {
            say_json(&serde_json::json!({ "interrupted": true, "written": false }))?;
        } else {
            let kept = if file.exists() { "stays as it was" } else { "is not there" };
            say(&format!("interrupted: no certificate written, {} {kept}\n", file.display()))?;
        }
        return Ok(Exit::Inconclusive);
    }
    let text = serde_json::to_string_pretty(&made).expect("a certificate is plain data");
    target.replace(&(text + "\n")).map_err(refused)?;
    if as_json {
        say_json(&made)?;
    } else {
        say(&made.summary(file))?;
    }
    Ok(made.exit())
}

/// A file to be replaced as a whole, or left as it is.
struct Target {
    file: PathBuf,
    /// In the same folder.
    temporary: PathBuf,
}

impl Target {
    /// Refuses what could not be replaced, before there is anything to write.
    fn of(file: &Path) -> io::Result<Target> {
        let file = match std::fs::metadata(file) {
            Ok(old) if old.is_dir() => return Err(io::Error::other("a folder")),
            Ok(old) if !old.is_file() => return Err(io::Error::other("no regular file")),
            Ok(old) if old.permissions().readonly() => return Err(io::Error::other("a read-only file")),
            // Of a symbolic link, the file that it leads to is replaced.
            Ok(_) => file.canonicalize()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => file.to_owned(),
            Err(error) => return Err(error),
        };
        let name = file.file_name().ok_or_else(|| io::Error::other("no file name"))?;
        let temporary =
            file.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
        File::create_new(&temporary)?;
        std::fs::remove_file(&temporary)?;
        Ok(Target { file, temporary })
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let write = || {
            let mut temporary = File::create_new(&self.temporary)?;
            io::Write::write_all(&mut temporary, text.as_bytes())?;
            temporary.sync_all()?;
            std::fs::rename(&self.temporary, &self.file)
        };
        write().inspect_err(|_| drop(std::fs::remove_file(&self.temporary)))
    }
}

fn make(choice: &Choice, settings: &Settings, selection: &Selection) -> Result<Certificate, Complaint> {
    let started = Instant::now();
    let obligations = judge(&selection.tasks, settings, choice)?;
    let mutants: Vec<_> = selection.mutants.iter().map(|mutant| (None, mutant.clone())).collect();
    let seeds: Vec<_> = selection.seeds.iter().map(|(hole, mutant)| (Some(*hole), mutant.clone())).collect();
    let mut axioms: Vec<String> = obligations.iter().flat_map(|one| one.axioms.clone()).collect();
    axioms.sort();
    axioms.dedup();
    Ok(Certificate {
        schema: SCHEMA,
        tool: format!("rankwise {}", env!("CARGO_PKG_VERSION")),
        rustc: env!("RANKWISE_RUSTC").to_owned(),
        policy: PolicyOf { digest: choice.digest(), keys: choice.keys() },
        sources: sources(),
        axioms,
        mutants: put_on_trial(&mutants, settings)?,
        seeds: put_on_trial(&seeds, settings)?,
        obligations,
        time: Time { seconds: started.elapsed().as_secs_f64(), date: today() },
    })
}

impl Certificate {
    /// Reads a certificate that [`write()`] wrote.
    pub(crate) fn read(file: &Path) -> Result<Certificate, Complaint> {
        let refused = |field: &str, found: String, expected: &str| {
            Complaint::field(file.display(), field, &found, expected)
        };
        let written = "a certificate that prove --certificate wrote";
        let text = std::fs::read_to_string(file).map_err(|e| refused("file", e.to_string(), written))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| refused("certificate", e.to_string(), written))?;
        match &value["schema"] {
            serde_json::Value::Null => return Err(refused("schema", "nothing".to_owned(), written)),
            schema if *schema != SCHEMA => {
                return Err(refused("schema", schema.to_string(), &SCHEMA.to_string()));
            }
            _ => {}
        }
        let certificate: Certificate =
            serde_json::from_value(value).map_err(|e| refused("certificate", e.to_string(), written))?;
        let drawn = certificate.obligations.iter().filter_map(|one| one.counterexample.as_ref());
        match drawn.filter_map(missing_lane).next() {
            Some(lane) => Err(refused("counterexample", format!("lane {lane}"), "a lane that it has")),
            None => Ok(certificate),
        }
    }

    fn obligations_with(&self, verdict: &str) -> u64 {
        self.obligations.iter().filter(|one| one.is(verdict)).count() as u64
    }

    /// Mutants and seeds, and how many of them are refuted by their claims.
    fn trials(&self) -> (u64, u64) {
        let all = self.mutants.iter().chain(&self.seeds);
        (all.clone().count() as u64, all.filter(|one| one.is(REFUTED)).count() as u64)
    }

    /// What it says, without names.
    fn tally(&self) -> String {
        let (refuted, open) = (self.obligations_with(REFUTED), self.obligations_with(INCONCLUSIVE));
        let mut told = match refuted + open {
            0 => format!("{} proved", count(self.obligations.len() as u64, "obligation")),
            _ => format!("{refuted} refuted, {open} inconclusive, {} proved", self.obligations_with(PROVED)),
        };
        let (all, caught) = self.trials();
        let _ = write!(told, ", {caught} of {} refuted", count(all, "mutant and seed rule"));
        told.replace("mutant and seed rules", "mutants and seed rules")
    }

    fn summary(&self, file: &Path) -> String {
        let mut text = String::new();
        for one in self.obligations.iter().filter(|one| !one.is(PROVED)) {
            let why = one.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            let _ = writeln!(text, "{}: {}{why}", one.verdict.as_deref().unwrap_or("not run"), one.told());
        }
        for one in self.mutants.iter().chain(&self.seeds).filter(|one| !one.is(REFUTED)) {
            let verdict = one.verdict.as_deref().unwrap_or("not tried");
            let _ = writeln!(text, "{verdict}: {}, against {} {}", one.name, one.requirement, one.claim);
        }
        let seconds = self.time.seconds;
        let _ = writeln!(text, "{}: certificate in {}, {seconds:.1} s", self.tally(), file.display());
        text
    }

    fn exit(&self) -> Exit {
        let tried = || self.mutants.iter().chain(&self.seeds);
        let survived = tried().any(|one| !one.is(REFUTED) && !one.is(INCONCLUSIVE));
        let open = self.obligations.iter().any(|one| !one.is(PROVED)) || tried().any(|one| !one.is(REFUTED));
        if survived || self.obligations.iter().any(|one| one.is(REFUTED)) {
            Exit::Refuted
        } else if open {
            Exit::Inconclusive
        } else {
            Exit::Good
        }
    }
}

/// A lane that a counterexample speaks of and has not.
fn missing_lane(found: &Counterexample) -> Option<usize> {
    let steps = found.steps.iter().map(|step| step.lane).chain(found.cycle.iter().copied());
    let waits = found.waits.iter().flat_map(|wait| [wait.lane, wait.on]);
    steps.chain(waits).find(|&lane| lane >= found.lanes.len())
}

/// Year-month-day, UTC.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    date(since.as_secs() / 86_400)
}

/// The date that many days after 1970-01-01.
fn date(days: u64) -> String {
    // Years are counted from March 0000, so that the day of a leap year is its last.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        let days = [0, 59, 11_016, 11_017, 20_453, 20_787];
        let dates = ["1970-01-01", "1970-03-01", "2000-02-29", "2000-03-01", "2025-12-31", "2026-11-30"];
        assert_eq!(days.map(date), dates);
    }
}
