#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the gateway costs a stream: chunks a second through it, and what it adds to the time of a chunk, beside the same clients at the
same upstream without it, all in one run (bench/proxy.c).

Usage: proxy.py BUILD PROGRAM [--rounds N] [--chunks N]. A round of each way after the other; of the rounds the best one of each way counts."""
import argparse
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/system"))
import proxytest  # noqa: E402
import tapsys  # noqa: E402

options = argparse.ArgumentParser()
options.add_argument("build")
options.add_argument("program")
options.add_argument("--rounds", type=int, default=5)
options.add_argument("--chunks", type=int, default=5000)
o = options.parse_args()
proxytest.own_network()
with subprocess.Popen([o.program, str(o.rounds), str(o.chunks)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bench:
    port = int(bench.stdout.readline())
    rows = [("model", "openai", "worker", ["flood", "paced"])]
    with proxytest.Gateway(tapsys.Programs(o.build), proxytest.policy(port, rows), env={"MODEL_KEY": proxytest.KEY}) as gateway:
        if not gateway.port:
            bench.kill()
            sys.exit(f"bench: cordon proxy does not start: {gateway.said()}")
        print(f"{'':34} {'upstream':>12} {'gateway':>12} {'share':>9}", flush=True)
        bench.stdin.write(f"{gateway.port} {gateway.token}\n")
        bench.stdin.flush()
        for line in bench.stdout:
            print(line, end="", flush=True)
sys.exit(bench.wait())
