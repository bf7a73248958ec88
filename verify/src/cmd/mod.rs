//! One file a command.

mod diff;
mod doctor;
mod explain;
mod prove;
mod replay;
mod run;

use crate::complaint::Complaint;
use crate::report::Exit;
use clap::{Parser, Subcommand};

/// Move tensors between the ranks of a sharded inference job, on paths that are proved before they run.
#[derive(Debug, Parser)]
#[command(name = "rankwise", version, arg_required_else_help = true, after_help = EXITS)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXITS: &str = "Exit codes: 0 good, 2 refuted or different, 3 inconclusive, 1 everything else.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Prove every obligation under a policy, or draw what breaks it
    Prove(prove::Args),
    /// Say what an edit of the policy changes: arms, bytes, evidence, what is proved
    Diff(diff::Args),
    /// Say what a requirement means, or draw a counterexample from a file
    Explain(explain::Args),
    /// Run a collective over real ranks and compare every bit with the unsplit array
    Run(run::Args),
    /// Run the logs of a recorded run through the model and say whether it conforms
    Replay(replay::Args),
    /// Say what this machine has and which arm each collective takes here
    Doctor(doctor::Args),
}

impl Cli {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<Exit, Complaint> {
        match self.command {
            Command::Prove(args) => prove::run(&args),
            Command::Diff(args) => diff::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Run(args) => run::run(args),
            Command::Replay(args) => replay::run(&args),
            Command::Doctor(args) => doctor::run(&args),
        }
    }
}
