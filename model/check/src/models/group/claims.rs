//! What must hold of the control group, and how its runs are drawn.

use super::*;

impl<R: Rules> World for Exchanges<R> {
    fn world(&self) -> u32 {
        self.world
    }

    fn claims(&self) -> Vec<Claim<Self>> {
        let all: [Claim<Self>; 8] = [
            Claim { requirement: GRP_1, name: NAMED, when: When::Always, holds: named, reached: diverged },
            Claim { requirement: GRP_2, name: UNSPLIT, when: When::Always, holds: unsplit, reached: both },
            Claim { requirement: GRP_3, name: ENDS, when: When::AtRest, holds: ends, reached: held_up },
            Claim { requirement: GRP_3, name: CLEAN, when: When::AtRest, holds: clean, reached: all_done },
            Claim {
                requirement: GRP_3,
                name: FIRST_CAUSE,
                when: When::Always,
                holds: first_cause,
                reached: |_, state| state.causes_tried > 1,
            },
            Claim {
                requirement: GRP_4,
                name: OWN_RECORDS,
                when: When::Always,
                holds: |_, state| !any(state, |ended| *ended == Ended::Unknown),
                reached: |_, state| state.ranks.iter().any(|rank| rank.member.index() > R::board_slots()),
            },
            Claim {
                requirement: GRP_4,
                name: STRANGER,
                when: When::Always,
                holds: |_, state| !any(state, |ended| *ended == Ended::Complete),
                reached: |_, state| state.decision.completed > 0,
            },
            Claim {
                requirement: GRP_5,
                name: PROMISED,
                when: When::Always,
                holds: |model, state| {
                    let clean = !any(state, |ended| *ended != Ended::Complete);
                    unsplit(model, state) && (model.attack.regime != Regime::T0 || clean)
                },
                reached: all_done,
            },
        ];
        all.into_iter().filter(|claim| self.claims.contains(&claim.name)).collect()
    }

    fn is_fault(&self, action: &Action) -> bool {
        matches!(action, Action::Die(_) | Action::Stall(_) | Action::Abort)
    }

    fn lanes(&self) -> Vec<String> {
        let mut lanes: Vec<String> = (0..self.world).map(|rank| format!("rank {rank}")).collect();
        if self.attack.abort {
            lanes.push("aborting thread".to_owned());
        }
        lanes
    }

    fn draw(&self, before: &Self::State, action: &Self::Action) -> Step {
        let after = self.next_state(before, action.clone()).unwrap_or_else(|| before.clone());
        let (lane, what) = match action {
            Action::Operate(rank) => (*rank, describe(&before.ranks[*rank as usize].member)),
            Action::Glance(rank) => (*rank, format!("sees the decision: {}", decided(before.decision))),
            Action::Store(rank) => (*rank, "stores what it had compared".to_owned()),
            Action::Land(rank) => (*rank, "its record becomes visible".to_owned()),
            Action::Expire(rank) => (*rank, "its deadline passes".to_owned()),
            Action::LearnGone(rank) => (*rank, "is told that its peer is gone".to_owned()),
            Action::Die(rank) => (*rank, "dies".to_owned()),
            Action::Stall(rank) => (*rank, "stops without a word".to_owned()),
            Action::Abort => (self.world, "aborts".to_owned()),
        };
        let own = lane as usize;
        let ended = after.ranks.get(own).filter(|rank| rank.ended.len() > before.ranks[own].ended.len());
        let outcome = ended.map_or(String::new(), |rank| {
            format!(" => exchange {} {}", rank.ended.len(), outcome(rank.ended.last().expect("one more")))
        });
        Step { lane: own, text: what + &outcome, peer: None }
    }

    fn waits(&self, state: &Self::State) -> Vec<Wait> {
        let live = state.ranks.iter().enumerate().filter(|(_, rank)| rank.health == Health::Live);
        live.filter_map(|(lane, rank)| {
            let peer = Self::waits_for(&rank.member)?;
            let why = format!("exchange {} of rank {peer}", rank.member.index());
            Some(Wait { lane, on: peer as usize, why })
        })
        .collect()
    }

    fn sentence(&self, claim: &Claim<Self>, state: &Self::State) -> String {
        let ended: Vec<String> = state
            .ranks
            .iter()
            .enumerate()
            .filter_map(|(own, rank)| {
                let last = rank.ended.last()?;
                Some(format!("exchange {} is {} on rank {own}", rank.ended.len(), outcome(last)))
            })
            .collect();
        match claim.name {
            ENDS => "A rank waits for a peer that is not coming, and nothing ends its wait.".to_owned(),
            _ if ended.is_empty() => format!("This must hold: {}.", claim.name),
            _ => format!("{}.", ended.join(", ")),
        }
    }
}

