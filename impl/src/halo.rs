//! The halo exchange: the rows that a rank's neighbours need of it, and those that it needs of them.
//!
//! A band is `[frames, 1 + rows + 1, width, channels]`, dense, with one pad row on each side. An exchange
//! fills the pad rows of every frame with the neighbours' edge rows; the outermost pad rows become zeros.
//!
//! ```
//! use rankwise::halo::Halo;
//! use rankwise::{BandShape, Dtype, Group, Options};
//!
//! let groups = Group::threads(2, &Options::default())?;
//! let exchange = |group: Group| {
//!     let shape = BandShape { frames: 1, rows: 2, width: 1, channels: 1, dtype: Dtype::U8 };
//!     let first = 10 * (group.rank() as u8 + 1);
//!     let mut band = [99, first, first + 1, 99];
//!     Halo::with_override(&group, None).exchange(&shape, &mut band).map(|_| band)
//! };
//! let bands = std::thread::scope(|scope| {
//!     let ranks: Vec<_> = groups.into_iter().map(|group| scope.spawn(|| exchange(group))).collect();
//!     ranks.into_iter().map(|rank| rank.join().unwrap()).collect::<Result<Vec<_>, _>>()
//! })?;
//! assert_eq!(bands, [[0, 10, 11, 20], [11, 20, 21, 0]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::driver::{CALLER, Call};
use crate::error::HaloError;
use crate::group::{Group, NotEntered};
use crate::transport::{Buffers, Pool};
use crate::wait::Deadline;
use rankwise_protocol::call::{Override, Reason, Text};
use rankwise_protocol::halo::{Exchange, Failure, Local, prepare};
use rankwise_protocol::layout::BandShape;
use rankwise_protocol::legs::{Arm, Statistics};
use rankwise_protocol::rules::Shipped;

/// A context for halo exchanges of one rank: it keeps buffers for reuse.
///
/// All ranks of a group make their contexts in the same order: the k-th of one rank exchanges with the k-th of
/// the others, and a call in which ranks use different ones is refused by name (HAL-11). Over all its contexts
/// every rank makes the same calls in the same order.
#[derive(Debug)]
pub struct Halo {
    group: Group,
    forced: Override,
    forced_text: Text,
    /// Contexts of this rank on the group before this one.
    number: u64,
    pool: Pool,
}

/// An exchange under way. It owns its buffers, so the band is free meanwhile.
///
/// There is no progress thread: legs of host memory move only while their rank is inside a call on the group,
/// and a post leaves behind what found no room in a channel or had not come. So work between post and wait must
/// be shorter than the deadline: for peers that still need this rank's edges then, it is late, and the group ends.
///
/// If it is dropped, the exchange goes on for the peers' sake, whenever this rank makes another call; nothing
/// blocks, and the buffers are reused when the legs are done. A rank that leaves the group before that is gone
/// for peers that still need its edges.
#[derive(Debug)]
#[must_use = "the pad rows are filled by `wait`"]
pub struct Pending {
    /// `None` once it was waited for.
    call: Option<Call>,
    arm: Arm,
    statistics: Statistics,
}

/// An exchange that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchanged {
    /// The arm that ran.
    pub arm: Arm,
    /// What this rank's legs moved.
    pub statistics: Statistics,
}

impl Halo {
    /// A context on `group`, made in the same order as on all other ranks. Reads the environment variable that
    /// the policy names, once.
    pub fn new(group: &Group) -> Halo {
        let value = std::env::var_os(&group.policy().halo().override_env);
        Halo::with_override(group, value.as_ref().map(|value| value.to_string_lossy()).as_deref())
    }

    /// A context on `group` for which the variable is set to `value`, or not set.
    pub fn with_override(group: &Group, value: Option<&str>) -> Halo {
        Halo {
            group: group.clone(),
            forced: Override::parse(value),
            forced_text: Text::new(value.unwrap_or_default()),
            number: group.inner().count_context(),
            pool: Pool::default(),
        }
    }

    /// Agrees on the exchange with all ranks, packs the edges of `band` and starts them on their way.
    pub fn post(&mut self, shape: &BandShape, band: &[u8]) -> Result<Pending, HaloError> {
        self.post_by(shape, band, self.group.inner().deadline())
    }

