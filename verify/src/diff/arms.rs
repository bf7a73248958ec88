//! Which worlds a change touches, and what their ranks move before and after.

use rankwise_protocol::legs::{Arm, Statistics, schedule};
use rankwise_protocol::policy::{Policy, Rung, Worlds};
use rankwise_protocol::rules::Shipped;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;

/// Worlds that are always in the table of what ranks move.
const WORLDS: [u32; 5] = [2, 3, 4, 8, 16];
/// Worlds at the edges of a change are in it up to this one: a ring has world-1 legs a rank.
const WORLD_MAX: u32 = 1024;

/// Neighbouring worlds for which the two sides differ in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Stretch {
    #[serde(serialize_with = "as_text")]
    pub(super) worlds: Worlds,
    pub(super) base: String,
    pub(super) head: String,
}

fn as_text<S: Serializer>(worlds: &Worlds, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(worlds)
}

impl Stretch {
    /// Whether it is a single world.
    pub(super) fn is_one(&self) -> bool {
        self.worlds.last == Some(self.worlds.first)
    }

    /// Whether both go from one thing to one other.
    pub(super) fn same_pair(&self, other: &Stretch) -> bool {
        (&self.base, &self.head) == (&other.base, &other.head)
    }

    /// "world 4" or "worlds 5-".
    pub(super) fn name(&self) -> String {
        format!("{} {}", if self.is_one() { "world" } else { "worlds" }, self.worlds)
    }
}

/// "world 3 and worlds 5-", and whether that is a single world.
pub(super) fn named(stretches: &[&Stretch]) -> (String, bool) {
    let names: Vec<String> = stretches.iter().map(|stretch| stretch.name()).collect();
    (names.join(" and "), matches!(stretches, [one] if one.is_one()))
}

/// The worlds that take another arm.
pub(super) fn changed_arms(base: &Policy, head: &Policy) -> Vec<Stretch> {
    stretches(base, head, |rung| rung.arm.to_string())
}

/// The worlds that have other evidence.
pub(super) fn changed_evidence(base: &Policy, head: &Policy) -> Vec<Stretch> {
    stretches(base, head, |rung| rung.evidence.to_string())
}

/// All worlds, cut where a rung of either side begins or ends; those that differ in `of`, neighbours joined.
fn stretches(base: &Policy, head: &Policy, of: impl Fn(&Rung) -> String) -> Vec<Stretch> {
    let rungs = || base.halo().rungs.iter().chain(&head.halo().rungs);
    let after = rungs().filter_map(|rung| rung.worlds.last?.checked_add(1));
    let starts: BTreeSet<u32> = rungs().map(|rung| rung.worlds.first).chain(after).chain([2]).collect();
    let ends = starts.iter().skip(1).map(|next| Some(next - 1)).chain([None]);
    let value =
        |policy: &Policy, world| policy.halo().rung(world).map_or(String::new(), |(_, rung)| of(rung));
    let mut found: Vec<Stretch> = Vec::new();
    for (&first, last) in starts.iter().zip(ends) {
        let (base, head) = (value(base, first), value(head, first));
        if base == head {
            continue;
        }
        match found.last_mut() {
            Some(before)
                if before.worlds.last == Some(first - 1)
                    && (&before.base, &before.head) == (&base, &head) =>
            {
                before.worlds.last = last;
            }
            _ => found.push(Stretch { worlds: Worlds { first, last }, base, head }),
        }
    }
    found
}

/// What one rank moves in one exchange, in edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Load {
    pub(super) arm: &'static str,
    pub(super) edges_sent: u64,
    pub(super) edges_received: u64,
    pub(super) copies_sent: u64,
    pub(super) copies_received: u64,
    pub(super) groups: usize,
}

/// What a rank moves on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Move {
    pub(super) world: u32,
    /// "end" or "interior".
    pub(super) rank: &'static str,
    pub(super) base: Load,
    pub(super) head: Load,
}

impl Move {
    /// Bytes received on the head for each on the base, as "3 x".
    pub(super) fn ratio(&self) -> String {
        let (base, head) = (self.base.edges_received, self.head.edges_received);
        if head.is_multiple_of(base) {
            format!("{} x", head / base)
        } else {
            format!("{:.2} x", head as f64 / base as f64)
        }
    }

