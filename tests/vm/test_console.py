# SPDX-License-Identifier: Apache-2.0
"""tests/vm/console.py, suites.py and the cross build's target.py, with programs in the place of QEMU that behave as bad machines do. TAP on stdout.

Nothing here waits for a time to have passed: a machine that must be cut has no end of its own."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import console
import suites

count = failures = 0


def ok(good, name, *details):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    for d in details if not good else ():
        print("\n".join("# " + line for line in str(d).splitlines()))
    sys.stdout.flush()


GOOD = """echo 'Linux version 6.1'
echo '@@@ init'
echo '@@@ up'
echo '@@@ begin one 60 1/1'
echo 'ok 1 - a case'
echo '# a figure'
echo 'ok 2 - another # SKIP a reason'
echo '1..2'
echo '@@@ end one 0 1'
echo '@@@ done'
"""
BURN = "while :; do :; done\n"
PATIENT = dict(kvm=120, silent=120, up=120, grace=120, all=240)  # where nothing is to be cut


class Machine:
    """A program for QEMU's place."""

    def __init__(self, does, **limits):
        self.does, self.limits = does, console.Limits(**{**PATIENT, **limits})

    def start(self, how):
        """HOW(command, log) in a folder of its own; what it gives."""
        with tempfile.TemporaryDirectory() as work:
            starts, program, log = pathlib.Path(work, "starts"), pathlib.Path(work, "qemu"), pathlib.Path(work, "console")
            program.write_text(f"#!/bin/sh\necho $$ >>{starts}\n{self.does}")
            program.chmod(0o755)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                given = how([program], log)
            self.alive = [pid for pid in starts.read_text().split() if os.path.exists(f"/proc/{pid}")]
            self.said = said.getvalue()
        return given

    def run(self):
        self.results = self.start(lambda command, log: console.run(command, "test", self.limits, log))
        return self

    def kvm(self):
        return self.start(lambda command, log: console.kvm_works(command, "/dev/kvm", self.limits))

    def story(self):
        return f"alive {self.alive}\n{self.said}"


m = Machine(GOOD).run()
ok(m.results.closing() == "2 passed, 0 failed, 1 skipped", "the cases of a machine that works are counted", m.story())
ok("# [1/1] one (at most 60 s)" in m.said, "the beginning of a suite is printed with its place and its limit", m.story())

m = Machine("echo 'Linux version'\necho 'Kernel panic - not syncing: no init'\n")
ok(m.kvm() and m.said == "", "a kernel that boots under KVM and finds nothing to run shows that KVM works", m.story())
m = Machine(BURN, kvm=1)
ok(not m.kvm() and "/dev/kvm is there but of no use: a kernel did not boot within 1 s" in m.said, "a guest under KVM that burns CPU and prints nothing is none, by name", m.story())
ok(not m.alive, "the QEMU of the silent guest is ended", m.story())
m = Machine("echo 'Probing EDD'\n" + BURN, kvm=1)
ok(not m.kvm() and "# | Probing EDD" in m.said and not m.alive, "a guest under KVM that stops in the middle of its boot is none, and its last lines are printed", m.story())
m = Machine("echo 'failed to initialize kvm: Permission denied'; exit 1\n")
ok(not m.kvm() and "# | failed to initialize kvm" in m.said, "a QEMU that cannot use KVM is none, and what it says is printed", m.story())
ok(console.Limits().kvm <= 30, "a KVM that does not work is noticed within seconds", vars(console.Limits()))

m = Machine(BURN, silent=1).run()
ok("not ok 1 - the test machine comes up, runs all and stops: no sign of life within 1 s" in m.said and not m.alive,
   "an emulated guest without a sign of life is ended, by name", m.story())
m = Machine("echo '@@@ up'\necho '@@@ begin slow 0 1/1'\necho 'ok 1 - a case'\n" + BURN, grace=1).run()
ok("slow hangs, and the machine with it" in m.said and not m.alive and m.results.failed == 1, "a machine that hangs in a suite is ended, and the suite named", m.story())
m = Machine(GOOD.split("echo 'ok 2")[0] + "echo '@@@ end one timeout 60'\necho '@@@ done'\n").run()
ok("one: ends within its limit (1 cases so far)" in m.said and m.results.failed == 1, "a suite that the machine cut at its limit is a failure, by name", m.story())
m = Machine("echo '@@@ up'\necho '@@@ begin one 60 1/1'\n").run()
ok("it stopped before it was done (in one)" in m.said and m.results.failed == 1, "a machine that stops in the middle is a failure, by name", m.story())
m = Machine(GOOD.replace("1..2", "1..3")).run()
ok(m.results.failed == 1 and "one: runs to its end (2 cases, plan 3, exit 0)" in m.said, "a suite with fewer cases than it planned is a failure", m.story())
m = Machine("echo '@@@ up'\n" + BURN, all=1).run()
ok("not done within 1 s" in m.said and not m.alive, "the limit of all suites together is kept", m.story())

