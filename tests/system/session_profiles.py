#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions in a profile that the policy made, or in a built-in one that it changed: its rules hold while the program runs, in every call and
every fork; and a session whose profile was withdrawn or changed since is not called any more.

Usage: session_profiles.py BUILD [standard-only]. standard-only: without a session of a profile that only computes, whose template takes 0.8 s to load
and so, where the processor is emulated, longer than the 30 s for which a session is waited for."""
import sys

sys.dont_write_bytecode = True
from mcptest import Server, text
from pooltest import User
from tapsys import until, users
from workspacetest import TOP, own_disks, programs, tap

own_disks(users())
LONG = "profile_" + "x" * 56
POLICIES = {
    "made": "profiles: {science: {base: standard, rules: [{kind: module-deny, name: json}]}, %s: {base: standard}}\nrun: {profiles: [strict, standard, science, %s]}\n" % (LONG, LONG),
    "computes": "profiles: {sums: {base: strict, packages: true, remove: [py.module.numpy], rules: [{kind: import-allow, name: numpy}, {kind: attribute-deny, name: tofile}]}}\n"
                "run: {profiles: [strict, sums]}\n",
    "changed": "profiles: {standard: {rules: [{kind: module-deny, name: json}]}}\n",
    "changed-more": "profiles: {standard: {rules: [{kind: module-deny, name: json}, {kind: module-deny, name: csv}]}}\n",
    "usual": "run: {profiles: [strict, standard, open]}\n",
    "strict-alone": "run: {profiles: [strict]}\n",
}
IMPORT = "try:\n    print(__import__('js' + 'on').__name__)\nexcept PermissionError as e:\n    print('refused', 'py.module-deny.json' in str(e))"


def policy(name):
    path = TOP / f"{name}.yaml"
    path.write_text(POLICIES[name])
    path.chmod(0o644)
    return str(path)


def rule_of(r):
    return [v["rule"] for v in (r.json or {}).get("violations", ())]


def made(u):
    p = ["--policy", policy("made")]
    s = u.new(*p, "--profile", "science")
    r = u.cell(s, "x = 7\nimport csv, threading\nprint(x, csv.__name__)", *p)
    u.ok(r["stdout"] == "7 csv\n", "a session in a profile of the policy runs, with what its base has", r, s)
    r = u.cell(s, IMPORT, *p)
    u.ok(r["stdout"] == "refused True\n", "a rule of the policy holds in it where the judge cannot see it", r)
    r = u.cell(s, "import json", *p)
    u.ok(r["status"] == "blocked" and rule_of(r) == ["py.module-deny.json"], "a rule of the policy holds in it where the judge sees it", r)
    u.ok(u.template("science").get("state") == "own", "a session in a profile of the policy has a template of its own", u.status())
    fork = u("session", "fork", s, "twin")
    r = u.cell("twin", "print(x)\n" + IMPORT, *p)
    u.ok(r["stdout"] == "7\nrefused True\n", "a fork has its values and its rules", r, fork)
    r = u("session", "new", *p, "--profile", LONG)
    u.ok(r.code == 0 and u.cell(r.out.strip(), "print(1)", *p)["stdout"] == "1\n", "a profile may have a name of 64 letters", r)
    for name in u.sessions():
        u("session", "close", name)
    u.ok(until(lambda: not u.template("science")), "the template ends with the last of its sessions", u.status())


def computes(u):
    p = ["--policy", policy("computes"), "--profile", "sums"]
    s = u.new(*p)
    r = u.cell(s, "import numpy\na = numpy.arange(4)\nprint(a.sum())", *p[:2])
    u.ok(r["stdout"] == "6\n", "a profile that only computes loads what its rules allow", r, s)
    r = u.cell(s, "open('f', 'w').write('kept'); print(a[1:], open('f').read())", *p[:2])
    u.ok(r["stdout"] == "[1 2 3] kept\n", "the next call in such a profile goes on, with files that are served", r)
    r = u.cell(s, "getattr(a, 'to' + 'file')('x')", *p[:2])
    u.ok(r["status"] != "ok" and "tofile" in str(r.json), "guards in a session have the rules of the policy", r)


def changed(u):
    p = ["--policy", policy("changed")]
    s = u.new(*p, "--profile", "standard")
    r = u.cell(s, IMPORT, *p)
    u.ok(r["stdout"] == "refused True\n", "a rule that the policy adds to a built-in profile holds in a session while it runs", r, s)
    plain = u.new("--policy", policy("usual"), "--profile", "standard")
    r = u.cell(plain, "y = 1\nopen('kept', 'w').write('data')\n" + IMPORT, "--policy", policy("usual"))
    u.ok(r["stdout"] == "json\n", "what one policy changed is in no session that another one made", r)
    rows = (("changed-more", s, "has changed its rules"), ("usual", s, "has changed its rules"), ("changed", plain, "has changed its rules"),
            ("strict-alone", plain, "run.profiles"))
    for name, session, why in rows:
        r = u.cell(session, "print(1)", "--policy", policy(name))
        u.ok(r["status"] == "denied" and rule_of(r) == ["gate.profile"] and why in r["reason"] and session in r["reason"] and "new session" in str(r["violations"]),
             f"a session is not called under a policy by which it would not have been made so: {name}, {why}", r)
        seen = u("audit", "tail", "--json", "--lines", "1")
        u.ok("gate.profile" in seen.out and r["id"] in seen.out, f"a call that is denied for its profile is on record: {name}, {why}", seen)
    u.ok(u("session", "get", "--policy", policy("strict-alone"), plain, "kept", "-").out == "data", "files of a session that is not called any more can be copied", u.sessions())
    r = u.cell(plain, "print(y)", "--policy", policy("usual"))
    u.ok(r["stdout"] == "1\n", "under a policy as it was the session goes on", r)
    mine = u.new("--policy", policy("made"), "--profile", "science")
    r = u.cell(mine, "print(1)", "--policy", policy("usual"))
    u.ok(r["status"] == "denied" and rule_of(r) == ["gate.profile"] and "no such profile" in r["reason"] and "science" in r["reason"],
         "a session whose profile is in the policy no more is not called", r)


def served(u):
    with Server(programs, "--policy", policy("made"), "--profile", "science", who=u.who) as s:
        one = s.tool("session", action="new")["structuredContent"]["session_id"]
        r = s.tool("execute_code", session_id=one, code=IMPORT)
        u.ok(r["structuredContent"]["stdout"] == "refused True\n", "a server with such a profile makes sessions in it", text(r))


for person in users():
    user = User(tap, programs, person)
    made(user)
    if "standard-only" not in sys.argv:
        computes(user)
    changed(user)
    served(user)
    user.ok(user("audit", "verify").code == 0, "the audit of all of it is whole")
    user("pool", "stop", "--force")
tap.done()
