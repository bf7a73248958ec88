//! What a rank is doing, for those who watch it.

use std::sync::Arc;

/// What a rank is doing. The number is stable: it may be written to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Nothing: no call is under way.
    Idle = 0,
    /// Exchanging records.
    Exchange = 1,
    /// Copying edges out of a band.
    Pack = 2,
    /// Handing legs to the transport.
    Post = 3,
    /// Waiting for legs.
    Wait = 4,
    /// Copying edges into pad rows.
    Unpack = 5,
}

impl Phase {
    /// Every phase, at the position that is its number.
    pub const ALL: [Phase; 6] =
        [Phase::Idle, Phase::Exchange, Phase::Pack, Phase::Post, Phase::Wait, Phase::Unpack];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Exchange => "exchange",
            Phase::Pack => "pack",
            Phase::Post => "post",
            Phase::Wait => "wait",
            Phase::Unpack => "unpack",
        }
    }
}

/// Is told of each phase as it begins, on the thread that enters it. It must be quick, and must not call the
/// group that it watches: a call is under way.
pub type Observer = Arc<dyn Fn(Phase) + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_stands_at_its_number() {
        assert!(Phase::ALL.iter().enumerate().all(|(at, phase)| *phase as usize == at));
    }
}
