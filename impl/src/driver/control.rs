//! Drives exchanges of records on the board.

use crate::group::{Control, Rank};
use crate::observe::Phase;
use crate::transport::Transport;
use crate::wait::{Backoff, Deadline, Rest};
use rankwise_protocol::call::Op;
use rankwise_protocol::event::Event;
use rankwise_protocol::group::{Cause, Decision, Input, Member, Operation, Outcome, Poisoner, Step, Tag};
use rankwise_protocol::rules::Shipped;
use rankwise_protocol::shared::board::perform;

impl Rank {
    /// One exchange: gives `payload` to all ranks and takes theirs, or learns why not.
    pub(crate) fn exchange(
        &self,
        control: &mut Control,
        op: Op,
        payload: Vec<u8>,
        deadline: Deadline,
    ) -> Outcome {
        self.enter_phase(Phase::Exchange);
        let calls = &mut control.calls[op as usize];
        *calls += 1;
        let member = &mut control.member;
        let tag = Tag { op, call: *calls };
        let said = self.trace().map(|_| payload.clone());
        if let Err(cause) = member.begin(tag, payload) {
            return Outcome::Poisoned(cause);
        }
        if let (Some(trace), Some(payload)) = (self.trace(), said) {
            trace.note(Event::Begin { index: member.index(), tag, payload });
        }
        let mut backoff = self.backoff();
        let mut step = Step::Continue;
        loop {
            step = match step {
                Step::Continue => self.operate(member),
                Step::Waiting { .. } => self.wait_for_peer(member, &mut backoff, deadline),
                Step::Ended(outcome) => {
                    if let Outcome::Poisoned(cause) = &outcome {
                        tracing::debug!(rank = self.rank, %cause, "the group has ended");
                    }
                    return outcome;
                }
            }
        }
    }

    /// Ends the group; gives the first cause, which may be another one.
    pub(crate) fn poison(&self, cause: Cause) -> Cause {
        let mut poisoner = Poisoner::<Shipped>::new(cause);
        loop {
            let operation = poisoner.operation();
            let swaps = match &operation {
                Operation::SwapDecision { expected, .. } => Some(*expected),
                _ => None,
            };
            let input = self.perform(operation);
            let won = swaps.filter(|_| input == Input::Swapped(Ok(())));
            if let Some(first) = poisoner.handle(input) {
                if let Some(trace) = self.trace() {
                    trace.note(Event::Poison { cause, stood: won.ok_or(first) });
                }
                tracing::debug!(rank = self.rank, cause = %first, "the group has ended");
                return first;
            }
        }
    }

