# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of `cordon serve` share: a state folder with a pool of its own, what they are held against, and the table."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

IN_A_ROW, PAUSE = 5, 0.006  # as bench/python.c: a waiting child is there again after it


class Home:
    """A state folder that has a pool; everything that was started in it ends with it."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.cordon = str(self.build / "cordon")
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="cordon-bench-", dir="/tmp"))
        self.socket = self.top / "socket/mcp"
        self.env = {"PATH": f"{self.build}:/usr/bin:/bin", "HOME": str(self.top), "LANG": "C.UTF-8", "CORDON_STATE": str(self.top / "state"),
                    "XDG_CONFIG_HOME": str(self.top / "config"), "XDG_RUNTIME_DIR": str(self.top / "state")}
        self.processes = []

    def __enter__(self):
        for folder in ("state", "config", "config/cordon", "socket"):
            (self.top / folder).mkdir(mode=0o700)
        (self.top / "config/cordon/policy.yaml").write_text('version: 1\nrates: {executions: 1000, window: 1ms}\naudit: {sync: "off", duplicates: 0}\n')
        subprocess.run([self.cordon, "pool", "start", "--size", "8"], env=self.env, check=True, stdout=subprocess.DEVNULL)
        return self

    def start(self, words, **more):
        process = subprocess.Popen(words, **{"env": self.env, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **more})
        self.processes.append(process)
        return process

    def serve(self, *options, **more):
        return self.start([self.cordon, "serve", *options], **more)

    def rows_of_bench(self, *keys):
        """Rows of bench/python.c, each measured by a program that stays; its pool is its own."""
        return {key: self.start([str(self.build / "bench/python_bench"), str(self.build), "--turns", key], env=None, text=True) for key in keys}

    def __exit__(self, *_):
        for p in reversed(self.processes):
            with contextlib.suppress(BrokenPipeError):  # it has ended already, and the caller says so
                if p.stdin:
                    p.stdin.close()
            if p.args[1] == "serve":
                p.terminate()
            p.wait(60)
        subprocess.run([self.cordon, "pool", "stop", "--force"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.top, ignore_errors=True)


def turn(process):
    """One turn of a program that measures: a line is asked for and answered by milliseconds."""
    process.stdin.write("\n")
    process.stdin.flush()
    times = [float(x) for x in process.stdout.readline().split()]
    if len(times) != IN_A_ROW:
        raise SystemExit(f"bench: {process.args[0]} gave no answer")
    return times


def bare():
    began = time.perf_counter()
    subprocess.run(["/usr/bin/python3", "-I", "-S", "-c", "print(1)"], stdout=subprocess.DEVNULL, check=True)
    return [(time.perf_counter() - began) * 1e3]


def part(times, p):
    return sorted(times)[min(len(times) - 1, int(len(times) * p))]


def measure(rounds, ways):
    """{name: milliseconds} of each way, by turns; the first round fills caches and is not counted."""
    times = {name: [] for name in ways}
    for i in range(rounds + 1):
        for name, one in ways.items():
            took = one()
            times[name] += took if i else []
    return times


def table(title, times, labels, goals):
    """Prints it, held against `warm` and `bare`; gives the names of the goals that were missed."""
    base, least, missed = part(times["warm"], 0.5), part(times["bare"], 0.5), []
    print(f"{title}\n{'':<36} {'p50 ms':>8} {'p99 ms':>8} {'/warm':>7} {'/bare':>7}  goal")
    for name, all_of in times.items():
        p50, most = part(all_of, 0.5), goals.get(name)
        verdict = "" if most is None else f"{most:.1f} of the warm run, {'met' if p50 <= most * base else 'missed'}"
        missed += [name] if verdict.endswith("missed") else []
        print(f"{labels.get(name, name):<36} {p50:>8.3f} {part(all_of, 0.99):>8.3f} {p50 / base:>7.2f} {p50 / least:>7.2f}  {verdict}", flush=True)
    return missed


def strict(missed):
    """The exit status: a missed goal is a failure under BENCH_STRICT=1."""
    return 1 if missed and os.environ.get("BENCH_STRICT") == "1" else 0
