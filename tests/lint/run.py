# SPDX-License-Identifier: Apache-2.0
"""What `make test` ends with: tests/run counts the cases of a build folder, and nothing that did not run passes for one that did.

Usage: run.py SOURCE. TAP. The build folders are projects of the test's own, with test programs that print what bad ones print."""
import os
import pathlib
import subprocess
import sys
import tempfile

from tap import case, done

root = pathlib.Path(sys.argv[1]).resolve()
GOOD = "ok 1 - a case\\n1..1"
PROGRAMS = {
    "good": (GOOD, 0),
    "skips": ("ok 1 - a case\\nok 2 - another # SKIP it cannot be done here\\n1..2", 0),
    "skips-all": ("1..0 # SKIP nothing can be done here", 0),
    "fails": ("not ok 1 - a case\\n1..1", 1),
    "says-nothing": ("", 0),
    "dies": (GOOD, 3),
    "stops-early": ("ok 1 - a case\\n1..2", 0),
}


def run(folder, programs, **env):
    """(exit status, the closing line) of tests/run."""
    where = pathlib.Path(folder, "-".join(programs))
    where.mkdir(exist_ok=True)
    tests = [f"test('{name}', python, args: ['-c', 'import sys; print(\"{PROGRAMS[name][0]}\"); sys.exit({PROGRAMS[name][1]})'], protocol: 'tap')".replace("\\n", "\\\\n")
             for name in programs]
    (where / "meson.build").write_text("\n".join(["project('cases')", "python = find_program('/usr/bin/python3')", *tests, ""]))
    clean = {k: v for k, v in os.environ.items() if k != "CORDON_MUST_WORK" and not k.startswith("MESON")}
    if not (where / "build").exists():
        subprocess.run(["/usr/bin/meson", "setup", where / "build", where], stdout=subprocess.DEVNULL, check=True, env=clean)
    r = subprocess.run([root / "tests/run", where / "build"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**clean, **env})
    return r.returncode, r.stdout.rstrip().split("\n")[-1]


with tempfile.TemporaryDirectory(prefix="cordon-run-") as top:
    for programs, name, env, want in (
            (("good",), "a build whose cases all pass is a success", {}, (0, "1 passed, 0 failed, 0 skipped")),
            (("good", "fails"), "one case that fails is a failure", {}, (1, "1 passed, 1 failed, 0 skipped")),
            (("skips",), "a case that is skipped is counted as such", {}, (0, "1 passed, 0 failed, 1 skipped")),
            (("skips",), "a case that is skipped is a failure where CORDON_MUST_WORK is set", {"CORDON_MUST_WORK": "1"}, (1, "1 passed, 1 failed, 0 skipped")),
            (("good", "skips-all"), "a program that skips all it has is a failure", {}, (1, "1 passed, 1 failed, 0 skipped")),
            (("good", "says-nothing"), "a program that prints no case is a failure", {}, (1, "1 passed, 1 failed, 0 skipped")),
            (("dies",), "a program that fails after its cases passed is a failure", {}, (1, "1 passed, 1 failed, 0 skipped")),
            (("stops-early",), "a program with fewer cases than it planned is a failure", {}, (1, "1 passed, 1 failed, 0 skipped"))):
        got = run(top, programs, **env)
        case(got == want, name, f"got {got}, want {want}")
    ci = pathlib.Path(top, "clone/.ci")
    ci.mkdir(parents=True)
    (ci / "run").write_bytes((root / ".ci/run").read_bytes())
    (ci.parent / "Makefile").write_text("test:\n\t@echo must work: $$CORDON_MUST_WORK\n")
    r = subprocess.run(["/bin/bash", ci / "run"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/bin:/bin"})
    case((r.returncode, r.stdout) == (0, "must work: 1\n"), "CI is `make test` where a skip is a failure", r)
done()
