#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who says yes to a run of an agent: the person at the client, where policy and client have that; else whoever answers the queue.

Usage: serve_approval.py BUILD."""
import sys

sys.dont_write_bytecode = True
import tapsys
from mcptest import META, MODERN, Server, appears, text
from tapsys import Tap, users

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
CODE = "print('ran' + chr(33))\n# \u202e right to left\n"
ELICITS = {META + "protocolVersion": MODERN, META + "clientCapabilities": {"elicitation": {}}}


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


def by_request(who, file):
    with legacy(who, file) as s:
        s.answered = []
        for action, content, status in (("accept", {"approve": True}, "ok"), ("accept", {"approve": False}, "denied"), ("decline", None, "denied")):
            number = s.send("tools/call", name="execute_code", arguments={"code": CODE + f"# {action} {content}"})
            q = asked(s, number)
            message = (q or {}).get("params", {}).get("message", "")
            tap.ok(q and "print('ran'" in message and "\\u{202e}" in message and "\u202e" not in message, f"{who}: the person at the client is asked, and sees the code whole", q)
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


def by_result(who, file):
    with Server(programs, "--policy", file, legacy=None, who=who) as s:
        def call(code, **more):
            return s.ask("tools/call", ELICITS, name="execute_code", arguments={"code": code}, **more)
        r = call(CODE)["result"]
        tap.eq((r.get("resultType"), list(r.get("inputRequests", {}))), ("input_required", ["approval"]), f"{who}: 2026-07-28: the call is answered with what is wanted")
        params = r["inputRequests"]["approval"]["params"]
        tap.ok("print('ran'" in params["message"] and params["requestedSchema"]["required"] == ["approve"], f"{who}: 2026-07-28: the question has the code in it", params)
        yes = {"approval": {"action": "accept", "content": {"approve": True}}}
        state = r["requestState"]
        for what, code, word in (("for other code", "print(1)", state), ("that nobody gave out", CODE, "a" * 26), ("that was changed", CODE, state[:-1])):
            bad = call(code, requestState=word, inputResponses=yes)
            tap.eq((bad.get("error") or {}).get("code"), -32602, f"{who}: 2026-07-28: a requestState {what} is refused")
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


def writes(who, file):
    """What a tool for files changes is asked as a run is, in both eras."""
    for what, s in (("2025-11-25", legacy(who, file, "2025-11-25")), (MODERN, Server(programs, "--policy", file, legacy=None, who=who))):
        with s:
            s.answered = []
            meta = ELICITS if what == MODERN else None
            one = s.ask("tools/call", meta, name="session", arguments={"action": "new"})["result"]["structuredContent"]["session_id"]
            asking = {"name": "write_file", "arguments": {"session_id": one, "path": "a", "text": "of " + what}}
            number = s.send("tools/call", meta, **asking)
            if what == MODERN:
                r = s.reply(number)["result"]
                message = r["inputRequests"]["approval"]["params"]["message"]
                r = s.ask("tools/call", meta, **asking, requestState=r["requestState"], inputResponses={"approval": {"action": "accept", "content": {"approve": True}}})["result"]
            else:
                q = asked(s, number)
                message = q["params"]["message"]
                s.write({"jsonrpc": "2.0", "id": q["id"], "result": {"action": "accept", "content": {"approve": True}}})
                r = s.reply(number)["result"]
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
    by_request(user, on)
    if user == users()[-1]:
        by_result(user, on)
        writes(user, on)
        not_asked(user, off, on, other)
        by_hand(user, on)
    tap.eq(tapsys.cordon(programs, ["audit", "verify"], user).code, 0, f"{user}: the audit of all of it is whole")
tap.done()
