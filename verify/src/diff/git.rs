//! What git knows: commits, the policy in them, and the commit that a branch left.

use crate::complaint::Complaint;
use rankwise_protocol::policy::SHIPPED_FILE;
use std::process::Command;

/// Branches that work goes into, the most likely first.
const TARGETS: [&str; 4] = ["upstream/main", "origin/main", "main", "@{upstream}"];

/// The short name of the commit that `revision` means.
pub(super) fn commit(revision: &str) -> Result<String, Complaint> {
    let commit = format!("{revision}^{{commit}}");
    git(&["rev-parse", "--short", "--verify", "--quiet", "--end-of-options", &commit]).map_err(|error| {
        let expected = "a policy.toml, a certificate.json or a git revision";
        let found = if error.is_empty() { "which git does not know".to_owned() } else { error };
        Complaint(format!("{revision:?}, {found}: expected {expected}"))
    })
}

/// The policy's text in a commit.
pub(super) fn policy(commit: &str) -> Result<String, Complaint> {
    git_text(&["show", &format!("{commit}:{SHIPPED_FILE}")])
        .map_err(|error| Complaint(format!("{commit}:{SHIPPED_FILE}: {error}")))
}

/// The commit at which HEAD left the branch that it will go into, and that branch.
pub(super) fn merge_base() -> Result<(String, &'static str), Complaint> {
    let named = "name a base: rankwise diff BASE, a policy.toml, a certificate.json or a git revision";
    git(&["rev-parse", "--git-dir"])
        .map_err(|error| Complaint(format!("no base to compare with: {error}; {named}")))?;
    let known =
        |target: &&str| git(&["rev-parse", "--verify", "--quiet", &format!("{target}^{{commit}}")]).is_ok();
    let target = TARGETS.into_iter().find(known).ok_or_else(|| {
        let targets = TARGETS.join(", ");
        Complaint(format!("no base to compare with: none of {targets} is a branch here; {named}"))
    })?;
    let base = git(&["merge-base", "HEAD", target]).map_err(|_| {
        Complaint(format!("no base to compare with: HEAD and {target} share no commit; {named}"))
    })?;
    Ok((commit(&base)?, target))
}

/// One line of output.
fn git(words: &[&str]) -> Result<String, String> {
    git_text(words).map(|text| text.trim().to_owned())
}

/// The output, or the first line of what git complains of.
fn git_text(words: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(words).output().map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        return String::from_utf8(output.stdout).map_err(|_| "git: not UTF-8".to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint.lines().next().unwrap_or_default().trim_start_matches("fatal: ").to_owned())
}
