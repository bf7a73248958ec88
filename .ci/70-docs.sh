#!/usr/bin/env bash
# The documentation builds without a warning, every relative link of a page leads to a file, and the
# specification, which `rankwise explain` prints, fits a terminal.
set -euo pipefail

# The command and the library are both called rankwise: the command first, so that the library's pages stay.
RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps -p rankwise-verify --bins
RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --workspace --lib

python3 - <<'PYTHON'
import os
import re
import sys

wrong = []
pages = 0
for folder, folders, files in os.walk("."):
    folders[:] = [f for f in folders if f not in ("target", ".git")]
    for file in files:
        if not file.endswith(".md"):
            continue
        page = os.path.join(folder, file)
        with open(page, encoding="utf-8") as opened:
            text = opened.read()
        if "docs/spec/" in page:
            for number, line in enumerate(text.splitlines(), 1):
                if len(line) > 100:
                    wrong.append(f"{page}:{number}: {len(line)} columns, at most 100 fit a terminal")
        prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        prose = re.sub(r"`[^`\n]*`", "", prose)
        pages += 1
        links = re.findall(r"\]\(\s*<?([^)\s>]+)", prose) + re.findall(r"^\[[^\]]+\]:\s*(\S+)", prose, flags=re.M)
        for link in links:
            if re.match(r"[a-z][a-z0-9+.-]*:", link) or link.startswith("#"):
                continue
            if not os.path.exists(os.path.join(folder, link.split("#")[0])):
                wrong.append(f"{page}: {link} leads nowhere")
if pages == 0:
    wrong.append("no page was found")
print("\n".join(wrong) or f"links of {pages} pages lead somewhere")
sys.exit(1 if wrong else 0)
PYTHON
