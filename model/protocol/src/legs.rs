//! Leg table of the halo exchange: who sends what to whom, in which groups (HAL-2, HAL-3, HAL-9).
//!
//! Ranks own bands in rank order, so rank-1 lies above and rank+1 below. Each rank packs two edges, its
//! first and its last real row; a receive buffer has one slot of two edges for every rank.

use crate::rules::Rules;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// How edges travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arm {
    /// All-gather around a ring: world-1 steps, every rank ends with every rank's edges.
    Ring,
    /// One edge to and from each neighbour, in one group.
    Neighbour,
}

impl Arm {
    /// Every arm, in the order in which they are listed to a reader.
    pub const ALL: [Arm; 2] = [Arm::Ring, Arm::Neighbour];

    /// Name in the policy and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Arm::Ring => "ring",
            Arm::Neighbour => "neighbour",
        }
    }

    /// The arm called `name`. Takes the aliases that users of the seed's override know.
    pub fn from_name(name: &str) -> Option<Arm> {
        match name {
            "ring" | "ag" | "allgather" => Some(Arm::Ring),
            "neighbour" | "p2p" => Some(Arm::Neighbour),
            _ => None,
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A side of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Towards row 0: rank-1.
    Above,
    /// Towards the last row: rank+1.
    Below,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Side; 2] = [Side::Above, Side::Below];

    /// The rank whose band touches this side, if there is one.
    pub fn neighbour(self, rank: u32, world: u32) -> Option<u32> {
        match self {
            Side::Above => rank.checked_sub(1),
            Side::Below => Some(rank + 1).filter(|&below| below < world),
        }
    }

    /// The neighbour's edge that touches this side.
    pub fn facing_edge(self) -> Edge {
        match self {
            Side::Above => Edge::Last,
            Side::Below => Edge::First,
        }
    }

    /// This rank's own edge on this side.
    pub fn own_edge(self) -> Edge {
        match self {
            Side::Above => Edge::First,
            Side::Below => Edge::Last,
        }
    }
}

/// One of the two rows that a rank packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Edge {
    /// First real row of the band.
    First,
    /// Last real row of the band.
    Last,
}

/// Which way a leg goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// To the peer.
    Send,
    /// From the peer.
    Receive,
}

/// Where a leg's bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// One edge of this rank's packed edges `[2,T,W,C]`.
    Packed(Edge),
    /// Both packed edges.
    PackedBoth,
    /// One edge of slot `rank` of the receive buffer `[world,2,T,W,C]`.
    Slot(u32, Edge),
    /// Both edges of slot `rank`.
    SlotBoth(u32),
}

/// The two buffers of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// Packed edges `[2,T,W,C]`.
    Packed,
    /// Received edges `[world,2,T,W,C]`.
    Received,
}

impl Place {
    /// Edges it holds, 1 or 2.
    pub fn edges(self) -> u64 {
        match self {
            Place::Packed(_) | Place::Slot(..) => 1,
            Place::PackedBoth | Place::SlotBoth(_) => 2,
        }
    }

    /// The buffer and its byte range, where one edge has `edge_bytes` bytes.
    pub fn bytes(self, edge_bytes: u64) -> (Buffer, Range<u64>) {
        let (buffer, first_edge) = match self {
            Place::Packed(edge) => (Buffer::Packed, edge as u64),
            Place::PackedBoth => (Buffer::Packed, 0),
            Place::Slot(rank, edge) => (Buffer::Received, u64::from(rank) * 2 + edge as u64),
            Place::SlotBoth(rank) => (Buffer::Received, u64::from(rank) * 2),
        };
        let start = first_edge * edge_bytes;
        (buffer, start..start + self.edges() * edge_bytes)
    }
}

/// One send or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leg {
    /// Which way.
    pub direction: Direction,
    /// The other rank, as a rank of the group.
    pub peer: u32,
    /// The bytes.
    pub place: Place,
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, way) = match self.direction {
            Direction::Send => ("send", "to"),
            Direction::Receive => ("receive", "from"),
        };
        let what = match self.place {
            Place::Packed(Edge::First) | Place::Slot(_, Edge::First) => "first edge",
            Place::Packed(Edge::Last) | Place::Slot(_, Edge::Last) => "last edge",
            Place::PackedBoth => "both edges",
            Place::SlotBoth(rank) => return write!(f, "{verb} edges of {rank} {way} {}", self.peer),
        };
        write!(f, "{verb} {what} {way} {}", self.peer)
    }
}

/// Legs that are issued together. A rank's groups run one after the other.
pub type Group = Vec<Leg>;

