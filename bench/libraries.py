#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a call of a client library costs: `print(1)` by the libraries for Python, Node and Ruby, over the socket of a server, beside bare Python.

Usage: libraries.py BUILD SOURCE [--rounds N]. In each round every library has five calls in a row, in a process of its own language that was
started before, so that all share the machine's good and bad minutes. The ratios are of p50."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

options = argparse.ArgumentParser()
options.add_argument("build")
options.add_argument("source")
options.add_argument("--rounds", type=int, default=40)
o = options.parse_args()
BUILD, SOURCE = pathlib.Path(o.build).resolve(), pathlib.Path(o.source).resolve()
CORDON = str(BUILD / "cordon")
TOP = pathlib.Path(tempfile.mkdtemp(prefix="cordon-bench-", dir="/tmp"))
SOCKET = TOP / "socket/s"
ENV = {"PATH": f"{BUILD}:/usr/bin:/bin", "HOME": str(TOP), "LANG": "C.UTF-8", "CORDON_STATE": str(TOP / "state"), "XDG_CONFIG_HOME": str(TOP / "config"),
       "XDG_RUNTIME_DIR": str(TOP / "state"), "CORDON_SOCKET": str(SOCKET), "PYTHONPATH": str(BUILD / "bindings/python"), "PYTHONDONTWRITEBYTECODE": "1"}
IN_A_ROW = 5
PYTHON = f"""import sys, time, cordon
for _ in sys.stdin:
    times = []
    for _ in range({IN_A_ROW}):
        began = time.perf_counter()
        assert cordon.run("print(1)").stdout == "1\\n"
        times.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.006)
    print(*times, flush=True)"""
NODE = f"""import {{ createInterface }} from "node:readline";
import {{ setTimeout }} from "node:timers/promises";
const {{ run }} = await import("{BUILD}/bindings/node/index.js");
for await (const _ of createInterface({{ input: process.stdin }})) {{
  const times = [];
  for (let i = 0; i < {IN_A_ROW}; i++) {{
    const began = performance.now();
    if ((await run("print(1)")).stdout !== "1\\n") process.exit(1);
    times.push(performance.now() - began);
    await setTimeout(6);
  }}
  console.log(times.join(" "));
}}"""
RUBY = f"""require "cordon"
clock = -> {{ Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond) }}
while gets
  puts(Array.new({IN_A_ROW}) do
    began = clock.()
    exit 1 if Cordon.run("print(1)").stdout != "1\\n"
    took = clock.() - began
    sleep 0.006
    took
  end.join(" "))
  $stdout.flush
end"""
LIBRARIES = {"Python": ["/usr/bin/python3", "-c", PYTHON], "Node": [shutil.which("node") or "/usr/bin/node", "--input-type=module", "-e", NODE],
             "Ruby": ["/usr/bin/ruby", f"-I{SOURCE}/bindings/ruby", "-e", RUBY]}


def turn(process):
    process.stdin.write("\n")
    process.stdin.flush()
    times = [float(x) for x in process.stdout.readline().split()]
    if len(times) != IN_A_ROW:
        sys.exit("bench: a library gave no answer")
    return times


def bare():
    began = time.perf_counter()
    subprocess.run(["/usr/bin/python3", "-I", "-S", "-c", "print(1)"], stdout=subprocess.DEVNULL, check=True)
    return [(time.perf_counter() - began) * 1e3]


def part(times, p):
    return sorted(times)[min(len(times) - 1, int(len(times) * p))]


for folder in ("state", "config", "config/cordon", "socket"):
    (TOP / folder).mkdir(mode=0o700)
(TOP / "config/cordon/policy.yaml").write_text('version: 1\nrates: {executions: 1000, window: 1ms}\naudit: {sync: "off", duplicates: 0}\n')
processes = []
try:
    subprocess.run([CORDON, "pool", "start", "--size", "8"], env=ENV, check=True, stdout=subprocess.DEVNULL)
    processes.append(subprocess.Popen([CORDON, "serve", "--socket", str(SOCKET)], env=ENV, stdin=subprocess.DEVNULL))
    end = time.monotonic() + 30
    while not SOCKET.exists() and time.monotonic() < end:
        time.sleep(0.01)
    ways = {name: subprocess.Popen(words, env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name, words in LIBRARIES.items() if os.access(words[0], os.X_OK)}
    processes += ways.values()
    times = {name: [] for name in ("bare", *ways)}
    for i in range(o.rounds + 1):
        took = {"bare": bare(), **{name: turn(p) for name, p in ways.items()}}
        for name in times if i else ():  # the first round fills caches and is not counted
            times[name] += took[name]
    base = part(times["bare"], 0.5)
    print(f"print(1) by a client library: {o.rounds} rounds\n{'':<32} {'p50 ms':>8} {'p99 ms':>8} {'/bare':>7}")
    for name, all_of in times.items():
        label = "bare python3 -I -S -c" if name == "bare" else f"the library for {name}"
        print(f"{label:<32} {part(all_of, 0.5):8.2f} {part(all_of, 0.99):8.2f} {part(all_of, 0.5) / base:7.3f}")
finally:
    for p in reversed(processes):
        p.terminate()
        p.wait()
    subprocess.run([CORDON, "pool", "stop", "--force"], env=ENV, stdout=subprocess.DEVNULL)
    shutil.rmtree(TOP, ignore_errors=True)
