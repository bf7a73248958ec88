//! What a certificate says of the tree it was made from: SHA-256 of the sources that decide what is proved, and the
//! version of the compiler.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates whose sources decide what is proved, by the variable that carries the digest.
const CRATES: [(&str, &str); 2] =
    [("RANKWISE_SHA256_PROTOCOL", "model/protocol"), ("RANKWISE_SHA256_CHECK", "model/check")];

fn main() {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = manifest.parent().expect("verify lies in the workspace");
    println!("cargo::rerun-if-changed=build.rs");
    for (variable, folder) in CRATES {
        let folder = root.join(folder);
        for part in ["src", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", folder.join(part).display());
        }
        println!("cargo::rustc-env={variable}={}", digest(&folder));
    }
    println!("cargo::rustc-env=RANKWISE_RUSTC={}", compiler());
}

/// SHA-256 over the manifest and the sources of a crate, by sorted relative path: the length of each path and of each
/// content goes before it, so that no two trees run together.
fn digest(folder: &Path) -> String {
    let mut files = vec![folder.join("Cargo.toml")];
    collect(&folder.join("src"), &mut files);
    let named = files.iter().map(|file| {
        let path = file.strip_prefix(folder).expect("below its folder");
        let parts: Vec<&str> = path.iter().map(|part| part.to_str().expect("UTF-8")).collect();
        (parts.join("/"), file)
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    let mut hash = Sha256::new();
    for (name, file) in named {
        let content = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for part in [name.as_bytes(), &content] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").expect("cargo sets it");
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}
