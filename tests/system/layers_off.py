# SPDX-License-Identifier: Apache-2.0
"""Each layer off in turn, in a test-only build: every attack must still be contained by another.

Usage: layers_off.py BUILD-WITH-SWITCHES [--user] [LAYER…]. What is not contained is an exception, and
the table below is all there may be; SECURITY.md gives the reason of each."""
import os
import re
import sys

import exits
import languages
import tapsys

BUILD = sys.argv[1]
WHO = "user" if "--user" in sys.argv else "root"
ONLY = [a for a in sys.argv[2:] if not a.startswith("--")]
SWITCHES = ("user", "mount", "pid", "net", "ipc", "uts", "cgroupns", "fds", "caps", "nnp", "rlimits", "cgroup",
            "landlock", "seccomp", "quota")

# (layer that is off, attack): why nothing else can hold it. At most six; none of them may be about
# the network, files outside, other processes or another run's data.
EXCEPTIONS = {
    ("rlimits", "descriptors"): "nothing else counts the entries of a table; what they refer to costs memory, and is counted there",
    ("seccomp", "execve"): "another program in place of the first has no more rights than the first had",
    ("seccomp", "memfd-exec"): "memory has no mount that could be noexec, and Landlock does not see it; as above, no rights are gained",
    ("seccomp", "personality"): "changes the guest's own address space and nothing else",
    ("seccomp", "rw-set-id"): "the owner of a file may change its mode; only the call itself can be refused",
    ("seccomp", "unix-path"): "a socket file in a folder that the caller shares is shared with it, before Landlock's next version",
}
# What a kernel does not have yet: expected there, and only there. SECURITY.md names them too.
LACKS = {
    ("seccomp", "bind"): ("Landlock has no rules for TCP before Linux 6.7; the port is one of an empty network that nobody else is in",
                          lambda canaries: kernel_before(6, 7)),
    ("seccomp", "vsock"): ("sockets of the hypervisor know no namespaces, so where the kernel has them only the call can be refused",
                           lambda canaries: canaries.vsock_answers()),
}
FORBIDDEN_KINDS = {"network", "filesystem", "process"}

# Where the worker's own proof must show that the switch did something.
SHOWS_IN = {"mount": "filesystem", "landlock": "filesystem", "net": "network", "seccomp": "syscalls", "rlimits": "resources",
            "cgroup": "resources", "quota": "resources"}  # the others: process
UNSEEN = {"fds"}  # the caller's descriptors are close-on-exec before that layer is reached: none is there to be seen

# Attacks on a layer itself say nothing when that layer is not there.
ON_THE_LAYER = {
    "seccomp": r"refuse-.*|second-listener|strict-mode|notify-.*|clone3|fds-listener",
    "rlimits": r"raise-limits",
}



def kernel_before(major, minor):
    return tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", os.uname().release).groups()) < (major, minor)


tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
languages.arm(programs)
attacks = [p for p in tapsys.probe_table(programs) if not p.benign and not p.payload]
# what is declared to end in a signal of its own attacks nobody
attacks = [p for p in attacks if not p.ends.startswith("crashed")]
# with --memory-by rlimit the caller itself gave the second lock up
attacks = [p for p in attacks if "--memory-by rlimit" not in p.options]
who = WHO if os.geteuid() == 0 else "user"
if who == "user":  # an ordinary user mostly has no cgroup: one layer of the resources is off already
    attacks = [p for p in attacks if p.layer != "resources" and p.category != 3]
WHOLE = ["--memory-by", "cgroup"] if who == "root" else []  # all layers there are, less one

tap.ok(len(EXCEPTIONS) <= 6, "at most six exceptions")
kinds = {p.name: p.layer for p in attacks}
tap.ok(not any(kinds.get(a) in FORBIDDEN_KINDS for _, a in EXCEPTIONS),
       "no exception is filed under network, filesystem or process (SECURITY.md says what each one reaches)", EXCEPTIONS)

bare = tapsys.exec_json(programs, [], ["/bin/true"], who, env={"CORDON_TEST_OFF": "no-such-layer"})
tap.ok(bare.code == exits.NEVER_RAN and "no-such-layer" in bare.err + bare.out, "an unknown switch is named", bare.story())

