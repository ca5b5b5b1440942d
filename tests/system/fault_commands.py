# SPDX-License-Identifier: Apache-2.0
"""What runs when a fault strikes: every command of ours with its right answer, and what may be said instead under a fault.

A command's answer is right, or names the host's fault: `refused`, and nothing ran. Whoever is told `blocked`, `error`,
`timeout`, `memory` or `crashed` by a fault of the host is told to mend a program that is fine."""
import json
import signal

import exits
import traces

SEQ = "".join(f"{i}\n" for i in range(1, 20001))  # 108,894 bytes: more than a pipe holds
LINES = "".join(f"{i:08} {'=' * 60}\n" for i in range(2000))
COLD = ["--ro", "/usr/share/doc:/doc"]  # a warm child cannot have it
FILES = "for i in range(30):\n    with open('f', 'a') as f:\n        f.write('x' * 100)\nprint(len(open('f').read()))\n"
CONTEXTS = "".join(json.dumps({"household_income": i}) + "\n" for i in range(3000))


PICTURE = """import struct, zlib
n = 1500
rows = b''.join(b'\\0' + bytes([y % 251]) * (3 * n) for y in range(n))
part = lambda kind, data: struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
with open('/workspace/p.png', 'wb') as f:
    f.write(b'\\x89PNG\\r\\n\\x1a\\n' + part(b'IHDR', struct.pack('>IIBBBBB', n, n, 8, 2, 0, 0, 0)) + part(b'IDAT', zlib.compress(rows, 1)) + part(b'IEND', b''))
print(6 * 7)
"""


class Command:
    """NAME; ARGS and TEXT may be functions of the home; RIGHT looks at a tapsys.Run."""
    victims = ("client",)
    json = holds_place = judges = needs_pool = terminal = prints = switches = False  # judges: its answer is about somebody's program
    text = ""

    def __init__(self, name, args, right, **more):
        self.name, self.args, self.right_answer = name, args, right
        for key, value in more.items():
            setattr(self, key, value)

    def prepare(self, home):
        """Anything it needs; None, or what is wrong."""

    def arguments(self, home):
        return self.args(home) if callable(self.args) else self.args

    def source(self, home):
        return self.text(home) if callable(self.text) else self.text

    def right(self, run):
        return run.code == 0 and self.right_answer(run)

    def answer(self, run):
        """The JSON object that tells how it ended: of several lines the last."""
        if not self.json or isinstance(run.json, (dict, list)):
            return run.json
        try:
            return json.loads(run.out.splitlines()[-1])
        except (IndexError, ValueError):
            return None

    def names_host(self, run):
        """Nothing was run, or what ran was ended with its jail; both are said of the host and not of the program."""
        answer = self.answer(run)
        if not self.judges:
            return True
        if isinstance(answer, dict) and "status" in answer:
            lost = (answer["status"], (answer.get("error") or {}).get("type")) in (("crashed", "JailLost"), ("error", "WorkspaceError"))
            return (answer["status"] == "refused" or lost) and ("error" not in answer or (answer["error"] or {}).get("category") == "HOST")
        return run.code == exits.NEVER_RAN or run.code == exits.by_signal(signal.SIGKILL) and "killed from outside" in run.err

    def after(self, home, lost):
        """What must be so afterwards, whatever became of it; words for what is not. It also undoes what would last.
        LOST: the fault took what a session hangs on (the holder, the template, an init), as docs/session.md says."""
        return []


class InSession(Command):
    needs_pool = True
    survives = True  # the session it is about lives on, whatever becomes of the client

    def prepare(self, home):
        home.own_session()
        return None if home.session else "no session could be made"

    def after(self, home, lost):
        kept = home.session
        if not self.survives or not kept:
            return []
        lives = traces.until(lambda: home("session", "run", "--json", kept, "-", text="x\n")["value"] == "6", 0 if lost else 20)
        for s in home.sessions():
            if s != kept:
                home("session", "close", s)
        if not lives:
            home.session = None
        if lives or lost:
            return []
        return [f"the session that was there before is lost: {home('session', 'run', '--json', kept, '-', text='x').story()}"]


