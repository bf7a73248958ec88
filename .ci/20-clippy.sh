#!/usr/bin/env bash
set -euo pipefail

cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
cargo clippy --locked --workspace --all-targets -- -D warnings