/// The groups of one rank, in order.
///
/// Under `coalesce` the neighbour arm is one group ordered receive-below, send-up, receive-above,
/// send-down. Any order is safe when a group's legs run at once. This one is also safe when a transport runs
/// them one by one: the last rank has nothing to receive from below, so it sends up first, which frees the
/// rank above, and so on; the receives from above then free each other from rank 0 down (HAL-3).
pub fn schedule<R: Rules>(arm: Arm, coalesce: bool, world: u32, rank: u32) -> Vec<Group> {
    if world < 2 {
        return Vec::new();
    }
    match arm {
        Arm::Ring => ring::<R>(world, rank),
        Arm::Neighbour if R::coalesced(coalesce) => vec![neighbour_group::<R>(world, rank)],
        Arm::Neighbour => neighbour_legs_apart::<R>(world, rank),
    }
}

/// In step s each rank passes on what it got in step s-1, so after world-1 steps every slot but its own is
/// filled. Even ranks send first and odd ranks receive first, so that the ring also turns on a transport that runs
/// legs one by one; were all to send first, none would receive (HAL-3). In an odd world the last rank and rank 0
/// both send first, and rank 1 frees them.
fn ring<R: Rules>(world: u32, rank: u32) -> Vec<Group> {
    let next = (rank + 1) % world;
    let previous = (rank + world - 1) % world;
    (0..world - 1)
        .map(|step| {
            let place = match step {
                0 => Place::PackedBoth,
                _ => Place::SlotBoth((rank + world - step) % world),
            };
            let incoming = Place::SlotBoth((previous + world - step) % world);
            let send = Leg { direction: Direction::Send, peer: next, place };
            let receive = Leg { direction: Direction::Receive, peer: previous, place: incoming };
            if R::ring_sends_first(rank) { vec![send, receive] } else { vec![receive, send] }
        })
        .collect()
}

fn send<R: Rules>(side: Side, world: u32, rank: u32) -> Option<Leg> {
    let peer = R::sends_to(side, rank, world)?;
    Some(Leg { direction: Direction::Send, peer, place: Place::Packed(side.own_edge()) })
}

fn receive<R: Rules>(side: Side, world: u32, rank: u32) -> Option<Leg> {
    let peer = R::receives_from(side, rank, world)?;
    Some(Leg { direction: Direction::Receive, peer, place: Place::Slot(peer, side.facing_edge()) })
}

fn neighbour_group<R: Rules>(world: u32, rank: u32) -> Group {
    [
        receive::<R>(Side::Below, world, rank),
        send::<R>(Side::Above, world, rank),
        receive::<R>(Side::Above, world, rank),
        send::<R>(Side::Below, world, rank),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// For each neighbour send, then receive, each leg a group of its own: what unbatched calls do.
fn neighbour_legs_apart<R: Rules>(world: u32, rank: u32) -> Vec<Group> {
    Side::BOTH
        .into_iter()
        .flat_map(|side| [send::<R>(side, world, rank), receive::<R>(side, world, rank)])
        .flatten()
        .map(|leg| vec![leg])
        .collect()
}

/// Bytes and legs of one exchange of one rank (HAL-9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Statistics {
    /// Bytes this rank sends.
    pub bytes_sent: u64,
    /// Bytes this rank receives.
    pub bytes_received: u64,
    /// Legs this rank sends.
    pub legs_sent: u64,
    /// Legs this rank receives.
    pub legs_received: u64,
}

impl Statistics {
    /// What `groups` move, where one edge has `edge_bytes` bytes.
    pub fn of<R: Rules>(groups: &[Group], edge_bytes: u64) -> Self {
        let mut sum = Self::default();
        for leg in groups.iter().flatten() {
            let bytes = R::edges_counted(leg) * edge_bytes;
            let (total, legs) = match leg.direction {
                Direction::Send => (&mut sum.bytes_sent, &mut sum.legs_sent),
                Direction::Receive => (&mut sum.bytes_received, &mut sum.legs_received),
            };
            *total += bytes;
            *legs += 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Shipped;

    #[test]
    fn an_interior_rank_of_the_neighbour_arm_has_four_legs_in_one_group() {
        let groups = schedule::<Shipped>(Arm::Neighbour, true, 4, 1);
        let words: Vec<_> = groups[0].iter().map(alloc::string::ToString::to_string).collect();
        assert_eq!(groups.len(), 1);
        assert_eq!(
            words,
            [
                "receive first edge from 2",
                "send first edge to 0",
                "receive last edge from 0",
                "send last edge to 2"
            ]
        );
    }

    #[test]
    fn the_ring_moves_three_times_the_bytes_of_neighbours_at_world_4() {
        let ring = Statistics::of::<Shipped>(&schedule::<Shipped>(Arm::Ring, true, 4, 1), 10);
        let near = Statistics::of::<Shipped>(&schedule::<Shipped>(Arm::Neighbour, true, 4, 1), 10);
        assert_eq!((ring.bytes_received, ring.legs_received), (60, 3));
        assert_eq!((near.bytes_received, near.legs_received), (20, 2));
    }

    #[test]
    fn one_rank_has_no_exchange() {
        assert!(schedule::<Shipped>(Arm::Ring, true, 1, 0).is_empty());
    }
}
