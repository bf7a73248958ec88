//! A group: ranks that agree on what they do together.

mod rank;
mod shm;
mod subgroup;
mod threads;

use crate::error::GroupError;
use crate::observe::Observer;
use crate::trace::Trace;
use crate::wait::Deadline;
use rank::Home;
pub(crate) use rank::{Control, NotEntered, Rank};
use rankwise_protocol::call::Op;
pub use rankwise_protocol::group::Backend;
use rankwise_protocol::group::{Cause, CauseKind, WORLD_MAX};
use rankwise_protocol::policy::Policy;
use rankwise_protocol::rules::{Rules, Shipped};
use rankwise_protocol::wire::SharedLayout;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;
use std::sync::Arc;

/// Bytes of a channel's ring.
const RING_BYTES: usize = 1 << 17;
/// Bytes that all rings of a group take at most, as long as a ring has a page.
const RINGS_BYTES_MAX: usize = 1 << 26;
/// Bytes of the smallest ring.
const RING_BYTES_MIN: usize = 1 << 12;
/// Bytes that a group takes at most: a host should not lose more to a world that was set by mistake.
const REGION_BYTES_MAX: usize = 1 << 30;

/// How a group is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The policy. It must be the same on all ranks; its `call.deadline_ms` bounds every call.
    pub policy: Policy,
    /// Events that the rank's log keeps at most; 0 keeps no log. See [`Group::trace`].
    pub trace_events_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { policy: Policy::shipped(), trace_events_max: 0 }
    }
}

/// Where the ranks of a shared-memory group meet: a name that all of them know and no other group of this
/// user on this host uses at the time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address(String);

impl Address {
    /// An address of 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `.`, `_` and `-`.
    pub fn new(name: &str) -> Result<Address, GroupError> {
        let known = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if (1..=64).contains(&name.len()) && name.chars().all(known) {
            Ok(Address(name.to_owned()))
        } else {
            Err(GroupError::Address { found: name.to_owned() })
        }
    }
}

/// One rank's handle of a group. A clone is the same rank. The rank has left when its last handle is dropped;
/// contexts and exchanges under way hold one each.
///
/// Calls of one rank take turns. All ranks make the same calls in the same order, or all that learn of it get
/// an error that names who did what (GRP-1). Every call ends by the policy's deadline, counted from its entry
/// (GRP-3). After the first cause of an end, every call fails with it at once.
#[derive(Clone)]
pub struct Group {
    inner: Arc<Rank>,
}

impl Group {
    /// A group whose ranks are threads of this process: one handle a rank, in rank order, to be sent where
    /// they run.
    ///
    /// The memory that a group shares grows with the square of the world. A world of more than 496 ranks, for
    /// which it would be more than 1 GiB, is refused, here and by [`Group::shm`].
    pub fn threads(world: u32, options: &Options) -> Result<Vec<Group>, GroupError> {
        check_world(world)?;
        let party = threads::Party::new(world, nonce()?)?;
        let group = |rank| Group::new(rank, world, options, Home::Threads(Arc::clone(&party)));
        Ok((0..world).map(group).collect())
    }

    /// Rank `rank` of a group whose ranks are processes of this host. Returns when all have met at `address`
    /// and agreed on build, policy and world.
    pub fn shm(address: &Address, rank: u32, world: u32, options: &Options) -> Result<Group, GroupError> {
        check_world(world)?;
        if rank >= world {
            return Err(GroupError::Rank { found: rank, world });
        }
        let deadline_ms = options.policy.call().deadline_ms;
        let deadline = Deadline::after(deadline_ms);
        let place = shm::Place { shown: address.0.clone(), key: address.0.clone() };
        let seat = match rank {
            0 => shm::Host::open(place, world)?.receive(deadline, deadline_ms)?,
            _ => shm::attend(&place, rank, world, deadline, deadline_ms)?,
        };
        Group::seated(seat, rank, world, options, deadline)
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.inner.rank
    }