# --- the list of suites -----------------------------------------------------------------------------

TESTS = [{"name": n, "timeout": t, "cmd": ["/cordon/build/" + n, "300"], "env": {}, "folder": "/cordon/build"} for n, t in (("unit", 30), ("long", 900), ("lint-x", 30), ("heavy", 30))]
TABLE = [("own", "add", "600 /bin/true x"), ("lint-*", "never", "reads the sources"), ("heavy", "slow", "an hour"), ("unit", "emulated", "300=60 +7")]
chosen, left = suites.plan(TESTS, TABLE, True)
ok([s["name"] for s in chosen] == ["own", "unit", "long"] and left == [("lint-x", "reads the sources"), ("heavy", "an hour")],
   "every test of the build is run but those that the table leaves out, with a reason", chosen, left)
ok(chosen[1]["argv"][1:] == ["60", "7"] and chosen[0]["limit"] == 600, "an emulated machine gets the table's arguments", chosen)
ok([s["limit"] for s in chosen[1:]] == [1200, suites.LONGEST], "a suite's limit is forty times its own where the processor is emulated, up to a ceiling", chosen)
chosen, left = suites.plan(TESTS, TABLE, False)
ok([s["limit"] for s in chosen[1:]] == [300, suites.LONGEST, 300], "under KVM a suite's limit is ten times its own", chosen)
ok([s["name"] for s in chosen] == ["own", "unit", "long", "heavy"] and chosen[1]["argv"][1:] == ["300"], "under KVM nothing is too slow", chosen)
chosen, left = suites.plan(TESTS, TABLE, True, "heavy:a:b")
ok([(s["name"], s["argv"][2:]) for s in chosen] == [("heavy", ["a", "b"])], "a suite that was asked for by name is run, with further arguments", chosen)
ok([suites.part([1, 2, 3, 4, 5], f"{k}/3") for k in (1, 2, 3)] == [[1, 4], [2, 5], [3]] and suites.part([1, 2], "") == [1, 2], "the parts of a run are all of it, and share nothing")
for wrong in ("0/3", "4/3", "3", "a/b", "1/"):
    try:
        suites.part([1], wrong)
        ok(False, f"a part that does not exist is refused: {wrong}")
    except SystemExit as e:
        ok("such as 2/6" in str(e), f"a part that does not exist is refused ({e})")
for only, table in (("nothing", TABLE), ("", TABLE + [("unit", "emulated", "301=60")]), ("", TABLE + [("unit", "somehow", "")])):
    try:
        suites.plan(TESTS, table, True, only)
        ok(False, "a name, argument or verb that does not exist is refused")
    except SystemExit as e:
        ok(True, f"a name, argument or verb that does not exist is refused ({e})")
rows = suites.rows(HERE / "suites")
ok(len(rows) > 5 and all(verb in ("add", "never", "slow", "emulated") and rest for _, verb, rest in rows), "each row of tests/vm/suites has a verb and a reason", rows)

# --- the Python of a cross build ----------------------------------------------------------------------

TARGET = HERE.parents[1] / "src/worker/python/target.py"
ask = lambda *args: subprocess.run(["/usr/bin/python3", TARGET, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
native = ask()
version = native.stdout.split("\n")[0]
ok(native.returncode == 0 and len(native.stdout.splitlines()) == 8 and pathlib.Path(native.stdout.splitlines()[1], "Python.h").exists(),
   "without arguments the answers are about the Python of this machine", native.stdout, native.stderr)
with tempfile.TemporaryDirectory() as root:
    lib = pathlib.Path(root, f"usr/lib/python{version}")
    lib.mkdir(parents=True)
    r = ask(root, "riscv64")
    ok(r.returncode != 0 and f"no Python {version} for riscv64" in r.stderr, "a root without the other machine's Python is refused, by name", r)
    there = {"VERSION": version, "INCLUDEPY": "/usr/include/python", "EXT_SUFFIX": ".cpython-riscv64.so", "LIBPL": "/usr/lib/config", "LDVERSION": version,
             "LIBDIR": "/usr/lib/riscv64", "MODLIBS": "-lz", "LIBS": "-ldl", "SYSLIBS": "-lm"}
    data = lib / "_sysconfigdata__riscv64-linux-gnu.py"
    data.write_text(f"build_time_vars = {there!r}\n")
    r = ask(root, "riscv64")
    ok(r.stdout.splitlines()[1:7] == [root + "/usr/include/python", root + "/usr/include", "cpython-riscv64.so",
                                      f"{root}/usr/lib/config/libpython{version}-pic.a", root + "/usr/lib/riscv64", "-lz -ldl -lm"],
       "with a root the answers are those of the Python below it", r)
    data.write_text(f"build_time_vars = {dict(there, VERSION='3.0')!r}\n")
    r = ask(root, "riscv64")
    ok(r.returncode != 0 and "Python 3.0 below" in r.stderr, "a Python of another version is refused, since byte code differs between versions", r)
print(f"1..{count}")
sys.exit(failures > 0)
