//! One rank of a run: its band of the frames, the exchanges, and the comparison with the unsplit array.

use crate::card;
use crate::complaint::Complaint;
use crate::npy::Frames;
use crate::reference::{Whole, Wrong, compare};
use rankwise::halo::{Exchanged, Halo};
use rankwise::{Group, Phase};
use rankwise_protocol::bands::Bands;
use rankwise_protocol::layout::{BandShape, Dtype};
use rankwise_protocol::rules::Shipped;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What pad rows hold before an exchange.
const POISON: u8 = 0xa5;
/// Bytes of the largest test card; every rank holds all of it.
const CARD_BYTES_MAX: usize = 1 << 34;
/// Times that are kept for the median.
const TIMES_MAX: usize = 1 << 16;

/// What every rank of a run does.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Frames from a file, or the test card.
    pub(crate) input: Option<PathBuf>,
    /// The test card's dimensions.
    pub(crate) card: Whole,
    /// The test card's element type.
    pub(crate) dtype: Dtype,
    /// Of the card and of the changes between exchanges.
    pub(crate) seed: u64,
    /// Exchanges.
    pub(crate) repeat: u64,
    /// Gets the phase of each rank, one byte a rank.
    pub(crate) phase_file: Option<PathBuf>,
    /// Folder that gets the log of each rank.
    pub(crate) trace: Option<PathBuf>,
}

/// The unsplit array.
pub(crate) struct Array {
    whole: Whole,
    dtype: Dtype,
    bytes: Vec<u8>,
}

impl Job {
    /// Dimensions and type of the frames, and whether every one of `world` ranks gets a row of them.
    pub(crate) fn check(&self, world: u32) -> Result<(Whole, Dtype), Complaint> {
        let (whole, dtype) = match &self.input {
            None => {
                let Whole { frames, height, width, channels, element } = self.card;
                let bytes = [frames, height, width, channels, element].into_iter().product::<usize>();
                if bytes > CARD_BYTES_MAX {
                    let expected = format!("{CARD_BYTES_MAX} bytes at most");
                    return Err(Complaint::field("test card", "size", &format!("{bytes} bytes"), &expected));
                }
                (self.card, self.dtype)
            }
            Some(path) => {
                let frames = Frames::open(path)?;
                (frames.whole, frames.dtype)
            }
        };
        Bands::<Shipped>::new(whole.height as u64, world).map_err(|error| Complaint(error.to_string()))?;
        Ok((whole, dtype))
    }

    /// Reads or draws the frames.
    pub(crate) fn array(&self) -> Result<Array, Complaint> {
        let Some(path) = &self.input else {
            let bytes = card::draw(&self.card, self.dtype, self.seed)?;
            return Ok(Array { whole: self.card, dtype: self.dtype, bytes });
        };
        let frames = Frames::open(path)?;
        Ok(Array { whole: frames.whole, dtype: frames.dtype, bytes: frames.read(path)? })
    }
}

/// An empty array with room for `bytes`.
pub(crate) fn room(bytes: usize) -> Result<Vec<u8>, Complaint> {
    check_room(bytes as u64)?;
    let mut array = Vec::new();
    array.try_reserve_exact(bytes).map_err(|_| too_large(bytes as u64))?;
    Ok(array)
}

/// Refuses more bytes than the system says it has: it may promise them and kill a rank that uses them.
pub(crate) fn check_room(bytes: u64) -> Result<(), Complaint> {
    let told = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    if told.is_some_and(|left| bytes > left) { Err(too_large(bytes)) } else { Ok(()) }
}

fn too_large(bytes: u64) -> Complaint {
    Complaint(format!("memory: found {bytes} bytes, expected what this machine can give"))
}

/// Bytes of memory and swap that are left, as `/proc/meminfo` tells.
fn available(text: &str) -> Option<u64> {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((of("MemAvailable:")? + of("SwapFree:").unwrap_or(0)).saturating_mul(1024))
}

