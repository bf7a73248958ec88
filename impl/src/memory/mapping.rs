//! Mapped memory and the private buffers made of it.

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

/// A range of mapped pages, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is an address range of the process and belongs to no thread. It hands out its address
// alone; who touches the bytes when is said where they are touched.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed memory of this process. Pages cost nothing before they are touched, and a forked child gets
    /// copies.
    pub(crate) fn private(bytes: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so the kernel picks a range that nothing uses.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }?;
        Ok(Self { start: not_null(start.cast())?, bytes })
    }

    /// The first `bytes` bytes of `file`, shared with everyone who maps it.
    pub(crate) fn shared(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `private`. The mapping keeps the file's pages after the descriptor is closed.
        let start = unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0) }?;
        Ok(Self { start: not_null(start.cast())?, bytes })
    }

    /// First byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by a constructor and nobody holds an address into it: every view
        // borrows the mapping. An error would mean that the range is not mapped; then nothing is left to do.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn not_null(start: *mut u8) -> io::Result<NonNull<u8>> {
    NonNull::new(start).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// Private bytes, zero at first. What is never touched takes no memory, so a receive buffer costs the slots
/// that legs fill and no more.
#[derive(Debug)]
pub(crate) struct Buffer(Mapping);

impl Buffer {
    /// A buffer of `bytes` bytes, or the system's refusal.
    pub(crate) fn zeroed(bytes: usize) -> io::Result<Self> {
        Ok(Self(Mapping::private(bytes)?))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is readable, initialised to zeros, private to this value and borrowed from it.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.bytes) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, writable, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.0.start.as_ptr(), self.0.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_zero_and_keeps_what_is_written() {
        let mut buffer = Buffer::zeroed(10_000).unwrap();
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer[9_999] = 7;
        assert_eq!((buffer.len(), buffer[9_999]), (10_000, 7));
    }

    #[test]
    fn more_bytes_than_there_are_addresses_are_refused() {
        assert!(Buffer::zeroed(isize::MAX as usize).is_err());
    }
}