class Run(InSession):
    survives = False  # a client that dies in a call takes the call's session with it, as docs/session.md says

    def after(self, home, lost):
        home.own_session()
        return [] if home.session else ["no session can be made any more"]


class Close(InSession):
    survives = False

    def after(self, home, lost):
        home.session = None
        for s in home.sessions():
            home("session", "close", s)
        return []


class InWorkspace(Command):
    """A run whose files are committed."""
    name_of_it = "faults"

    def prepare(self, home):
        r = home("workspace", "create", self.name_of_it)
        return None if r.code == 0 or home("workspace", "log", self.name_of_it).code == 0 else f"no workspace could be made: {r.story()}"

    def after(self, home, lost):
        r = home("workspace", "log", self.name_of_it)
        return [] if r.code == 0 else [f"workspace log afterwards: {r.story()}"]


class Pictures(Command):
    """A run that leaves a picture: events, of which the last has the result. A picture that cannot be read is not there, and the run is none the worse."""

    def answer(self, run):
        last = super().answer(run)
        return last.get("result") if isinstance(last, dict) else None


class Plot(Command):
    """The verdict is printed before the picture is drawn."""

    def after(self, home, lost):
        (home.top / "config/plot.png").unlink(missing_ok=True)
        left = [p.name for p in (home.top / "config").iterdir() if "plot" in p.name]
        return [f"left beside the picture: {left}"] if left else []


class Switch(Command):
    """stop and resume: the flag is in force for everybody, so it is lifted afterwards."""
    switches = True

    def __init__(self, name, before, right):
        super().__init__(name, [name, "--json"], right, json=True, prints=True)
        self.before = before

    def prepare(self, home):
        return None if home(self.before, "--json").code == 0 else f"{self.before} does not work"

    def after(self, home, lost):
        r = home("resume", "--json")
        return [] if r.code == 0 and r["stopped"] is False else [f"resume afterwards: {r.story()}"]


class Pool(Command):
    needs_pool = True

    def prepare(self, home):
        return None

    def after(self, home, lost):
        home.session = None
        return []


class PoolStart(Pool):
    def prepare(self, home):
        return None if home.stop_pool() else "the pool does not stop"

    def after(self, home, lost):
        """The limits of whoever started it are the holder's for good: the next one is another."""
        home.holder = home.status().get("pid")
        return [] if home.stop_pool() else ["the pool does not stop"]


class Approval(Command):
    """Somebody has asked before."""
    asked = 0

    def prepare(self, home):
        Approval.asked += 1
        r = home("run", "--json", "--no-wait", "--policy", home.asks, *COLD, "-", text=f"print({Approval.asked})\n")
        listed = home("approve", "list", "--json").json
        home.question = next((a["id"] for a in listed or () if a["id"] in (r["reason"] or "")), None)
        return None if home.question else f"nobody was asked: {r.story()} {listed}"

    def after(self, home, lost):
        for a in home("approve", "list", "--json").json or ():
            home("approve", "no", a["id"], "--why", "over")
        return []


def run_says(text=None, value=None):
    return lambda r: r["status"] == "ok" and (text is None or r["stdout"] == text) and (value is None or r["value"] == value)


def last_value(r):
    rows = [json.loads(line) for line in r.out.splitlines()]
    return len(rows) == 2 and rows[1]["value"] == "42"


JAIL = ("client", "builder", "nest")
WARM = ("client", "holder", "template", "template's nest", "init of a child")