def without(off):
    """Every attack with one layer off. What came of it: (good, name, details...) of each case, and the attacks that reached something."""
    cases, held, open_ = [], [], {}
    canaries = tapsys.Canaries(programs, who)
    env = {"CORDON_TEST_OFF": off}
    control = tapsys.exec_json(programs, [*WHOLE, "--ro", str(canaries.ro)], ["/bin/cat", str(canaries.ro / "readable")], who, env=env)
    runs = control["status"] == "ok" and control["stdout"] == "read me\n"
    cases.append((runs, f"{off} off: an honest program still runs", control.story()))
    if not runs:
        canaries.close()
        return cases, None
    shown = str((control["layers"] or {}).get(SHOWS_IN.get(off, "process")))
    cases.append((not shown.startswith("on") or off in UNSEEN or (off == "cgroup" and not WHOLE), f"{off} off: the result says so", f"{SHOWS_IN.get(off, 'process')}: {shown}"))
    for p in attacks:
        if re.fullmatch(ON_THE_LAYER.get(off, "(?!)"), p.name):
            continue
        run = tapsys.run_probe(programs, canaries, p, who, env=env, add=WHOLE)
        why = tapsys.ended_as_declared(p, run)
        verdict = run.last_line()
        faults = canaries.faults()
        # with a limit's layer off the run may end otherwise than declared; reached it must not be
        # without a root of its own there is nothing to write in: what cannot be prepared was refused
        broken = verdict.startswith("BROKEN") and off != "mount"
        if faults or verdict.startswith("REACHED") or run.code is None or broken:
            open_[p.name] = "; ".join(faults) or verdict or why or "it did not end"
            if faults:
                canaries.close()
                canaries = tapsys.Canaries(programs, who)
        else:
            held.append(p.name)
    for language in languages.built(programs):
        text = language.outside
        for name, value in (("secret", canaries.secret), ("port", canaries.port), ("pid", canaries.sibling.pid)):
            text = text.replace("{" + name + "}", str(value))
        run = tapsys.cordon(programs, ["run", "--json", "--lang", language.name, "--intake", "source", "--profile", "open", *WHOLE, "-"], who, env=env, text=text)
        faults = canaries.faults()
        runs = run["stdout"] == "done\n" or off == "mount"  # its worker has no place then, and nothing runs
        cases.append((runs and "REACHED" not in run.out and not faults, f"{off} off: a program in {language.name} reaches nothing outside", *faults, run.story()))
    expected = {a for o, a in EXCEPTIONS if o == off and a in kinds}
    expected |= {a for (o, a), (_, lacks) in LACKS.items() if o == off and a in kinds and lacks(canaries)}
    cases += [(False, f"{off} off: {name} is contained by another layer", open_[name]) for name in sorted(set(open_) - expected)]
    cases += [(False, f"{off} off: {name} is an exception no more: take it out of the table") for name in sorted(expected - set(open_))]
    cases.append((set(open_) == expected, f"{off} off: {len(held)} attacks contained by other layers, {len(open_)} exceptions"))
    canaries.close()
    return cases, open_


escaped = {}
for off, (cases, open_) in tapsys.side_by_side(without, [o for o in ONLY if o in SWITCHES] if ONLY else list(SWITCHES)):
    for case in cases:
        tap.ok(*case)
    if open_ is not None:
        escaped[off] = open_
        good, why = tapsys.plant_intact(programs)
        tap.ok(good, f"{off} off: the kernel's own canaries are intact", why)

# No layer, but what an older kernel lacks (before 5.19): a signal takes a call back while it is judged. The supervisor's answer
# then finds nobody. The attacks on it must be contained all the same, and its report must be whole.
if not ONLY or "wait_killable" in ONLY:
    canaries = tapsys.Canaries(programs, who)
    env = {"CORDON_TEST_OFF": "wait_killable"}
    control = tapsys.exec_json(programs, WHOLE, ["/bin/echo", "here"], who, env=env)
    tap.ok(control["status"] == "ok" and control["stdout"] == "here\n", "calls that signals interrupt: an honest program runs", control.story())
    for p in attacks if who == "root" else tapsys.probe_table(programs):
        if p.name.startswith("notify-"):
            run = tapsys.run_probe(programs, canaries, p, who, env=env, add=WHOLE)
            why = tapsys.ended_as_declared(p, run)
            tap.ok(run.last_line().startswith("CONTAINED") and not why, f"calls that signals interrupt: {p.name} is contained and reported",
                   why, run.story())
    tap.ok(not canaries.faults(), "calls that signals interrupt: what is outside is as it was", canaries.faults())
    canaries.close()

total = sum(len(o) for o in escaped.values())
tap.figure(f"layers off one at a time ({who}): {len(escaped)} layers, {len(attacks)} attacks each, {total} exceptions")
tap.done()
