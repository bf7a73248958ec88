//! What the tests share: groups, ranks that run at once and must end, and a reference written as naive loops.

use rankwise::halo::{Exchanged, Halo};
use rankwise::{Address, BandShape, Bands, Dtype, Group, GroupError, HaloError, Options, Policy};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// No test waits longer than this for anything.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Options with a deadline and other keys of the shipped policy.
pub(crate) fn options(deadline_ms: u64, sets: &[(&str, &str)]) -> Options {
    let deadline = ("call.deadline_ms".to_owned(), deadline_ms.to_string());
    let mut all = vec![deadline];
    all.extend(sets.iter().map(|(key, value)| (key.to_string(), value.to_string())));
    let policy = Policy::parse("policy", rankwise_protocol::policy::SHIPPED, &all);
    Options { policy: policy.expect("tests set what the policy takes"), ..Options::default() }
}

/// Runs one closure a rank, all at once; gives what they return, in rank order.
pub(crate) fn each<T: Send + 'static, G: Send + 'static>(
    ranks: impl IntoIterator<Item = G>,
    run: impl Fn(G) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let results: Vec<_> = ranks
        .into_iter()
        .map(|rank| {
            let (sender, receiver) = mpsc::channel();
            let run = run.clone();
            thread::spawn(move || sender.send(run(rank)));
            receiver
        })
        .collect();
    results.into_iter().map(|result| result.recv_timeout(LIMIT).expect("a rank ends, and in time")).collect()
}

/// An address that no other test uses.
pub(crate) fn address(name: &str) -> Address {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    Address::new(&format!("test.{name}.{}.{nanos}", std::process::id())).unwrap()
}

/// The handles of a group that meets in shared memory, its ranks threads of this process.
pub(crate) fn shm(name: &str, world: u32, options: &Options) -> Vec<Group> {
    let (address, options) = (address(name), options.clone());
    let meet = move |rank| Group::shm(&address, rank, world, &options).unwrap();
    each(0..world, meet)
}

/// Both kinds of group.
pub(crate) fn both(name: &str, world: u32, options: &Options) -> [Vec<Group>; 2] {
    [Group::threads(world, options).unwrap(), shm(name, world, options)]
}

/// A tensor `[T,H,W,C]` and the split of its rows.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) frames: u64,
    pub(crate) height: u64,
    pub(crate) width: u64,
    pub(crate) channels: u64,
    pub(crate) dtype: Dtype,
    pub(crate) seed: u64,
}

impl Case {
    pub(crate) fn small(seed: u64) -> Case {
        Case { frames: 2, height: 11, width: 3, channels: 5, dtype: Dtype::BF16, seed }
    }

    fn row_bytes(&self) -> u64 {
        self.width * self.channels * self.dtype.bytes()
    }

    /// One byte of the tensor.
    fn byte(&self, frame: u64, row: u64, at: u64) -> u8 {
        let place = (frame * self.height + row) * self.row_bytes() + at;
        let mixed = (place ^ self.seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 56) as u8
    }

    /// Shape of a rank's band.
    pub(crate) fn shape(&self, rank: u32, world: u32) -> BandShape {
        let rows = Bands::new(self.height, world).unwrap().rows_of(rank);
        let Case { frames, width, channels, dtype, .. } = *self;
        BandShape { frames, rows: rows.end - rows.start, width, channels, dtype }
    }

    /// A rank's band: real rows from the tensor, pad rows as `pad` says of (frame, row outside the band).
    fn band_with(&self, rank: u32, world: u32, pad: impl Fn(&Case, u64, i64, u64) -> u8) -> Vec<u8> {
        let rows = Bands::new(self.height, world).unwrap().rows_of(rank);
        let mut band = Vec::new();
        for frame in 0..self.frames {
            for row in rows.start as i64 - 1..rows.end as i64 + 1 {
                for at in 0..self.row_bytes() {
                    let real = rows.contains(&(row as u64)) && row >= 0;
                    let byte =
                        if real { self.byte(frame, row as u64, at) } else { pad(self, frame, row, at) };
                    band.push(byte);
                }
            }
        }
        band
    }

    /// Before the exchange: pad rows hold what must not be left there.
    pub(crate) fn band(&self, rank: u32, world: u32) -> Vec<u8> {
        self.band_with(rank, world, |_, _, _, _| 0xa5)
    }

    /// After it: pad rows hold the neighbours' rows, or zeros outside the tensor.
    pub(crate) fn expected(&self, rank: u32, world: u32) -> Vec<u8> {
        self.band_with(rank, world, |case, frame, row, at| {
            if row < 0 || row >= case.height as i64 { 0 } else { case.byte(frame, row as u64, at) }
        })
    }
}

/// Exchanges a rank's band of `case` and compares it with the tensor.
pub(crate) fn exchange_and_compare(
    halo: &mut Halo,
    group: &Group,
    case: &Case,
) -> Result<Exchanged, HaloError> {
    let (rank, world) = (group.rank(), group.world());
    let mut band = case.band(rank, world);
    let exchanged = halo.exchange(&case.shape(rank, world), &mut band)?;
    assert!(band == case.expected(rank, world), "rank {rank} of {world}, {case:?}");
    Ok(exchanged)
}

/// Asserts that every rank ended with an error that says `text`.
pub(crate) fn all_say<T: std::fmt::Debug, E: std::fmt::Display>(results: &[Result<T, E>], text: &str) {
    for (rank, result) in results.iter().enumerate() {
        let error = result.as_ref().err().unwrap_or_else(|| panic!("rank {rank} has a result"));
        assert!(error.to_string().contains(text), "rank {rank}: {error}, expected {text}");
    }
}

/// The error's text.
pub(crate) fn text<T>(result: Result<T, GroupError>) -> String {
    result.err().expect("an error").to_string()
}

/// Random numbers for shapes.
pub(crate) struct Random(pub u64);

impl Random {
    /// From `from` to `to`, both included.
    pub(crate) fn within(&mut self, from: u64, to: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from + self.0 % (to - from + 1)
    }
}