/// What a rank tells of its run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RankReport {
    /// Who.
    pub(crate) rank: u32,
    /// Real rows of its band.
    pub(crate) rows: u64,
    /// The arm that ran; none if no exchange did.
    pub(crate) arm: Option<String>,
    /// Exchanges that ended well.
    pub(crate) exchanges: u64,
    /// Bytes sent in one exchange.
    pub(crate) bytes_sent: u64,
    /// Bytes received in one exchange.
    pub(crate) bytes_received: u64,
    /// Median time of an exchange, agreement included.
    pub(crate) microseconds: Option<f64>,
    /// Whether it came to post a leg.
    pub(crate) posted: bool,
    /// Bytes that are not those of the unsplit array, over all exchanges.
    pub(crate) wrong_bytes: u64,
    /// The first of them, and its exchange.
    pub(crate) first_wrong: Option<(u64, Wrong)>,
    /// Why it ended early.
    pub(crate) error: Option<String>,
}

impl RankReport {
    /// A rank that came to nothing.
    pub(crate) fn failed(rank: u32, error: impl ToString) -> Self {
        RankReport { rank, error: Some(error.to_string()), ..RankReport::default() }
    }
}

/// Where a rank's override of the arm comes from.
#[derive(Clone, Debug)]
pub(crate) enum Forced {
    /// The environment variable that the policy names.
    Environment,
    /// A value given beside it.
    Given(Option<String>),
}

/// Runs the exchanges of one rank.
pub(crate) fn run(job: &Job, array: Array, group: &Group, forced: &Forced) -> RankReport {
    let mut report = RankReport { rank: group.rank(), ..RankReport::default() };
    let posted = Arc::new(AtomicBool::new(false));
    let ended = observe(job, group, &posted).and_then(|()| exchanges(job, array, group, forced, &mut report));
    // A log is kept of a rank that failed too.
    let kept = keep_log(job, group);
    report.error = ended.and(kept).err().map(|complaint| complaint.to_string());
    report.posted = posted.load(Ordering::Relaxed);
    report
}

/// Writes the rank's log.
fn keep_log(job: &Job, group: &Group) -> Result<(), Complaint> {
    let (Some(folder), Some(log)) = (&job.trace, group.trace()) else { return Ok(()) };
    let path = log_of(folder, group.rank());
    std::fs::write(&path, log).map_err(|error| Complaint(format!("--trace: {}: {error}", path.display())))
}

/// The file of a rank's log in the folder of a run's logs.
pub(crate) fn log_of(folder: &Path, rank: u32) -> PathBuf {
    folder.join(format!("rank-{rank}.log"))
}

/// Notes whether legs are posted, and writes each phase to the phase file.
fn observe(job: &Job, group: &Group, posted: &Arc<AtomicBool>) -> Result<(), Complaint> {
    let open = |path: &Path| {
        let file = File::options().write(true).create(true).truncate(false).open(path);
        file.map_err(|error| Complaint(format!("--phase-file: {}: {error}", path.display())))
    };
    let file = job.phase_file.as_deref().map(open).transpose()?;
    let (posted, rank) = (posted.clone(), u64::from(group.rank()));
    group.observe(Arc::new(move |phase| {
        if phase == Phase::Post {
            posted.store(true, Ordering::Relaxed);
        }
        if let Some(file) = &file {
            // A phase that cannot be noted is no reason to end an exchange.
            let _ = file.write_at(&[phase as u8], rank);
        }
    }));
    Ok(())
}

