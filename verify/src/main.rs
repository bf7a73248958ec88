//! The command `rankwise`: prove the protocols under a policy, explain what does not hold, run the real thing.
#![forbid(unsafe_code)]

mod card;
mod certificate;
mod choice;
mod cmd;
mod complaint;
mod counterexamples;
mod diff;
mod html;
mod keys;
mod launch;
mod npy;
mod progress;
mod proof;
mod rank;
mod reference;
mod regression;
mod report;
mod verdicts;

use clap::Parser;
use clap::error::ErrorKind;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cmd::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.run() {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(complaint) => complain(&complaint.to_string()),
    }
}

/// Help and version go to stdout and are no error; a mistake in the arguments is one line on stderr, exit 1.
fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::FAILURE
        }
        _ => complain(&one_line(&error.to_string())),
    }
}

fn complain(line: &str) -> ExitCode {
    report::warn(line);
    ExitCode::FAILURE
}

/// The lines of a usage error before its usage, as one.
fn one_line(text: &str) -> String {
    let told = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let told = told.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let line = told.collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).replace(" tip: ", "; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_error_is_one_line() {
        let error = cmd::Cli::try_parse_from(["rankwise", "run", "halo", "--wrold", "4"]).unwrap_err();
        let line = one_line(&error.to_string());
        assert_eq!(line, "unexpected argument '--wrold' found; a similar argument exists: '--world'");
    }
}