    /// Ranks of the group.
    pub fn world(&self) -> u32 {
        self.inner.world
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// Where the group's memory lives.
    pub fn backend(&self) -> Backend {
        self.inner.backend()
    }

    /// Returns when every rank has come here.
    pub fn barrier(&self) -> Result<(), GroupError> {
        let deadline = self.inner.deadline();
        let mut control = self.inner.enter(deadline)?;
        self.inner.gather(&mut control, Op::Barrier, Vec::new(), deadline)?;
        Ok(())
    }

    /// Ends the group, from any thread, also while a call is under way. Gives the first cause, which may be
    /// another one. In a forked child it changes nothing and says what it would have said.
    pub fn abort(&self) -> Cause {
        let cause = Cause { kind: CauseKind::Aborted, rank: self.rank() };
        match self.inner.check_process() {
            Ok(()) => self.inner.poison(cause),
            Err(_) => self.inner.cause().unwrap_or(cause),
        }
    }

    /// Has `observer` told of each phase of this rank's calls, on every handle. It takes the place of an
    /// earlier one.
    pub fn observe(&self, observer: Observer) {
        self.inner.observe(observer);
    }

    /// The rank's log so far, as `rankwise replay` reads it; `None` where none is kept
    /// ([`Options::trace_events_max`]). To be taken between calls, once the rank has no more to do.
    pub fn trace(&self) -> Option<String> {
        self.inner.trace().map(Trace::to_text)
    }

    /// This rank in this process.
    pub(crate) fn inner(&self) -> &Rank {
        &self.inner
    }

    fn new(rank: u32, world: u32, options: &Options, home: Home) -> Group {
        Group { inner: Arc::new(Rank::new(rank, world, options, home)) }
    }

    /// A rank that has met the others in shared memory: they agree that they are of one kind.
    fn seated(
        seat: shm::Seat,
        rank: u32,
        world: u32,
        options: &Options,
        deadline: Deadline,
    ) -> Result<Group, GroupError> {
        let home = Home::Shm { region: seat.region, file: seat.file, nonce: seat.nonce };
        let group = Group::new(rank, world, options, home);
        group.inner.join(deadline)?;
        tracing::debug!(rank, world, "joined a group in shared memory");
        Ok(group)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Group");
        fields.field("rank", &self.rank()).field("world", &self.world());
        fields.field("backend", &self.backend()).finish_non_exhaustive()
    }
}

fn check_world(world: u32) -> Result<(), GroupError> {
    if !(1..=WORLD_MAX).contains(&world) {
        return Err(GroupError::World { found: world });
    }
    let (bytes, bytes_max) = (region_layout(world).bytes() as u64, REGION_BYTES_MAX as u64);
    if bytes <= bytes_max { Ok(()) } else { Err(GroupError::WorldMemory { world, bytes, bytes_max }) }
}

/// A number that no other group has, but by a chance of 2^-64.
fn nonce() -> Result<u64, GroupError> {
    let mut bytes = [0; 8];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(_) => Ok(u64::from_le_bytes(bytes)),
        Err(error) => Err(GroupError::System { call: "getrandom", source: error.into() }),
    }
}

/// How a group of `world` ranks lays out its memory. Rings shrink where many ranks would make them take more
/// than [`RINGS_BYTES_MAX`]: messages flow through rings of any size.
fn region_layout(world: u32) -> SharedLayout {
    let rings = (world as usize).pow(2);
    let halvings = (RINGS_BYTES_MAX / rings).max(RING_BYTES_MIN);
    let ring_bytes = RING_BYTES.min(1 << halvings.ilog2());
    SharedLayout { world, slots: Shipped::board_slots(), ring_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_shrink_as_worlds_grow() {
        let ring_bytes = [1, 8, 22, 23, 64, WORLD_MAX].map(|world| region_layout(world).ring_bytes);
        assert_eq!(ring_bytes, [1 << 17, 1 << 17, 1 << 17, 1 << 16, 1 << 14, 1 << 12]);
    }

    #[test]
    fn a_world_is_taken_up_to_a_gibibyte() {
        let refused = |world| matches!(check_world(world), Err(GroupError::WorldMemory { .. }));
        let first = (1..=WORLD_MAX).find(|&world| refused(world)).unwrap();
        assert!(region_layout(first).bytes() > 1 << 30 && region_layout(first - 1).bytes() <= 1 << 30);
        assert_eq!(first, 497);
        assert!((first..=WORLD_MAX).all(refused));
    }

    #[test]
    fn an_address_is_a_short_plain_word() {
        assert!(Address::new("job-1.x_y").is_ok());
        for name in ["", "a/b", "a b", &"x".repeat(65)] {
            assert!(matches!(Address::new(name), Err(GroupError::Address { .. })), "{name}");
        }
    }

    #[test]
    fn a_handle_goes_to_any_thread() {
        fn check<T: Send + Sync + Clone>() {}
        check::<Group>();
    }

    #[test]
    fn a_thread_that_panicked_inside_a_call_ends_the_group() {
        let groups = Group::threads(2, &Options::default()).unwrap();
        let bad = groups[0].clone();
        bad.observe(Arc::new(|_| panic!("an observer may not")));
        std::thread::spawn(move || bad.barrier()).join().unwrap_err();
        let expected = Cause { kind: CauseKind::Failed, rank: 0 };
        // The peer learns of it first.
        for group in groups.iter().rev() {
            let error = group.barrier().unwrap_err();
            assert!(matches!(error, GroupError::Poisoned(cause) if cause == expected), "{error}");
        }
    }

    #[test]
    fn a_thread_that_panicked_with_the_transport_ends_the_group() {
        let groups = Group::threads(2, &Options::default()).unwrap();
        let bad = groups[0].clone();
        let panics = move || {
            let _held = bad.inner().transport();
            panic!("with the transport in hand");
        };
        std::thread::spawn(panics).join().unwrap_err();
        assert!(!groups[0].inner().sweep());
        let expected = Cause { kind: CauseKind::Failed, rank: 0 };
        assert_eq!(groups[1].inner().cause(), Some(expected));
    }
}
