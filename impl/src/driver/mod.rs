//! The drivers: they carry out what the protocol asks for and tell it what came of it. They decide nothing.
//!
//! | driver | drives | with |
//! | --- | --- | --- |
//! | `control` | `group::Member`, `group::Poisoner` | words and slots of the board |
//! | `legs` | the transport, until an exchange's legs are done | channels |
//! | `call` | `halo::Exchange` | both of the above, and the copies |

mod call;
mod control;
mod legs;

use crate::group::Rank;
pub(crate) use call::{CALLER, Call};
use rankwise_protocol::group::{Cause, CauseKind};

impl Rank {
    /// Runs a part of a call. If it unwinds, the group ends: peers count on what it leaves undone (HAL-10).
    pub(crate) fn run_part<T>(&self, part: impl FnOnce() -> T) -> T {
        let unwinding = Unwinding(self);
        let result = part();
        std::mem::forget(unwinding);
        result
    }
}

/// Forgotten by a part that returns, so dropped by one that unwinds alone.
struct Unwinding<'a>(&'a Rank);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        self.0.poison(Cause { kind: CauseKind::Failed, rank: self.0.rank });
        self.0.transport().stop();
    }
}
