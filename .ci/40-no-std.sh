#!/usr/bin/env bash
# The protocol needs no operating system: it builds for a target that has none.
set -euo pipefail

target=x86_64-unknown-none
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target"
cargo build --locked -p rankwise-protocol --target "$target"
