# SPDX-License-Identifier: Apache-2.0
"""What runs of the other architecture's build on this machine: user-mode QEMU, one program at a time.

Usage: emulated.py OTHER-BUILD. TAP on stdout, one case a program. Only programs that ask the kernel for nothing but memory and
files: such an emulator hands every call on to this machine's kernel, and knows no namespaces, filters or signals of a jail.
What needs a kernel of that architecture is for `make vm-test ARCH=…`."""
import json
import pathlib
import re
import subprocess
import sys

build = pathlib.Path(sys.argv[1]).resolve()
arch = build.name.split("-")[-1]
UNIT = {"base", "expr-number", "expr-batch", "expr-expr", "policy", "policy-profile", "check-report", "check-ruleset", "decode", "output"}
if not (build / "build.ninja").exists():
    print(f"not ok 1 - {build.name} is there to be run (make build-cross)\n1..1")
    sys.exit(1)
listed = json.loads(subprocess.run(["/usr/bin/meson", "introspect", "--tests", str(build)], check=True, stdout=subprocess.PIPE).stdout)
PYTHON = {"fuzz-judge", "fuzz-guard"}  # an interpreter, with all that it loads
LIBRARIES = build.parent / f"build-vm-{arch}/libraries/usr/lib/{arch}-linux-gnu"  # what the programs were linked with (tests/vm/run)
chosen = [t for t in listed if t["name"] in UNIT or "cordon:fuzz" in t["suite"] and t["name"] not in PYTHON]
cases = [(UNIT <= {t["name"] for t in listed}, "every unit test that is to be emulated is built", sorted(UNIT - {t["name"] for t in listed}))]
total = 0
for t in chosen:
    run = subprocess.run([f"qemu-{arch}", "-cpu", "max", "-L", f"/usr/{arch}-linux-gnu", "-E", f"LD_LIBRARY_PATH={LIBRARIES}", *t["cmd"]], cwd=build, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    plan = re.search(r"^1\.\.(\d+)", run.stdout, re.M)
    good = len(re.findall(r"^ok ", run.stdout, re.M))
    total += good
    cases.append((run.returncode == 0 and plan and int(plan.group(1)) == good > 0, f"{t['name']} for {arch}: {good} cases",
                  [f"exit {run.returncode}", *[l for l in run.stdout.splitlines() if not l.startswith("ok ")][-20:]]))
for n, (good, name, details) in enumerate(cases, 1):
    print(f"{'ok' if good else 'not ok'} {n} - {name}")
    for d in details if not good else ():
        print("#", d)
print(f"#= {arch}, emulated: {total} cases of {len(chosen)} programs")
print(f"1..{len(cases)}")
sys.exit(not all(c[0] for c in cases))
