//! Collectives for sharded inference, whose protocols are model-checked.
//!
//! A [`Group`] is one rank's handle of ranks that work together: threads of a process, or processes of a host.
//! [`halo`] exchanges the edge rows of row bands over it. Every call is agreed first: all ranks take the same
//! path, or all refuse by name. Every wait is bounded by the policy's deadline, and an error names the rank
//! it is about.
//!
//! A group has no thread of its own: legs of host memory move only while their rank is inside a call on the
//! group. An exchange that is posted overlaps with work that is shorter than the deadline; a rank that stays away
//! from the group for longer may end it as late (see [`halo::Pending`]).
//!
//! What a rank decides is in `rankwise_protocol`, where the checker proves it. This crate carries it out:
//!
//! | module | |
//! | --- | --- |
//! | [`halo`] | the public collective |
//! | `group` | the public handle; how ranks meet; subgroups |
//! | `driver` | carries out effects and operations of the protocol, and decides nothing |
//! | `transport` | legs over channels |
//! | `memory` | mappings, the shared region, bells |
//! | `wait` | deadlines, and from spinning to sleep |
//! | `sys` | foreign calls |

mod driver;
mod error;
mod group;
pub mod halo;
mod memory;
mod observe;
mod sys;
mod trace;
mod transport;
mod wait;

pub use error::{GroupError, HaloError};
pub use group::{Address, Backend, Group, Options};
pub use observe::{Observer, Phase};
pub use rankwise_protocol::bands::BandsError;
pub use rankwise_protocol::call::{Field, Op, Override, Reason, Refusal, Text};
pub use rankwise_protocol::group::{Cause, CauseKind, Tag, WORLD_MAX};
pub use rankwise_protocol::layout::{BandShape, Dtype};
pub use rankwise_protocol::legs::{Arm, Statistics};
pub use rankwise_protocol::policy::{Policy, PolicyError};

/// Split of rows over ranks.
pub type Bands = rankwise_protocol::bands::Bands<rankwise_protocol::rules::Shipped>;
