#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The official conformance suite of the protocol against `cordon serve --http --conformance`: every scenario that the two
revisions require, and those beyond them that are not listed in EXPECTED. Usage: conformance.py BUILD SOURCE"""
import pathlib
import platform
import re
import subprocess
import sys

import tapsys
from httptest import Site
from mcptest import PATIENCE, family, gone
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
source = pathlib.Path(sys.argv[2])
REVISIONS = {"2025-11-25": 30, "2026-07-28": 37}  # and how many scenarios each requires
EXPECTED = {}  # scenario beyond the required ones: why it fails
BEYOND = {"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation",
          *("tasks-" + name for name in ("lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input", "request-headers",
                                         "dispatch-and-envelope", "required-task-error", "mrtr-composition"))}  # that are to pass, too
EMPTY = {"tasks-status-notifications": "the suite skips it", "server-sse-polling": "the suite only warns: no tool of ours ends its stream before its reply"}


def install():
    """None, or why the suite cannot be had here."""
    p = subprocess.run([str(source / "scripts/conformance"), str(source)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return None if p.returncode == 0 else (p.stderr.strip() or "scripts/conformance failed")[-200:]


def start(port, revision):
    folder = source / "build-conformance/node_modules"
    node = folder / f"node-linux-{'arm64' if platform.machine() == 'aarch64' else 'x64'}/bin/node"
    return subprocess.Popen([str(node), str(folder / "@modelcontextprotocol/conformance/dist/index.js"), "server", "--url", f"http://127.0.0.1:{port}/mcp",
                             "--requirements", revision], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def judge(revision, said):
    rows = re.findall(r"^([✓✗]) ([a-z0-9-]+): (\d+) passed, (\d+) failed", said, re.M)
    beyond = set(re.findall(r"^  [✓✗] ([a-z0-9-]+) \(", said, re.M))
    tap.eq(len([name for _, name, _, _ in rows if name not in beyond]), REVISIONS[revision], f"{revision}: the suite ran every scenario that the revision requires", said[-2000:])
    found = {name for _, name, passed, _ in rows if name in beyond and passed != "0"}
    if revision == max(REVISIONS):
        tap.eq(sorted(BEYOND - found), [], f"{revision}: the suite looked at the schemas, the headers and nine scenarios of tasks, which it does not require")
    for mark, name, passed, failed in rows:
        if name in EXPECTED and name in beyond:
            tap.ok(mark == "✗", f"{revision}: {name} fails as it is expected to: {EXPECTED[name]}")
        elif name in EMPTY and name in beyond:
            tap.eq((passed, failed), ("0", "0"), f"{revision}: {name} looks at nothing: {EMPTY[name]}")
        else:
            detail = re.search(rf"=== Running scenario: {name} ===(.*?)(?:===|$)", said, re.S)
            tap.ok(mark == "✓" and failed == "0" and passed != "0", f"{revision}: {name} of the official suite passes", passed, failed, detail.group(1)[-1500:] if detail else "")


why = install()
if why:
    tap.skip("the official conformance suite", why)
else:
    with Site(programs, "--conformance") as s:
        running = {revision: start(s.port, revision) for revision in REVISIONS}
        for revision, p in running.items():
            judge(revision, p.communicate(timeout=5 * PATIENCE)[0])
        with s.connect() as c:
            r = c.ask(s.modern("tools/call", name="execute_code", arguments={"code": "1"}))
            tap.eq(r.code, -32602, "a server for the suite, which asks for no token, has no tool that runs code")
        tree = family(s.process.pid)
    tap.eq(gone(tree - {s.process.pid}), [], "a server for the suite leaves nothing running")
for words in (["--stdio", "--conformance"], ["--http", "0", "--conformance", "--allow-host", "x"], ["--http", "0.0.0.0:0", "--conformance"]):
    tap.eq(tapsys.cordon(programs, ["serve", *words]).code, 2, f"cordon serve {' '.join(words)} is a usage error")
tap.done()
