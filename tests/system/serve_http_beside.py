#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What clients of `cordon serve --http` are asked and told beside their results: approvals and breakers, in both eras.

Usage: serve_http_beside.py BUILD."""
import sys

sys.dont_write_bytecode = True
import tapsys
from httptest import Site
from mcptest import META, MODERN, appears, text, whole
from tapsys import Tap, users

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
WHO = users()[0]
CODE = "print('ran' + chr(33))\n# "
ABLE = {META + "clientCapabilities": {"elicitation": {}}}
YES, NO = {"action": "accept", "content": {"approve": True}}, {"action": "decline"}


def policy(name, words):
    p = programs.dir / name
    p.write_text(words)
    p.chmod(0o644)
    return str(p)


def waiting():
    r = tapsys.cordon(programs, ["approve", "list", "--json"], WHO)
    return [q for q in r.json or [] if q["state"] == "asked"]


def question(stream):
    """The next question on the stream of a call; None: it was over before."""
    for _, message in iter(stream.event, None):
        if message and message.get("method") == "elicitation/create":
            return message
    return None


def status(site, reply):
    """What came of a run whose reply this is."""
    told = whole(site, reply.get("result") or {}).get("structuredContent") or {}
    return told.get("status"), told.get("stdout")


def denied(site, reply):
    """The same of a run that does not run: a revision without structuredContent has the text alone."""
    told = whole(site, reply.get("result") or {})
    return "status: denied" in text(told) and "stdout" not in text(told)


def last(stream):
    """The reply at the end of a stream whose head was read."""
    return ([m for _, m in iter(stream.event, None) if m and "method" not in m] or [{}])[-1]


def answer(session, question, result):
    with session.site.connect() as c:
        return c.ask(session.site.post({"jsonrpc": "2.0", "id": question["id"], "result": result}, **session.fields)).status


def by_request(site, version):
    """The question comes on the stream of the call, and its answer by a request of its own, in the same session."""
    asker, other = (site.legacy(version, elicitation={}) for _ in range(2))
    for said, against, want in ((YES, NO, ("ok", "ran!\n")), (NO, YES, ("denied", ""))):
        for before in ((), (against,)):
            what = f"# {version} {said} {before}"
            with site.connect() as c:
                c.send(asker.request("tools/call", name="execute_code", arguments={"code": CODE + what})).reply_head()
                q = question(c)
                if not tap.ok(q and what in q["params"]["message"], f"{version}: the person at a client of HTTP is asked on the stream of the call", q):
                    return
                taken = [answer(other, q, r) for r in before] + [answer(asker, q, said)]
                tap.eq((set(taken), status(site, last(c))), ({202}, want),
                       f"{version}: {said['action']} is the answer to a run over HTTP" + (f", and {against['action']} of another session, before it, is not" if before else ""))


def comes_back(site):
    """A client that was away when its question was put has it when it comes back."""
    v = site.legacy("2025-11-25", elicitation={})
    c = site.connect().send(v.request("tools/call", name="execute_code", arguments={"code": CODE + "away"}))
    c.reply_head()
    first = c.event()
    c.close()
    appears(waiting)
    with v.listen(first[0]) as again:
        again.reply_head()
        q = question(again)
        tap.ok(q and "away" in q["params"]["message"], "a client that lost its connection is asked when it comes back with Last-Event-ID", q)
        answer(v, q or {"id": "none"}, YES)
        tap.eq(status(site, last(again)), ("ok", "ran!\n"), "the answer of a client that came back is the answer to its run, whose result it gets")


def by_result(site):
    def call(code, **more):
        with site.connect() as c:
            return c.ask(site.modern("tools/call", meta=ABLE, name="execute_code", arguments={"code": code}, **more))
    for said, want in ((YES, ("ok", "ran!\n")), (NO, ("denied", ""))):
        code = CODE + said["action"]
        r = call(code).json.get("result", {})
        tap.ok(r.get("resultType") == "input_required" and code in r["inputRequests"]["approval"]["params"]["message"], f"{MODERN}: a call over HTTP is answered with what is wanted", r)
        given = {"requestState": r.get("requestState"), "inputResponses": {"approval": said}}
        bad = call(CODE + "another", **given)
        tap.eq((bad.status, bad.code), (400, -32602), f"{MODERN}: a requestState for other code is answered with 400 and -32602", bad.body)
        tap.eq(status(site, call(code, **given).json), want, f"{MODERN}: {said['action']}, by a connection of its own, is the answer to the run")
        bad = call(code, **given)
        tap.eq((bad.status, bad.code), (400, -32602), f"{MODERN}: a requestState counts once over HTTP", bad.body)


def not_able(site):
    """Without the capability, or before the revision that brought it, nobody is asked at the client; who has the token does not answer by the tool either."""
    for what, send in (("2025-03-26", site.legacy("2025-03-26", elicitation={}).request), ("2025-11-25", site.legacy().request), (MODERN, site.modern)):
        with site.connect() as c:
            c.send(send("tools/call", name="execute_code", arguments={"code": CODE + what}))
            one = (appears(waiting) or [{"id": "none"}])[0]["id"]
            r = site.tool("approvals", action="approve", id=one, why="mine")
            tap.ok(r["isError"] and "who asks does not answer" in text(r), f"{what}: who has the token of the server that asked cannot approve by the tool", r)
            r = site.tool("approvals", action="deny", id=one, why="no")
            reply = c.reply()
            tap.eq((r["isError"], denied(site, reply.json), [m for _, m in getattr(reply, "seen", []) if m and "method" in m]), (False, True, []),
                   f"{what}: a client that cannot ask is asked nothing, and the queue answers", reply.body)


def breakers():
    """A message of the log is an event before the reply."""
    file = policy("breakers.yaml", "breakers: {failures: 3, counts: [error]}\n")
    for what, meta, told in (("2025-11-25", None, True), (f"{MODERN} with a level", {META + "logLevel": "info"}, True), (f"{MODERN} without a level", {}, False)):
        state = programs.dir / f"breaker-{len(what)}"
        state.mkdir(mode=0o700)
        with Site(programs, "--policy", file, "--answer", "10m", who=WHO, env={"CORDON_STATE": str(state)}) as site:
            send = site.legacy().request if meta is None else lambda *words, **more: site.modern(*words, meta=meta, **more)
            notes = []
            for _ in range(3):
                with site.connect() as c:
                    r = c.ask(send("tools/call", name="execute_code", arguments={"code": "1 / 0"}))
                    notes = [m for _, m in getattr(r, "seen", []) if m]
            kinds = [(m.get("method"), (m.get("params") or {}).get("logger"), ((m.get("params") or {}).get("data") or {}).get("state")) for m in notes[:-1]]
            tap.ok(set(kinds) == {("notifications/message", "cordon.breaker", "open")} and "result" in notes[-1] if told else r.json.get("result") and not kinds,
                   f"{what}: a breaker that opens is " + ("an event before the reply" if told else "not told over HTTP"), notes, r.body)


with Site(programs, "--policy", policy("asks.yaml", "approval: {mode: HITL, elicitation: true, tool: true}\n"), "--drain", "0s", who=WHO) as asks:
    for revision in ("2025-06-18", "2025-11-25"):
        by_request(asks, revision)
    comes_back(asks)
    by_result(asks)
    not_able(asks)
tap.eq(waiting(), [], "after approvals over HTTP nothing waits for a person any more")
breakers()
tap.eq(tapsys.cordon(programs, ["audit", "verify"], WHO).code, 0, "the audit of all of it is whole")
tap.done()
