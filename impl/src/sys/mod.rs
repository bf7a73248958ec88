//! Foreign calls that rustix has no safe form of: locks of open file descriptions.
//!
//! A lock of this kind belongs to an open file description, not to a process: two ranks of one process hold
//! locks of their own, and the kernel drops a lock with the last descriptor of its description, also when the
//! process is killed.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Takes the write lock on byte `at` of `file`; false where another description holds it.
pub(crate) fn lock_byte(file: BorrowedFd<'_>, at: u32) -> io::Result<bool> {
    match control(file, libc::F_OFD_SETLK, &mut byte(at)) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a description other than `file`'s holds a lock on byte `at`.
pub(crate) fn byte_is_locked(file: BorrowedFd<'_>, at: u32) -> io::Result<bool> {
    let mut lock = byte(at);
    control(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

/// A write lock on one byte. Its `l_pid` is 0, as these calls demand.
fn byte(at: u32) -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: libc::off_t::from(at),
        l_len: 1,
        l_pid: 0,
    }
}

fn control(file: BorrowedFd<'_>, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: `file` is open for the length of the borrow, and `lock` is a flock that outlives the call,
    // which is what both commands read and write.
    let code = unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if code == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
    use std::os::fd::{AsFd, OwnedFd};

    fn again(file: &OwnedFd) -> OwnedFd {
        open(format!("/proc/self/fd/{}", file.as_raw_fd()), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .unwrap()
    }

    #[test]
    fn a_byte_is_locked_once_and_freed_with_its_description() {
        let first = memfd_create("lock", MemfdFlags::CLOEXEC).unwrap();
        let second = again(&first);
        assert!(lock_byte(first.as_fd(), 3).unwrap());
        assert!(!lock_byte(second.as_fd(), 3).unwrap());
        assert!(byte_is_locked(second.as_fd(), 3).unwrap());
        assert!(!byte_is_locked(second.as_fd(), 2).unwrap());
        drop(first);
        assert!(lock_byte(second.as_fd(), 3).unwrap());
    }
}
