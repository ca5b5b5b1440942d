#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Modules in a workspace: a program finds those of the workspace and of the library, and no others; an import that would find nothing is
told before the program runs.

Usage: workspace_imports.py BUILD."""
import os
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
import tapsys
from tapsys import House, Programs, Tap, cordon, users

tap, programs = Tap(), Programs(sys.argv[1])
TOP = pathlib.Path(tempfile.mkdtemp(prefix="cordon-imports-", dir="/tmp"))
os.chmod(TOP, 0o755)
tapsys.atexit.register(shutil.rmtree, TOP, ignore_errors=True)
FILES = {"helper.py": "x = 1\n", "pkg/__init__.py": "", "pkg/sub.py": "y = 2\n", "plain/part.py": "z = 3\n", "json.txt": ""}
MISSING = "py.form.missing-import"


def files():
    top = TOP / "in"
    for path, text in FILES.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    return top


def state(who):
    home = TOP / f"home-{who}"
    home.mkdir(mode=0o700)
    if who == "user" and os.geteuid() == 0:
        os.chown(home, tapsys.ROOTLESS, tapsys.ROOTLESS)
    House.of(who)["CORDON_STATE"] = str(home)
    cordon(programs, ["workspace", "create", "w"], who)
    cordon(programs, ["workspace", "import", "w", str(TOP / "in")], who)


def check(text, who, profile="standard", *words):
    return cordon(programs, ["check", "--json", "--workspace", "w", "--profile", profile, *words, "-c", text], who)


def found(r):
    return [(v["rule"], v["operand"], v["line"], v["column"]) for v in r["violations"]]


THERE = {
    "a module, a package, a part of one and a folder without __init__": "import helper, pkg\nfrom pkg.sub import y\nimport plain.part\nfrom pkg import sub",
    "the library and what it makes itself": "from __future__ import annotations\nimport json, os.path, xml.etree.ElementTree, sys, zlib\nfrom collections import abc",
    "an import that may fail and is caught": "try:\n    import nothing\nexcept ImportError:\n    nothing = None",
    "an import in a function that nobody may call": "def f():\n    import nothing",
    "a module that the program writes first": "open('made.py', 'w').write('a = 1')\nimport made",
    "a folder that the program adds": "import sys\nsys.path.insert(0, '/tmp')\nimport nothing",
}


def existing(who):
    for what, text in THERE.items():
        r = check(text, who)
        tap.ok(r.code == 0 and r["status"] != "blocked", f"{who}: the check lets pass {what}", r.story())
    r = cordon(programs, ["run", "--json", "--workspace", "w", "--discard", "--profile", "standard", "-c",
                          "import helper, plain.part\nfrom pkg.sub import y\nopen('made.py', 'w').write('a = 4')\nimport made\nprint(helper.x, y, plain.part.z, made.a)"], who)
    tap.eq(r["stdout"], "1 2 3 4\n", f"{who}: a run imports modules of its workspace, also one that it has just written", r.story())


def missing(who):
    r = check("import json, nothing\nfrom pkg.nosub import a\nimport pkg.other\nimport helper.part\n", who)
    tap.eq(found(r), [(MISSING, "nothing", 1, 14), (MISSING, "pkg.nosub", 2, 1), (MISSING, "pkg.other", 3, 8)], f"{who}: the check names each import that finds nothing, with its place", r.story())
    tap.ok(r.code == 1 and all("workspace" in v["hint"] for v in r["violations"]), f"{who}: the finding of a missing module says what to do instead", r.story())
    path = TOP / "program.py"
    path.write_text("print('ran')\nimport nothing\n")
    os.chmod(path, 0o644)
    told = cordon(programs, ["check", "--workspace", "w", "--profile", "standard", str(path)], who)
    tap.ok(told.code == 1 and "program.py:2:8: No such module: nothing [py.form.missing-import]" in told.out, f"{who}: the text of the check has file, line and column of a missing module", told.story())
    r = cordon(programs, ["run", "--json", "--workspace", "w", "--profile", "standard", str(path)], who)
    tap.ok(r["status"] == "blocked" and r.rules() == [MISSING] and not r["stdout"], f"{who}: run --workspace finds a missing module before the program runs", r.story())
    r = cordon(programs, ["run", "--json", "--profile", "standard", str(path)], who)
    tap.ok(r["stdout"] == "ran\n" and r["error"]["type"] == "ModuleNotFoundError", f"{who}: without a workspace an import is still judged when it runs", r.story())


def strict(who):
    r = check("import json, helper\nimport code_api.search\n", who, "strict")
    tap.eq([(f[0], f[1]) for f in found(r)], [("py.form.unlisted-import", "helper"), (MISSING, "code_api.search")],
           f"{who}: under strict a module of the workspace is not listed, and a listed one that is not there is missing", r.story())
    r = check("import json, math\n", who, "strict")
    tap.ok(r.code == 0, f"{who}: under strict the check lets pass listed modules that are there", r.story())


def only_these(who):
    """Neither variables nor other folders add a place that modules come from."""
    r = cordon(programs, ["run", "--json", "--workspace", "w", "--discard", "--profile", "standard", "--env", "PYTHONPATH=/tmp", "--env", "PYTHONHOME=/tmp", "-c",
                          "import sys\nprint([p for p in sys.path if not p.startswith('/usr/lib/python3')])"], who)
    tap.eq(r["stdout"], "['/workspace']\n", f"{who}: modules come from the workspace and the library, whatever the program's variables say", r.story())
    bad = cordon(programs, ["check", "--workspace", "none", "-c", "1"], who)
    tap.ok(bad.code == 2 and "no workspace 'none'" in bad.err, f"{who}: check in a workspace that is not there is a usage error", bad.story())


files()
for person in users():
    state(person)
    existing(person)
    missing(person)
    strict(person)
    only_these(person)
tap.done()
