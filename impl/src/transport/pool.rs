//! The buffers of exchanges, kept for reuse.

use crate::memory::Buffer;
use rankwise_protocol::layout::BandShape;
use rankwise_protocol::legs;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Pairs that a pool keeps at most. A caller has about two exchanges in flight; more shapes than this in turn
/// cost an allocation each.
const IDLE_MAX: usize = 4;

/// The two buffers of one exchange.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// Packed edges, `[2,T,W,C]`.
    pub(crate) packed: Buffer,
    /// Received edges, `[world,2,T,W,C]`. Slots that no leg fills are never touched.
    pub(crate) received: Buffer,
}

impl Buffers {
    /// The buffer that a leg's place names.
    pub(super) fn of(&self, buffer: legs::Buffer) -> &[u8] {
        match buffer {
            legs::Buffer::Packed => &self.packed,
            legs::Buffer::Received => &self.received,
        }
    }

    /// The same, to write.
    pub(super) fn of_mut(&mut self, buffer: legs::Buffer) -> &mut [u8] {
        match buffer {
            legs::Buffer::Packed => &mut self.packed,
            legs::Buffer::Received => &mut self.received,
        }
    }
}

/// Idle buffers of one context. A clone is the same pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool(Arc<Mutex<Vec<Buffers>>>);

impl Pool {
    /// Buffers for an exchange of `shape`, which has passed its check for `world`.
    pub(crate) fn take(&self, shape: &BandShape, world: u32) -> io::Result<Buffers> {
        let packed_bytes = 2 * shape.edge_bytes() as usize;
        let received_bytes = packed_bytes * world as usize;
        let fits =
            |idle: &Buffers| (idle.packed.len(), idle.received.len()) == (packed_bytes, received_bytes);
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = idle.iter().position(fits) {
            return Ok(idle.remove(at));
        }
        drop(idle);
        Ok(Buffers { packed: Buffer::zeroed(packed_bytes)?, received: Buffer::zeroed(received_bytes)? })
    }

    /// Takes buffers back.
    pub(crate) fn give(&self, buffers: Buffers) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() == IDLE_MAX {
            idle.remove(0);
        }
        idle.push(buffers);
    }

    #[cfg(test)]
    pub(crate) fn idle(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankwise_protocol::layout::Dtype;

    #[test]
    fn buffers_are_reused_by_size_and_few_are_kept() {
        let shape = |width| BandShape { frames: 1, rows: 1, width, channels: 1, dtype: Dtype::U8 };
        let pool = Pool::default();
        let mut first = pool.take(&shape(3), 2).unwrap();
        first.packed[0] = 9;
        pool.give(first);
        assert_eq!(pool.take(&shape(4), 2).unwrap().packed.len(), 8);
        assert_eq!(pool.take(&shape(3), 2).unwrap().packed[0], 9);
        for width in 1..10 {
            pool.give(pool.take(&shape(width), 2).unwrap());
        }
        assert_eq!(pool.idle(), IDLE_MAX);
    }
}
