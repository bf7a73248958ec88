//! Drives one halo exchange: the only loop over its effects.

use crate::group::{Control, Group, Rank};
use crate::observe::Phase;
use crate::transport::{Buffers, Pool, Ticket};
use crate::wait::Deadline;
use rankwise_protocol::call::{CallRecord, Op};
use rankwise_protocol::event::{CallInput, EffectName, Event};
use rankwise_protocol::group::Outcome;
use rankwise_protocol::halo::{Effect, Exchange, Failure, Input, Stream};
use rankwise_protocol::layout::{BandShape, pack, unpack};
use rankwise_protocol::rules::Shipped;
use rankwise_protocol::wire::{decode_calls, encode_call};

/// The one stream that a caller with bands in host memory has: its own thread.
pub(crate) const CALLER: Stream = Stream::Caller(0);

/// One exchange and all that it holds.
#[derive(Debug)]
pub(crate) struct Call {
    group: Group,
    machine: Exchange<Shipped>,
    shape: BandShape,
    pool: Pool,
    /// The buffers, while the transport does not have them.
    buffers: Option<Buffers>,
    /// The legs, once the transport has any.
    ticket: Option<Ticket>,
    /// Halo calls of this rank that were agreed before.
    number: u64,
}

/// What one stretch of a call may touch.
enum Scene<'a> {
    Post { control: &'a mut Control, band: &'a [u8], deadline: Deadline },
    Wait { band: &'a mut [u8], deadline: Deadline },
    Drop,
}

