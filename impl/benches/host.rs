//! What the host side costs: an exchange of records and a halo exchange between two processes, and pack and
//! unpack against a plain copy of the same bytes.

use rankwise::halo::Halo;
use rankwise::{Address, BandShape, Dtype, Group, Options};
use rankwise_protocol::layout::{pack, unpack};
use rankwise_protocol::rules::Shipped;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

const ADDRESS: &str = "RANKWISE_BENCH_ADDRESS";
const EXCHANGES: usize = 50_000;
const HALOS: usize = 300;
/// Both edges have 1.3 MB: a pass of four latent frames, 44x78x1024 bf16.
const SMALL: BandShape = BandShape { frames: 4, rows: 11, width: 78, channels: 1024, dtype: Dtype::BF16 };
/// Both edges have 20 MB.
const LARGE: BandShape = BandShape { frames: 16, rows: 4, width: 624, channels: 512, dtype: Dtype::BF16 };
const COPIES: usize = 60;

fn main() {
    if let Ok(name) = std::env::var(ADDRESS) {
        two_processes(&name, 1);
        return;
    }
    println!("{:<34} {:>10} {:>10} {:>7}", "case", "bytes", "time (us)", "ratio");
    bench_two_processes();
    bench_copies(SMALL);
    bench_copies(LARGE);
}

fn bench_two_processes() {
    let name = format!("bench.{}", std::process::id());
    let program = std::env::current_exe().expect("the path of this program");
    let mut child = Command::new(program).env(ADDRESS, &name).spawn().expect("a second process");
    let [mut exchanges, halos] = two_processes(&name, 0);
    let ended = child.wait().expect("the second process ends");
    assert!(ended.success(), "the second process: {ended}");
    exchanges.sort_by(f64::total_cmp);
    row("exchange, two processes, median", 0, exchanges[exchanges.len() / 2], None);
    row("exchange, two processes, 99 %", 0, exchanges[exchanges.len() * 99 / 100], None);
    row("halo, two processes, median", 2 * SMALL.edge_bytes(), median(halos), None);
}

/// Microseconds of each exchange of records, and of each halo exchange.
fn two_processes(name: &str, rank: u32) -> [Vec<f64>; 2] {
    // Each process on a core of its own, as ranks run in earnest.
    let mut core = CpuSet::new();
    core.set(rank as usize);
    if let Err(error) = sched_setaffinity(None, &core) {
        println!("rank {rank} runs on any core: {error}");
    }
    let address = Address::new(name).expect("a good name");
    let group = Group::shm(&address, rank, 2, &Options::default()).expect("two processes meet");
    let mut halo = Halo::with_override(&group, Some("neighbour"));
    let mut band = vec![1u8; SMALL.padded_bytes() as usize];
    let exchanges = (0..EXCHANGES).map(|_| time(|| group.barrier().expect("both ranks are there")));
    let exchanges = exchanges.collect();
    let halos = (0..HALOS).map(|_| {
        time(|| {
            halo.exchange(&SMALL, &mut band).expect("both ranks are there");
        })
    });
    [exchanges, halos.collect()]
}

fn bench_copies(shape: BandShape) {
    let edges_bytes = 2 * shape.edge_bytes() as usize;
    let mut band = vec![1u8; shape.padded_bytes() as usize];
    let mut packed = vec![2u8; edges_bytes];
    let mut other = vec![3u8; edges_bytes];
    // Three ranks, this one in the middle: both pad rows are filled.
    let received = vec![4u8; 3 * edges_bytes];
    let (mut copies, mut packs, mut unpacks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..COPIES {
        copies.push(time(|| black_box(&mut other[..]).copy_from_slice(black_box(&packed))));
        packs.push(time(|| pack(&shape, black_box(&band), black_box(&mut packed))));
        unpacks.push(time(|| unpack::<Shipped>(&shape, 1, 3, black_box(&received), black_box(&mut band))));
    }
    let ratio = |times: &[f64]| median(times.iter().zip(&copies).map(|(time, copy)| time / copy).collect());
    let bytes = edges_bytes as u64;
    row("copy", bytes, median(copies.clone()), Some(1.0));
    row("pack", bytes, median(packs.clone()), Some(ratio(&packs)));
    row("unpack", bytes, median(unpacks.clone()), Some(ratio(&unpacks)));
}

fn time(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64() * 1e6
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn row(case: &str, bytes: u64, time_us: f64, ratio: Option<f64>) {
    let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    println!("{case:<34} {bytes:>10} {time_us:>10.2} {ratio:>7}");
}
