#!/usr/bin/env bash
# The README's prove command, as it stands there; every mutant; and a policy that must be refuted.
set -euo pipefail

command=$(.ci/readme-command prove)
echo "$command"
bash -euo pipefail -c "$command"

echo 'cargo run --release -q -- prove --mutants'
cargo run --release -q -- prove --mutants

echo 'cargo run --release -q -- prove --set halo.coalesce=false'
status=0
cargo run --release -q -- prove --set halo.coalesce=false || status=$?
if [ "$status" -ne 2 ]; then
    echo "expected exit 2 (refuted), got $status" >&2
    exit 1
fi
