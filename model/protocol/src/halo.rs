//! The halo exchange from the agreed call to the filled pad rows (HAL-1, HAL-6, HAL-7, HAL-10, HAL-11).

use crate::call::{CallRecord, Field, Override, Reason, Refusal, Signature, Status, Text, verdict};
use crate::group::{Cause, CauseKind, Tag};
use crate::layout::{BandShape, ShapeError};
use crate::legs::{Arm, Group, Leg, Statistics, schedule};
use crate::policy::Policy;
use crate::rules::Rules;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

/// A queue of work that runs in its own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// A stream of the caller's.
    Caller(u8),
    /// The stream that legs run on.
    Transport,
}

/// What this rank brings to a call. Everything that can fail locally has been tried by then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Local {
    /// This rank.
    pub rank: u32,
    /// Ranks of the group.
    pub world: u32,
    /// Halo contexts that this rank had made on the group before the one of this call.
    pub context: u64,
    /// The band's shape.
    pub shape: BandShape,
    /// What the environment says of the arm, and its text.
    pub forced: Override,
    /// The override as it stands in the environment.
    pub forced_text: Text,
    /// Whether shape, buffers and bands are in order.
    pub prepared: Result<(), (Reason, Text)>,
    /// The caller's stream that has the band ready.
    pub stream: Stream,
}

impl From<ShapeError> for Reason {
    fn from(_: ShapeError) -> Self {
        Reason::Shape
    }
}

/// What the driver carries out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Exchange this record with all ranks.
    Agree(CallRecord),
    /// Launch pack on a stream.
    Pack(Stream),
    /// Order `later` after all work that `earlier` has now.
    Order {
        /// The stream that is waited for.
        earlier: Stream,
        /// The stream that waits.
        later: Stream,
    },
    /// Open a group of legs.
    Open,
    /// Add a leg to the open group.
    Post(Leg),
    /// Close the group: the transport has its legs.
    Close,
    /// Nothing: the caller holds the handle.
    Hold,
    /// Launch unpack on a stream.
    Unpack(Stream),
    /// End the group, and say which cause was the first.
    Poison(Cause),
    /// Give the buffers back once the stream has done its work; `None` at once.
    Release(Option<Stream>),
    /// Nothing more: the result.
    Return(Result<(), Failure>),
}

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// All ranks refused it.
    Refused(Refusal),
    /// The group ended.
    Poisoned(Cause),
    /// Ranks made different calls.
    Diverged(Vec<Tag>),
    /// What was read of a rank is no record of this call.
    Unknown {
        /// Which.
        rank: u32,
    },
    /// The handle was dropped before it was waited for.
    Dropped,
}

/// What came of an effect, or what the caller does with the handle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Every rank's record, or why there is none.
    Agreed(Result<Vec<CallRecord>, Failure>),
    /// The effect was carried out.
    Done,
    /// The effect could not be carried out on this rank.
    Raised,
    /// The legs will not end, by a peer's doing or the group's.
    Lost(Cause),
    /// The group has been ended, and this is its first cause.
    Poisoned(Cause),
    /// The caller wants the pad rows filled, in the order of this stream.
    Wait(Stream),
    /// The caller dropped the handle.
    Dropped,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Agreeing,
    Packing,
    OrderingTransport,
    Opening { group: usize },
    Posting { group: usize, leg: usize },
    Closing { group: usize, failed: bool },
    Posted,
    Joining { stream: Stream },
    Unpacking { stream: Stream },
    Poisoning { cause: Cause, unknown: Option<u32>, last: Stream },
    Releasing { result: Result<(), Failure>, last: Stream },
    Ended(Result<(), Failure>),
}

/// One rank's side of one halo exchange.
///
/// ```text
///          Agreed: all yes                                  per group
///  Agreeing ─────────────▶ Packing ─▶ OrderingTransport ─▶ Opening ─▶ Posting ─▶ Closing ─▶ Posted
///     │ refused, no outcome    │             │                │          │          │       │    │
///     │                        └── Raised ───┴────────────────┘  Raised: Closing ───┤  Wait │    │ Dropped
///     ▼                                 ▼                                           ▼       ▼    ▼
///   Ended ◀── Releasing ◀─────────── Poisoning ◀───────────── Raised, Lost ────── Joining ─▶ ... Releasing
///                 ▲                                                                 │
///                 └───────────────────────── Unpacking ◀────────── Done ────────────┘
/// ```
///
/// The driver carries out [`Exchange::effect`] and gives [`Exchange::handle`] what came of it, until the effect
/// is [`Effect::Hold`] (post returns a handle) or [`Effect::Return`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange<R> {
    plan: Arc<Plan>,
    phase: Phase,
    rules: PhantomData<R>,
}

/// What does not change during an exchange.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    local: Local,
    arm: Arm,
    record: CallRecord,
    groups: Vec<Group>,
}

