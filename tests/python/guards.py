# SPDX-License-Identifier: Apache-2.0
"""The guards and the audit hook alone, without a judge, each program inside cordon exec in an empty network.

Usage: guards.py BUILD TOOL PART, where PART is

    cases   tests/cases/python/guards: header lines, three dashes, a program.
            profile: strict bare        run under each (bare: guards on, and not one rule more)
            expect:  refused | works | alike    a program that gets what it wants says REACHED; alike: the
                                        same output and traceback as without guards
            twin:    NAME.case          refused ones only: the honest one of the same family
            rule:    REGEX              of what is reported        says: REGEX   in stderr
            present: REGEX              in stdout
    corpus  attacks of our own, and what others collected: nothing is reached, neither in strict nor in bare
    benign  honest programs do the same with guards as without; prints the rate
    crawl   a program that walks from everything it is given to everything it can reach
    hook    what the audit hook reports and refuses, by profile"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import corpus as programs_of  # noqa: E402
import tapsys  # noqa: E402

BUILD, TOOL, PART = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
HERE = pathlib.Path(__file__).resolve().parent
tap = tapsys.Tap()
who = tapsys.users()[0]


class Jailed:
    """The tool in the jail, a fresh one for each program."""

    def __init__(self):
        os.environ.setdefault("TAPSYS_UID", f"{os.getuid()}:{os.getgid()}")
        tapsys.enter_empty_network()
        self.programs = tapsys.Programs(BUILD)
        tapsys.honest_first(tap, self.programs)
        shutil.copy2(TOOL, self.programs.bin / "guard_tool")
        self.file = self.programs.dir / "program.py"

    def run(self, profile, code, mode="run", options=(), **more):
        self.file.write_text(code)
        r = tapsys.exec_json(self.programs, ["--ro", str(self.programs.dir), *options],
                             [self.programs.bin / "guard_tool", mode, profile, self.file], who, **more)
        r.reports = re.findall(r"^report: (\S+) (\S+) line (\d+): (.*)$", r["stderr"] or "", re.M)
        return r


def reached(r):
    return "REACHED" in (r["stdout"] or "")


# --- cases ----------------------------------------------------------------------------------------

def read(path):
    head, dashes, program = path.read_text().partition("\n---\n")
    case = {"program": program}
    for line in head.splitlines():
        key, colon, value = line.partition(": ")
        if not colon or key not in ("profile", "expect", "twin", "rule", "says", "present"):
            raise ValueError(f"{path}: not a header line: {line!r}")
        case[key] = value
    if not dashes or case.get("expect") not in ("refused", "works", "alike") or not case.get("profile"):
        raise ValueError(f"{path}: no profile, no expect or no ---")
    return case


def cases():
    jail = Jailed()
    folder = HERE.parent / "cases/python/guards"
    paths = sorted(folder.rglob("*.case"))
    tap.ok(len(paths) > 100, "there are cases", folder)
    count = collections.Counter()
    for path in paths:
        case = read(path)
        for profile in case["profile"].split():
            bad = []
            r = jail.run(profile, case["program"])
            ends = ("ok",) if case["expect"] == "works" else ("ok", "error")
            if case["expect"] == "alike":
                plain = jail.run("plain", case["program"])
                bad += [f"{k}: {r[k]!r}, plain: {plain[k]!r}" for k in ("stdout", "stderr", "exit_code") if r[k] != plain[k]]
            if r["status"] not in ends or reached(r):
                bad.append(f"status {r['status']}: {(r['stdout'] or '')[:100]!r}")
            if case["expect"] == "works" and r.reports:
                bad.append(f"a false alarm: {r.reports}")
            if case["expect"] == "refused":
                twin = path.parent / case.get("twin", "none")
                if not twin.exists() or read(twin)["expect"] == "refused":
                    bad.append("it has no honest twin")
                if not case.get("rule") and not case.get("says"):
                    bad.append("it does not say how it is refused")
            if case.get("rule") and not any(re.fullmatch(case["rule"], x[1]) for x in r.reports):
                bad.append(f"nothing is reported by {case['rule']}: {r.reports}")
            if case.get("says") and not re.search(case["says"], r["stderr"] or ""):
                bad.append(f"stderr does not say {case['says']}")
            if case.get("present") and not re.search(case["present"].replace("\\n", "\n"), r["stdout"] or ""):
                bad.append(f"stdout does not say {case['present']}")
            tap.ok(not bad, f"{profile}: {path.relative_to(folder)}", *bad, r.story())
            count[case["expect"]] += 1
    tap.figure(f"guards, cases: {count['refused']} refused, {count['works'] + count['alike']} honest")


# --- corpora --------------------------------------------------------------------------------------

# families whose attack is to reach an object: what they reach, the guards alone must keep from them
REACH = ("object-graph", "frames", "indirect-attribute", "template-injection")
# where to say REACHED is nothing but one's own doing: no object is reached by it
OWN_DOING = {"own-py/71", "own-py/72", "own-py/76", "own-py/78", "own-py/35", "own-py/37", "own-py/38", "own-py/39"}


def attacks():
    own, others = programs_of.attacks()
    rows = [(r, ("strict", "bare") if r["family"] in REACH else ("strict",)) for r in own if r["expect"] in ("block-or-contain", "policy-import")]
    rows += [(r, ("strict", "bare") if r.get("group") and r["id"] not in OWN_DOING else ("strict",)) for r in others
             if r["expects"] != "allow" and (r.get("group") or "RedCode" not in r["source"])]
    jail = Jailed()
    ended = collections.Counter()
    for row, profiles in rows:
        for profile in profiles:
            r = jail.run(profile, row["code"], options=["--timeout", "5s"])
            ended[profile, r["status"]] += 1
            good = r["status"] in ("ok", "error", "timeout", "memory") and (not reached(r) or row["id"] in programs_of.ONLY_COMPUTES)
            tap.ok(good, f"{profile}: {row['id']} {row.get('why', '')[:60]}", r.story())
    tap.figure("guards, attacks: " + ", ".join(f"{p} {s} {n}" for (p, s), n in sorted(ended.items())))


FOLDER = tempfile.TemporaryDirectory(prefix="cordon-guards-")  # for the files that honest programs leave where they start


class Served:
    """The tool outside of the jail, for honest programs: one process a profile, a child of it a program."""

    def __init__(self, *args):
        self.p = subprocess.Popen([str(TOOL), "serve", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env=dict(os.environ, GUARD_TOOL_TIMES="1"), cwd=FOLDER.name)

    def ask(self, profile, code):
        data = code.encode()
        self.p.stdin.write(b"%s %d\n" % (profile.encode(), len(data)) + data)
        self.p.stdin.flush()
        status, out, err = map(int, self.p.stdout.readline().split())
        out, err = self.p.stdout.read(out).decode("utf-8", "replace"), self.p.stdout.read(err).decode("utf-8", "replace")
        times = re.search(r"^times: .*\n", err, re.M)
        steps = [float(x) for x in re.findall(r" (\d+)", times.group(0))] if times else [0] * 5
        return status, out, re.sub(r"^times: .*\n", "", err, flags=re.M), steps


def same(text):
    """What may differ between two runs of one program."""
    return re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"in [0-9.]+s", "in s", text))


TRIES = 12


def both(plain, guarded, code):
    """The same program without guards and with them, until both say the same or it is certain that they do not: one that
    draws random numbers may fail by itself now and then, without guards as well."""
    for _ in range(TRIES):
        a, b = plain.ask("plain", code), guarded.ask("strict", code)
        alike = (a[0], same(a[1]), same(a[2])) == (b[0], same(b[1]), same(b[2]))
        if alike or "random" not in code:
            break
    return a, b, alike


def benign():
    own, others = programs_of.honest()
    files = re.compile(r"\bopen\(|^\s*(?:import|from) .*\b(?:os|pathlib|shutil|tempfile|glob|zipfile)\b", re.M)  # there are none in here
    rows = [r for r in own + others if not r.get("needs") and not r.get("strict") and not r.get("stack") and not files.search(r["code"])]
    plain, guarded = Served(), Served("strict")
    alike, refused, spent = 0, collections.Counter(), collections.Counter()
    for row in rows:
        a, b, is_alike = both(plain, guarded, row["code"])
        if a[0] != 0:
            refused["not for an interpreter without packages"] += 1
            continue
        if is_alike:
            alike += 1
            for name, x, y in zip(("namespace", "parse", "rewrite", "compile", "run"), a[3], b[3]):
                spent["plain", name] += x
                spent["guarded", name] += y
            continue
        rules = re.findall(r"^report: \S+ (\S+) line", b[2], re.M)
        missing = re.findall(r"NameError: name '(\w+)' is not defined", b[2])
        named = rules or [f"py.run.{m}" for m in missing if m in ("eval", "exec", "open", "type", "input", "getattr", "hasattr", "vars")]
        # a test of the program that swallows the refusal shows as a failure of that test
        named = named or (["py.run.eval or py.run.open"] if re.search(r"\b(eval|open)\(", row["code"]) else [])
        refused[named[0] if named else "unnamed"] += 1
        tap.ok(bool(named), f"{row['id']} is refused by name, or does the same", f"status {b[0]}, plain {a[0]}", b[2][-500:])
    library = sorted(str(p) for p in pathlib.Path("/usr/lib/python3.11").rglob("*.py"))[:600]
    out = subprocess.run([str(TOOL), "rewrite", "strict", *library], stdout=subprocess.PIPE, text=True).stdout
    bad = [line for line in out.splitlines() if line.startswith("bad:") and "py.guard.builtins" not in line]
    done = re.search(r"^rewrote (\d+) files", out, re.M)
    tap.ok(not library or (done and int(done[1]) > len(library) * 0.9 and not bad), "the standard library can be rewritten", *bad)
    runnable = len(rows) - refused["not for an interpreter without packages"]
    tap.ok(alike >= 0.97 * runnable, f"{alike} of {runnable} honest programs do the same with guards", dict(refused))
    tap.figure(f"guards, honest programs: {alike} of {runnable} alike ({alike / runnable:.1%}); refused: {dict(refused)}")
    for name in ("rewrite", "compile", "run"):
        tap.figure(f"guards, {name}: {spent['guarded', name] / alike:.0f} us a program, plain {spent['plain', name] / alike:.0f}")


# --- crawl ----------------------------------------------------------------------------------------

# a guard that is taken out -> the fault that the walk must then find
WITHOUT = {"init": "makes an object of a library again", "set": "sets an attribute of dumps", "hook": "hands <class 'type'>",
           "import": "a private part of a package", "address": "tells the address"}


def crawl():
    jail = Jailed()
    script = (HERE / "crawl.py").read_text()
    for profile, raw, known in (("strict", False, []), ("bare", False, ["open: the function open"]), ("strict", True, [])):
        text = script.replace("RAW = False", "RAW = True") if raw else script
        r = jail.run(profile, text, "crawl", ["--timeout", "600s", "--cpu", "600s", "--memory", "4g", "--output", "100m"], timeout=700)
        profile += ", attributes unguarded" if raw else ""
        out = r["stdout"] or ""
        faults = [f for f in re.findall(r"^fault: (.*)$", out, re.M) if f not in known]
        last = re.search(r"^from (\d+) of (\d+) modules with (\d+) members reached (\d+) objects by (\d+) calls, .*$", out, re.M)
        if not tap.ok(r["status"] == "ok" and last is not None, f"{profile}: the walk comes to its end", r.story(), out[-300:]):
            continue
        tap.ok("plant() was found" in out, f"{profile}: the walk finds what was planted", out[-300:])
        tap.ok(int(last[3]) > 500 and int(last[4]) > 50000, f"{profile}: the walk sees more than 500 members and reaches more than 50,000 objects", last[0])
        if profile.startswith("strict"):  # the four of code_api are the host's
            tap.eq(int(last[1]), int(last[2]) - 4, f"{profile}: every module that the profile lists can be imported")
        tap.eq(faults, [], f"{profile}: nothing is reached that should not be")
        tap.figure(f"guards, crawl {profile}: {last[0]}")


    for without, finds in WITHOUT.items():
        r = jail.run("strict", script.replace("STOP = False", "STOP = True"), f"crawl-without-{without}",
                     ["--timeout", "600s", "--cpu", "600s", "--memory", "4g", "--output", "100m"], timeout=700)
        faults = re.findall(r"^fault: (.*)$", r["stdout"] or "", re.M)
        tap.ok(r["status"] == "ok" and any(re.search(finds, f) for f in faults), f"strict without the guard for {without}: the walk finds that", faults[:5], r.story())


# --- the hook -------------------------------------------------------------------------------------

HOOK = [  # profile, program, rules that are reported with their line, what stdout says
    ("open", "import sys\nsys.addaudithook(lambda *a: print('REACHED'))\nopen('/workspace/x','w')\nprint('on')", [("py.event.sys.addaudithook", 2)], "on"),
    ("standard", "try: open('/nowhere/x')\nexcept OSError: print('on')", [("py.event.open", 1)], "on"),
    ("standard", "import os\ntry: os.open(b'/nowhere/x', os.O_RDONLY)\nexcept OSError: print('on')", [("py.event.open", 2)], "on"),
    ("standard", "import pathlib\ntry: pathlib.Path('/etc/../nowhere/x').read_text()\nexcept OSError: print('on')", [("py.event.open", 2)], "on"),
    ("standard", "try: open('/usr/x','w')\nexcept OSError: print('on')", [("py.event.open", 1)], "on"),
    ("standard", "try: open('../../../../nowhere')\nexcept OSError: print('on')", [("py.event.open", 1)], "on"),
    ("standard", "open('/workspace/a','w').write('x'); open('a').read(); open('/tmp/b','w'); open('/dev/null')\n"
                 "try: open('missing')\nexcept OSError: print('on')", [], "on"),
    ("standard", "import json, csv, sqlite3, email.message, xml.dom.minidom, decimal, ctypes, tempfile, zoneinfo\n"
                 "tempfile.TemporaryFile().close()\nprint('on')", [], "on"),
    ("standard", "import socket\n\ntry: socket.create_connection(('10.0.0.1', 80), 1)\nexcept OSError: print('on')", [("py.event.socket", 3)], "on"),
    ("standard", "import subprocess\ntry: subprocess.run(['/bin/true'])\nexcept OSError: print('on')", [("py.event.subprocess", 2)], "on"),
    ("standard", "import os\ndef f():\n    return os.system('true')\nprint('on' if f() else 'REACHED')", [("py.event.os.system", 3)], "on"),
    ("standard", "import ctypes\nprint('on')\nctypes.CDLL(None).getpid", [("py.event.ctypes", 3)], "on"),
    ("standard", "import os\ntry: os.fork() or os._exit(0)\nexcept OSError: print('on')", [("py.event.os.fork", 2)], "on"),
    ("standard", "open('/tmp/own.py','w').write('import os\\nos.system(\"true\")')\nimport sys\nsys.path.insert(0, '/tmp')\nimport own\nprint('on')",
     [("py.event.os.system", 4)], "on"),
    # many of a kind leave room for others
    ("standard", "import os\nfor i in range(500):\n    try: open(f'/nowhere/{i}')\n    except OSError: pass\nos.system('true')\nprint('on')",
     [("py.event.open", 3), ("py.event.os.system", 5)], "on"),
    # said by the guest itself: no reason to believe it, and none to fall over it
    ("standard", "import sys\nsys.audit('open', object(), 1)\nsys.audit('')\nsys.audit('x'*300, 'y'*9999)\nsys.audit('open')\nprint('on')", [], "on"),
    ("standard", "import sys\nclass S(str):\n    def __str__(s): print('REACHED')\n    __repr__ = __fspath__ = __hash__ = __str__\n"
                 "sys.audit('os.system', S('z'))\nprint('on')", [("py.event.os.system", 5)], "on"),
    # where guards are on, code comes from nowhere else
    ("bare", "import typing\ndef f(x: 'print(\"REACHED\")'): pass\ntry: typing.get_type_hints(f)\nexcept PermissionError: print('on')",
     [("py.guard.exec", 3)], "on"),
    ("strict", "import collections, dataclasses, typing\nP = collections.namedtuple('P', 'a')\n@dataclasses.dataclass\nclass X:\n    a: typing.List['X']\n"
               "print('on')", [], "on"),
    ("strict", "import datetime\ndatetime.datetime.strptime('1', '%d')\nprint('on')", [], "on"),
]

# What a program that got past the guards tries with the functions it has; the hook alone is left
LEAKED = ["leaked('os', 'listdir')('/')", "leaked('os', 'remove')('/tmp/x')", "leaked('os', 'system')('true')", "leaked('os', 'mkdir')('/tmp/y')",
          "leaked('posix', 'scandir')('/')", "leaked('builtins', 'open')('/etc/passwd')", "leaked('builtins', 'open')('/tmp/x', 'w')",
          "leaked('io', 'FileIO')('/etc/hostname')", "leaked('posix', 'open')('/etc/passwd', 0)", "leaked('socket', 'socket')()",
          "leaked('subprocess', 'run')(['true'])", "leaked('_ctypes', 'dlopen')(None, 2)", "leaked('shutil', 'rmtree')('/tmp')",
          "leaked('builtins', 'eval')('1')", "leaked('builtins', 'exec')('1')", "leaked('builtins', 'compile')('1', 'x', 'eval')",
          "leaked('sys', 'settrace')(print)", "leaked('sys', 'setprofile')(print)", "leaked('gc', 'get_objects')()",
          "leaked('tempfile', 'mkstemp')()", "leaked('marshal', 'loads')(b'N')", "leaked('pickle', 'loads')(b'cos\\nsystem\\n.')",
          "leaked('sqlite3', 'connect')(':memory:')", "leaked('glob', 'glob')('/*')", "leaked('pathlib', 'Path')('/etc/passwd').read_text()",
          "leaked('os', 'fork')()", "leaked('os', 'kill')(1, 9)", "leaked('os', 'putenv')('a', 'b')", "leaked('mmap', 'mmap')(-1, 10)",
          "leaked('signal', 'pthread_kill')(1, 9)", "leaked('urllib.request', 'urlopen')('http://x')", "leaked('types', 'CodeType')(1)"]


def leaked(jail):
    for act in LEAKED:
        # 'leaked(...)' may load a module, which is a library's affair; the call that follows is the guest's
        first, _, rest = act.partition("')(")
        code = f"f = {first}')\nprint('have')\nr = f({rest}\nprint('REACHED', r)\n"
        r = jail.run("strict", code, "leaked")
        bad = [] if r["status"] == "error" and not reached(r) and "have" in (r["stdout"] or "") else ["it was not refused"]
        if not any(int(x[2]) == 3 for x in r.reports):
            bad.append(f"reported: {r.reports}")
        tap.ok(not bad, f"strict, past the guards: {act[:70]}", *bad, r.story())


def hook():
    jail = Jailed()
    leaked(jail)
    for profile, code, rules, says in HOOK:
        r = jail.run(profile, code)
        got = {(x[1], int(x[2])) for x in r.reports}
        bad = [] if got == set(rules) else [f"reported: {r.reports}", f"expected: {rules}"]
        if says not in (r["stdout"] or "") or reached(r):
            bad.append(f"stdout: {r['stdout']!r}")
        if len(r.reports) > 100 or len({x[1:] for x in r.reports}) != len(r.reports):
            bad.append(f"{len(r.reports)} reports")
        tap.ok(not bad, f"{profile}: {code[:70]!r}", *bad, r.story())


{"cases": cases, "corpus": attacks, "benign": benign, "crawl": crawl, "hook": hook}[PART]()
tap.done()