def all_commands(home):
    alone = [] if home.who == "root" else ["--memory-by", "rlimit"]
    group = ["exec", "--json", *alone, "--processes", "4", "--", "/bin/sh", "-c", "/bin/echo one; /bin/echo two"]
    printer = "for i in range(2000): print(f\"{i:08} {'=' * 60}\")\n"
    jail = dict(victims=JAIL, holds_place=True, judges=True, prints=True)
    warm = dict(victims=WARM, holds_place=True, judges=True, prints=True, needs_pool=True)
    asked = dict(victims=("client", "approvals"))
    yes = Approval("approve yes", lambda h: ["approve", "yes", h.question, "--why", "it may"], lambda r: True, terminal=True, **asked)
    if not home.drops:  # this test is of the same user, and started the run that asked
        yes.right = lambda r: r.code == exits.FAILED and "who asks does not answer" in r.err
    return [
        Command("exec", ["exec", "--", "/usr/bin/seq", "20000"], lambda r: r.out == SEQ, **jail),
        Command("exec of several processes", group, run_says("one\ntwo\n"), json=True, **{**jail, "victims": JAIL + ("janitor",) * (not alone)}),
        Command("run cold", ["run", "--json", *COLD, "-"], run_says("42\n"), text="print(6 * 7)\n", json=True, **jail),
        Command("run cold, as text", ["run", *COLD, "-"], lambda r: r.out == LINES, text=printer, **jail),
        Command("run warm", ["run", "--json", "-"], run_says("1\n", "49995000"), text="print(1)\nsum(range(10000))\n", json=True, **warm),
        Command("run warm, as text", ["run", "-"], lambda r: r.out == LINES, text=printer, **warm),
        Command("run with files", ["run", "--json", *COLD, "-"], run_says("3000\n"), text=FILES, json=True, **{**jail, "victims": JAIL + ("server of files",)}),
        InWorkspace("run in a workspace", ["run", "--json", "--workspace", InWorkspace.name_of_it, "-"], run_says("42\n"), text="open('f', 'a').write('x')\nprint(6 * 7)\n", json=True,
                    **{**jail, "victims": JAIL + ("keeper of workspaces",)}),
        Pictures("run with a picture", ["run", "--events", "--images", *COLD, "-"], lambda r: '"status": "ok"' in r.out.splitlines()[-1], text=PICTURE, json=True,
                 **{**jail, "victims": JAIL + ("reader of pictures",)}),
        Plot("monitor with a picture", lambda h: ["monitor", "--plot", str(h.top / "config/plot.png"), "-"], lambda r: r["abort"] is False, text="one two three\n" * 5, json=True, prints=True, victims=("client", "painter")),
        Command("check", ["check", "--json", "-"], lambda r: r["is_safe"] is True, text="print(1)\n", json=True, **{**jail, "holds_place": False}),
        Command("eval", ["eval", "--json", "ctx['a'] > 1", "--ctx", '{"a": 2}'], lambda r: r["value"] is True, json=True, prints=True),
        Command("eval of a stream", ["eval", "ctx['household_income'] >= 0", "--ndjson"], lambda r: r.out == CONTEXTS, text=CONTEXTS, prints=True),
        InSession("session new", ["session", "new"], lambda r: r.out.startswith("s-"), victims=WARM, prints=True),
        Run("session run", lambda h: ["session", "run", "--json", h.session or "none", "-"], run_says(value="42"), text="x * 7\n", json=True,
            victims=("client", "holder"), holds_place=True, judges=True, prints=True),
        InSession("session fork", lambda h: ["session", "fork", h.session or "none"], lambda r: r.out.startswith("s-"), prints=True),
        Close("session close", lambda h: ["session", "close", h.session or "none"], lambda r: True),
        Command("repl", ["repl", "--json"], last_value, text="x = 6\nx * 7\n", json=True, **{**warm, "holds_place": False}),
        Approval("approve list", ["approve", "list", "--json"], lambda r: bool(r.json), json=True, prints=True, **asked),
        Approval("approve no", lambda h: ["approve", "no", h.question, "--why", "it may not"], lambda r: True, **asked),
        yes,
        Command("audit tail", ["audit", "tail", "--json"], lambda r: 0 < r.out.count("\n") <= 10, prints=True),
        Command("audit verify", ["audit", "verify", "--json"], lambda r: r["ok"] is True, json=True, prints=True),
        Switch("stop", "resume", lambda r: r["stopped"] is True),
        Switch("resume", "stop", lambda r: r["stopped"] is False),
        PoolStart("pool start", ["pool", "start", "--size", "2"], lambda r: True, victims=("client", "new holder")),
        Pool("pool stop", ["pool", "stop", "--force"], lambda r: True, victims=("client", "holder")),
        Command("policy show", ["policy", "show", "--json"], lambda r: bool(r.json), json=True, prints=True),
    ]