impl<R> Hash for Exchange<R> {
    /// The plan follows from what ranks are given, so phase and rank tell the states of one run apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.plan.local.rank, self.plan.arm, &self.phase).hash(state);
    }
}

impl<R: Rules> Exchange<R> {
    /// The call of one rank under `policy`.
    pub fn new(policy: &Policy, local: Local) -> Self {
        let arm = match local.forced {
            Override::Forced(arm) => arm,
            _ => policy.halo().arm(local.world),
        };
        let record = record::<R>(policy, &local);
        let groups = schedule::<R>(arm, policy.halo().coalesce, local.world, local.rank);
        let plan = Arc::new(Plan { local, arm, record, groups });
        Self { plan, phase: Phase::Agreeing, rules: PhantomData }
    }

    /// The arm that runs once all agree.
    pub fn arm(&self) -> Arm {
        self.plan.arm
    }

    /// What this rank's legs move (HAL-9).
    pub fn statistics(&self) -> Statistics {
        Statistics::of::<R>(&self.plan.groups, self.plan.local.shape.edge_bytes())
    }

    /// What to carry out now.
    pub fn effect(&self) -> Effect {
        match &self.phase {
            Phase::Agreeing => Effect::Agree(self.plan.record.clone()),
            Phase::Packing => Effect::Pack(self.plan.local.stream),
            Phase::OrderingTransport => {
                Effect::Order { earlier: self.plan.local.stream, later: Stream::Transport }
            }
            Phase::Opening { .. } => Effect::Open,
            Phase::Posting { group, leg } => Effect::Post(self.plan.groups[*group][*leg]),
            Phase::Closing { .. } => Effect::Close,
            Phase::Posted => Effect::Hold,
            Phase::Joining { stream } => Effect::Order { earlier: Stream::Transport, later: *stream },
            Phase::Unpacking { stream } => Effect::Unpack(R::unpack_stream(*stream)),
            Phase::Poisoning { cause, .. } => Effect::Poison(*cause),
            Phase::Releasing { last, .. } => Effect::Release(R::release_after(*last)),
            Phase::Ended(result) => Effect::Return(result.clone()),
        }
    }

    /// Takes what came of the effect.
    pub fn handle(&mut self, input: Input) {
        let caller = self.plan.local.stream;
        self.phase = match (self.phase.clone(), input) {
            (Phase::Agreeing, Input::Agreed(gathered)) => match agreed(gathered) {
                Ok(()) => Phase::Packing,
                // What a rank cannot read may be its own fault, so it ends the group before it errs (GRP-2).
                Err(Failure::Unknown { rank }) if R::unreadable_record_ends_group() => {
                    let cause = Cause { kind: CauseKind::Corrupt, rank };
                    Phase::Poisoning { cause, unknown: Some(rank), last: caller }
                }
                Err(failure) => Phase::Ended(Err(failure)),
            },
            (Phase::Packing, Input::Done) => Phase::OrderingTransport,
            (Phase::OrderingTransport, Input::Done) => self.open(0),
            (Phase::Opening { group }, Input::Done) => Phase::Posting { group, leg: 0 },
            (Phase::Posting { group, leg }, Input::Done) if leg + 1 < self.plan.groups[group].len() => {
                Phase::Posting { group, leg: leg + 1 }
            }
            (Phase::Posting { group, .. }, Input::Done) => Phase::Closing { group, failed: false },
            (Phase::Posting { group, .. }, Input::Raised) if R::group_closed_after_error() => {
                Phase::Closing { group, failed: true }
            }
            (Phase::Closing { group, failed: false }, Input::Done) => self.open(group + 1),
            (Phase::Closing { failed: true, .. }, Input::Done | Input::Raised) => {
                self.failed(Stream::Transport)
            }
            (Phase::Packing | Phase::OrderingTransport, Input::Raised) => self.failed(caller),
            (
                Phase::Opening { .. }
                | Phase::Posting { .. }
                | Phase::Closing { .. }
                | Phase::Joining { .. }
                | Phase::Unpacking { .. },
                Input::Raised,
            ) => self.failed(Stream::Transport),
            (Phase::Posted, Input::Wait(stream)) => Phase::Joining { stream },
            (Phase::Posted, Input::Dropped) => {
                Phase::Releasing { result: Err(Failure::Dropped), last: Stream::Transport }
            }
            (Phase::Joining { stream }, Input::Done) => Phase::Unpacking { stream },
            (Phase::Joining { stream }, Input::Lost(_)) if !R::lost_legs_are_an_error() => {
                Phase::Unpacking { stream }
            }
            (Phase::Joining { .. }, Input::Lost(cause)) => {
                Phase::Poisoning { cause, unknown: None, last: Stream::Transport }
            }
            (Phase::Unpacking { stream }, Input::Done) => Phase::Releasing { result: Ok(()), last: stream },
            (Phase::Poisoning { unknown, last, .. }, Input::Poisoned(first)) => {
                let failure = match unknown {
                    Some(rank) => Failure::Unknown { rank },
                    None => Failure::Poisoned(first),
                };
                Phase::Releasing { result: Err(failure), last }
            }
            (Phase::Releasing { result, .. }, Input::Done) => Phase::Ended(result),
            (phase, input) => unreachable!("{input:?} does not answer {phase:?}"),
        };
    }

