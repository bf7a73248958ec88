//! The group whose ranks are processes of one host, and how they meet.
//!
//! Rank 0 makes a memfd, binds an abstract socket named by the address, and hands the memfd to whoever comes.
//! A rank opens it anew through `/proc`, so that it has an open file description of its own, locks the byte
//! of its number, which proves from then on that it lives, and sets its `claimed` word, which is never reset:
//! a rank is claimed once in a group's life, so nobody can take the place of one that ended. Rank 0 tells its
//! guests to go once every rank is claimed, so a byte found free after that is a rank that has ended. Nothing
//! has a name in a file system; the last process to end takes everything along, however it ends.
//!
//! ```text
//!  rank 0: memfd, claim 0, bind ──▶ hand out the memfd ... every rank claimed ──▶ go ─┐
//!  rank r: connect (again till there) ──▶ check header ──▶ claim r ───────────────────┴▶ first exchange: join
//! ```
//!
//! A child that a rank forks keeps the rank's description open: while such a child lives, its rank does not
//! count as gone, and peers learn of its death by their deadline.

use super::{nonce, region_layout};
use crate::error::GroupError;
use crate::memory::{Mapping, Region};
use crate::sys;
use crate::wait::Deadline;
use rankwise_protocol::wire::{MAGIC, SharedLayout, VERSION};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::{fs, io, process};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of the region's header: magic and version, world, nonce, ring bytes.
const HEADER_BYTES: usize = 32;
/// Missing ranks that rank 0 names to its guests at most.
const NAMED_MAX: usize = 64;
/// Seals of a memfd that can't shrink under a peer that has mapped it.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Where a group meets.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// As the user knows it.
    pub(super) shown: String,
    /// What tells groups apart, within the user's own sockets.
    pub(super) key: String,
}

/// A rank's part of a group that has met.
#[derive(Debug)]
pub(super) struct Seat {
    /// The rank's own description of the memfd, on which its byte is locked.
    pub(super) file: OwnedFd,
    pub(super) region: Region,
    pub(super) nonce: u64,
}

/// Rank 0, ready for guests.
#[derive(Debug)]
pub(super) struct Host {
    place: Place,
    world: u32,
    seat: Seat,
    /// What is handed out: a description that nobody locks.
    memory: OwnedFd,
    listener: OwnedFd,
}

/// Whether `rank` has ended, seen from the description of another rank. If the kernel can't say, it has not.
pub(super) fn is_gone(file: &OwnedFd, rank: u32) -> bool {
    matches!(sys::byte_is_locked(file.as_fd(), rank), Ok(false))
}

impl Seat {
    /// The ranks that nobody has claimed yet.
    fn unclaimed(&self, world: u32) -> Vec<u32> {
        (0..world).filter(|&rank| !self.region.is_claimed(rank)).collect()
    }
}

impl Host {
    /// Makes the memory and takes the address.
    pub(super) fn open(place: Place, world: u32) -> Result<Host, GroupError> {
        let layout = region_layout(world);
        let nonce = nonce()?;
        let memory = make_memory(&layout, nonce)?;
        let seat = claim(memory.as_fd(), 0, layout, nonce, &place)?;
        let listener = listen(&place, world)?;
        Ok(Host { place, world, seat, memory, listener })
    }

    /// Hands the memory out until every rank has claimed its place.
    pub(super) fn receive(self, deadline: Deadline, deadline_ms: u64) -> Result<Seat, GroupError> {
        let mut guests: Vec<OwnedFd> = Vec::new();
        loop {
            let ranks = self.seat.unclaimed(self.world);
            let expired = deadline.passed();
            if ranks.is_empty() || expired {
                guests.iter().for_each(|guest| tell(guest, &ranks));
            }
            if ranks.is_empty() {
                return Ok(self.seat);
            }
            if expired {
                return Err(GroupError::Missing { address: self.place.shown, ranks, deadline_ms });
            }
            if is_readable(&self.listener, deadline)? {
                guests.extend(self.admit()?);
            }
        }
    }

