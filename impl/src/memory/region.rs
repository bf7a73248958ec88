//! The memory that the ranks of a group share, laid out by [`SharedLayout`].
//!
//! | part | who touches it | under |
//! | --- | --- | --- |
//! | decision and `posted` words | all, as atomics | `protocol::shared::board` |
//! | record slots | one writer or any readers, by copying | a claim, which a `Member` makes |
//! | `written` and `consumed` words | two ranks, as atomics | `protocol::shared::channel` |
//! | ring bytes | one of two ranks, by copying | a span, which a `Sender` or `Receiver` makes |
//! | `claimed` words | all, as atomics | set once, by the process that becomes the rank |
//! | bells | all, as atomics | nothing depends on them but how soon a sleeper looks again |
//!
//! A claim or a span alone proves nothing: another machine could make the same one. That bytes are not written
//! while they are copied rests on three things:
//!
//! - a region has one `Member` a rank, and one `Sender` and one `Receiver` a channel: each lies in the rank's
//!   only `Rank`, under a lock, and a process becomes a rank by claiming it, once in a region's life;
//! - peers are of this build, as the join of their group has shown;
//! - those machines keep bytes apart, as the checker shows (GRP-4, CHN-1, CHN-2).
//!
//! A peer that breaks the protocol, or writes to the memory by other means, can spoil data and race with copies of
//! these bytes. No Rust program can exclude that of memory it shares. Its reach is kept small: no reference to
//! shared bytes is ever made, only to atomics; bytes are copied in and out through addresses and are plain bytes
//! only, of which any is valid; and records and headers are checked before they are used.

use super::Mapping;
use rankwise_protocol::group::{ReadClaim, WriteClaim};
use rankwise_protocol::shared::board::Board;
use rankwise_protocol::shared::channel::{ReadSpan, Ring, WriteSpan};
use rankwise_protocol::wire::{LINE_BYTES, RECORD_BYTES, SharedLayout};
use rustix::fs::Timespec;
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

/// The shared memory of one group.
#[derive(Debug)]
pub(crate) struct Region {
    mapping: Mapping,
    layout: SharedLayout,
}

impl Region {
    /// Lays a group's parts over `mapping`, which starts as zeros.
    pub(crate) fn new(mapping: Mapping, layout: SharedLayout) -> Self {
        assert!(mapping.bytes() >= layout.bytes(), "{} bytes for {}", mapping.bytes(), layout.bytes());
        Self { mapping, layout }
    }

    /// The channel from one rank to another.
    pub(crate) fn channel(&self, from: u32, to: u32) -> Channel<'_> {
        assert!(from < self.layout.world && to < self.layout.world, "no channel from {from} to {to}");
        Channel { region: self, start: self.layout.channel(from, to) }
    }

    /// Claims `rank`; false where it was claimed before.
    pub(crate) fn claim(&self, rank: u32) -> bool {
        self.half_word(self.layout.claimed(rank)).swap(1, Ordering::AcqRel) == 0
    }

    /// Whether `rank` was ever claimed.
    pub(crate) fn is_claimed(&self, rank: u32) -> bool {
        self.half_word(self.layout.claimed(rank)).load(Ordering::Acquire) != 0
    }

    /// The bell of `rank`.
    pub(crate) fn bell(&self, rank: u32) -> Bell<'_> {
        let [rung, asleep] = [self.layout.rung(rank), self.layout.asleep(rank)];
        Bell { rung: self.half_word(rung), asleep: self.half_word(asleep) }
    }

    /// Wakes every rank but `rank` that sleeps, after a word that they may wait for was written.
    pub(crate) fn ring_others(&self, rank: u32) {
        before_ringing();
        (0..self.layout.world).filter(|&other| other != rank).for_each(|other| self.bell(other).ring());
    }

    /// Wakes all that sleep, other threads of this rank among them, after a word that they may wait for was
    /// written.
    pub(crate) fn ring_all(&self) {
        before_ringing();
        (0..self.layout.world).for_each(|rank| self.bell(rank).ring());
    }

    /// Wakes `rank` if it sleeps, after a word that it may wait for was written.
    pub(crate) fn ring(&self, rank: u32) {
        before_ringing();
        self.bell(rank).ring();
    }

    /// Address of `bytes` bytes at `offset`, which must lie in the mapping.
    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        let end = offset.checked_add(bytes).expect("offsets are within the layout");
        assert!(end <= self.mapping.bytes(), "{offset}..{end} of {}", self.mapping.bytes());
        // SAFETY: the offset is within the mapping, as just checked.
        unsafe { self.mapping.start().as_ptr().add(offset) }
    }

    fn half_word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "word at {offset}");
        // SAFETY: as in `word`, with 32 bits.
        unsafe { &*self.at(offset, 4).cast::<AtomicU32>() }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8), "word at {offset}");
        // SAFETY: `at` has checked the range; mappings start at a page, so the word is aligned; zeros are a
        // valid value; and the layout keeps words apart from bytes, so all ranks touch it as this atomic only.
        unsafe { &*self.at(offset, 8).cast::<AtomicU64>() }
    }
}

