//! What must hold of a halo call, and how its runs are drawn.

use super::*;

impl<R: Rules> World for Calls<R> {
    fn world(&self) -> u32 {
        self.world
    }

    fn claims(&self) -> Vec<Claim<Self>> {
        let (always, at_rest) = (When::Always, When::AtRest);
        let ended_well: fn(&Self, &State<R>) -> bool = |_, state| results(state).all(|r| r == Some(&Ok(())));
        let all: [Claim<Self>; 9] = [
            Claim { requirement: hal(1), name: ONE_ARM, when: always, holds: one_arm, reached: all_refused },
            Claim {
                requirement: hal(11),
                name: ONE_CONTEXT,
                when: always,
                holds: one_context,
                reached: |model, state| {
                    let contexts = || model.attack.locals.iter().map(|local| local.context);
                    contexts().any(|context| Some(context) != contexts().next()) && state.complete
                },
            },
            Claim {
                requirement: hal(6),
                name: IN_ORDER,
                when: always,
                holds: |_, state| !state.ranks.iter().any(|rank| rank.disordered),
                reached: |_, state| state.ranks.iter().all(|rank| rank.used && rank.freed),
            },
            Claim {
                requirement: hal(7),
                name: CLOSED,
                when: always,
                holds: |_, state| {
                    !state.ranks.iter().any(|rank| rank.result.is_some() && rank.open.is_some())
                },
                reached: |_, state| state.ranks.iter().any(|rank| rank.raised && rank.open.is_some()),
            },
            Claim {
                requirement: hal(10),
                name: TOLD,
                when: at_rest,
                holds: |_, state| results(state).all(|result| result.is_some()),
                reached: |_, state| state.ranks.iter().any(|rank| rank.raised && rank.result.is_some()),
            },
            Claim {
                requirement: hal(10),
                name: CLEAN,
                when: at_rest,
                holds: ended_well,
                reached: ended_well,
            },
            Claim {
                requirement: hal(10),
                name: ENDS,
                when: at_rest,
                holds: |_, state| live(state).all(|rank| rank.result.is_some()),
                reached: |_, state| {
                    let stalled = state.ranks.iter().any(|rank| rank.health == Health::Stalled);
                    stalled && live(state).any(|rank| rank.result != Some(Ok(())))
                },
            },
            Claim {
                requirement: hal(10),
                name: RIGHT,
                when: always,
                holds: |_, state| {
                    let whole = |rank: &Rank<R>| !rank.lost && rank.groups_done == rank.groups_posted;
                    state.ranks.iter().all(|rank| rank.result != Some(Ok(())) || whole(rank))
                },
                reached: |_, state| {
                    let stopped = state.ranks.iter().any(|rank| rank.health != Health::Live);
                    stopped && live(state).any(|rank| rank.groups_posted > 0 && rank.result.is_some())
                },
            },
            Claim {
                requirement: Requirement::new("GRP", 2),
                name: UNREADABLE,
                when: always,
                holds: |_, state| {
                    let unread = |rank: &Rank<R>| matches!(rank.result, Some(Err(Failure::Unknown { .. })));
                    state.poison.is_some() || !state.ranks.iter().any(unread)
                },
                reached: |model, state| model.attack.unreadable.is_some() && state.complete,
            },
        ];
        all.into_iter().filter(|claim| self.claims.contains(&claim.name)).collect()
    }

    fn is_fault(&self, action: &Action) -> bool {
        matches!(
            action,
            Action::Raise(_) | Action::Die(_) | Action::Stall(_) | Action::Garble(_) | Action::Drift(..)
        )
    }

    fn lanes(&self) -> Vec<String> {
        (0..self.world).map(|rank| format!("rank {rank}")).collect()
    }

