//! `rankwise doctor`: what this machine has, the policy in force, and which arm each collective takes here.

use crate::choice::{Choice, PolicyArgs, value};
use crate::complaint::Complaint;
use crate::report::{Exit, Lean, Table, grouped, say, say_json};
use rankwise_protocol::call::Override;
use rankwise_protocol::policy::KEYS;
use serde::Serialize;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

/// Worlds whose arms are listed.
const WORLDS: [u32; 4] = [2, 3, 4, 8];
/// Folders in which the system's loader looks, and those of CUDA's own installer.
const LIBRARY_FOLDERS: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
];

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    policy: PolicyArgs,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Complaint> {
    let choice = Choice::read(&args.policy)?;
    let findings = Findings::gather(&choice);
    if args.json {
        say_json(&findings)?
    } else {
        say(&findings.render())?
    }
    Ok(Exit::Good)
}

#[derive(Serialize)]
struct Findings {
    machine: Vec<Finding>,
    libraries: Vec<Finding>,
    policy: InForce,
    #[serde(rename = "override")]
    forced: Forced,
    arms: Vec<ArmHere>,
}

/// One thing that was looked for.
#[derive(Serialize)]
struct Finding {
    what: &'static str,
    usable: bool,
    found: String,
    /// What it serves.
    serves: &'static str,
}

#[derive(Serialize)]
struct InForce {
    digest: String,
    origin: String,
    values: Vec<(&'static str, String)>,
}

/// The override variable.
#[derive(Serialize)]
struct Forced {
    variable: String,
    value: Option<String>,
    /// What it makes of every call.
    effect: String,
}

/// The arm that a collective takes in one world, and why.
#[derive(Serialize)]
struct ArmHere {
    collective: &'static str,
    world: u32,
    arm: String,
    /// From 1; none where the override decides.
    rung: Option<usize>,
    why: String,
}

impl Findings {
    fn gather(choice: &Choice) -> Self {
        let values = KEYS.iter().map(|key| (*key, value(&choice.policy, key))).collect();
        let variable = choice.policy.halo().override_env.clone();
        let value = std::env::var_os(&variable).map(|value| value.to_string_lossy().into_owned());
        let forced = Override::parse(value.as_deref());
        Findings {
            machine: machine(),
            libraries: libraries(),
            policy: InForce { digest: choice.digest(), origin: choice.origin(), values },
            arms: WORLDS.into_iter().map(|world| arm(choice, forced, world)).collect(),
            forced: Forced { variable, value, effect: effect(forced).to_owned() },
        }
    }

    fn render(&self) -> String {
        let mut out = "machine\n".to_owned();
        out.push_str(&findings_table(&self.machine));
        out.push_str("\nlibraries and tools (no arm of this version needs them)\n");
        out.push_str(&findings_table(&self.libraries));
        let InForce { digest, origin, values } = &self.policy;
        out.push_str(&format!("\npolicy {digest}, {origin}\n"));
        for (key, value) in values {
            out.push_str(&format!("  {key} = {value}\n"));
        }
        let Forced { variable, value, effect } = &self.forced;
        let value = value.as_ref().map_or("not set".to_owned(), |value| format!("set to {value:?}"));
        out.push_str(&format!("  {variable} is {value}: {effect}\n\narms\n"));
        let mut table = Table::new([
            ("collective", Lean::Left),
            ("world", Lean::Right),
            ("arm", Lean::Left),
            ("why", Lean::Left),
        ]);
        for one in &self.arms {
            table.row([one.collective.into(), one.world.to_string(), one.arm.clone(), one.why.clone()]);
        }
        out.push_str(&table.render());
        out
    }
}

fn findings_table(findings: &[Finding]) -> String {
    let mut table =
        Table::new([("what", Lean::Left), ("", Lean::Left), ("found", Lean::Left), ("serves", Lean::Left)]);
    for one in findings {
        let mark = if one.usable { "ok" } else { "missing" };
        table.row([one.what.into(), mark.into(), one.found.clone(), one.serves.into()]);
    }
    table.render()
}

fn machine() -> Vec<Finding> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned());
    let cores = std::thread::available_parallelism().map(|cores| cores.to_string());
    vec![
        finding("kernel", kernel, "all"),
        finding("cores", cores, "an exchange is fast while ranks do not share cores"),
        finding("memfd", memfd(), "group shm: the memory that ranks share, gone with its last holder"),
        finding("abstract socket", abstract_socket(), "group shm: how ranks of a job find each other"),
        finding("/dev/shm", shared_memory(), "not used: a named segment would outlive a killed rank"),
    ]
}