impl Board for Region {
    type Word = AtomicU64;

    fn decision(&self) -> &AtomicU64 {
        self.word(self.layout.decision())
    }

    fn posted(&self, rank: u32) -> &AtomicU64 {
        self.word(self.layout.posted(rank))
    }

    fn write(&self, claim: WriteClaim, record: &[u8; RECORD_BYTES]) {
        let (rank, slot) = claim.slot();
        let slot = self.at(self.layout.slot(rank, slot), RECORD_BYTES);
        // SAFETY: `at` has checked the range, and `record` is no part of the region. The claim is of the one
        // member of this rank, so that no peer that keeps to the protocol reads or writes the slot now (GRP-4);
        // of one that does not, see the head of this file.
        unsafe { slot.copy_from_nonoverlapping(record.as_ptr(), RECORD_BYTES) }
    }

    fn read(&self, claim: ReadClaim) -> [u8; RECORD_BYTES] {
        let (rank, slot) = claim.slot();
        let slot = self.at(self.layout.slot(rank, slot), RECORD_BYTES);
        let mut record = [0; RECORD_BYTES];
        // SAFETY: as in `write`: the claim is of the one member of this rank, and `rank` does not write the slot
        // before all have read it. Whatever the bytes are, they are copied as bytes.
        unsafe { slot.copy_to_nonoverlapping(record.as_mut_ptr(), RECORD_BYTES) }
        record
    }
}

/// One channel of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel<'a> {
    region: &'a Region,
    start: usize,
}

impl Channel<'_> {
    /// Calls `copy` with the address of each part of a span of the ring and that part's range within the
    /// span: one part, or two where the span goes around the ring's end.
    fn parts(&self, (offset, len): (usize, usize), mut copy: impl FnMut(*mut u8, std::ops::Range<usize>)) {
        assert!(offset < self.capacity() && len <= self.capacity(), "span {offset}+{len}");
        let ring = self.start + 2 * LINE_BYTES;
        let first = len.min(self.capacity() - offset);
        copy(self.region.at(ring + offset, first), 0..first);
        if first < len {
            copy(self.region.at(ring, len - first), first..len);
        }
    }
}

impl Ring for Channel<'_> {
    type Word = AtomicU64;

    fn written(&self) -> &AtomicU64 {
        self.region.word(self.start)
    }

    fn consumed(&self) -> &AtomicU64 {
        self.region.word(self.start + LINE_BYTES)
    }

    fn capacity(&self) -> usize {
        self.region.layout.ring_bytes
    }

    fn write(&self, span: WriteSpan, bytes: &[u8]) {
        assert_eq!(bytes.len(), span.range().1, "bytes of the span");
        self.parts(span.range(), |to, part| {
            let from = &bytes[part];
            // SAFETY: `parts` has checked the range, and `from` is no part of the region. The span is of the one
            // sender of this channel, and a receiver that keeps to the protocol does not touch these bytes now: it
            // has consumed what was there and not yet been told of what comes (CHN-2). Of one that does not, see
            // the head of this file.
            unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) }
        });
    }

    fn read(&self, span: ReadSpan, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), span.range().1, "bytes of the span");
        self.parts(span.range(), |from, part| {
            let to = &mut bytes[part];
            // SAFETY: as in `write`: the span is of the one receiver of this channel; its sender has announced
            // these bytes and does not touch them before it is told that they are consumed (CHN-1). Whatever they
            // are, they are copied as bytes.
            unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) }
        });
    }
}