    fn open(&self, group: usize) -> Phase {
        if group < self.plan.groups.len() { Phase::Opening { group } } else { Phase::Posted }
    }

    /// This rank failed after the agreement: its peers count on its legs, so the group is told (HAL-10).
    fn failed(&self, last: Stream) -> Phase {
        let cause = Cause { kind: CauseKind::Failed, rank: self.plan.local.rank };
        if R::failure_poisons_group() {
            Phase::Poisoning { cause, unknown: None, last }
        } else {
            Phase::Releasing { result: Err(Failure::Poisoned(cause)), last }
        }
    }
}

/// What a rank sees that waits for its legs, after it has moved of them what it could.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sight {
    /// The cause in the decision word.
    pub ended: Option<Cause>,
    /// The cause that a channel gave, of which a message was not as announced.
    pub corrupt: Option<Cause>,
    /// The peer that the legs wait for, if it was gone before they were last moved.
    pub gone: Option<u32>,
    /// The peer that the legs wait for, if the deadline has passed.
    pub late: Option<u32>,
}

impl Sight {
    /// Why the legs will not end, if this is seen.
    pub fn lost<R: Rules>(self) -> Option<Cause> {
        R::lost(self)
    }
}

fn agreed(gathered: Result<Vec<CallRecord>, Failure>) -> Result<(), Failure> {
    verdict(&gathered?).map_err(Failure::Refused)
}

/// What `local` says of itself before the exchange (HAL-1, HAL-11).
fn record<R: Rules>(policy: &Policy, local: &Local) -> CallRecord {
    let shape = &local.shape;
    let said = [
        (R::policy_in_record(), Field::Policy, policy.digest()),
        (true, Field::World, u64::from(local.world)),
        (R::override_in_record(), Field::Override, local.forced.code()),
        (true, Field::Frames, shape.frames),
        (true, Field::Width, shape.width),
        (true, Field::Channels, shape.channels),
        (true, Field::Dtype, shape.dtype as u64),
        (R::context_in_record(), Field::Context, local.context),
    ];
    let signature: Signature =
        said.into_iter().filter(|said| said.0).map(|(_, field, value)| (field, value)).collect();
    let status = match (&local.prepared, local.forced) {
        (Err((reason, text)), _) => Status::Refused { reason: *reason, text: text.clone() },
        (Ok(()), Override::Unknown | Override::Empty) if !R::unknown_override_is_refused() => Status::Ready,
        (Ok(()), Override::Unknown) => {
            Status::Refused { reason: Reason::UnknownOverride, text: local.forced_text.clone() }
        }
        (Ok(()), Override::Empty) => Status::Refused { reason: Reason::EmptyOverride, text: Text::default() },
        (Ok(()), Override::Unset | Override::Forced(_)) => Status::Ready,
    };
    CallRecord { status, signature }
}

/// Checks a band before the call, as [`Local::prepared`] reports it: it has a row (HAL-8), and its buffer is what
/// its shape says (HAL-12).
pub fn prepare<R: Rules>(shape: &BandShape, buffer_bytes: u64, world: u32) -> Result<(), (Reason, Text)> {
    if shape.rows == 0 && R::band_needs_a_row() {
        return Err((Reason::MoreRanksThanRows, Text::new("a band of 0 rows")));
    }
    if !R::band_is_checked() {
        return Ok(());
    }
    shape.check(buffer_bytes, world).map_err(|error| (Reason::from(error), Text::new(&error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Shipped;

    #[test]
    fn the_groups_cause_goes_before_what_was_read_and_that_before_who_is_gone_or_late() {
        let cause = |kind, rank| Some(Cause { kind, rank });
        let corrupt = cause(CauseKind::Corrupt, 1);
        let mut sight = Sight { ended: cause(CauseKind::Aborted, 0), corrupt, gone: Some(2), late: Some(3) };
        assert_eq!(sight.lost::<Shipped>(), cause(CauseKind::Aborted, 0));
        sight.ended = None;
        assert_eq!(sight.lost::<Shipped>(), corrupt);
        sight.corrupt = None;
        assert_eq!(sight.lost::<Shipped>(), cause(CauseKind::Gone, 2));
        sight.gone = None;
        assert_eq!(sight.lost::<Shipped>(), cause(CauseKind::Late, 3));
        sight.late = None;
        assert_eq!(sight.lost::<Shipped>(), None);
    }
}
