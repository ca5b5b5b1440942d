#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a call of a client library costs: `print(1)` by the libraries for Python, Node and Ruby, over the socket of a server, beside the warm run without
a server and beside bare Python; and how many runs a second 1 and 10 programs get that use one.

Usage: libraries.py BUILD SOURCE [--rounds N] [--seconds N]. In each round every library has five calls in a row, in a process of its own language that was
started before, so that all share the machine's good and bad minutes. The ratios are of p50. A socket has 32 places; 200 clients are those of HTTP, in
bench/serve.py. BENCH_STRICT=1: a missed goal is a failure."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

import served

options = argparse.ArgumentParser()
options.add_argument("build")
options.add_argument("source")
options.add_argument("--rounds", type=int, default=40)
options.add_argument("--seconds", type=float, default=5)
o = options.parse_args()
BUILD, SOURCE = pathlib.Path(o.build).resolve(), pathlib.Path(o.source).resolve()
PYTHON = f"""import sys, time, cordon
for _ in sys.stdin:
    times = []
    for _ in range({served.IN_A_ROW}):
        began = time.perf_counter()
        assert cordon.run("print(1)").stdout == "1\\n"
        times.append((time.perf_counter() - began) * 1e3)
        time.sleep({served.PAUSE})
    print(*times, flush=True)"""
NODE = f"""import {{ createInterface }} from "node:readline";
import {{ setTimeout }} from "node:timers/promises";
const {{ run }} = await import("{BUILD}/bindings/node/index.js");
for await (const _ of createInterface({{ input: process.stdin }})) {{
  const times = [];
  for (let i = 0; i < {served.IN_A_ROW}; i++) {{
    const began = performance.now();
    if ((await run("print(1)")).stdout !== "1\\n") process.exit(1);
    times.push(performance.now() - began);
    await setTimeout({served.PAUSE * 1e3});
  }}
  console.log(times.join(" "));
}}"""
RUBY = f"""require "cordon"
clock = -> {{ Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond) }}
while gets
  puts(Array.new({served.IN_A_ROW}) do
    began = clock.()
    exit 1 if Cordon.run("print(1)").stdout != "1\\n"
    took = clock.() - began
    sleep {served.PAUSE}
    took
  end.join(" "))
  $stdout.flush
end"""
# Calls without a pause, for so many seconds from the line on; prints how many.
COUNT = {"Python": """import sys, time, cordon
cordon.run("1")
print("ready", flush=True)
over, n = time.monotonic() + float(sys.stdin.readline()), 0
while time.monotonic() < over:
    n += cordon.run("print(1)").stdout == "1\\n"
print(n)""", "Node": f"""import {{ createInterface }} from "node:readline";
const {{ run }} = await import("{BUILD}/bindings/node/index.js");
await run("1");
console.log("ready");
const seconds = await new Promise((done) => createInterface({{ input: process.stdin }}).once("line", (l) => done(Number(l))));
const over = performance.now() + seconds * 1e3;
let n = 0;
while (performance.now() < over) n += (await run("print(1)")).stdout === "1\\n";
console.log(n);
process.exit(0);"""}
NODE_PATH = shutil.which("node") or "/usr/bin/node"
LIBRARIES = {"Python": ["/usr/bin/python3", "-c", PYTHON], "Node": [NODE_PATH, "--input-type=module", "-e", NODE],
             "Ruby": ["/usr/bin/ruby", f"-I{SOURCE}/bindings/ruby", "-e", RUBY]}
GOAL = 1.5  # of the warm run: the socket's own


def rate(home, env, name, count):
    """Runs a second of COUNT programs that each use the library NAME."""
    words = [*LIBRARIES[name][:-1], COUNT[name]]
    programs = [home.start(words, env=env, text=True) for _ in range(count)]
    for p in programs:
        if p.stdout.readline() != "ready\n":
            sys.exit(f"bench: the library for {name} gave no answer")
    for p in programs:
        p.stdin.write(f"{o.seconds}\n")
        p.stdin.flush()
    return sum(int(p.stdout.readline()) for p in programs) / o.seconds


with served.Home(BUILD) as home:
    env = {**home.env, "CORDON_SOCKET": str(home.socket), "PYTHONPATH": str(BUILD / "bindings/python"), "PYTHONDONTWRITEBYTECODE": "1"}
    home.serve("--socket", str(home.socket), stdin=subprocess.DEVNULL, stdout=None)
    end = time.monotonic() + 30
    while not home.socket.exists() and time.monotonic() < end:
        time.sleep(0.01)
    rows = home.rows_of_bench("warm", "flow")
    rows |= {name: home.start(words, env=env, text=True) for name, words in LIBRARIES.items() if os.access(words[0], os.X_OK)}
    labels = {"bare": "bare python3 -I -S -c", "warm": "warm run, no server", "flow": "the same with gate, output, audit", **{n: f"the library for {n}" for n in LIBRARIES}}
    ways = {"bare": served.bare, **{name: lambda p=p: served.turn(p) for name, p in rows.items()}}
    missed = served.table(f"print(1) by a client library: {o.rounds} rounds", served.measure(o.rounds, ways), labels, {name: GOAL for name in LIBRARIES if name in rows})
    for name in (n for n in COUNT if n in rows):
        for count in (1, 10):
            print(f"{f'{count} programs of {name}':<36} {rate(home, env, name, count):>8.0f} runs a second", flush=True)
sys.exit(served.strict(missed))
