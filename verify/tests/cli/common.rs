//! Running the command and looking at what came of it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// The command, in an environment that says nothing of ranks and arms.
pub(crate) fn rankwise() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankwise"));
    for variable in ["RANK", "WORLD_SIZE", "RANKWISE_JOB", "RANKWISE_HALO"] {
        command.env_remove(variable);
    }
    command
}

/// What the command did.
#[derive(Debug)]
pub(crate) struct Done {
    /// Its exit code.
    pub(crate) code: Option<i32>,
    /// Its results.
    pub(crate) stdout: String,
    /// Its diagnostics.
    pub(crate) stderr: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Done {
    /// The one JSON object on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs `rankwise` with these words.
pub(crate) fn run(words: &[&str]) -> Done {
    rankwise().args(words).output().expect("the command starts").into()
}

/// Runs `rankwise` with these words in `folder`.
pub(crate) fn run_in(folder: &Path, words: &[&str]) -> Done {
    rankwise().args(words).current_dir(folder).output().expect("the command starts").into()
}

/// A folder that is gone when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("cli-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and gives its path.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file of the test");
        path.to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