    /// Takes one connection and hands it the memory, if it is of the same user and still there.
    fn admit(&self) -> Result<Option<OwnedFd>, GroupError> {
        let guest = match net::accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(guest) => guest,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(None),
            Err(error) => return Err(system("accepting a rank")(error)),
        };
        let of_user = net::sockopt::socket_peercred(&guest).is_ok_and(|peer| peer.uid == process::getuid());
        let memory = [self.memory.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fits = control.push(SendAncillaryMessage::ScmRights(&memory));
        let handed = of_user
            && fits
            && net::sendmsg(&guest, &[IoSlice::new(b"m")], &mut control, SendFlags::NOSIGNAL).is_ok();
        Ok(handed.then_some(guest))
    }
}

/// Goes to the group at `place` as rank `rank` and waits until all have met.
pub(super) fn attend(
    place: &Place,
    rank: u32,
    world: u32,
    deadline: Deadline,
    deadline_ms: u64,
) -> Result<Seat, GroupError> {
    let missing = |ranks| GroupError::Missing { address: place.shown.clone(), ranks, deadline_ms };
    while !deadline.passed() {
        let Some((host, memory)) = fetch_memory(place, deadline)? else {
            std::thread::sleep(deadline.slice() / 2);
            continue;
        };
        let (layout, nonce) = check_header(memory.as_fd(), world, place)?;
        let seat = claim(memory.as_fd(), rank, layout, nonce, place)?;
        match told(&host, deadline)? {
            Told::Go => return Ok(seat),
            Told::Missing(ranks) => return Err(missing(ranks)),
            Told::Nothing if deadline.passed() => {
                // All may have come, and rank 0 not have said so in time.
                let ranks = seat.unclaimed(world);
                return Err(missing(if ranks.is_empty() { vec![0] } else { ranks }));
            }
            // Rank 0 ended before all had met; another may come.
            Told::Nothing => {}
        }
    }
    Err(missing(vec![0]))
}

fn make_memory(layout: &SharedLayout, nonce: u64) -> Result<OwnedFd, GroupError> {
    let bytes = layout.bytes() as u64;
    let refused = |error: Errno| GroupError::Memory { bytes, source: error.into() };
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = fs::memfd_create("rankwise", flags).map_err(refused)?;
    fs::ftruncate(&memory, bytes).map_err(refused)?;
    // Reserved now, so that a full host is an error here and no SIGBUS at the first touch.
    fs::fallocate(&memory, FallocateFlags::empty(), 0, bytes).map_err(refused)?;
    fs::fcntl_add_seals(&memory, SEALS).map_err(system("sealing the group's memory"))?;
    let words = [version_word(), u64::from(layout.world), nonce, layout.ring_bytes as u64];
    let header: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    io::pwrite(&memory, &header, 0).map_err(refused)?;
    Ok(memory)
}

fn version_word() -> u64 {
    u64::from(MAGIC) | u64::from(VERSION) << 32
}

/// Compares the header of a memory that came with what this rank expects, by name.
fn check_header(
    memory: BorrowedFd<'_>,
    world: u32,
    place: &Place,
) -> Result<(SharedLayout, u64), GroupError> {
    let differs = |field, found, expected| {
        let address = place.shown.clone();
        if found == expected { Ok(()) } else { Err(GroupError::Header { address, field, found, expected }) }
    };
    let mut header = [0; HEADER_BYTES];
    io::pread(memory, &mut header, 0).map_err(system("reading the group's header"))?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[8 * at + i]));
    let layout = region_layout(world);
    differs("version", word(0), version_word())?;
    differs("world", word(1), u64::from(world))?;
    differs("ring bytes", word(3), layout.ring_bytes as u64)?;
    let bytes = fs::fstat(memory).map_err(system("reading the size of the group's memory"))?.st_size;
    differs("bytes", bytes as u64, layout.bytes() as u64)?;
    let seals = fs::fcntl_get_seals(memory).map_err(system("reading the seals of the group's memory"))?;
    differs("seals", u64::from(seals.bits()), u64::from(SEALS.bits()))?;
    Ok((layout, word(2)))
}

/// Opens the memory anew, maps it and claims `rank`.
fn claim(
    memory: BorrowedFd<'_>,
    rank: u32,
    layout: SharedLayout,
    nonce: u64,
    place: &Place,
) -> Result<Seat, GroupError> {
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    let file = fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(system("opening the group's memory through /proc"))?;
    let bytes = layout.bytes();
    let mapping = Mapping::shared(memory, bytes)
        .map_err(|source| GroupError::Memory { bytes: bytes as u64, source })?;
    let region = Region::new(mapping, layout);
    let locked = sys::lock_byte(file.as_fd(), rank)
        .map_err(|source| GroupError::System { call: "locking the rank's byte", source })?;
    // In this order: a rank that is claimed has its byte locked, or has ended.
    if locked && region.claim(rank) {
        Ok(Seat { file, region, nonce })
    } else {
        Err(GroupError::RankTaken { address: place.shown.clone(), rank })
    }
}

