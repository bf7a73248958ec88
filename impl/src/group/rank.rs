//! One rank in this process: what all its handles share.

use super::{Options, shm, threads};
use crate::error::GroupError;
use crate::memory::{Origin, Region};
use crate::observe::{Observer, Phase};
use crate::trace::Trace;
use crate::transport::Transport;
use crate::wait::{Backoff, Deadline};
use rankwise_protocol::call::{CallRecord, Field, Op, Refusal, Status, digest, verdict};
use rankwise_protocol::group::{Backend, Cause, CauseKind, Member, Outcome, Record};
use rankwise_protocol::policy::Policy;
use rankwise_protocol::rules::Shipped;
use rankwise_protocol::wire::{VERSION, decode_calls, encode_call};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

/// How often a thread looks whether another one of its rank has left its call.
const TURN: Duration = Duration::from_micros(50);

/// One rank in this process: what all its handles share.
pub(crate) struct Rank {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    pub(crate) policy: Policy,
    pub(super) home: Home,
    cores: usize,
    /// The process that made the group.
    origin: Origin,
    control: Mutex<Control>,
    transport: Mutex<Transport>,
    trace: Option<Arc<Trace>>,
    /// Halo contexts made.
    contexts: AtomicU64,
    /// Whether there is an observer.
    observed: AtomicBool,
    observer: RwLock<Option<Observer>>,
}

/// Where the group's memory lives, and how the end of a peer is seen.
pub(super) enum Home {
    Threads(Arc<threads::Party>),
    Shm { region: Region, file: OwnedFd, nonce: u64 },
}

/// What one call of a rank holds while it goes on.
pub(crate) struct Control {
    pub(crate) member: Member<Shipped>,
    /// Calls made, by op.
    pub(crate) calls: [u64; Op::ALL.len()],
}

/// Why a call did not begin on this rank.
#[derive(Debug)]
pub(crate) enum NotEntered {
    Forked { owner: u32, found: u32 },
    Busy { deadline_ms: u64 },
    Poisoned(Cause),
}

impl Rank {
    /// Rank `rank` of `world` at `home`, before its first call.
    pub(super) fn new(rank: u32, world: u32, options: &Options, home: Home) -> Rank {
        let nonce = match &home {
            Home::Threads(party) => party.nonce(),
            Home::Shm { nonce, .. } => *nonce,
        };
        let policy = &options.policy;
        let traced = options.trace_events_max > 0;
        let trace = traced
            .then(|| Arc::new(Trace::new(options.trace_events_max, rank, world, nonce, policy.digest())));
        let control = Control { member: Member::new(rank, world, nonce), calls: [0; Op::ALL.len()] };
        Rank {
            rank,
            world,
            policy: policy.clone(),
            home,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            origin: Origin::here(),
            control: Mutex::new(control),
            transport: Mutex::new(Transport::new(rank, world, trace.clone())),
            trace,
            contexts: AtomicU64::new(0),
            observed: AtomicBool::new(false),
            observer: RwLock::new(None),
        }
    }

