//! The policy that a command works with: the shipped one or a file, with what `--set` puts over it.

use crate::complaint::{Complaint, regular};
use crate::keys::{self, Key};
use rankwise_check::lanes::PolicyLine;
use rankwise_protocol::policy::{KEYS, Policy, PolicyError, SHIPPED, SHIPPED_FILE};
use std::path::{Path, PathBuf};

/// What `--policy` and `--set` say.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PolicyArgs {
    /// Policy key and value to put over the policy; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Policy file to read instead of the shipped one
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

impl PolicyArgs {
    /// Puts a key over all others.
    pub(crate) fn put(&mut self, key: &str, value: &str) {
        self.sets.push(format!("{key}={value}"));
    }

    /// The arguments that say the same.
    pub(crate) fn to_args(&self) -> Vec<std::ffi::OsString> {
        let file = self.policy.iter().flat_map(|file| ["--policy".into(), file.clone().into()]);
        file.chain(self.sets.iter().flat_map(|set| ["--set".into(), set.into()])).collect()
    }
}

/// A policy and where each of its values comes from.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The policy.
    pub(crate) policy: Policy,
    file: String,
    text: String,
    sets: Vec<(String, String)>,
}

impl Choice {
    /// Reads what the arguments name.
    pub(crate) fn read(args: &PolicyArgs) -> Result<Choice, Complaint> {
        let (file, text) = match &args.policy {
            None => (SHIPPED_FILE.to_owned(), SHIPPED.to_owned()),
            Some(path) => (path.display().to_string(), read_file(path)?),
        };
        let sets = args.sets.iter().map(|set| pair(set)).collect::<Result<Vec<_>, _>>()?;
        Ok(Choice::parse(file, text, sets)?)
    }

    /// Reads a policy from its text, with `sets` over what stands in it.
    pub(crate) fn parse(
        file: String,
        text: String,
        sets: Vec<(String, String)>,
    ) -> Result<Choice, PolicyError> {
        let policy = Policy::parse(&file, &text, &sets)?;
        Ok(Choice { policy, file, text, sets })
    }

    /// Every key with its value in one form.
    pub(crate) fn keys(&self) -> Vec<Key> {
        keys::read(&self.text, &self.sets)
    }

    /// Whether it is the policy that ships, whatever file it came from.
    pub(crate) fn is_shipped(&self) -> bool {
        self.policy == Policy::shipped()
    }

    /// Where it came from, in a few words.
    pub(crate) fn origin(&self) -> String {
        let sets = self.sets.iter().map(|(key, value)| format!(" --set {key}={value}"));
        sets.fold(self.file.clone(), |origin, set| origin + &set)
    }

    /// What the digest of the policy is written as.
    pub(crate) fn digest(&self) -> String {
        format!("{:016x}", self.policy.digest())
    }

    /// The lines that a counterexample hangs on: of the keys that its study reads, those that differ from the
    /// shipped policy, or all if none does.
    pub(crate) fn lines(&self, reads: &[&str]) -> Vec<PolicyLine> {
        let shipped = Policy::shipped();
        let differs = |key: &&str| value(&self.policy, key) != value(&shipped, key);
        let changed: Vec<&str> = reads.iter().copied().filter(differs).collect();
        let keys = if changed.is_empty() { reads.to_vec() } else { changed };
        keys.into_iter().map(|key| self.line(key)).collect()
    }

    /// A key, its value and where it stands.
    pub(crate) fn line(&self, key: &str) -> PolicyLine {
        let set = self.sets.iter().rev().find(|(name, _)| name == key);
        let origin = match (set, Policy::line_of(&self.text, key)) {
            (Some((key, value)), _) => format!("--set {key}={value}"),
            (None, Some(line)) => format!("{}:{line}", self.file),
            (None, None) => self.file.clone(),
        };
        PolicyLine { key: key.to_owned(), value: value(&self.policy, key), origin }
    }
}

/// The value of a key of [`KEYS`], as a person reads it.
pub(crate) fn value(policy: &Policy, key: &str) -> String {
    match key {
        "halo.rungs" => {
            let rungs = policy.halo().rungs.iter();
            rungs.map(|rung| format!("{}: {}", rung.worlds, rung.arm)).collect::<Vec<_>>().join(", ")
        }
        "halo.coalesce" => policy.halo().coalesce.to_string(),
        "halo.override_env" => policy.halo().override_env.clone(),
        "call.deadline_ms" => policy.call().deadline_ms.to_string(),
        _ => unreachable!("{key} is none of {KEYS:?}"),
    }
}

fn read_file(path: &Path) -> Result<String, Complaint> {
    let text = regular(path).and_then(|()| std::fs::read_to_string(path).map_err(|error| error.to_string()));
    text.map_err(|found| Complaint::field("--policy", &path.display().to_string(), &found, "a file"))
}

fn pair(set: &str) -> Result<(String, String), Complaint> {
    let (key, value) = set.split_once('=').ok_or_else(|| {
        Complaint(format!("--set: found {set:?}, expected KEY=VALUE, as halo.coalesce=false"))
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(sets: &[&str]) -> Choice {
        let sets = sets.iter().map(|&set| set.to_owned()).collect();
        Choice::read(&PolicyArgs { sets, policy: None }).unwrap()
    }

    #[test]
    fn every_key_has_a_value_and_a_line() {
        let choice = choice(&[]);
        for key in KEYS {
            let line = choice.line(key);
            assert!(!line.value.is_empty() && line.origin.starts_with("model/policy.toml:"), "{line:?}");
        }
    }

    #[test]
    fn the_keys_that_were_changed_stand_for_a_counterexample() {
        let changed = choice(&["halo.coalesce=false"]).lines(&["halo.rungs", "halo.coalesce"]);
        assert_eq!(changed.len(), 1);
        assert_eq!(
            (changed[0].value.as_str(), changed[0].origin.as_str()),
            ("false", "--set halo.coalesce=false")
        );
        assert_eq!(choice(&[]).lines(&["halo.rungs", "halo.coalesce"]).len(), 2);
    }

    #[test]
    fn a_set_without_a_value_is_refused() {
        let args = PolicyArgs { sets: vec!["halo.coalesce".into()], policy: None };
        assert!(Choice::read(&args).unwrap_err().to_string().contains("expected KEY=VALUE"));
    }
}
