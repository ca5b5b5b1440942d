# SPDX-License-Identifier: Apache-2.0
"""Whether the tests of the monitor can fail: one detector or signal is taken out at a time, and a test that names it must fail.

Usage: mutants.py SOURCE BUILD"""
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE, BUILD = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tests/lint"))
from tap import case, done  # noqa: E402

ROOM = SOURCE / "src/monitor"
FILES = sorted(f.stem for f in ROOM.glob("*.c") if not f.name.startswith("test_"))
FLAGS = ["-std=gnu17", "-O1", "-D_GNU_SOURCE", f"-I{SOURCE}/src", f"-I{SOURCE}/include"]
QUALITY = ["--segments", "900", "--loops", "100", str(SOURCE / "src"), str(SOURCE / "tests/system")]
# what is taken out -> file, text, what stands there instead, the test that fails, words of the case
MUTANTS = {
    "the detector of exact loops": ("monitor", "if (cycle_is_loop(&m->history, &m->judged[0], exact, false))", "if (false)", "quality", "exact loops"),
    "the detector of counters": ("monitor", "if (cycle_is_loop(&m->history, &m->judged[1], numbered, true))", "if (false)", "quality", "a number that grows"),
    "the detector of drifting loops": ("monitor", "if (!drift.loop)", "if (true)", "quality", "drifting loops"),
    "what tells records from drifting loops": ("drift", "return c.fresh <= c.all * FRESH && c.fresh + c.turns <= 1 + c.all * TURNS;", "return true;", "monitor", "places for what is new"),
    "what tells tables from loops": ("cycle", "    if (prose)\n", "    if (true)\n", "monitor", "a table of 600 zeros"),
    "the length": ("monitor", "if (c->expected &&", "if (false &&", "monitor", "runaway_length"),
    "sustained entropy": ("signals", "return MONITOR_HIGH_ENTROPY;", "return MONITOR_NONE;", "monitor", "high_entropy"),
    "spikes of entropy": ("signals", "return MONITOR_ENTROPY_SPIKE;", "return MONITOR_NONE;", "monitor", "entropy_spike"),
    "repetition": ("signals", "return MONITOR_HIGH_REPETITION;", "return MONITOR_NONE;", "monitor", "high_repetition"),
    "rising perplexity": ("signals", "return MONITOR_RISING_PERPLEXITY;", "return MONITOR_NONE;", "monitor", "rising_perplexity"),
    "the weighted sum": ("signals", "return MONITOR_COMBINED_SIGNALS;", "return MONITOR_NONE;", "monitor", "combined_signals"),
}


def cc(*words):
    r = subprocess.run(["cc", *FLAGS, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if r.returncode:
        raise RuntimeError(r.stderr)


def failures(folder, objects, test):
    program = folder / test
    cc(folder / f"test_{test}.o", *objects, BUILD / "src/base/libbase.a", "-lm", "-o", program)
    r = subprocess.run([program, *(QUALITY if test == "quality" else [])], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=300)
    return [line for line in r.stdout.splitlines() if line.startswith("not ok")]


with tempfile.TemporaryDirectory(prefix="cordon-mutants-") as name:
    folder = pathlib.Path(name)
    for file in [*FILES, "test_quality", "test_monitor"]:
        cc("-c", ROOM / f"{file}.c", "-o", folder / f"{file}.o")
    objects = {f: folder / f"{f}.o" for f in FILES}
    for test in ("quality", "monitor"):
        case(not failures(folder, objects.values(), test), f"test_{test} passes where nothing is taken out")
    for what, (file, old, new, test, words) in MUTANTS.items():
        text = (ROOM / f"{file}.c").read_text()
        if text.count(old) != 1:
            case(False, f"without {what} test_{test} fails", f"{file}.c has {text.count(old)} times: {old}")
            continue
        (folder / "mutant.c").write_text(text.replace(old, new))
        cc("-c", folder / "mutant.c", "-w", "-o", folder / "mutant.o")
        lost = failures(folder, [folder / "mutant.o", *(o for f, o in objects.items() if f != file)], test)
        case(any(words in line for line in lost), f"without {what} test_{test} fails", lost[:5])
done()
