//! Whether this is still the process that it was.

use super::Mapping;
use rustix::mm::{Advice, madvise};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// The process that made something, and a mark that the kernel wipes in a child that it forks. Reading it costs
/// a load, where asking for the process's number costs a system call at every call of a group.
#[derive(Debug)]
pub(crate) struct Origin {
    process: u32,
    /// `None` where the kernel does not wipe.
    mark: Option<Mapping>,
}

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        Self { process: std::process::id(), mark: wiped_mark().ok() }
    }

    /// Refuses in a forked child: gives the process that made this, and the one that asks.
    pub(crate) fn check(&self) -> Result<(), (u32, u32)> {
        if self.mark.as_ref().is_some_and(|mark| word(mark).load(Ordering::Relaxed) == 1) {
            return Ok(());
        }
        let found = std::process::id();
        if found == self.process { Ok(()) } else { Err((self.process, found)) }
    }
}

fn wiped_mark() -> io::Result<Mapping> {
    let mark = Mapping::private(size_of::<u64>())?;
    // SAFETY: the range is the mapping's, private and anonymous, and its one word may become zero in a child at
    // any time: it is an atomic, and zero a value of it.
    unsafe { madvise(mark.start().as_ptr().cast(), mark.bytes(), Advice::LinuxWipeOnFork) }?;
    word(&mark).store(1, Ordering::Relaxed);
    Ok(mark)
}

fn word(mark: &Mapping) -> &AtomicU64 {
    // SAFETY: a mark is as long as a word and aligned to a page, zeros are a valid value, and nothing but this
    // atomic lies there.
    unsafe { mark.start().cast::<AtomicU64>().as_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_made_it_passes_with_or_without_a_mark() {
        let origin = Origin::here();
        assert_eq!(origin.check(), Ok(()));
        assert_eq!(Origin { mark: None, ..origin }.check(), Ok(()));
    }

    #[test]
    fn another_process_is_refused_with_both_numbers() {
        let (process, found) = (1, std::process::id());
        assert_eq!(Origin { process, mark: None }.check(), Err((process, found)));
        let wiped = Mapping::private(size_of::<u64>()).unwrap();
        assert_eq!(Origin { process, mark: Some(wiped) }.check(), Err((process, found)));
    }
}