fn finding(what: &'static str, found: std::io::Result<String>, serves: &'static str) -> Finding {
    let usable = found.is_ok();
    Finding { what, usable, found: found.unwrap_or_else(|error| error.to_string()), serves }
}

/// Makes one and gives it some memory.
fn memfd() -> std::io::Result<String> {
    let file = rustix::fs::memfd_create("rankwise-doctor", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 1 << 16)?;
    Ok("64 KiB made and given back".to_owned())
}

fn abstract_socket() -> std::io::Result<String> {
    let name = format!("rankwise-doctor-{}", std::process::id());
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    Ok("bound and closed".to_owned())
}

fn shared_memory() -> std::io::Result<String> {
    let statistics = rustix::fs::statvfs("/dev/shm")?;
    let mebibytes = |blocks: u64| grouped(blocks.saturating_mul(statistics.f_frsize) >> 20);
    Ok(format!("{} MiB, {} free", mebibytes(statistics.f_blocks), mebibytes(statistics.f_bavail)))
}

fn libraries() -> Vec<Finding> {
    let library = |name: &'static str, serves| Finding { serves, ..file(name, &library_folders(), name) };
    let tool = |name: &'static str, serves| Finding { serves, ..file(name, &program_folders(), name) };
    vec![
        library("libcuda.so.1", "tensors in GPU memory"),
        library("libnccl.so.2", "exchanges between GPUs across hosts"),
        library("libibverbs.so.1", "exchanges over RDMA"),
        tool("nvcc", "compiling kernels; not needed to run them"),
    ]
}

fn file(what: &'static str, folders: &[PathBuf], name: &str) -> Finding {
    let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.exists());
    let found = path.as_ref().map_or("-".to_owned(), |path| path.display().to_string());
    Finding { what, usable: path.is_some(), found, serves: "" }
}

/// Folders of the search path, of the loader's configuration, and the usual ones.
fn library_folders() -> Vec<PathBuf> {
    let mut folders = paths(std::env::var_os("LD_LIBRARY_PATH").as_deref());
    for entry in std::fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        folders.extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from));
    }
    folders.extend(LIBRARY_FOLDERS.map(PathBuf::from));
    folders
}

fn program_folders() -> Vec<PathBuf> {
    let mut folders = paths(std::env::var_os("PATH").as_deref());
    folders.push(Path::new("/usr/local/cuda/bin").to_owned());
    folders
}

fn paths(variable: Option<&OsStr>) -> Vec<PathBuf> {
    variable.map_or(Vec::new(), |value| std::env::split_paths(value).collect())
}

fn effect(forced: Override) -> &'static str {
    match forced {
        Override::Unset => "the policy's rungs decide",
        Override::Forced(_) => "it decides; every rank must have the same",
        Override::Empty | Override::Unknown => "every call is refused (expected ring, neighbour, or unset)",
    }
}

fn arm(choice: &Choice, forced: Override, world: u32) -> ArmHere {
    let rung = choice.policy.halo().rung(world);
    let (arm, rung, why) = match (forced, rung) {
        (Override::Forced(arm), _) => (arm.name(), None, "the override".to_owned()),
        (Override::Empty | Override::Unknown, _) => ("refused", None, "the override is no arm".to_owned()),
        (Override::Unset, Some((position, rung))) => {
            let number = position + 1;
            let why = format!("rung {number}, worlds {}, evidence {}", rung.worlds, rung.evidence);
            (rung.arm.name(), Some(number), why)
        }
        (Override::Unset, None) => unreachable!("a policy has a rung for every world from 2 up"),
    };
    ArmHere { collective: "halo", world, arm: arm.to_owned(), rung, why }
}
