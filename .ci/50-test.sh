#!/usr/bin/env bash
# The README's test command, as it stands there.
set -euo pipefail

command=$(.ci/readme-command test)
echo "$command"
bash -euo pipefail -c "$command"
