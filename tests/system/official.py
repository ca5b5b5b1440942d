#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The official inspector and the official clients, v1 and v2, at `cordon serve --stdio`, and the compiler of TypeScript. `make official` installs them and runs this;
without them it fails. Usage: official.py BUILD SOURCE"""
import json
import pathlib
import platform
import subprocess
import sys

sys.dont_write_bytecode = True
import tapsys
from mcptest import PATIENCE
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
source = pathlib.Path(sys.argv[2])
home = source / "build-official"
modules = home / "node_modules"
node = modules / f"node-linux-{'arm64' if platform.machine() == 'aarch64' else 'x64'}/bin/node"
SERVE = [str(programs.cordon), "serve", "--stdio", "--profile", "standard"]


def run(*words):
    return subprocess.run([str(node), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, env=tapsys.clean_env())


def inspect(*words):
    return run(modules / ".bin/mcp-inspector", "--cli", *words, "-q", "--format", "json", "--", *SERVE)


def inspector():
    r = inspect("--method", "tools/list", "--strict")
    tap.ok(r.returncode == 0 and "0 errors" in r.stdout and '"snapshot"' in r.stdout, "the official inspector finds no error in the schemas, read strictly", r.returncode, r.stdout[-1500:])
    for era in ("legacy", "modern"):
        r = inspect("--protocol-era", era, "--method", "tools/call", "--tool-name", "execute_code", "--tool-args-json", json.dumps({"code": "print(6 * 7)"}))
        tap.ok(r.returncode == 0 and "42" in r.stdout, f"the official inspector runs code in the {era} era", r.stdout[-1500:])


def types():
    """The types of the Node library, by the compiler: a use that they forbid and do not is an error of it, too."""
    strict = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022"]
    r = run(modules / ".bin/tsc", *strict, source / "tests/official/types.mts")
    tap.ok(r.returncode == 0, "the compiler of TypeScript reads the types of the Node library, lets through what they allow and refuses what they do not", r.stdout[-1500:])


def drive(kind, *options):
    r = run(source / "tests/official/drive.mjs", kind, home, *SERVE, "--workspaces", "official", *options)
    try:
        return json.loads(r.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {"said": r.stdout[-1500:]}


def clients():
    tapsys.cordon(programs, ["workspace", "create", "official"])
    policy = programs.dir / "asks.yaml"
    policy.write_text("approval: {mode: HITL, elicitation: true}\n")
    for kind in ("v1", "v2-legacy", "v2-modern"):
        seen = drive(kind, "--policy", str(policy))
        told = {k: seen.get(k) for k in ("wrote", "snapshot", "ran", "forked", "read", "restored")}
        tap.eq(told, {"wrote": "ok", "snapshot": "ok", "ran": "42\n", "forked": "43\n", "read": "second", "restored": "first"},
               f"official client {kind}: a session is opened, code run, forked, files read, a snapshot restored", seen)
        tap.ok(len(seen.get("asked", [])) == 5 and any("x = 6 * 7" in q for q in seen["asked"]), f"official client {kind}: each step that needs an approval asks its person, who sees the code", seen)


installed = home / "installed"
if installed.is_file() and installed.read_bytes() == (source / "tests/official/package-lock.json").read_bytes():
    inspector()
    types()
    clients()
    tapsys.cordon(programs, ["pool", "stop", "--force"])
else:
    tap.ok(False, "the official inspector and clients are installed", "make official installs them")
tap.done()