fn exchanges(
    job: &Job,
    array: Array,
    group: &Group,
    forced: &Forced,
    report: &mut RankReport,
) -> Result<(), Complaint> {
    let (rank, world) = (group.rank(), group.world());
    let Array { whole, dtype, mut bytes } = array;
    let bands = Bands::<Shipped>::new(whole.height as u64, world).map_err(|e| Complaint(e.to_string()))?;
    let rows = bands.rows_of(rank);
    report.rows = rows.end - rows.start;
    let shape = BandShape {
        frames: whole.frames as u64,
        rows: report.rows,
        width: whole.width as u64,
        channels: whole.channels as u64,
        dtype,
    };
    let mut halo = match forced {
        Forced::Environment => Halo::new(group),
        Forced::Given(value) => Halo::with_override(group, value.as_deref()),
    };
    let mut band = room(shape.padded_bytes() as usize)?;
    band.resize(shape.padded_bytes() as usize, 0);
    let mut times = Times::default();
    for repetition in 0..job.repeat {
        if repetition > 0 {
            card::alter(&mut bytes, job.seed, repetition);
        }
        fill(&shape, whole.height, rows.start, &bytes, &mut band);
        // All ranks start together, so that the time is that of the exchange.
        group.barrier().map_err(|error| Complaint(error.to_string()))?;
        let started = Instant::now();
        let exchanged = halo.exchange(&shape, &mut band).map_err(|error| Complaint(error.to_string()))?;
        times.add(started.elapsed().as_secs_f64() * 1e6);
        note(report, &exchanged);
        let (wrong, first) = compare(&whole, &bytes, world as usize, rank as usize, &band);
        report.wrong_bytes += wrong;
        report.first_wrong = report.first_wrong.or(first.map(|first| (repetition, first)));
    }
    report.microseconds = times.median();
    Ok(())
}

fn note(report: &mut RankReport, exchanged: &Exchanged) {
    report.exchanges += 1;
    report.arm = Some(exchanged.arm.name().to_owned());
    report.bytes_sent = exchanged.statistics.bytes_sent;
    report.bytes_received = exchanged.statistics.bytes_received;
}

/// Puts the rank's rows into its band and poison into the pad rows.
fn fill(shape: &BandShape, height: usize, top: u64, array: &[u8], band: &mut [u8]) {
    let row_bytes = shape.row_bytes() as usize;
    let (rows, top) = (shape.rows as usize, top as usize);
    let padded = band.chunks_exact_mut((rows + 2) * row_bytes);
    for (frame, whole) in padded.zip(array.chunks_exact(height * row_bytes)) {
        frame.fill(POISON);
        let own = &whole[top * row_bytes..(top + rows) * row_bytes];
        frame[row_bytes..(rows + 1) * row_bytes].copy_from_slice(own);
    }
}

/// The latest [`TIMES_MAX`] times.
#[derive(Default)]
struct Times {
    kept: Vec<f64>,
    count: usize,
}

impl Times {
    fn add(&mut self, time: f64) {
        if self.kept.len() < TIMES_MAX {
            self.kept.push(time);
        } else {
            self.kept[self.count % TIMES_MAX] = time;
        }
        self.count += 1;
    }

    fn median(&self) -> Option<f64> {
        let mut sorted = self.kept.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_has_its_rows_and_poisoned_pads() {
        let shape = BandShape { frames: 2, rows: 1, width: 1, channels: 2, dtype: Dtype::U8 };
        let array = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let mut band = [0; 12];
        fill(&shape, 3, 1, &array, &mut band);
        assert_eq!(band, [POISON, POISON, 3, 4, POISON, POISON, POISON, POISON, 9, 10, POISON, POISON]);
    }

    #[test]
    fn memory_that_is_left_is_read_with_swap() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:  5 kB\nSwapFree:  2 kB\n"), Some(7 * 1024));
        assert_eq!(
            (available("MemAvailable: 5 kB\n"), available("SwapFree: 2 kB\n")),
            (Some(5 * 1024), None)
        );
    }

    #[test]
    fn the_median_is_of_the_latest_times() {
        let mut times = Times::default();
        assert_eq!(times.median(), None);
        [3.0, 1.0, 2.0].into_iter().for_each(|time| times.add(time));
        assert_eq!(times.median(), Some(2.0));
        (0..TIMES_MAX).for_each(|_| times.add(9.0));
        assert_eq!((times.median(), times.kept.len()), (Some(9.0), TIMES_MAX));
    }
}