    fn draw(&self, before: &State<R>, action: &Action) -> Step {
        let effect = |own: &u32| before.ranks[*own as usize].machine.effect();
        let (lane, text, peer) = match action {
            Action::Carry(own) => (own, told(&effect(own)), None),
            Action::Raise(own) => (own, format!("fails to {}", told(&effect(own))), None),
            Action::Learn(own) => {
                let after = self.next_state(before, action.clone());
                let arm = before.ranks[*own as usize].machine.arm();
                let next = after.map(|state| state.ranks[*own as usize].machine.effect());
                let verdict = match next {
                    Some(Effect::Return(Err(Failure::Refused(refusal)))) => format!("refused: {refusal}"),
                    _ => format!("agreed: the {arm} arm"),
                };
                (own, verdict, None)
            }
            Action::Wait(own, stream) => (own, format!("caller waits on {}", name(*stream)), None),
            Action::Drop(own) => (own, "caller drops the handle".to_owned(), None),
            Action::Look(own) => (own, "sees that it waits in vain".to_owned(), None),
            Action::Expire(own) => (own, "its deadline passes".to_owned(), None),
            Action::Garble(own) => (own, "finds a message that is not as announced".to_owned(), None),
            Action::Die(own) => (own, "dies".to_owned(), None),
            Action::Stall(own) => (own, "stops without a word".to_owned(), None),
            Action::Run(own, stream) => {
                let work = before.ranks[*own as usize].work[queue(*stream)].front();
                let what = match work {
                    Some(Work::Pack) => "pack runs",
                    Some(Work::Legs(legs)) if legs.is_empty() => "the group of legs is done",
                    Some(Work::Legs(_)) => "legs are given up",
                    Some(Work::Unpack) => "unpack runs",
                    Some(Work::Free) => "buffers are freed",
                    Some(Work::After(..)) | None => "the order is met",
                };
                (own, format!("{what} on {}", name(*stream)), None)
            }
            Action::Transfer(from, to) | Action::Drift(from, to) => {
                (from, format!("sends an edge to rank {to}"), Some(*to as usize))
            }
        };
        Step { lane: *lane as usize, text, peer }
    }

    fn waits(&self, state: &State<R>) -> Vec<Wait> {
        let of = |(lane, rank): (usize, &Rank<R>)| -> Vec<Wait> {
            if rank.result.is_some() || rank.health != Health::Live {
                return Vec::new();
            }
            if let Effect::Agree(_) = rank.machine.effect() {
                let missing = state.records.iter().position(Option::is_none);
                return missing
                    .map(|on| Wait { lane, on, why: format!("rank {on}'s record") })
                    .into_iter()
                    .collect();
            }
            match rank.work[queue(Stream::Transport)].front() {
                Some(Work::Legs(legs)) => legs
                    .iter()
                    .map(|leg| Wait { lane, on: leg.peer as usize, why: format!("the other end of: {leg}") })
                    .collect(),
                _ => Vec::new(),
            }
        };
        state.ranks.iter().enumerate().flat_map(of).collect()
    }

    fn sentence(&self, claim: &Claim<Self>, state: &State<R>) -> String {
        let listed = |what: &dyn Fn(&Rank<R>) -> bool| {
            let ranks = (0..state.ranks.len()).filter(|&own| what(&state.ranks[own]));
            ranks.map(|rank| rank.to_string()).collect::<Vec<_>>().join(" and ")
        };
        match claim.name {
            ONE_ARM => {
                let arms: Vec<Arm> = state.ranks.iter().map(|rank| rank.machine.arm()).collect();
                if arms.iter().all(|arm| *arm == arms[0]) {
                    return format!("A call is run that all ranks had to refuse: {}.", self.attack.setting);
                }
                let arms: Vec<String> = arms
                    .iter()
                    .enumerate()
                    .map(|(own, arm)| format!("rank {own} takes the {arm} arm"))
                    .collect();
                format!("Ranks enter exchanges that never meet: {}.", arms.join(", "))
            }
            ONE_CONTEXT => {
                let calls = self.attack.locals.iter().enumerate().zip(&state.ranks);
                let posts = calls.filter(|(_, rank)| rank.groups_posted > 0).map(|((own, local), _)| {
                    format!("rank {own} posts legs of its context {}", local.context)
                });
                format!("In one call {}.", posts.collect::<Vec<_>>().join(", "))
            }
            IN_ORDER => format!(
                "On rank {} work runs before what it needs is done, or on a buffer that was given back.",
                listed(&|rank| rank.disordered)
            ),
            CLOSED => format!(
                "Rank {} is done and has left a group of legs open: every later call goes into it.",
                listed(&|rank| rank.result.is_some() && rank.open.is_some())
            ),
            RIGHT => format!(
                "Rank {} returns well, and edges that it waited for never came.",
                listed(&|rank| {
                    let short = rank.lost || rank.groups_done < rank.groups_posted;
                    rank.result == Some(Ok(())) && short
                })
            ),
            UNREADABLE => "A rank errs on a record that it cannot read, and its peers go on.".to_owned(),
            _ => {
                let waiting = |rank: &Rank<R>| rank.result.is_none() && rank.health == Health::Live;
                match listed(&waiting) {
                    ranks if ranks.contains(' ') => format!("Ranks {ranks} never get a result."),
                    rank => format!("Rank {rank} never gets a result."),
                }
            }
        }
    }

