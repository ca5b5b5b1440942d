# SPDX-License-Identifier: Apache-2.0
"""Which suites the machine runs, and how: every test of the build, as `meson introspect --tests` lists them, changed as
the file `suites` says. So a new test is in the machine without being named there."""
import fnmatch
import json
import os
import subprocess

HOME = "/cordon"         # where the machine has the tree, and in it its build folders
LONGEST = 2400           # seconds that a suite may take at most; less where its own time limit is short
FACTOR = 10              # tests/run gives meson's time limits the same
EMULATED = 4             # and so many times that where the processor is emulated: what takes 15 s took 300


def rows(path):
    """(pattern, verb, rest of the line) of each row of the file."""
    found = [line.split("#")[0].split(None, 2) for line in path.read_text().splitlines()]
    return [(r[0], r[1], r[2].strip() if len(r) > 2 else "") for r in found if r]


def changed(argv, words):
    """ARGV with the changes of a row `emulated`: OLD=NEW, or +NEW at the end."""
    for word in words.split():
        old, _, new = word.partition("=")
        if not word.startswith("+") and old not in argv:
            raise SystemExit(f"tests/vm/suites: {old!r} is no argument of {argv}")
        argv = argv + [word[1:]] if word.startswith("+") else [new if a == old else a for a in argv]
    return argv


def plan(tests, table, emulated, only=""):
    """The suites to run, in order, and (name, reason) of those that are left out. TESTS: what meson lists, paths as in the
    machine. ONLY: `NAME,NAME:ARGUMENT:…` by which a suite that is otherwise too slow can be asked for."""
    wanted = {name: more for name, *more in (x.split(":") for x in only.split(",") if x)}
    known = [{"name": n, "limit": int(rest.split()[0]), "argv": rest.split()[1:], "env": {}, "folder": HOME} for n, verb, rest in table if verb == "add"]
    known += [{"name": t["name"], "limit": min(t["timeout"] * FACTOR * (EMULATED if emulated else 1), LONGEST), "argv": t["cmd"], "env": t["env"],
               "folder": t["folder"]} for t in tests]
    for name in wanted:
        if name not in [s["name"] for s in known]:
            raise SystemExit(f"no suite is named {name!r}; they are: {' '.join(s['name'] for s in known)}")
    chosen, left_out = [], []
    for s in known:
        asked, why = s["name"] in wanted, None
        for pattern, verb, rest in table:
            if verb == "add" or not fnmatch.fnmatchcase(s["name"], pattern):
                continue
            if verb == "never" or verb == "slow" and emulated and not asked:
                why = rest
            elif verb == "emulated" and emulated:
                s["argv"] = changed(s["argv"], rest)
            elif verb not in ("slow", "emulated"):
                raise SystemExit(f"tests/vm/suites: {verb!r}")
        if why:
            left_out.append((s["name"], why))
        elif asked or not wanted:
            chosen.append(dict(s, argv=s["argv"] + wanted.get(s["name"], [])))
    return chosen, left_out if not wanted else [x for x in left_out if x[0] in wanted]


def part(chosen, which):
    """Every Nth of the suites, from the Kth on, of WHICH = "K/N", so that long ones, which stand together, are spread; all without it."""
    if not which:
        return chosen
    k, _, n = which.partition("/")
    if not (k.isdigit() and n.isdigit() and 1 <= int(k) <= int(n)):
        raise SystemExit(f"--part {which}: K/N is the Kth of N parts, such as 2/6")
    return chosen[int(k) - 1::int(n)]


def of_build(build, top, name="build"):
    """meson's list of the folder BUILD, with the paths of the machine, where that folder is HOME/NAME."""
    def there(text):
        text = os.path.normpath(text) if text.startswith("/") else text  # meson reaches the tree by `..` from the build folder
        return text.replace(str(build), f"{HOME}/{name}").replace(str(top), HOME)
    listed = json.loads(subprocess.run(["/usr/bin/meson", "introspect", "--tests", build], check=True, stdout=subprocess.PIPE).stdout)
    return [{"name": t["name"], "timeout": t["timeout"], "cmd": [there(w) for w in t["cmd"]],
             "env": {k: there(v) for k, v in t["env"].items()}, "folder": f"{HOME}/{name}"} for t in listed]


def of_builds(builds, top):
    """The same of several builds, {name in the machine: folder}: of the later ones only what those before do not have, since
    most tests are in every build."""
    found = {}
    for name, build in builds.items():
        for t in of_build(build, top, name):
            found.setdefault(t["name"], t)
    return list(found.values())
