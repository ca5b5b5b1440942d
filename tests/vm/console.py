# SPDX-License-Identifier: Apache-2.0
"""Starts the machine's QEMU, reads its serial console, and ends it when it is done or hangs.

/dev/kvm is no promise: inside another virtual machine it can be there and run nothing, and such a guest burns CPU, with a few lines
on its console or none. So the kernel is booted alone under KVM first, and has to show itself and to end within seconds; otherwise
the processor is emulated, and all that depends on that is planned so. Every other wait has a limit too, and a machine that exceeds
one is a failed case that says which."""
import os
import re
import selectors
import subprocess
import time


class Limits:
    """Seconds. A kernel alone boots within two seconds under KVM that works; of an emulated one the first message comes within ten on a
    busy machine."""

    def __init__(self, kvm=30, silent=120, up=600, grace=60, all=7200):
        self.kvm = kvm                     # a kernel alone under KVM, to its end
        self.silent, self.up = silent, up  # without a byte on the console; until the first suite
        self.grace, self.all = grace, all  # a suite beyond its own limit, which the machine enforces; everything


class Results:
    """Reads lines of the console; counts and prints the cases as they come."""

    def __init__(self):
        self.count = self.failed = self.skipped = 0
        self.suite = self.cut_at = self.plan = None
        self.seen = 0
        self.up = self.done = False
        self.times = []

    def case(self, good, text):
        self.count += 1
        self.failed += not good
        self.skipped += good and "# SKIP" in text
        print(f"{'ok' if good else 'not ok'} {self.count} - {text}", flush=True)

    def line(self, line, grace=0):
        if m := re.match(r"@@@ (\w+) ?(.*)", line):
            self.word(*m.groups(), grace)
        elif self.suite and (m := re.match(r"(not )?ok \d+(?: - )?(.*)", line)):
            self.seen += 1
            self.case(not m.group(1), f"{self.suite}: {m.group(2)}")
        elif self.suite and (m := re.match(r"1\.\.(\d+)", line)):
            self.plan = int(m.group(1))
        elif self.suite and line.startswith("#"):
            print(line, flush=True)

    def word(self, word, rest, grace):
        if word == "init":
            pass  # the initramfs runs: a sign of life, nothing more
        elif word == "up":
            self.up = True
        elif word == "done":
            self.done = True
        elif word == "begin":  # begin NAME LIMIT I/N
            self.suite, limit, place = rest.split()
            self.seen, self.plan, self.cut_at = 0, None, time.monotonic() + int(limit) + grace
            print(f"# [{place}] {self.suite} (at most {limit} s)", flush=True)
        elif word == "end":  # end NAME HOW SECONDS
            name, how, seconds = rest.rsplit(" ", 2)
            print(f"#= {name}: {self.seen} cases in {seconds} s", flush=True)
            self.times.append((int(seconds), name))
            if how == "timeout":
                self.case(False, f"{name}: ends within its limit ({self.seen} cases so far)")
            elif self.plan != self.seen or self.seen == 0:
                self.case(False, f"{name}: runs to its end ({self.seen} cases, plan {self.plan}, exit {how})")
            self.suite = self.cut_at = None
        else:
            self.case(False, f"the machine says: {word} {rest}")

    def closing(self):
        return f"{self.count - self.failed - self.skipped} passed, {self.failed} failed, {self.skipped} skipped"


def kvm_works(command, device, limits):
    """Whether the kernel that COMMAND boots under KVM, without anything to run, comes to the end of its boot. Prints why not."""
    try:
        said = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limits.kvm).stdout
        why = "" if b"Kernel panic" in said else "the kernel did not come to the end of its boot"
    except subprocess.TimeoutExpired as e:
        said, why = e.stdout or b"", f"a kernel did not boot within {limits.kvm} s"
    if why:
        print(f"# {device} is there but of no use: {why}; the processor is emulated", flush=True)
        for line in said.decode("utf-8", "replace").splitlines()[-5:]:
            print("# |", line[:300], flush=True)
    return not why


def watch(command, limits, begun, log):
    """One start of COMMAND, to its end: (results, why it failed or "", the lines of its console). LOG has them as they come."""
    results, console, rest, start = Results(), [], b"", time.monotonic()
    vm = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        os.set_blocking(vm.stdout.fileno(), False)
        ready = selectors.DefaultSelector()
        ready.register(vm.stdout, selectors.EVENT_READ)
        why = None
        while why is None:
            ready.select(1)
            block = vm.stdout.read()
            log.write(block or b"")
            log.flush()
            *lines, rest = (rest + (block or b"")).split(b"\n")
            for raw in lines:
                text = raw.decode("utf-8", "replace").rstrip("\r")
                console.append(text)
                results.line(text, limits.grace)
            now = time.monotonic()
            if block == b"":
                why = "" if results.done else "it stopped before it was done" + (f" (in {results.suite})" if results.suite else "")
            elif not console and not rest and now - start > limits.silent:
                why = f"no sign of life within {limits.silent} s"
            elif not results.up and now - start > limits.up:
                why = f"no suite was begun within {limits.up} s"
            elif results.cut_at and now > results.cut_at:
                why = f"{results.suite} hangs, and the machine with it: it did not end the suite at its limit"
            elif now - begun > limits.all:
                why = f"not done within {limits.all} s" + (f" (in {results.suite})" if results.suite else "")
    finally:
        vm.kill()
        vm.wait()
        vm.stdout.close()
    return results, why, console + [rest.decode("utf-8", "replace")]


def run(command, name, limits, log):
    """The whole run; COMMAND is QEMU's command line. Writes the console to LOG; prints and returns the results."""
    with open(log, "wb") as kept:
        results, why, console = watch(command, limits, time.monotonic(), kept)
    results.case(why == "", f"the {name} machine comes up, runs all and stops" + (f": {why}" if why else ""))
    if why:
        print("\n".join("# | " + line[:300] for line in console[-40:]))
    return results