fn describe<R: Rules>(member: &Member<R>) -> String {
    let index = member.index();
    match member.operation() {
        Some(Operation::WriteSlot(claim, _)) => format!("writes record {index} to slot {}", claim.slot().1),
        Some(Operation::Announce { .. }) => format!("announces record {index}"),
        Some(Operation::LoadPosted { rank }) => format!("sees record {index} of rank {rank} announced"),
        Some(Operation::LoadDecision) => "reads the decision".to_owned(),
        Some(Operation::SwapDecision { new, .. }) => format!("swaps the decision to: {}", decided(new)),
        Some(Operation::ReadSlot(claim)) => {
            format!("reads slot {} of rank {}", claim.slot().1, claim.slot().0)
        }
        None => "rests".to_owned(),
    }
}

fn decided(decision: Decision) -> String {
    match decision.cause {
        None => format!("{} complete", decision.completed),
        Some(cause) => format!("{} complete, then {cause}", decision.completed),
    }
}

fn outcome(ended: &Ended) -> String {
    match ended {
        Ended::Complete => "complete".to_owned(),
        Ended::Diverged(_) => "diverged".to_owned(),
        Ended::Poisoned(cause) => format!("poisoned ({cause})"),
        Ended::Unknown => "unknown".to_owned(),
    }
}

fn any<R>(state: &State<R>, what: impl Fn(&Ended) -> bool) -> bool {
    state.ranks.iter().flat_map(|rank| &rank.ended).any(what)
}

fn named<R: Rules>(model: &Exchanges<R>, state: &State<R>) -> bool {
    (1..=model.exchanges).all(|index| {
        let tags: Vec<Tag> = state.ranks.iter().map(|rank| Exchanges::<R>::tag(rank, index)).collect();
        let equal = tags.iter().all(|tag| *tag == tags[0]);
        state.ranks.iter().filter_map(|rank| rank.ended.get(index as usize - 1)).all(|ended| match ended {
            Ended::Complete => equal,
            Ended::Diverged(learnt) => *learnt == tags,
            Ended::Poisoned(_) | Ended::Unknown => true,
        })
    })
}

/// A rank has ended an exchange to which ranks came with different tags.
fn diverged<R: Rules>(_: &Exchanges<R>, state: &State<R>) -> bool {
    let differ = |index: u64| {
        let tag = |rank| Exchanges::<R>::tag(rank, index);
        state.ranks.iter().any(|rank| tag(rank) != tag(&state.ranks[0]))
    };
    state.ranks.iter().any(|rank| (1..=rank.ended.len() as u64).any(differ))
}

fn unsplit<R: Rules>(model: &Exchanges<R>, state: &State<R>) -> bool {
    (0..model.exchanges as usize).all(|position| {
        let ended = || state.ranks.iter().filter_map(|rank| rank.ended.get(position));
        let complete = ended().any(|ended| matches!(ended, Ended::Complete | Ended::Diverged(_)));
        let poisoned = ended().any(|ended| matches!(ended, Ended::Poisoned(_)));
        !(complete && poisoned)
    })
}

fn both<R: Rules>(_: &Exchanges<R>, state: &State<R>) -> bool {
    let poisoned = any(state, |ended| matches!(ended, Ended::Poisoned(_)));
    poisoned && any(state, |ended| *ended == Ended::Complete)
}

fn ends<R: Rules>(model: &Exchanges<R>, state: &State<R>) -> bool {
    state.ranks.iter().filter(|rank| rank.health == Health::Live).all(|rank| model.finished(rank))
}

fn clean<R: Rules>(model: &Exchanges<R>, state: &State<R>) -> bool {
    all_done(model, state)
}

fn all_done<R: Rules>(model: &Exchanges<R>, state: &State<R>) -> bool {
    let complete = |rank: &Rank<R>| rank.ended.iter().filter(|ended| **ended == Ended::Complete).count();
    state.ranks.iter().all(|rank| complete(rank) as u64 == model.exchanges)
}

/// A rank has stalled, and a live one could not complete its exchanges.
fn held_up<R: Rules>(_: &Exchanges<R>, state: &State<R>) -> bool {
    let stalled = state.ranks.iter().any(|rank| rank.health == Health::Stalled);
    let short = |rank: &Rank<R>| rank.health == Health::Live && rank.ended.last() != Some(&Ended::Complete);
    stalled && state.ranks.iter().any(short)
}

fn first_cause<R: Rules>(_: &Exchanges<R>, state: &State<R>) -> bool {
    let mut learnt = state.ranks.iter().flat_map(|rank| &rank.ended).filter_map(|ended| match ended {
        Ended::Poisoned(cause) => Some(*cause),
        _ => None,
    });
    learnt.all(|cause| state.decision.cause == Some(cause))
}