    /// The cause of the group's end, if it has ended.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match self.perform(Operation::LoadDecision) {
            Input::Decision(Decision { cause, .. }) => cause,
            other => unreachable!("{other:?} does not answer a load of the decision"),
        }
    }

    /// Carries out one operation, and wakes those who may wait for the word that it wrote. Nobody waits for a
    /// swap that completes an exchange: who sleeps was woken by the last announcement before it. A cause is
    /// news for other threads of this rank as well.
    fn perform(&self, operation: Operation) -> Input {
        let announces = matches!(operation, Operation::Announce { .. });
        let ends = matches!(&operation, Operation::SwapDecision { new, .. } if new.cause.is_some());
        let input = perform(self.region(), self.rank, operation);
        if announces {
            self.region().ring_others(self.rank);
        }
        if ends {
            self.region().ring_all();
        }
        input
    }

    fn operate(&self, member: &mut Member<Shipped>) -> Step {
        let operation = member.operation().expect("an exchange is under way");
        let input = self.perform(operation);
        self.tell(member, input)
    }

    /// Gives a machine an input, and keeps it in the log if it changed something.
    fn tell(&self, member: &mut Member<Shipped>, input: Input) -> Step {
        let Some(trace) = self.trace() else { return member.handle(input) };
        let event = member.operation().and_then(|operation| Event::of(&operation, &input));
        let step = member.handle(input);
        if let (Some(event), false) = (event, matches!(step, Step::Waiting { .. })) {
            trace.note(event);
        }
        step
    }

    /// Looks once for the peer that is waited for, and if it has not come, at the decision.
    fn look(&self, member: &mut Member<Shipped>) -> Step {
        match self.operate(member) {
            Step::Waiting { peer } => match member.glance() {
                Some(glance) => {
                    let input = self.perform(glance);
                    self.tell(member, input)
                }
                None => Step::Waiting { peer },
            },
            step => step,
        }
    }

    /// Looks, and rests if that was in vain. Legs that are under way go on meanwhile: a peer may need them
    /// to get as far as its own record.
    fn wait_for_peer(&self, member: &mut Member<Shipped>, backoff: &mut Backoff, deadline: Deadline) -> Step {
        let moved = self.sweep();
        let step = self.operate(member);
        if !matches!(step, Step::Waiting { .. }) {
            return step;
        }
        if moved {
            // Legs may move for longer than this call may last.
            return if deadline.passed() { self.tell(member, Input::Expired) } else { self.look(member) };
        }
        match backoff.rest() {
            // Looking at the decision as well would take its line from the rank that is about to swap it.
            Rest::Spin => step,
            Rest::Yield if deadline.passed() => self.tell(member, Input::Expired),
            Rest::Yield => self.look(member),
            Rest::Sleep => self.sleep_for_peer(member, deadline),
        }
    }

    fn sleep_for_peer(&self, member: &mut Member<Shipped>, deadline: Deadline) -> Step {
        let sleeper = self.region().bell(self.rank).lie_down();
        let moved = self.sweep();
        let step = self.look(member);
        let Step::Waiting { peer } = step else { return step };
        if deadline.passed() {
            return self.tell(member, Input::Expired);
        }
        if !moved {
            sleeper.sleep(deadline.slice());
        }
        if !self.is_gone(peer) {
            return step;
        }
        // It may have come and then gone: what it announced counts, and the news is for one who still waits.
        match self.look(member) {
            Step::Waiting { peer: still } if still == peer => self.tell(member, Input::Gone { rank: peer }),
            step => step,
        }
    }

    /// Moves legs that are under way; true where anything moved.
    pub(crate) fn sweep(&self) -> bool {
        let mut transport = self.transport();
        self.sweep_held(&mut transport)
    }

    /// The same with the transport in hand. Whoever finds a message that is not as announced ends the group,
    /// whether or not anybody waits for it (CHN-3).
    pub(crate) fn sweep_held(&self, transport: &mut Transport) -> bool {
        transport.sweep(self.region()).unwrap_or_else(|corrupt| {
            self.poison(corrupt);
            false
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{Group, Options};
    use crate::transport::Pool;
    use rankwise_protocol::group::CauseKind;
    use rankwise_protocol::layout::{BandShape, Dtype};
    use rankwise_protocol::legs::{Direction, Leg, Place};

    /// GRP-3.
    #[test]
    fn an_exchange_expires_while_legs_move() {
        let groups = Group::threads(2, &Options::default()).unwrap();
        let rank = groups[0].inner();
        let shape = BandShape { frames: 1, rows: 1, width: 8, channels: 1, dtype: Dtype::U8 };
        let mut transport = rank.transport();
        let ticket = transport.begin(Pool::default().take(&shape, 2).unwrap(), shape.edge_bytes(), 0);
        transport.open();
        transport.post(Leg { direction: Direction::Send, peer: 1, place: Place::PackedBoth }).unwrap();
        transport.close(ticket);
        drop(transport);
        let mut control = rank.enter(rank.deadline()).unwrap();
        let member = &mut control.member;
        member.begin(Tag { op: Op::Barrier, call: 1 }, Vec::new()).unwrap();
        while rank.operate(member) == Step::Continue {}
        let step = rank.wait_for_peer(member, &mut rank.backoff(), Deadline::after(0));
        assert_eq!(step, Step::Continue);
        let late = Cause { kind: CauseKind::Late, rank: 1 };
        assert_eq!(rank.operate(member), Step::Ended(Outcome::Poisoned(late)));
    }
}
