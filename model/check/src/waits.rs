//! Wait-for pass: whether a schedule of sends and receives ends, for any world, in time linear in its legs.
//!
//! A send and a receive complete together once both are active, first come first matched on each ordered pair of
//! ranks. Completing one never disables another, so the legs that complete do not depend on the order in which
//! they do: one run stands for all, and if it gets stuck, every run does, in the same place. The explorer's
//! verdicts at small worlds are compared with this pass's.

use rankwise_protocol::legs::{Direction, Group, Leg};
use std::collections::HashMap;

/// What a transport makes of a group of legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// All legs of a group run at once.
    AtOnce,
    /// Legs run one by one, each until it is complete.
    InOrder,
}

impl Meaning {
    /// Both.
    pub const ALL: [Meaning; 2] = [Meaning::AtOnce, Meaning::InOrder];

    /// As a reader is told.
    pub const fn name(self) -> &'static str {
        match self {
            Meaning::AtOnce => "legs of a group at once",
            Meaning::InOrder => "legs one by one",
        }
    }

    /// The groups that really run under this meaning.
    pub fn apply(self, groups: Vec<Group>) -> Vec<Group> {
        match self {
            Meaning::AtOnce => groups,
            Meaning::InOrder => groups.into_iter().flatten().map(|leg| vec![leg]).collect(),
        }
    }
}

/// Where a schedule ends up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// By rank: its group that never completes, and the legs of it that do not; `None` if it finished.
    pub blocked: Vec<Option<(usize, Vec<Leg>)>>,
}

/// Runs `schedule` (by rank, its groups in order) to its end, or to where it gets stuck.
pub fn run(schedule: &[Vec<Group>]) -> Result<(), Stuck> {
    let mut pass = Pass::new(schedule);
    for rank in 0..schedule.len() {
        pass.activate(rank as u32);
    }
    while let Some(rank) = pass.ready.pop() {
        pass.position[rank as usize] += 1;
        pass.activate(rank);
    }
    pass.result()
}

struct Pass<'a> {
    schedule: &'a [Vec<Group>],
    /// Group that each rank is in.
    position: Vec<usize>,
    /// Legs of that group that are not complete.
    open: Vec<usize>,
    /// Active legs without a partner, by ordered pair: positive are sends, negative receives.
    surplus: HashMap<(u32, u32), i64>,
    /// Ranks whose group has just completed.
    ready: Vec<u32>,
}

impl<'a> Pass<'a> {
    fn new(schedule: &'a [Vec<Group>]) -> Self {
        let ranks = schedule.len();
        let surplus = HashMap::with_capacity(2 * ranks);
        Pass { schedule, position: vec![0; ranks], open: vec![0; ranks], surplus, ready: Vec::new() }
    }

    /// Makes the legs of a rank's next group active and matches those whose partner is.
    fn activate(&mut self, rank: u32) {
        let Some(group) = self.schedule[rank as usize].get(self.position[rank as usize]) else { return };
        self.open[rank as usize] = group.len();
        if group.is_empty() {
            self.ready.push(rank);
        }
        for leg in group {
            let (pair, sign) = match leg.direction {
                Direction::Send => ((rank, leg.peer), 1),
                Direction::Receive => ((leg.peer, rank), -1),
            };
            let surplus = self.surplus.entry(pair).or_default();
            let partner_waits = *surplus * sign < 0;
            *surplus += sign;
            if partner_waits {
                self.complete(rank);
                self.complete(leg.peer);
            }
        }
    }

    fn complete(&mut self, rank: u32) {
        self.open[rank as usize] -= 1;
        if self.open[rank as usize] == 0 {
            self.ready.push(rank);
        }
    }

    fn result(&self) -> Result<(), Stuck> {
        let blocked: Vec<_> = (0..self.schedule.len() as u32).map(|rank| self.blocked(rank)).collect();
        if blocked.iter().all(Option::is_none) { Ok(()) } else { Err(Stuck { blocked }) }
    }

    /// The legs of a rank's group that found no partner: on each pair the last ones, since the first are matched
    /// first.
    fn blocked(&self, rank: u32) -> Option<(usize, Vec<Leg>)> {
        let position = self.position[rank as usize];
        let group = self.schedule[rank as usize].get(position)?;
        let mut left: HashMap<(u32, bool), i64> = HashMap::new();
        let mut open = Vec::new();
        for leg in group.iter().rev() {
            let sends = leg.direction == Direction::Send;
            let pair = if sends { (rank, leg.peer) } else { (leg.peer, rank) };
            let sign = if sends { 1 } else { -1 };
            let surplus = sign * self.surplus.get(&pair).copied().unwrap_or(0);
            let listed = left.entry((leg.peer, sends)).or_default();
            if *listed < surplus {
                *listed += 1;
                open.push(*leg);
            }
        }
        open.reverse();
        Some((position, open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankwise_protocol::legs::{Edge, Place};

    fn leg(direction: Direction, peer: u32) -> Leg {
        Leg { direction, peer, place: Place::Packed(Edge::First) }
    }

    /// Case big-group-split, smallest form: both send first, each in a group of its own.
    #[test]
    fn two_ranks_that_both_send_first_are_stuck() {
        let send_then_receive =
            |peer| vec![vec![leg(Direction::Send, peer)], vec![leg(Direction::Receive, peer)]];
        let stuck = run(&[send_then_receive(1), send_then_receive(0)]).unwrap_err();
        assert_eq!(stuck.blocked[0], Some((0, vec![leg(Direction::Send, 1)])));
    }

    #[test]
    fn in_one_group_they_are_not() {
        let both = |peer| vec![vec![leg(Direction::Send, peer), leg(Direction::Receive, peer)]];
        assert_eq!(run(&[both(1), both(0)]), Ok(()));
    }

    /// Case asymmetric-batch: one rank {send, receive}, its peer {receive}.
    #[test]
    fn a_leg_without_a_partner_is_named() {
        let first = vec![vec![leg(Direction::Send, 1), leg(Direction::Receive, 1)]];
        let second = vec![vec![leg(Direction::Receive, 0)]];
        let stuck = run(&[first, second]).unwrap_err();
        assert_eq!(stuck.blocked[0], Some((0, vec![leg(Direction::Receive, 1)])));
        assert_eq!(stuck.blocked[1], None);
    }
}