/// Abstract name of a place: no file, and no other user's place by accident.
fn socket_address(place: &Place) -> Result<SocketAddrUnix, GroupError> {
    let name = format!("rankwise.{}.{}", process::getuid().as_raw(), place.key);
    SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(system("naming the group's socket"))
}

fn socket() -> Result<OwnedFd, GroupError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(system("socket"))
}

fn listen(place: &Place, world: u32) -> Result<OwnedFd, GroupError> {
    let listener = socket()?;
    net::bind(&listener, &socket_address(place)?).map_err(|error| match error {
        Errno::ADDRINUSE => GroupError::AddressInUse { address: place.shown.clone() },
        error => system("binding the group's socket")(error),
    })?;
    net::listen(&listener, world as i32).map_err(system("listening on the group's socket"))?;
    Ok(listener)
}

/// Connects to rank 0; `None` where it is not there yet, or busy.
fn connect(place: &Place) -> Result<Option<OwnedFd>, GroupError> {
    let guest = socket()?;
    match net::connect(&guest, &socket_address(place)?) {
        Ok(()) => {}
        Err(Errno::CONNREFUSED | Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(error) => return Err(system("connecting to the group's socket")(error)),
    }
    let host = net::sockopt::socket_peercred(&guest).map_err(system("asking whose socket it is"))?;
    let expected = process::getuid();
    if host.uid != expected {
        let (found, expected) = (host.uid.as_raw(), expected.as_raw());
        return Err(GroupError::Stranger { address: place.shown.clone(), found, expected });
    }
    Ok(Some(guest))
}

/// Takes the memory from rank 0, with the connection to it; `None` where it is not there yet or ended, or the
/// deadline passed first.
fn fetch_memory(place: &Place, deadline: Deadline) -> Result<Option<(OwnedFd, OwnedFd)>, GroupError> {
    let Some(host) = connect(place)? else { return Ok(None) };
    while !is_readable(&host, deadline)? {
        if deadline.passed() {
            return Ok(None);
        }
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    if net::recvmsg(&host, &mut [IoSliceMut::new(&mut byte)], &mut control, flags).is_err() {
        return Ok(None);
    }
    let memory = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Ok(memory.map(|memory| (host, memory)))
}

/// What rank 0 said at the end of the meeting.
#[derive(Debug)]
enum Told {
    Go,
    Missing(Vec<u32>),
    /// It ended, or the deadline passed, before it said anything.
    Nothing,
}

/// Tells a guest which ranks have not come; none is the word to go. A guest that has ended is not told.
fn tell(guest: &OwnedFd, missing: &[u32]) {
    let mut message = vec![u8::from(!missing.is_empty())];
    message.extend(missing.iter().take(NAMED_MAX).flat_map(|rank| rank.to_le_bytes()));
    let _ = net::send(guest, &message, SendFlags::NOSIGNAL);
}

fn told(host: &OwnedFd, deadline: Deadline) -> Result<Told, GroupError> {
    while !is_readable(host, deadline)? {
        if deadline.passed() {
            return Ok(Told::Nothing);
        }
    }
    let mut message = [0; 1 + 4 * NAMED_MAX];
    let (_, bytes) = net::recv(host, &mut message[..], RecvFlags::empty()).unwrap_or((0, 0));
    Ok(match message[..bytes].split_first() {
        None => Told::Nothing,
        Some((0, _)) => Told::Go,
        Some((_, ranks)) => {
            let ranks = ranks.as_chunks().0.iter().map(|rank| u32::from_le_bytes(*rank));
            Told::Missing(ranks.collect())
        }
    })
}

/// Waits for a slice; true where something came or the other side ended.
fn is_readable(socket: &OwnedFd, deadline: Deadline) -> Result<bool, GroupError> {
    let slice = Timespec { tv_sec: 0, tv_nsec: deadline.slice().subsec_nanos().into() };
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&slice)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(system("waiting on the group's socket")(error)),
    }
}

fn system(call: &'static str) -> impl Fn(Errno) -> GroupError {
    move |error| GroupError::System { call, source: error.into() }
}