    /// Posts and waits, by one deadline (GRP-3).
    pub fn exchange(&mut self, shape: &BandShape, band: &mut [u8]) -> Result<Exchanged, HaloError> {
        let deadline = self.group.inner().deadline();
        self.post_by(shape, band, deadline)?.wait_by(band, deadline)
    }

    fn post_by(&mut self, shape: &BandShape, band: &[u8], deadline: Deadline) -> Result<Pending, HaloError> {
        let rank = self.group.inner();
        // Held until the legs are posted: they go in the order of the agreements on every rank.
        let mut control = rank.enter(deadline)?;
        let (prepared, buffers) = match self.prepare(shape, band.len() as u64) {
            Ok(buffers) => (Ok(()), Some(buffers)),
            Err(refused) => (Err(refused), None),
        };
        let local = Local {
            rank: rank.rank,
            world: rank.world,
            context: self.number,
            shape: *shape,
            forced: self.forced,
            forced_text: self.forced_text.clone(),
            prepared,
            stream: CALLER,
        };
        let machine = Exchange::new(&rank.policy, local);
        let mut call = Call::new(&self.group, machine, shape, &self.pool, buffers);
        call.post(&mut control, band, deadline)?;
        let (arm, statistics) = (call.machine().arm(), call.machine().statistics());
        Ok(Pending { call: Some(call), arm, statistics })
    }

    /// All that can fail on this rank alone, before it says whether it can take part.
    fn prepare(&self, shape: &BandShape, band_bytes: u64) -> Result<Buffers, (Reason, Text)> {
        let world = self.group.world();
        prepare::<Shipped>(shape, band_bytes, world)?;
        self.pool.take(shape, world).map_err(|error| {
            let bytes = (2 + 2 * u64::from(world)) * shape.edge_bytes();
            (Reason::OutOfMemory, Text::new(&format!("{bytes} bytes: {error}")))
        })
    }
}

impl Pending {
    /// The arm that all ranks run.
    pub fn arm(&self) -> Arm {
        self.arm
    }

    /// What this rank's legs move.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Waits for the legs and fills the pad rows of `band`, which has the shape that was posted. It is a call of
    /// its own, whose deadline counts from here.
    pub fn wait(self, band: &mut [u8]) -> Result<Exchanged, HaloError> {
        let deadline = self.call().rank().deadline();
        self.wait_by(band, deadline)
    }

    fn wait_by(mut self, band: &mut [u8], deadline: Deadline) -> Result<Exchanged, HaloError> {
        self.call().rank().check_process()?;
        let (found, expected) = (band.len() as u64, self.call().shape().padded_bytes());
        if found != expected {
            return Err(HaloError::Band { found, expected });
        }
        // Taken out first: if the wait unwinds, there is no handle left to drop.
        let mut call = self.call.take().expect(HELD);
        call.wait(band, deadline)?;
        Ok(Exchanged { arm: self.arm, statistics: self.statistics })
    }

    fn call(&self) -> &Call {
        self.call.as_ref().expect(HELD)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Some(mut call) = self.call.take() else { return };
        match call.rank().check_process() {
            Ok(()) => call.drop_handle(),
            // The exchange is the parent's, and so may be the locks that it takes.
            Err(_) => std::mem::forget(call),
        }
    }
}

impl From<NotEntered> for HaloError {
    fn from(error: NotEntered) -> Self {
        match error {
            NotEntered::Forked { owner, found } => HaloError::Forked { owner, found },
            NotEntered::Busy { deadline_ms } => HaloError::Busy { deadline_ms },
            NotEntered::Poisoned(cause) => HaloError::Poisoned(cause),
        }
    }
}

impl From<Failure> for HaloError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => {
                tracing::debug!(%refusal, "halo refused");
                HaloError::Refused(refusal)
            }
            Failure::Poisoned(cause) => HaloError::Poisoned(cause),
            Failure::Diverged(tags) => HaloError::Diverged { tags },
            Failure::Unknown { rank } => HaloError::Unknown { rank },
            Failure::Dropped => unreachable!("a dropped handle gives its result to nobody"),
        }
    }
}

const HELD: &str = "a handle has its call until it is waited for";

#[cfg(test)]
mod tests;