    /// Whether the arm differs.
    pub(super) fn other_arm(&self) -> bool {
        self.base.arm != self.head.arm
    }
}

fn load(policy: &Policy, world: u32, rank: u32) -> Load {
    let arm: Arm = policy.halo().arm(world);
    let groups = schedule::<Shipped>(arm, policy.halo().coalesce, world, rank);
    let sum = Statistics::of::<Shipped>(&groups, 1);
    Load {
        arm: arm.name(),
        edges_sent: sum.bytes_sent,
        edges_received: sum.bytes_received,
        copies_sent: sum.legs_sent,
        copies_received: sum.legs_received,
        groups: groups.len(),
    }
}

/// What an end rank and an interior rank move at a few worlds and at the edges of `changed`.
pub(super) fn moves(base: &Policy, head: &Policy, changed: &[Stretch]) -> Vec<Move> {
    let edges =
        changed.iter().flat_map(|stretch| [Some(stretch.worlds.first), stretch.worlds.last]).flatten();
    let worlds: BTreeSet<u32> = edges.filter(|&world| world <= WORLD_MAX).chain(WORLDS).collect();
    let ranks = |world| [("end", 0), ("interior", 1)].into_iter().take(if world > 2 { 2 } else { 1 });
    let of = |world| {
        ranks(world).map(move |(name, rank)| Move {
            world,
            rank: name,
            base: load(base, world, rank),
            head: load(head, world, rank),
        })
    };
    worlds.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankwise_protocol::policy::{SHIPPED, SHIPPED_FILE};

    fn with(rungs: &[(&str, &str)]) -> Policy {
        let one = |(worlds, arm): &(&str, &str)| {
            format!("{{ worlds = \"{worlds}\", arm = \"{arm}\", evidence = \"none\" }}")
        };
        let list = format!("[{}]", rungs.iter().map(one).collect::<Vec<_>>().join(", "));
        Policy::parse(SHIPPED_FILE, SHIPPED, &[("halo.rungs".to_owned(), list)]).unwrap()
    }

    fn told(base: &Policy, head: &Policy) -> Vec<String> {
        let told = |one: &Stretch| format!("{}: {} -> {}", one.name(), one.base, one.head);
        changed_arms(base, head).iter().map(told).collect()
    }

    #[test]
    fn stretches_are_exact_and_joined() {
        let base = with(&[("2", "ring"), ("4", "neighbour"), ("3-", "neighbour")]);
        assert_eq!(told(&base, &base), Vec::<String>::new());
        let ring = with(&[("2-4", "ring"), ("5-99", "neighbour"), ("100-", "ring")]);
        let due = ["worlds 3-4: neighbour -> ring", "worlds 100-: neighbour -> ring"];
        assert_eq!(told(&base, &ring), due);
        let turned = with(&[("2", "neighbour"), ("3-", "ring")]);
        let due = ["world 2: ring -> neighbour", "worlds 3-: neighbour -> ring"];
        assert_eq!(told(&base, &turned), due);
    }

    #[test]
    fn an_interior_rank_of_a_ring_of_4_receives_three_times_the_bytes() {
        let base = with(&[("2-", "neighbour")]);
        let head = with(&[("4", "ring"), ("2-", "neighbour")]);
        let moves = moves(&base, &head, &changed_arms(&base, &head));
        let interior = moves.iter().find(|one| (one.world, one.rank) == (4, "interior")).unwrap();
        assert_eq!((interior.ratio().as_str(), interior.other_arm()), ("3 x", true));
        assert_eq!((interior.head.edges_received, interior.head.copies_received), (6, 3));
        let worlds: BTreeSet<u32> = moves.iter().map(|one| one.world).collect();
        assert_eq!(worlds.into_iter().collect::<Vec<_>>(), [2, 3, 4, 8, 16]);
    }

    #[test]
    fn a_ratio_below_one_has_two_digits() {
        let (ring, near) = (with(&[("2-", "ring")]), with(&[("2-", "neighbour")]));
        let moves = moves(&ring, &near, &changed_arms(&ring, &near));
        assert_eq!(moves[0].ratio(), "0.50 x");
    }
}