/// How a rank sleeps until a peer has written a word that it may wait for.
///
/// A sleeper counts itself in `asleep`, looks once more at what it waits for, and sleeps while `rung` is what
/// it was. A peer writes its word, then looks at `asleep`, and makes a system call only if someone sleeps. A
/// full fence on each side lies between the own write and the look at the other's, so one of the two sees the
/// other: no wake is missed. Sleep is in slices all the same, since a peer that was killed wakes nobody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bell<'a> {
    rung: &'a AtomicU32,
    asleep: &'a AtomicU32,
}

impl<'a> Bell<'a> {
    /// Announces that the caller is about to sleep. It must look once more before it does.
    pub(crate) fn lie_down(self) -> Sleeper<'a> {
        let rung = self.rung.load(Ordering::Acquire);
        self.asleep.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Sleeper { bell: self, rung }
    }

    fn ring(self) {
        if self.asleep.load(Ordering::Relaxed) > 0 {
            self.rung.fetch_add(1, Ordering::Release);
            // An error would mean a word that is not mapped, which a reference excludes.
            let _ = futex::wake(self.rung, futex::Flags::empty(), i32::MAX as u32);
        }
    }
}

/// The order between the word that was written and the look at who sleeps.
fn before_ringing() {
    fence(Ordering::SeqCst);
}

/// One who has lain down; gets up when dropped.
#[derive(Debug)]
pub(crate) struct Sleeper<'a> {
    bell: Bell<'a>,
    rung: u32,
}

impl Sleeper<'_> {
    /// Sleeps until the bell rings, at most for `slice`. May return early.
    pub(crate) fn sleep(&self, slice: Duration) {
        let slice = Timespec {
            tv_sec: i64::try_from(slice.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: slice.subsec_nanos().into(),
        };
        // Rung already, a signal, the end of the slice: each means to look again.
        let _ = futex::wait(self.bell.rung, futex::Flags::empty(), self.rung, Some(&slice));
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.bell.asleep.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankwise_protocol::rules::Shipped;
    use rankwise_protocol::shared::channel::{Receiver, Sender, pull, push};
    use std::time::Instant;

    fn region() -> Region {
        let layout = SharedLayout { world: 2, slots: 2, ring_bytes: 64 };
        Region::new(Mapping::private(layout.bytes()).unwrap(), layout)
    }

    #[test]
    fn bytes_go_around_the_end_of_the_ring_and_come_out_in_order() {
        let region = region();
        let channel = region.channel(0, 1);
        let (mut sender, mut receiver) = (Sender::<Shipped>::default(), Receiver::<Shipped>::default());
        let sent: Vec<u8> = (0..1000).map(|i| (i * 7) as u8).collect();
        let mut came = vec![0; sent.len()];
        let (mut out, mut back) = (0, 0);
        while back < sent.len() {
            let end = sent.len().min(out + 27);
            out += push(&channel, &mut sender, &sent[out..end]);
            let end = sent.len().min(back + 19);
            back += pull(&channel, &mut receiver, &mut came[back..end]);
        }
        assert_eq!(came, sent);
    }

    #[test]
    fn a_rank_is_claimed_once() {
        let region = region();
        assert!(!region.is_claimed(1));
        assert!(region.claim(1) && !region.claim(1));
        assert!(region.is_claimed(1) && !region.is_claimed(0));
    }

    #[test]
    fn a_sleeper_that_is_rung_after_it_lay_down_does_not_sleep() {
        let region = region();
        for ring in [|region: &Region| region.ring(1), Region::ring_all] {
            let sleeper = region.bell(1).lie_down();
            ring(&region);
            let start = Instant::now();
            sleeper.sleep(Duration::from_secs(10));
            assert!(start.elapsed() < Duration::from_secs(5));
        }
    }

    #[test]
    fn a_sleeper_that_nobody_rings_gets_up_after_its_slice() {
        let region = region();
        region.ring_others(1);
        let sleeper = region.bell(1).lie_down();
        sleeper.sleep(Duration::from_millis(1));
        drop(sleeper);
        assert_eq!(region.bell(1).asleep.load(Ordering::Relaxed), 0);
    }
}