impl Call {
    /// A call of `machine`, with the buffers that were prepared for it, if any could be.
    pub(crate) fn new(
        group: &Group,
        machine: Exchange<Shipped>,
        shape: &BandShape,
        pool: &Pool,
        buffers: Option<Buffers>,
    ) -> Self {
        Self {
            group: group.clone(),
            machine,
            shape: *shape,
            pool: pool.clone(),
            buffers,
            ticket: None,
            number: 0,
        }
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &Exchange<Shipped> {
        &self.machine
    }

    /// The group.
    pub(crate) fn rank(&self) -> &Rank {
        self.group.inner()
    }

    /// Shape of the band.
    pub(crate) fn shape(&self) -> &BandShape {
        &self.shape
    }

    /// From the agreement until the transport has the legs.
    pub(crate) fn post(
        &mut self,
        control: &mut Control,
        band: &[u8],
        deadline: Deadline,
    ) -> Result<(), Failure> {
        self.drive(Scene::Post { control, band, deadline })?;
        // Nobody moves them before this rank's next call.
        while !deadline.passed() && self.rank().sweep() {}
        Ok(())
    }

    /// From the handle until the pad rows of `band` are filled.
    pub(crate) fn wait(&mut self, band: &mut [u8], deadline: Deadline) -> Result<(), Failure> {
        self.tell(Input::Wait(CALLER));
        self.drive(Scene::Wait { band, deadline })
    }

    /// The handle is dropped: the buffers are released when the legs are done.
    pub(crate) fn drop_handle(&mut self) {
        self.tell(Input::Dropped);
        // Its result is that it was dropped, which the caller knows.
        let _ = self.drive(Scene::Drop);
    }

    /// Carries out effects until the caller holds the handle or the result.
    fn drive(&mut self, scene: Scene<'_>) -> Result<(), Failure> {
        let group = self.group.clone();
        let rank = group.inner();
        // A handle is dropped beside calls, perhaps while its thread unwinds: no phase of the rank.
        let observed = !matches!(scene, Scene::Drop);
        rank.run_part(|| {
            let result = self.run(scene);
            if observed {
                rank.enter_phase(Phase::Idle);
            }
            result
        })
    }

    fn run(&mut self, mut scene: Scene<'_>) -> Result<(), Failure> {
        loop {
            let input = match self.machine.effect() {
                Effect::Hold => return Ok(()),
                Effect::Return(result) => return result,
                effect => self.carry_out(effect, &mut scene),
            };
            self.tell(input);
        }
    }

    /// Gives the machine an input, and keeps it in the log.
    fn tell(&mut self, input: Input) {
        let effect = EffectName::of(&self.machine.effect());
        // A close that was carried out is in the log already.
        if (effect, &input) != (EffectName::Close, &Input::Done) {
            self.note(effect, &input);
        }
        self.machine.handle(input);
    }

    fn note(&self, effect: EffectName, input: &Input) {
        if let Some(trace) = self.rank().trace() {
            trace.note(Event::Call { call: self.number, effect, input: CallInput::of(input) });
        }
    }

    fn carry_out(&mut self, effect: Effect, scene: &mut Scene<'_>) -> Input {
        match (effect, scene) {
            (Effect::Agree(record), Scene::Post { control, deadline, .. }) => {
                self.number = control.calls[Op::Halo as usize];
                Input::Agreed(self.agree(control, &record, *deadline))
            }
            (Effect::Pack(_), Scene::Post { band, .. }) => self.pack(band),
            // Pack has run when it returns, so the transport comes after it whatever it does.
            (Effect::Order { earlier: Stream::Caller(_), .. }, _) => Input::Done,
            (Effect::Order { earlier: Stream::Transport, .. }, Scene::Wait { deadline, .. }) => {
                self.join(*deadline)
            }
            (Effect::Open, _) => self.open(),
            (Effect::Post(leg), _) => match self.rank().transport().post(leg) {
                Ok(()) => Input::Done,
                Err(_) => Input::Raised,
            },
            (Effect::Close, _) => self.close(),
            (Effect::Unpack(_), Scene::Wait { band, .. }) => self.unpack(band),
            (Effect::Poison(cause), _) => {
                let first = self.rank().poison(cause);
                self.rank().transport().stop();
                Input::Poisoned(first)
            }
            (Effect::Release(after), _) => self.release(after),
            (effect, _) => unreachable!("{effect:?} has no place in this part of a call"),
        }
    }

    fn agree(
        &self,
        control: &mut Control,
        record: &CallRecord,
        deadline: Deadline,
    ) -> Result<Vec<CallRecord>, Failure> {
        match self.rank().exchange(control, Op::Halo, encode_call(record), deadline) {
            Outcome::Complete(records) => decode_calls(&records).map_err(|rank| Failure::Unknown { rank }),
            Outcome::Diverged(tags) => Err(Failure::Diverged(tags)),
            Outcome::Poisoned(cause) => Err(Failure::Poisoned(cause)),
            Outcome::Unknown { rank } => Err(Failure::Unknown { rank }),
        }
    }

    fn pack(&mut self, band: &[u8]) -> Input {
        self.rank().enter_phase(Phase::Pack);
        let Some(buffers) = &mut self.buffers else { return Input::Raised };
        pack(&self.shape, band, &mut buffers.packed);
        Input::Done
    }

    fn open(&mut self) -> Input {
        self.rank().enter_phase(Phase::Post);
        self.rank().transport().open();
        Input::Done
    }

    /// The transport has the group's legs; with the first group it gets the buffers.
    fn close(&mut self) -> Input {
        let buffers = self.buffers.take();
        let mut transport = self.group.inner().transport();
        let begun = buffers.map(|buffers| transport.begin(buffers, self.shape.edge_bytes(), self.number));
        let Some(ticket) = self.ticket.or(begun) else { return Input::Raised };
        // Before another thread of the rank can move the legs.
        self.note(EffectName::Close, &Input::Done);
        transport.close(ticket);
        drop(transport);
        self.ticket = Some(ticket);
        Input::Done
    }

    fn join(&mut self, deadline: Deadline) -> Input {
        self.rank().enter_phase(Phase::Wait);
        let Some(ticket) = self.ticket else { return Input::Done };
        match self.rank().join_legs(ticket, deadline) {
            Ok(buffers) => {
                self.ticket = None;
                self.buffers = Some(buffers);
                Input::Done
            }
            Err(cause) => Input::Lost(cause),
        }
    }

    fn unpack(&mut self, band: &mut [u8]) -> Input {
        let rank = self.group.inner();
        rank.enter_phase(Phase::Unpack);
        let Some(buffers) = &self.buffers else { return Input::Raised };
        unpack::<Shipped>(&self.shape, rank.rank, rank.world, &buffers.received, band);
        Input::Done
    }

    /// What runs on the caller's stream has run. What the transport still has goes back when it is done.
    fn release(&mut self, after: Option<Stream>) -> Input {
        if let (Some(Stream::Transport), Some(ticket)) = (after, self.ticket.take()) {
            self.rank().transport().abandon(ticket, self.pool.clone());
        }
        if let Some(buffers) = self.buffers.take() {
            self.pool.give(buffers);
        }
        Input::Done
    }
}