    fn setting(&self, _: &State<R>) -> String {
        self.attack.setting.clone()
    }
}

fn name(stream: Stream) -> &'static str {
    match stream {
        FIRST => "the caller's stream",
        Stream::Caller(_) => "another stream of the caller's",
        Stream::Transport => "the transport's stream",
    }
}

fn told(effect: &Effect) -> String {
    match effect {
        Effect::Agree(_) => "give its record".to_owned(),
        Effect::Pack(stream) => format!("launch pack on {}", name(*stream)),
        Effect::Order { earlier, later } => format!("order {} after {}", name(*later), name(*earlier)),
        Effect::Open => "open a group".to_owned(),
        Effect::Post(leg) => format!("post: {leg}"),
        Effect::Close => "close the group".to_owned(),
        Effect::Hold => "hold".to_owned(),
        Effect::Unpack(stream) => format!("launch unpack on {}", name(*stream)),
        Effect::Poison(cause) => format!("end the group: {cause}"),
        Effect::Release(Some(stream)) => format!("free buffers after {}", name(*stream)),
        Effect::Release(None) => "free buffers at once".to_owned(),
        Effect::Return(Ok(())) => "return".to_owned(),
        Effect::Return(Err(_)) => "return an error".to_owned(),
    }
}

pub(super) fn results<R>(state: &State<R>) -> impl Iterator<Item = Option<&Result<(), Failure>>> {
    state.ranks.iter().map(|rank| rank.result.as_ref())
}

fn live<R>(state: &State<R>) -> impl Iterator<Item = &Rank<R>> {
    state.ranks.iter().filter(|rank| rank.health == Health::Live)
}

fn all_refused<R: Rules>(_: &Calls<R>, state: &State<R>) -> bool {
    results(state).all(|result| matches!(result, Some(Err(Failure::Refused(_)))))
}

/// Ranks that passed the agreement have one arm, and if locals differ none passed it; all refusals are one.
fn one_arm<R: Rules>(model: &Calls<R>, state: &State<R>) -> bool {
    let able = |local: &Brought| local.able && matches!(local.forced, Override::Unset | Override::Forced(_));
    let locals = &model.attack.locals;
    let may_run = locals.iter().all(|local| *local == locals[0]) && able(&locals[0]);
    let refusals = || {
        results(state).flatten().filter_map(|result| match result {
            Err(Failure::Refused(refusal)) => Some(refusal),
            _ => None,
        })
    };
    let one_refusal = refusals().all(|refusal| Some(refusal) == refusals().next());
    let entered = state.ranks.iter().any(|rank| rank.queued.iter().sum::<u32>() > 0);
    one_refusal && (may_run || !entered) && (!may_run || refusals().next().is_none())
}

/// Ranks whose legs were posted are in one context.
fn one_context<R: Rules>(model: &Calls<R>, state: &State<R>) -> bool {
    let entered =
        |(own, rank): (usize, &Rank<R>)| (rank.groups_posted > 0).then(|| model.attack.locals[own].context);
    let mut contexts = state.ranks.iter().enumerate().filter_map(entered);
    contexts.next().is_none_or(|first| contexts.all(|other| other == first))
}
