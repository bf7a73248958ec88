//! Progress: one line on stderr that is rewritten, where stderr is a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two lines.
const PAUSE: Duration = Duration::from_millis(100);
/// Goes to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

static WANTED: AtomicBool = AtomicBool::new(false);

/// From now on progress is shown, if stderr is a terminal.
pub(crate) fn show() {
    WANTED.store(stderr().is_terminal(), Ordering::Relaxed);
}

/// Work that is shown.
pub(crate) struct Progress {
    shown: bool,
    started: Instant,
    state: Mutex<State>,
}

struct State {
    all: usize,
    done: usize,
    /// What is under way, with its states so far.
    under_way: Vec<(String, u64)>,
    drawn: Instant,
}

impl Progress {
    /// Of `all` pieces of work.
    pub(crate) fn new(all: usize) -> Self {
        let started = Instant::now();
        let state = State { all, done: 0, under_way: Vec::new(), drawn: started };
        Progress { shown: WANTED.load(Ordering::Relaxed), started, state: Mutex::new(state) }
    }

    /// A piece of work begins.
    pub(crate) fn begin(&self, name: &str) {
        self.state().under_way.push((name.to_owned(), 0));
    }

    /// A piece of work has come to `states`.
    pub(crate) fn reached(&self, name: &str, states: u64) {
        let mut state = self.state();
        if let Some(one) = state.under_way.iter_mut().find(|(known, _)| known == name) {
            one.1 = states;
        }
        self.draw(&mut state);
    }

    /// A piece of work is done.
    pub(crate) fn end(&self, name: &str) {
        let mut state = self.state();
        state.under_way.retain(|(known, _)| known != name);
        state.done += 1;
        self.draw(&mut state);
    }

    /// Clears the line while something is printed.
    pub(crate) fn pause<T>(&self, print: impl FnOnce() -> T) -> T {
        let _held = self.state();
        self.write(CLEAR);
        print()
    }

    fn draw(&self, state: &mut State) {
        if state.drawn.elapsed() < PAUSE {
            return;
        }
        state.drawn = Instant::now();
        // A line that wraps can't be rewritten.
        let line: String = state.line(self.started.elapsed()).chars().take(width() - 1).collect();
        self.write(&format!("{CLEAR}{line}"));
    }

    fn write(&self, text: &str) {
        if self.shown {
            // Progress that can't be shown is no reason to stop.
            let _ = stderr().write_all(text.as_bytes());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.write(CLEAR);
    }
}

impl State {
    fn line(&self, elapsed: Duration) -> String {
        let State { all, done, .. } = self;
        let under_way = self.under_way.iter().map(|(name, states)| match states {
            0 => format!(", {name}"),
            _ => format!(", {name}: {}", crate::report::count(*states, "state")),
        });
        under_way.fold(format!("{done}/{all}, {} s", elapsed.as_secs()), |line, one| line + &one)
    }
}

/// Columns of the terminal that stderr is.
fn width() -> usize {
    let told = rustix::termios::tcgetwinsize(stderr()).map_or(0, |size| usize::from(size.ws_col));
    if told > 1 { told } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_done_and_what_is_under_way() {
        let progress = Progress::new(3);
        progress.begin("a/b");
        progress.begin("c/d");
        progress.reached("c/d", 12_288);
        progress.end("a/b");
        let line = progress.state().line(Duration::from_millis(4200));
        assert_eq!(line, "1/3, 4 s, c/d: 12,288 states");
    }
}
