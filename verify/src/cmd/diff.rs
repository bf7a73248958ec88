//! `rankwise diff`: what an edit of the policy, or of the protocol, changes.

use super::prove::{budget, listen, worlds};
use crate::complaint::Complaint;
use crate::diff::{self, Form};
use crate::report::Exit;
use rankwise_check::explore::Budget;

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = SIDES)]
pub(crate) struct Args {
    /// What to compare with; where HEAD left the branch that it will go into, unless given
    base: Option<String>,
    /// What is compared; model/policy.toml of the working tree, unless given
    head: Option<String>,
    /// Write it as Markdown, to be pasted into a review
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Only these worlds, inclusive, as 2-8 or 4
    #[arg(long, value_name = "FIRST-LAST", value_parser = worlds)]
    worlds: Option<(u32, u32)>,
    /// Limits of each study
    #[arg(long, value_name = "states=N,seconds=N,bytes=N", value_parser = budget, default_value = "")]
    budget: Budget,
}

const SIDES: &str = "A side is a policy (NAME.toml), a certificate (NAME.json, from prove --certificate), or a git \
                     revision, whose model/policy.toml is taken.\n\
                     Exit codes: 0 same or holds; 2 refuted, or less is proved; 3 inconclusive; 1 the policy cannot \
                     be read, and everything else.";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Complaint> {
    let form = match (args.markdown, args.json) {
        (true, _) => Form::Markdown,
        (_, true) => Form::Json,
        _ => Form::Text,
    };
    let limits = diff::Limits { worlds: args.worlds, budget: args.budget, interrupted: listen()? };
    diff::run(args.base.as_deref(), args.head.as_deref(), &limits, form)
}
