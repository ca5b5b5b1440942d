# SPDX-License-Identifier: Apache-2.0
"""Each rule that a worker names by itself is in src/check/worker_rules.h, and nothing else is.

The supervisor believes a worker's reports for the rules of the profile and for these: one that was forgotten would end
honest runs, one too many could be claimed by a program. Usage: worker_rules.py SOURCE. TAP."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
header = root / "src/check/worker_rules.h"
listed = re.findall(r'X\("([^"]+)"\)', header.read_text())
files = [f for folder in ("worker/frame", "worker/python", "worker/ruby", "worker/javascript", "worker/javascript/judge", "worker/javascript/library", "check") for f in (root / "src" / folder).glob("*.[chj]*")
         if f.suffix in (".c", ".h", ".js") and not f.name.startswith(("test_", "fuzz_")) and f != header]
named = {m for f in files for m in re.findall(r"""["']((?:py|rb|js|ts)\.[\w.-]*\w)["']""", f.read_text())}
results = [(len(named) > 10, "the sources of the workers name rules", len(named)),
           (named <= set(listed), "each of them is in the list", sorted(named - set(listed))),
           (set(listed) <= named, "each of the list is named in a source", sorted(set(listed) - named)),
           (len(set(listed)) == len(listed), "none comes twice", listed)]
for i, (good, what, why) in enumerate(results, 1):
    print(f"{'ok' if good else 'not ok'} {i} - {what}" + ("" if good else f"\n# {why}"))
print(f"1..{len(results)}")
sys.exit(not all(good for good, _, _ in results))
