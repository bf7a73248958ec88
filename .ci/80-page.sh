#!/usr/bin/env bash
# The page of a counterexample in a real browser: stepped through, attacked, drawn.
set -euo pipefail

if ! command -v chromium >/dev/null; then
    apt-get update -q
    apt-get install -y -q chromium fonts-liberation
fi
RANKWISE_NEED_CHROMIUM=1 cargo test --locked -p rankwise-verify --test cli cli::html::
