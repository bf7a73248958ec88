//! The two sides of a comparison: a policy file, a certificate, or the policy in a git revision.

use super::git;
use crate::certificate::{Certificate, Sources, sources};
use crate::choice::{Choice, value};
use crate::complaint::Complaint;
use crate::counterexamples::workspace;
use crate::keys::{self, Key};
use rankwise_protocol::policy::{KEYS, PolicyError, SHIPPED_FILE};
use std::path::Path;

/// One side.
pub(super) struct Side {
    /// As a reader finds it again.
    pub(super) name: String,
    /// Its policy, or why this build cannot read it.
    pub(super) choice: Result<Choice, PolicyError>,
    /// The policy's keys, whether or not this build knows them.
    pub(super) keys: Vec<Key>,
    /// What was proved of it, if it is a certificate.
    pub(super) certificate: Option<Certificate>,
}

impl Side {
    /// The side that an argument names.
    pub(super) fn read(argument: &str) -> Result<Side, Complaint> {
        let path = Path::new(argument);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::file(argument.to_owned(), path),
            Some("json") => Self::certificate(argument.to_owned(), path),
            _ => {
                let commit = git::commit(argument)?;
                let name = if commit.starts_with(argument) || argument.starts_with(&commit) {
                    commit.clone()
                } else {
                    format!("{argument} ({commit})")
                };
                Ok(Self::policy(name, format!("{commit}:{SHIPPED_FILE}"), git::policy(&commit)?))
            }
        }
    }

    /// The policy at the commit where HEAD left the branch that it will go into.
    pub(super) fn merge_base() -> Result<Side, Complaint> {
        let (commit, target) = git::merge_base()?;
        let name = format!("{commit} (where HEAD left {target})");
        Ok(Self::policy(name, format!("{commit}:{SHIPPED_FILE}"), git::policy(&commit)?))
    }

    /// The policy of the working tree.
    pub(super) fn working_tree() -> Result<Side, Complaint> {
        Self::file(SHIPPED_FILE.to_owned(), &workspace().join(SHIPPED_FILE))
    }

    fn file(name: String, path: &Path) -> Result<Side, Complaint> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Complaint(format!("{name}: {error}; expected a policy")))?;
        Ok(Self::policy(name.clone(), name, text))
    }

    fn policy(name: String, file: String, text: String) -> Side {
        let keys = keys::read(&text, &[]);
        Side { name, choice: Choice::parse(file, text, Vec::new()), keys, certificate: None }
    }

    fn certificate(name: String, path: &Path) -> Result<Side, Complaint> {
        let certificate = Certificate::read(path)?;
        let keys = certificate.policy.keys.clone();
        let choice = Choice::parse(name.clone(), keys::text_of(&keys), Vec::new());
        Ok(Side { name, choice, keys, certificate: Some(certificate) })
    }

    /// Digests of the sources it speaks of: its certificate's, or those that this command was built from.
    pub(super) fn sources(&self) -> Vec<Sources> {
        self.certificate.as_ref().map_or_else(sources, |one| one.sources.clone())
    }

    /// A key's value, as it stands there.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|one| one.key == key).map(|one| one.value.as_str())
    }

    /// A key's value, as a person reads it.
    pub(super) fn told(&self, key: &str) -> Option<String> {
        match &self.choice {
            Ok(choice) if KEYS.contains(&key) => Some(value(&choice.policy, key)),
            _ => self.value(key).map(str::to_owned),
        }
    }

    /// File and line of a key, where there is one.
    pub(super) fn place(&self, key: &str) -> String {
        let line = self.keys.iter().find(|one| one.key == key).and_then(|one| one.line);
        match (line, self.name.ends_with(".toml")) {
            (Some(line), true) => format!("{}:{line}", self.name),
            (Some(line), false) => format!("line {line}"),
            (None, _) => self.name.clone(),
        }
    }
}
