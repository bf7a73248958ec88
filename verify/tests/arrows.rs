//! The arrows between the crates of this workspace, and which of them may hold unsafe code.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may depend on whom, dev-dependencies and build-dependencies included. The checker and the
/// implementation never see each other: only then do both have to call the protocol.
const ARROWS: [(&str, &str); 7] = [
    ("rankwise-check", "rankwise-protocol"),
    ("rankwise", "rankwise-protocol"),
    ("rankwise-kernels", "rankwise-protocol"),
    ("rankwise", "rankwise-kernels"),
    ("rankwise-verify", "rankwise-protocol"),
    ("rankwise-verify", "rankwise-check"),
    ("rankwise-verify", "rankwise"),
];

/// Crate roots that must forbid unsafe code.
const SAFE: [&str; 4] =
    ["model/protocol/src/lib.rs", "model/check/src/lib.rs", "kernels/src/lib.rs", "verify/src/main.rs"];

#[test]
fn every_dependency_between_the_crates_is_an_allowed_arrow() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let names: Vec<&str> = packages.iter().map(name).collect();
    assert!(names.contains(&"rankwise-protocol"), "{names:?} are not the members of this workspace");
    let mut turned = Vec::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let arrow = (name(package), name(dependency));
            if names.contains(&arrow.1) && !ARROWS.contains(&arrow) {
                let kind = dependency["kind"].as_str().map_or(String::new(), |kind| format!("{kind}-"));
                turned.push(format!("{} <- {} ({kind}dependency)", arrow.1, arrow.0));
            }
        }
    }
    assert!(turned.is_empty(), "not an arrow of docs/architecture.md: {}", turned.join(", "));
}

#[test]
fn crates_that_need_no_unsafe_code_forbid_it() {
    for path in SAFE {
        let text = read(&root().join(path));
        assert!(has_line(&text, "#![forbid(unsafe_code)]"), "{path} lacks #![forbid(unsafe_code)]");
    }
    let library = root().join("verify/src/lib.rs");
    if library.exists() {
        assert!(has_line(&read(&library), "#![forbid(unsafe_code)]"), "verify/src/lib.rs allows unsafe code");
    }
}

#[test]
fn the_protocol_has_no_standard_library() {
    let source = root().join("model/protocol/src");
    assert!(
        has_line(&read(&source.join("lib.rs")), "#![no_std]"),
        "model/protocol/src/lib.rs lacks #![no_std]"
    );
    let files = rust_files(&source);
    assert!(files.len() > 5, "{} has {} files", source.display(), files.len());
    for file in files {
        let text = read(&file);
        let found = text.lines().position(|line| {
            let code = line.split("//").next().unwrap_or_default();
            code.contains("std::") || code.contains("extern crate std")
        });
        if let Some(line) = found {
            panic!("{}:{}: the protocol uses std", file.display(), line + 1);
        }
    }
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn name(object: &Value) -> &str {
    object["name"].as_str().expect("a name")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("verify lies in the workspace").to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn has_line(text: &str, wanted: &str) -> bool {
    text.lines().any(|line| line.trim() == wanted)
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a folder entry").path());
    paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] }).collect()
}
