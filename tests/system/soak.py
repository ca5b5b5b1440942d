# SPDX-License-Identifier: Apache-2.0
"""N runs, two at a time, a third of them killed at random moments; afterwards nothing may be left.

Usage: soak.py BUILD [N]. Kills by SIGKILL the supervisor, cordon-nest, the guest, or the whole group. A kill counts
when its target was alive at that moment; enough runs are chosen for it that a third of all are hit, and the kind of
victim that was hit least is chosen next. Where that is not enough (on an emulated machine most guests are dead before
they are found) there are further runs, up to five times N, until each kind was hit as often as is asked for.
Looks for leftover processes, mounts, cgroups and files, as root and as an ordinary user."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tapsys
import traces

BUILD = sys.argv[1]
N = int(sys.argv[2]) if len(sys.argv) > 2 else 300
SEED = int(os.environ.get("SOAK_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
dice = random.Random(SEED)
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
tapsys.honest_first(tap, programs)
mark = "soak" + str(os.getpid())  # in every command line, so that what is left can be told apart
print(f"# SOAK_SEED={SEED}", flush=True)

span = lambda ms: f"{ms * tapsys.SLOW}ms"  # on an emulated machine it takes longer to find a victim, and it has to live that long
nap = f"{0.05 * tapsys.SLOW:.2f}"
WORK = [  # options, then the program; most end by themselves, some must be ended
    ([], ["/bin/true", mark]),
    ([], ["/bin/true", mark]),
    ([], ["/bin/sleep", nap]),
    (["--timeout", span(100)], ["/bin/sleep", "1000"]),
    (["--processes", "16"], ["/bin/sh", "-c", f": {mark}; for i in 1 2 3; do (sleep {nap} & sleep 1000 & setsid sleep 1000 &) ; done; exit 0"]),
    (["--processes", "16", "--timeout", span(200)], ["/bin/sh", "-c", f": {mark}; sleep 1000 & sleep 1000 & wait"]),
    (["--disk", "4m"], ["/bin/dd", "if=/dev/zero", "of=/tmp/" + mark, "bs=64k"]),
    (["--output", "64k"], ["/usr/bin/head", "-c", "200000", "/dev/zero"]),
    (["--output", "16k"], ["/usr/bin/yes", mark]),
    (["--memory", "48m"], ["/usr/bin/tail", "/dev/zero"]),
    (["--rw", "{rw}"], ["/bin/dd", "if=/dev/zero", "of={rw}/f", "bs=4k", "count=4"]),
    (["--json"], ["/bin/false", mark]),
]


def descendants_by_mark():
    """Every process of ours: by its mark, its name or its executable's folder."""
    found = {}
    for p in pathlib.Path("/proc").iterdir():
        if not p.name.isdigit() or int(p.name) == os.getpid():
            continue
        try:
            line = (p / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            exe = os.readlink(p / "exe")
        except OSError:
            line, exe = "", ""
        if exe.startswith(str(programs.dir)) or mark in line and "soak.py" not in line:
            found[int(p.name)] = line
    return found


def tree_of(pid):
    return list(traces.below(pid))


OURS = [str(programs.dir), *(str(programs.dir / name) for name in ("runtime", "state", "tmp"))]  # nobody else's

for name in ("runtime", "state", "tmp"):
    (programs.dir / name).mkdir()
    os.chmod(programs.dir / name, 0o777)
lent = pathlib.Path(tempfile.mkdtemp(prefix="cordon-canary-lent-", dir="/var/tmp"))
os.chmod(lent, 0o777)
before = dict(mounts=traces.mounts(), cgroups=traces.cgroups(), files=traces.files(OURS), ipc=traces.system_v(), processes=descendants_by_mark())
tap.ok(not before["processes"], "no process of Cordon runs before the soak", before["processes"])

killed = dict.fromkeys(("supervisor", "nest", "guest", "group"), 0)
ended, odd, slow = {}, [], []


class Job:
    def __init__(self, who):
        options, argv = dice.choice(WORK)
        fill = lambda xs: [x.replace("{rw}", str(lent)) for x in xs]
        env = tapsys.clean_env({"TMPDIR": str(programs.dir / "tmp")}, who)
        self.argv, self.start = fill(argv), time.monotonic()
        self.p = subprocess.Popen(programs.command(["exec", *fill(options), "--", *self.argv], who), env=env, cwd="/",
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        chosen = launched >= N or dice.random() < (0.9 if sum(killed.values()) < 0.36 * launched else 0.25)
        moment = dice.choice((0.0002, 0.001, 0.003, 0.01, 0.06)) * dice.uniform(0.2, 2) * tapsys.SLOW
        self.kill_at = self.start + moment if chosen else None
        few = min(killed.values())
        self.victim = dice.choice([v for v in killed if killed[v] == few] if dice.random() < 0.5 or launched >= N else list(killed))

    def step(self):
        """True when it is over."""
        if self.kill_at and time.monotonic() >= self.kill_at:
            self.kill_at = None
            self.kill()
        if self.p.poll() is not None:
            took = time.monotonic() - self.start
            ended[self.p.returncode] = ended.get(self.p.returncode, 0) + 1
            if took > 10 * tapsys.SLOW:
                slow.append((self.argv, took))
            return True
        if time.monotonic() - self.start > 40 * tapsys.SLOW:
            odd.append(f"did not end: {self.argv}, tree {tree_of(self.p.pid)}")
            self.p.kill()
        return False

    def kill(self):
        pid = self.p.pid
        targets = [pid]
        if self.victim in ("nest", "guest"):
            tree = tree_of(pid)
            targets = tree[:1] if self.victim == "nest" else tree[-1:]
            if not targets and self.p.poll() is None:
                self.kill_at = time.monotonic() + 0.001  # not born yet
        hit = any(traces.alive(t) for t in targets)
        try:
            if self.victim == "group":
                os.killpg(pid, signal.SIGKILL)
            else:
                for t in targets:
                    os.kill(t, signal.SIGKILL)
            killed[self.victim] += hit
        except ProcessLookupError:
            pass


def wanted():
    """Whether one more run is to be started."""
    enough = sum(killed.values()) >= N / 3 and min(killed.values()) >= N / 100
    return launched < N or not enough and launched < 5 * N


started = time.monotonic()
running, launched = [], 0
who_turn = tapsys.users()
while wanted() or running:
    while wanted() and len(running) < 2:
        running.append(Job(who_turn[launched % len(who_turn)]))
        launched += 1
    running = [j for j in running if not j.step()]
    time.sleep(0.0003)
took = time.monotonic() - started

# what dies with its pid namespace or is swept by the janitor gets a moment
for _ in range(100):
    left = descendants_by_mark()
    if not left and traces.cgroups() <= before["cgroups"] and traces.files(OURS) <= before["files"]:
        break
    time.sleep(0.1)
tap.ok(not odd, "every run of the soak ended", *odd)
tap.ok(not slow, "no run of the soak took long", *slow)
tap.ok(not left, "no process is left after the soak", left)
tap.ok(traces.mounts() == before["mounts"], "no mount is left after the soak", set(traces.mounts()) - set(before["mounts"]))
tap.ok(traces.cgroups() <= before["cgroups"], "no cgroup is left after the soak", sorted(traces.cgroups() - before["cgroups"])[:10])
tap.ok(traces.files(OURS) <= before["files"], "no file is left after the soak", sorted(traces.files(OURS) - before["files"])[:10])
tap.ok(traces.system_v() == before["ipc"], "no System V object is left after the soak", traces.system_v())
tap.ok(sum(killed.values()) >= N / 3, "at least a third as many runs as were asked for were killed while they ran", launched, killed)
tap.ok(min(killed.values()) >= N / 100, "supervisor, cordon-nest, guest and group were each killed in one of 100 runs or more", launched, killed)
# the machine is as good as before: an honest run still works for both
for who in who_turn:
    r = tapsys.exec_json(programs, [], ["/bin/echo", "fine"], who)
    tap.ok(r["stdout"] == "fine\n", f"{who}: an honest run after all that", r.story())
shutil.rmtree(lent, ignore_errors=True)
tap.figure(f"soak: {launched} runs two at a time in {took:.0f} s ({launched / took:.0f}/s), killed: " + ", ".join(f"{k} {v}" for k, v in killed.items())
           + f"; exit codes {dict(sorted(ended.items(), key=lambda x: -x[1]))}")

# one long-lived supervisor: many runs in one process, descriptors and memory flat
many = pathlib.Path(BUILD) / "tests/probes/supervise_many"
if many.exists():
    copy = shutil.copy2(many, programs.bin / "supervise_many")
    rounds = str((1000 if N <= 1000 else 10000) // tapsys.SLOW ** 2)
    p = subprocess.run([copy, str(programs.nest), rounds], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tap.ok(p.returncode == 0, f"one supervisor, {rounds} runs: descriptors and memory flat", p.stdout[-600:])
    tap.figure(p.stdout.strip().splitlines()[-1] if p.stdout.strip() else "supervise_many said nothing")
else:
    tap.skip("one supervisor, many runs", "this build has no supervise_many")
tap.done()
