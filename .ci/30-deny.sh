#!/usr/bin/env bash
# Licences, duplicate versions and sources of the dependencies: deny.toml.
set -euo pipefail

cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
cargo deny --locked check licenses bans sources
