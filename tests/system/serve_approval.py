#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who says yes to a run of an agent: the person at the client, where policy and client have that; else whoever answers the queue.

Usage: serve_approval.py BUILD."""
import contextlib
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import tapsys
from mcptest import META, MODERN, Client, Connection, Server, appears, connects, gone, halt, named, runners, start, stop, text, whole
from tapsys import Tap, users

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
KEEPER = "cordon-approval"  # cordon-approvals, by the letters that the kernel keeps
QUESTIONS = 32  # SERVE_ASKED and SERVE_QUESTIONS of src/serve/front/inside.h
HIDDEN = "\u202e\u061c\u3164\ufe0f"  # right to left, of Arabic, a letter without a shape, another shape of the one before
CODE = f"print('ran' + chr(33))\n# {HIDDEN} hidden\n"
ELICITS = {META + "protocolVersion": MODERN, META + "clientCapabilities": {"elicitation": {}}}


def shows_hidden(message):
    return all(f"\\u{{{ord(c):x}}}" in message and c not in message for c in HIDDEN)


def policy(name, words):
    p = programs.dir / name
    p.write_text(words)
    p.chmod(0o644)
    return str(p)


def waiting(who):
    r = tapsys.cordon(programs, ["approve", "list", "--json"], who)
    return [q for q in r.json or [] if q["state"] == "asked"]


def cleared(who):
    """Nobody waits from an earlier part."""
    for q in waiting(who):
        tapsys.cordon(programs, ["approve", "no", q["id"], "--why", "test"], who)


def legacy(who, file, version="2025-06-18", able=True):
    s = Server(programs, "--policy", file, legacy=version, who=who, opens=False)
    s.ask("initialize", protocolVersion=version, capabilities={"elicitation": {}} if able else {}, clientInfo={"name": "t", "version": "1"})
    s.tell("notifications/initialized")
    return s


def asked(s, number):
    """The next question of the server, or the reply where it comes first."""
    before = {n.get("id") for n in s.answered}
    new = s.until(lambda: [n for n in s.notes if n["method"] == "elicitation/create" and n["id"] not in before] or s.replies.get(number))
    if isinstance(new, list):
        s.answered.append(new[0])
        return new[0]
    return None


def approved(s, asking, modern):
    """A call about which the person at the client is asked, and says yes: what was shown, and the result."""
    meta, yes = ELICITS if modern else None, {"action": "accept", "content": {"approve": True}}
    number = s.send("tools/call", meta, **asking)
    if modern:
        r = s.reply(number)["result"]
        return (r["inputRequests"]["approval"]["params"]["message"],
                s.ask("tools/call", meta, **asking, requestState=r["requestState"], inputResponses={"approval": yes})["result"])
    q = asked(s, number)
    s.write({"jsonrpc": "2.0", "id": q["id"], "result": yes})
    return q["params"]["message"], s.reply(number)["result"]


def by_request(who, file):
    with legacy(who, file) as s:
        s.answered = []
        for action, content, status in (("accept", {"approve": True}, "ok"), ("accept", {"approve": False}, "denied"), ("decline", None, "denied")):
            number = s.send("tools/call", name="execute_code", arguments={"code": CODE + f"# {action} {content}"})
            q = asked(s, number)
            message = (q or {}).get("params", {}).get("message", "")
            tap.ok(q and "print('ran'" in message and shows_hidden(message), f"{who}: the person at the client is asked, and sees the code whole", q)
            s.write({"jsonrpc": "2.0", "id": q["id"], "result": {"action": action, **({"content": content} if content else {})}})
            r = s.reply(number)["result"]["structuredContent"]
            tap.eq((r["status"], r["stdout"]), (status, "ran!\n" if status == "ok" else ""), f"{who}: {action} {content} is the answer to the run")
        number = s.send("tools/call", name="execute_code", arguments={"code": CODE + "# left"})
        q = asked(s, number)
        s.write({"jsonrpc": "2.0", "id": q["id"], "result": {"action": "cancel"}})
        s.write({"jsonrpc": "2.0", "id": q["id"], "result": {"action": "accept", "content": {"approve": True}}})
        tap.ok("result" in s.ask("ping") and len(waiting(who)) == 1 and number not in s.replies,
               f"{who}: a question that was closed waits in the queue, and a second answer to it counts no more", s.replies.get(number))
        cleared(who)
        tap.eq(s.reply(number)["result"]["structuredContent"]["status"], "denied", f"{who}: the queue answers it")
    audit = tapsys.cordon(programs, ["audit", "tail", "-n", "200", "--json"], who).out
    tap.ok("elicitation" in audit, f"{who}: the audit says that the answer came by elicitation")


def many(who, file):
    """More questions than the server keeps at once: a yes is for the program that was shown with it, and what was given up takes no room."""
    with legacy(who, file) as s:
        s.answered = []
        first = s.send("tools/call", name="execute_code", arguments={"code": CODE + "# first"})
        shown = asked(s, first)
        for n in range(QUESTIONS):  # a connection may speak both eras
            word = s.ask("tools/call", ELICITS, name="execute_code", arguments={"code": CODE + f"# later {n}"})["result"]["requestState"]
        s.write({"jsonrpc": "2.0", "id": shown["id"], "result": {"action": "accept", "content": {"approve": True}}})
        r = s.ask("tools/call", ELICITS, name="execute_code", arguments={"code": CODE + f"# later {n}"}, requestState=word, inputResponses={"approval": {"action": "decline"}})
        told = [whole(s, v["result"])["structuredContent"] for v in (s.reply(first), r)]
        tap.eq([v["status"] for v in told], ["ok", "denied"], f"{who}: an answer counts for the program that was shown with it, also after {QUESTIONS} others were asked", told)
    appears(lambda: not waiting(who))
    with legacy(who, file) as s:
        s.answered = []
        for n in range(QUESTIONS):
            number = s.send("tools/call", name="execute_code", arguments={"code": CODE + f"# given up {n}"})
            asked(s, number)
            s.tell("notifications/cancelled", requestId=number)
        number = s.send("tools/call", name="execute_code", arguments={"code": CODE + "# wanted"})
        q = asked(s, number)
        tap.ok(q and "# wanted" in q["params"]["message"], f"{who}: after {QUESTIONS} questions whose calls were given up the next one is still asked", q)
        cleared(who)
        s.reply(number)


def all_at_once(who, file):
    """As many calls as a client may have open, and all of them are asked about: each answer gets through."""
    def questions():
        return [n for n in s.notes if n["method"] == "elicitation/create"]
    yes = {"action": "accept", "content": {"approve": True}}
    with legacy(who, file) as s:
        numbers = [s.send("tools/call", name="execute_code", arguments={"code": CODE + f"# beside {n}"}) for n in range(QUESTIONS)]
        s.until(lambda: len(questions()) == QUESTIONS)
        for q in questions():
            s.write({"jsonrpc": "2.0", "id": q["id"], "result": yes})
        got = [whole(s, s.reply(n).get("result", {})).get("structuredContent", {}).get("status") for n in numbers]
        tap.eq(got, ["ok"] * QUESTIONS, f"{who}: {QUESTIONS} questions beside as many calls, which are all that a client may have, are answered")
    with Server(programs, "--policy", file, legacy=None, who=who) as s:
        codes = [CODE + f"# within {n}" for n in range(QUESTIONS)]
        numbers = [s.send("tools/call", ELICITS, name="execute_code", arguments={"code": c}) for c in codes]
        words = [s.reply(n).get("result", {}).get("requestState") for n in numbers]
        tap.ok(all(words), f"{who}: 2026-07-28: {QUESTIONS} calls at once are each answered with what is wanted", words)
        odd = s.ask("tools/call", ELICITS, name="execute_code", arguments={"code": codes[0]}, requestState=f"{words[0]}\0", inputResponses={"approval": yes})
        tap.eq((odd.get("error") or {}).get("code"), -32602, f"{who}: 2026-07-28: a requestState with a NUL behind it is none", odd)
        numbers = [s.send("tools/call", ELICITS, name="execute_code", arguments={"code": c}, requestState=w, inputResponses={"approval": yes}) for c, w in zip(codes, words)]
        got = [whole(s, s.reply(n).get("result", {})).get("structuredContent", {}).get("status") for n in numbers]
        tap.eq(got, ["ok"] * QUESTIONS, f"{who}: 2026-07-28: {QUESTIONS} calls that come back at once with a yes give their results")


@contextlib.contextmanager
def held(who):
    """Nobody else reads or writes the approvals of WHO meanwhile."""
    path = pathlib.Path(tapsys.clean_env(None, who)["CORDON_STATE"]) / "approvals.db"
    with contextlib.closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield
        lock.execute("COMMIT")


def answered_in_a_crowd(who, file):
    """Somebody else has the lock of the approvals for longer than the answer waits for it."""
    with legacy(who, file) as s:
        s.answered = []
        number = s.send("tools/call", name="execute_code", arguments={"code": CODE + "# crowd"})
        q = asked(s, number)
        appears(lambda: not named(s.process.pid, KEEPER))
        with held(who):
            s.write({"jsonrpc": "2.0", "id": q["id"], "result": {"action": "accept", "content": {"approve": True}}})
            tap.eq(gone(appears(lambda: named(s.process.pid, KEEPER))), [], f"{who}: who answers does not wait for the lock of the approvals for ever")
        r = whole(s, s.reply(number).get("result", {})).get("structuredContent", {})
        tap.eq((r.get("status"), r.get("stdout")), ("ok", "ran!\n"), f"{who}: a yes that could not be put on record at once is not lost", r)


def looks_in_a_crowd(who, file):
    """The same for the run that waits: it is there last when all look what was answered."""
    with legacy(who, file) as s:
        s.answered = []
        number = s.send("tools/call", name="execute_code", arguments={"code": CODE + "# last"})
        q = asked(s, number)
        run = appears(lambda: runners(s.process.pid))[0]
        appears(lambda: halt(run))
        s.write({"jsonrpc": "2.0", "id": q["id"], "result": {"action": "accept", "content": {"approve": True}}})
        appears(lambda: not waiting(who) and not named(s.process.pid, KEEPER))
        with held(who):
            os.kill(run, signal.SIGCONT)
            tap.eq(gone(appears(lambda: named(s.process.pid, KEEPER))), [], f"{who}: a run that waits for its answer does not wait for the lock of the approvals for ever")
        r = whole(s, s.reply(number).get("result", {})).get("structuredContent", {})
        tap.eq((r.get("status"), r.get("stdout")), ("ok", "ran!\n"), f"{who}: a run whose yes is on record runs, also where it cannot be looked up at once", r)


def by_result(who, file):
    with Server(programs, "--policy", file, legacy=None, who=who) as s:
        def call(code, language="python", **more):
            return s.ask("tools/call", ELICITS, name="execute_code", arguments={"code": code, "language": language}, **more)
        r = call(CODE)["result"]
        tap.eq((r.get("resultType"), list(r.get("inputRequests", {}))), ("input_required", ["approval"]), f"{who}: 2026-07-28: the call is answered with what is wanted")
        params = r["inputRequests"]["approval"]["params"]
        tap.ok("print('ran'" in params["message"] and params["requestedSchema"]["required"] == ["approve"], f"{who}: 2026-07-28: the question has the code in it", params)
        yes = {"approval": {"action": "accept", "content": {"approve": True}}}
        state = r["requestState"]
        for what, code, word in (("for other code", "print(1)", state), ("that nobody gave out", CODE, "a" * 26), ("that was changed", CODE, state[:-1])):
            bad = call(code, requestState=word, inputResponses=yes)
            tap.eq((bad.get("error") or {}).get("code"), -32602, f"{who}: 2026-07-28: a requestState {what} is refused")
        bad = call(CODE, "ruby", requestState=state, inputResponses=yes)
        tap.eq((bad.get("error") or {}).get("code"), -32602, f"{who}: 2026-07-28: a requestState for the same text in another language is refused", bad)
        with Server(programs, "--policy", file, legacy=None, who=who) as other:
            bad = other.ask("tools/call", ELICITS, name="execute_code", arguments={"code": CODE}, requestState=state, inputResponses=yes)
            tap.eq((bad.get("error") or {}).get("code"), -32602, f"{who}: 2026-07-28: the requestState of another client is refused")
        done = call(CODE, requestState=state, inputResponses=yes)["result"]
        tap.eq((done.get("resultType"), done["structuredContent"]["stdout"]), ("complete", "ran!\n"), f"{who}: 2026-07-28: the call that comes back with a yes gives the result")
        again = call(CODE, requestState=state, inputResponses=yes)
        tap.eq((again.get("error") or {}).get("code"), -32602, f"{who}: 2026-07-28: a requestState counts once")
        r = call(CODE)["result"]
        tap.eq(r.get("resultType"), "input_required", f"{who}: 2026-07-28: a yes is for one run: the next is asked anew")
        done = call(CODE, requestState=r["requestState"], inputResponses={"approval": {"action": "decline"}})["result"]
        tap.eq(done["structuredContent"]["status"], "denied", f"{who}: 2026-07-28: a no denies the run")
    cleared(who)


# Read as Python, HARM is within a string. Of a model's text, what comes before a closing tag is dropped, and HARM is a line of code.
TWO_FACED = "x = 'notes: \\\n</think>\\\nprint(\"HARM\") #'\n"


def shown_is_run(who, file):
    """Where a text that was sent is not the program, the person is shown what would run of it."""
    compile(TWO_FACED, "sent", "exec")
    for version in ("2025-06-18", MODERN):
        with legacy(who, file) if version != MODERN else Server(programs, "--policy", file, legacy=None, who=who) as s:
            s.answered = []
            for what, sent, there, not_there in (("a text with a closing tag", TWO_FACED, '\n\n\\\nprint("HARM") #', "x = "), ("a block within prose", "Harmless.\n\n```python\nprint('HARM')\n```\n", "\n\nprint('HARM')\n", "Harmless")):
                asking = {"name": "execute_code", "arguments": {"code": sent}}
                message, r = approved(s, asking, version == MODERN)
                tap.ok("once, as Python?" in message and there in message and not_there not in message, f"{who}: {version}: of {what} the person is shown the program that would run", message)
                tap.eq(r["structuredContent"]["stdout"], "HARM\n", f"{who}: {version}: of {what} the program that was shown runs", r)
    cleared(who)


def expires(who, file):
    """The word for a question counts no longer than the policy keeps the question; the server says for how long."""
    with Server(programs, "--policy", file, legacy=None, who=who) as s:
        for again in range(20):  # where the machine is slow the question may be over before it is put
            code = CODE + f"# expires {again}"
            r = s.ask("tools/call", ELICITS, name="execute_code", arguments={"code": code})["result"]
            if "inputRequests" in r:
                break
        seen = time.monotonic()
        message = r["inputRequests"]["approval"]["params"]["message"]
        tap.ok("in 1500 ms" in message, f"{who}: 2026-07-28: the question says how long an answer to it counts", message)
        time.sleep(max(0, seen + 1.5 + 0.01 - time.monotonic()))  # the word was made before it was seen
        late = s.ask("tools/call", ELICITS, name="execute_code", arguments={"code": code}, requestState=r["requestState"],
                     inputResponses={"approval": {"action": "accept", "content": {"approve": True}}})
        tap.eq((late.get("error") or {}).get("code"), -32602, f"{who}: 2026-07-28: a requestState that was not used in its time counts no more")
    cleared(who)


class Apart(Server):
    """A `cordon serve --stdio` that no process started which started the test's other ones."""

    def __init__(self, *options, who):
        self.process = subprocess.Popen(["/usr/bin/setsid", "-f", *programs.command(["serve", "--stdio", *options], who)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tapsys.clean_env(None, who))
        self.process.wait()
        Client.__init__(self, "2025-11-25", True)


def by_tool(who, tool, off):
    """A client that reviews what others ask; never what came through its own server."""
    with Server(programs, "--policy", off, who=who) as s:
        names = [t["name"] for t in s.ask("tools/list")["result"]["tools"]]
        r = s.call("approvals", action="list")
        tap.ok("approvals" not in names and r.get("error", {}).get("code") == -32602, f"{who}: without approval.tool there is no tool for approvals", names, r)
    with Server(programs, "--policy", tool, who=who) as s, Apart("--policy", tool, who=who) as reviewer:
        row = [t for t in reviewer.ask("tools/list")["result"]["tools"] if t["name"] == "approvals"][0]
        tap.eq({k: v for k, v in row["annotations"].items() if k != "title"},
               {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}, f"{who}: the tool for approvals has all four annotations")
        for bad, word in (({"action": "show"}, "id is missing"), ({"action": "approve", "id": "ap-1"}, "why is missing"), ({"action": "list", "id": "a"}, "takes none"),
                          ({"action": "show", "id": "ap-none"}, "no approval"), ({"action": "deny", "id": "ap-none", "why": "x"}, "no approval")):
            r = reviewer.tool("approvals", **bad)
            tap.ok(r["isError"] and word in text(r), f"{who}: approvals {bad} says what is wrong", r)
        for action, status in (("approve", "ok"), ("deny", "denied")):
            number = s.send("tools/call", name="execute_code", arguments={"code": CODE + "# " + action})
            appears(lambda: waiting(who))
            r = reviewer.tool("approvals", action="list")
            one = r["structuredContent"]["approvals"][0]["id"]
            tap.ok(one in text(r) and "code" not in r["structuredContent"]["approvals"][0], f"{who}: approvals list tells the question of another server's client", r)
            r = reviewer.tool("approvals", action="show", id=one)
            tap.ok(r["structuredContent"]["approvals"][0]["code"] == CODE + "# " + action and shows_hidden(text(r)),
                   f"{who}: approvals show has the code whole, and shows what hides in it", r)
            r = s.tool("approvals", action="approve", id=one, why="it is mine")
            tap.ok(r["isError"] and r["structuredContent"]["status"] == "denied" and "who asks does not answer" in text(r) and number not in s.replies,
                   f"{who}: the client that asked cannot approve by the tool", r)
            r = reviewer.tool("approvals", action=action, id=one, why="read it")
            tap.ok(not r["isError"] and r["structuredContent"]["approvals"][0]["why"] == "read it", f"{who}: a client of another server can {action}", r)
            tap.eq(s.reply(number)["result"]["structuredContent"]["status"], status, f"{who}: approvals {action} is the answer to the run")
            r = reviewer.tool("approvals", action="approve", id=one, why="again")
            tap.ok(r["isError"] and "answered already" in text(r), f"{who}: approvals {action} counts once", r)
    audit = tapsys.cordon(programs, ["audit", "tail", "-n", "200", "--json"], who).out
    tap.ok("tool of a client: read it" in audit, f"{who}: the audit says that the answer came by the tool, and why")


def by_tool_of_one_server(tool):
    """Two connections to one socket may be one program's: neither answers for the other. Who has the token of a site neither."""
    who = users()[0]
    folder = programs.dir / "approvals"
    folder.mkdir(mode=0o700)
    server = start(programs, ["--socket", str(folder / "s"), "--policy", tool], who)
    appears(lambda: connects(folder / "s"))
    with Connection(folder / "s") as asker, Connection(folder / "s") as other:
        number = asker.send("tools/call", name="execute_code", arguments={"code": CODE + "# socket"})
        one = appears(lambda: waiting(who))[0]["id"]
        r = other.tool("approvals", action="approve", id=one, why="the other one")
        tap.ok(r["isError"] and "who asks does not answer" in text(r) and number not in asker.replies, f"{who}: another connection to the server that asked cannot approve", r)
        r = other.tool("approvals", action="deny", id=one, why="no")
        tap.eq((r["isError"], asker.reply(number)["result"]["structuredContent"]["status"]), (False, "denied"), f"{who}: anybody may say no, by the tool as well")
    server.terminate()
    stop(server)
    r = tapsys.cordon(programs, ["approve", "served", tool], who, text="list\0\0\0")
    tap.ok(r.code == 2 and "cordon serve" in r.err, f"{who}: `approve served` by hand is refused", r.story())


def writes(who, file):
    """What a tool for files changes is asked as a run is, in both eras."""
    for what, s in (("2025-11-25", legacy(who, file, "2025-11-25")), (MODERN, Server(programs, "--policy", file, legacy=None, who=who))):
        with s:
            s.answered = []
            meta = ELICITS if what == MODERN else None
            one = s.ask("tools/call", meta, name="session", arguments={"action": "new"})["result"]["structuredContent"]["session_id"]
            asking = {"name": "write_file", "arguments": {"session_id": one, "path": "a", "text": "of " + what}}
            message, r = approved(s, asking, what == MODERN)
            tap.ok("write" in message and "of " + what in message and r["structuredContent"]["status"] == "ok", f"{who}: {what}: a file is written once the person has said yes", message, r)
            r = s.ask("tools/call", meta, name="read_file", arguments={"session_id": one, "path": "a"})["result"]
            tap.eq((r.get("structuredContent") or {}).get("text"), "of " + what, f"{who}: {what}: reading a file asks nobody")
    tapsys.cordon(programs, ["pool", "stop", "--force"], who)


def not_asked(who, off, on, other_user):
    """Where policy or client have no elicitation, the question is in the queue, and nothing that the client sends answers it."""
    for what, file, able in (("the policy has no elicitation", off, True), ("the client cannot ask", on, False), ("the policy wants another user", other_user, True)):
        with legacy(who, file, able=able) as s:
            s.answered = []
            number = s.send("tools/call", name="execute_code", arguments={"code": CODE + f"# {what}"})
            appears(lambda: waiting(who))
            for guess in range(1, 6):
                s.write({"jsonrpc": "2.0", "id": f"cordon-{guess}", "result": {"action": "accept", "content": {"approve": True}}})
            tap.ok("result" in s.ask("ping") and not [n for n in s.notes if n["method"] == "elicitation/create"] and number not in s.replies,
                   f"{who}: where {what}, nobody is asked at the client, and the run waits", s.notes, s.replies.get(number))
            cleared(who)
            tap.eq(s.reply(number)["result"]["structuredContent"]["status"], "denied", f"{who}: where {what}, the queue answers")
    with legacy(who, on) as s:
        s.answered = []
        number = s.send("tools/call", name="execute_code", arguments={"code": CODE + "#" * 9000})
        appears(lambda: waiting(who))
        tap.ok("result" in s.ask("ping") and not [n for n in s.notes if n["method"] == "elicitation/create"], f"{who}: code that is too long to be shown whole is asked in the queue")
        cleared(who)
        s.reply(number)


def by_hand(who, on):
    """The word of cordond is cordond's alone."""
    with legacy(who, on) as s:
        s.answered = []
        number = s.send("tools/call", name="execute_code", arguments={"code": CODE + "# by hand"})
        asked(s, number)
        one = appears(lambda: waiting(who))[0]["id"]
        r = tapsys.cordon(programs, ["approve", "elicited", str(s.process.pid), on], who, text=f"{one}\0yes\0")
        tap.ok(r.code == 2 and "cordon serve" in r.err, f"{who}: `approve elicited` by hand is refused", r.story())
        r = tapsys.cordon(programs, ["approve", "yes", one, "--why", "me"], who)
        tap.ok(r.code == 1 and "does not answer" in r.err, f"{who}: whoever started the client does not answer for it by `approve yes`", r.story())
        cleared(who)
        s.reply(number)


for user in users():
    on = policy(f"{user}-on.yaml", "approval: {mode: HITL, elicitation: true}\n")
    off = policy(f"{user}-off.yaml", "approval: {mode: HITL}\n")
    other = policy(f"{user}-other.yaml", "approval: {mode: HITL, elicitation: true, approvers: other-user}\n")
    tool = policy(f"{user}-tool.yaml", "approval: {mode: HITL, tool: true}\n")
    short = policy(f"{user}-short.yaml", "approval: {mode: HITL, elicitation: true, expiry: 1500ms}\n")
    by_request(user, on)
    if user == users()[-1]:
        many(user, on)
        all_at_once(user, on)
        answered_in_a_crowd(user, on)
        looks_in_a_crowd(user, on)
        by_result(user, on)
        shown_is_run(user, on)
        expires(user, short)
        by_tool(user, tool, off)
        by_tool_of_one_server(policy("first-tool.yaml", "approval: {mode: HITL, tool: true}\n"))
        writes(user, on)
        not_asked(user, off, on, other)
        by_hand(user, on)
    tap.eq(tapsys.cordon(programs, ["audit", "verify"], user).code, 0, f"{user}: the audit of all of it is whole")
tap.done()