    /// The rank's log, if one is kept.
    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.trace.as_deref()
    }

    /// The moment at which a call that is entered now gives up.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::after(self.policy.call().deadline_ms)
    }

    /// Begins a call: one of this rank at a time. One whose turn does not come ends the group: peers make it,
    /// so this rank's next call would meet theirs of another number.
    pub(crate) fn enter(&self, deadline: Deadline) -> Result<MutexGuard<'_, Control>, NotEntered> {
        self.check_process()?;
        loop {
            match self.control.try_lock() {
                Ok(control) => return Ok(control),
                Err(TryLockError::WouldBlock) if deadline.passed() => {
                    self.poison(Cause { kind: CauseKind::Failed, rank: self.rank });
                    return Err(NotEntered::Busy { deadline_ms: self.policy.call().deadline_ms });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(TURN),
                // A thread of this rank panicked inside a call: peers count on what it left undone.
                Err(TryLockError::Poisoned(_)) => {
                    let cause = Cause { kind: CauseKind::Failed, rank: self.rank };
                    return Err(NotEntered::Poisoned(self.poison(cause)));
                }
            }
        }
    }

    /// A forked child shares words and descriptions with its parent, so it may not speak for the rank.
    pub(crate) fn check_process(&self) -> Result<(), NotEntered> {
        self.origin.check().map_err(|(owner, found)| NotEntered::Forked { owner, found })
    }

    /// One exchange, for what it gathers.
    pub(super) fn gather(
        &self,
        control: &mut Control,
        op: Op,
        payload: Vec<u8>,
        deadline: Deadline,
    ) -> Result<Vec<Record>, GroupError> {
        let outcome = self.run_part(|| {
            let outcome = self.exchange(control, op, payload, deadline);
            self.enter_phase(Phase::Idle);
            outcome
        });
        match outcome {
            Outcome::Complete(records) => Ok(records),
            Outcome::Poisoned(cause) => Err(GroupError::Poisoned(cause)),
            Outcome::Diverged(tags) => Err(GroupError::Diverged { tags }),
            Outcome::Unknown { rank } => Err(GroupError::Unknown { rank }),
        }
    }

    /// One exchange of call records. A rank that cannot read one ends the group before it errs (GRP-2).
    pub(super) fn gather_calls(
        &self,
        control: &mut Control,
        op: Op,
        record: &CallRecord,
        deadline: Deadline,
    ) -> Result<Vec<CallRecord>, GroupError> {
        let records = self.gather(control, op, encode_call(record), deadline)?;
        decode_calls(&records).map_err(|rank| {
            self.poison(Cause { kind: CauseKind::Corrupt, rank });
            GroupError::Unknown { rank }
        })
    }

    /// The first exchange of ranks that did not start as one process (GRP-4).
    pub(super) fn join(&self, deadline: Deadline) -> Result<(), GroupError> {
        let signature = vec![
            (Field::Build, build()),
            (Field::Policy, self.policy.digest()),
            (Field::World, u64::from(self.world)),
        ];
        let record = CallRecord { status: Status::Ready, signature };
        let mut control = self.enter(deadline)?;
        let records = self.gather_calls(&mut control, Op::Join, &record, deadline)?;
        Ok(verdict(&records)?)
    }

    /// Where the group's memory lives.
    pub(super) fn backend(&self) -> Backend {
        match self.home {
            Home::Threads(_) => Backend::Threads,
            Home::Shm { .. } => Backend::Shm,
        }
    }

    /// Has `observer` told of each phase from now on.
    pub(super) fn observe(&self, observer: Observer) {
        *self.observer.write().unwrap_or_else(PoisonError::into_inner) = Some(observer);
        self.observed.store(true, Ordering::Release);
    }

    /// The group's shared memory.
    pub(crate) fn region(&self) -> &Region {
        match &self.home {
            Home::Threads(party) => party.region(),
            Home::Shm { region, .. } => region,
        }
    }

    /// Whether `rank` will take no further step.
    pub(crate) fn is_gone(&self, rank: u32) -> bool {
        match &self.home {
            Home::Threads(party) => party.is_gone(rank),
            Home::Shm { file, .. } => shm::is_gone(file, rank),
        }
    }

    /// This rank's end of the channels. If a thread panicked while it held it, nothing moves any more and the
    /// group ends.
    pub(crate) fn transport(&self) -> MutexGuard<'_, Transport> {
        self.transport.lock().unwrap_or_else(|poisoned| {
            let mut transport = poisoned.into_inner();
            self.poison(Cause { kind: CauseKind::Failed, rank: self.rank });
            transport.stop();
            self.transport.clear_poison();
            transport
        })
    }

    /// Counts one more halo context of this rank; gives how many there were.
    pub(crate) fn count_context(&self) -> u64 {
        self.contexts.fetch_add(1, Ordering::Relaxed)
    }

    /// For a wait that begins now.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.world, self.cores)
    }

    /// Tells the observer.
    pub(crate) fn enter_phase(&self, phase: Phase) {
        if !self.observed.load(Ordering::Acquire) {
            return;
        }
        let observer = self.observer.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(observer) = observer {
            observer(phase);
        }
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if let Home::Threads(party) = &self.home {
            party.leave(self.rank);
        }
    }
}

impl From<Refusal> for GroupError {
    fn from(refusal: Refusal) -> Self {
        tracing::debug!(%refusal, "refused");
        GroupError::Refused(refusal)
    }
}

impl From<NotEntered> for GroupError {
    fn from(error: NotEntered) -> Self {
        match error {
            NotEntered::Forked { owner, found } => GroupError::Forked { owner, found },
            NotEntered::Busy { deadline_ms } => GroupError::Busy { deadline_ms },
            NotEntered::Poisoned(cause) => GroupError::Poisoned(cause),
        }
    }
}

/// Digest of what must be one build on all ranks.
fn build() -> u64 {
    let version = env!("CARGO_PKG_VERSION").bytes();
    digest(&version.chain(VERSION.to_le_bytes()).collect::<Vec<_>>())
}
