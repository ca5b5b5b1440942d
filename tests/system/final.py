#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The machine's policy binds callers: with a real /etc/cordon/policy.yaml, in a mount namespace of the test's own."""
import os
import pathlib
import subprocess
import sys

import exits
import tapsys
from httptest import Site
from mcptest import Connection, Server, appears, connects, start, stop, text
from tapsys import Tap, users

if os.geteuid() == 0 and "FINAL_INSIDE" not in os.environ:  # a copy of /etc that only this test sees
    os.environ["FINAL_INSIDE"] = "1"
    os.execv("/usr/bin/unshare", ["unshare", "-m", "--propagation", "private", "/usr/bin/python3", *sys.argv])

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
PINNED = programs.dir / "pinned"


def prepare():
    etc = programs.dir / "etc"
    subprocess.run(["cp", "-a", "/etc", etc], check=True)
    (etc / "cordon").mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", etc, "/etc"], check=True)
    PINNED.mkdir(mode=0o755)
    for uid in (0, tapsys.ROOTLESS):
        (PINNED / str(uid)).mkdir(mode=0o700)
        os.chown(PINNED / str(uid), uid, uid)


def machine(text):
    pathlib.Path("/etc/cordon/policy.yaml").write_text(text)


def file_of(who, name, text):
    path = programs.dir / f"{who}-{name}"
    path.write_text(text)
    path.chmod(0o644)
    return path


def free(who):
    """An environment that names no state folder."""
    return {"CORDON_STATE": "", "XDG_RUNTIME_DIR": "", "XDG_CONFIG_HOME": "/nonexistent", "XDG_STATE_HOME": str(programs.dir / f"{who}-elsewhere")}


def run(who, *options, env=None):
    return tapsys.cordon(programs, ["run", "--json", "--no-wait", *options, "-"], who, env={**free(who), **(env or {})}, text="print(1)\n")


def test(who):
    uid = 0 if who == "root" else tapsys.ROOTLESS
    other = programs.dir / f"{who}-other"
    other.mkdir(mode=0o700)
    os.chown(other, uid, uid)
    machine(f"final: [approval, ceilings, run.profiles, run.mode, run.role, run.memory_by, state]\n"
            f"state: {{folder: '{PINNED}/{{uid}}'}}\nceilings: {{timeout: 40s}}\nrun: {{profiles: [strict, standard]}}\n")
    r = run(who)
    tap.ok(r["status"] == "ok" and (PINNED / str(uid) / "audit").is_dir(), f"{who}: a run under the machine's policy is recorded in the pinned folder", r.story())
    shown = tapsys.cordon(programs, ["audit", "show", r["id"] or "none"], who, env=free(who))
    tap.ok(shown.code == 0 and (r["id"] or "none") in shown.out, f"{who}: cordon audit reads the pinned folder", shown.story())
    r = run(who, env={"CORDON_STATE": str(other)})
    tap.ok(r["status"] == "refused" and str(PINNED) in (r["reason"] or "") and not any(other.iterdir()),
           f"{who}: CORDON_STATE cannot name another state folder", r.story())
    r = run(who, env={"CORDON_STATE": f"{PINNED}/{uid}"})
    tap.eq(r["status"], "ok", f"{who}: CORDON_STATE may name the pinned folder", r.story())
    r = run(who, "--profile", "open")
    tap.ok(r.code == exits.NEVER_RAN and "open" in r.err, f"{who}: --profile does not pass the machine's policy", r.story())
    for options, what in ((("--mode", "landlock"), "run.mode is final"), (("--timeout", "50s"), "ceiling"),
                          (("--role", "explore"), "run.role is final"), (("--memory-by", "rlimit"), "run.memory_by is final")):
        r = tapsys.cordon(programs, ["exec", *options, "--", "/bin/true"], who, env=free(who))
        tap.ok(r.code == exits.NEVER_RAN and what in r.err, f"{who}: {' '.join(options)} does not pass the machine's policy", r.story())
    r = run(who, "--profile", "standard", "--timeout", "10s", "--role", "execute")
    tap.eq(r["status"], "ok", f"{who}: options of run within the machine's policy are taken", r.story())
    r = tapsys.cordon(programs, ["exec", "--mode", "full", "--timeout", "10s", "--", "/bin/true"], who, env=free(who))
    tap.eq(r.code, 0, f"{who}: options of exec within the machine's policy are taken", r.story())
    machine("final: [approval]\napproval: {mode: HITL}\n")
    lax = file_of(who, "lax.yaml", "approval: {mode: AUTONOMOUS}\n")
    state = {"CORDON_STATE": str(other)}
    r = run(who, env=state)
    tap.eq(r["status"], "denied", f"{who}: a machine that asks a person denies a run that does not wait", r.story())
    r = run(who, "--policy", lax, env=state)
    tap.ok(r.code == exits.NEVER_RAN and "approval.mode is final" in r.err, f"{who}: --policy does not walk around the approval", r.story())
    tight = file_of(who, "tight.yaml", "limits: {timeout: 5s}\n")
    r = run(who, "--policy", tight, env=state)
    tap.eq(r["status"], "denied", f"{who}: --policy may still tighten", r.story())
    machine("approval: {mode: HITL}\n")
    r = run(who, "--policy", lax, env=state)
    tap.eq(r["status"], "ok", f"{who}: what is not final can be changed by --policy", r.story())


# Each way to the gate: words of the command line, input.
WAYS = [
    (["run", "-"], "print(1)\n"), (["exec", "--", "/bin/true"], None), (["repl"], "print(1)\n"),
    (["session", "new", "s"], None), (["session", "run", "s", "-c", "print(1)"], None), (["session", "list"], None),
    (["session", "fork", "s"], None), (["session", "close", "s"], None), (["pool", "start"], None), (["pool", "status"], None),
    (["workspace", "create", "w"], None), (["workspace", "list"], None), (["run", "--workspace", "w", "-"], "print(1)\n"),
    (["serve", "--stdio"], ""), (["check", "-"], "print(1)\n"), (["approve", "list"], None), (["stop"], None), (["resume"], None),
    (["audit", "tail"], None), (["audit", "verify"], None), (["doctor"], None),
]

ADMIN = ("approve", "stop", "resume", "audit")


def every_way(who):
    """No command, and no front of one, walks around what the machine's policy has made final."""
    uid = 0 if who == "root" else tapsys.ROOTLESS
    other, home = programs.dir / f"{who}-anywhere", programs.dir / f"{who}-home"
    for folder in (other, home, home / "cordon"):
        folder.mkdir(mode=0o700)
        os.chown(folder, uid, uid)
    machine(f"final: [state]\nstate: {{folder: '{PINNED}/{{uid}}'}}\n")
    walked = []
    for words, text in WAYS:
        if who == "root" and words[0] in ADMIN:
            continue  # root looks after the folders of others
        r = tapsys.cordon(programs, words, who, env={**free(who), "CORDON_STATE": str(other)}, text=text)
        told = r.code != 0 and str(PINNED) in r.err + r.out
        if any(other.iterdir()) or not (told or words[0] in ("check", "serve")):  # these two need none before a program runs
            walked.append(f"{' '.join(words)}: {r.story()} {list(other.iterdir())}")
    tap.eq(walked, [], f"{who}: no command uses a state folder of the caller's choice where the machine's policy pins one")
    with Server(programs, who=who, env={**free(who), "CORDON_STATE": str(other)}) as s:
        r = s.tool("execute_code", code="print(1)")
        tap.ok((r.get("structuredContent") or {}).get("status") == "refused" and not any(other.iterdir()),
               f"{who}: a client of serve uses no state folder of its choice where the policy pins one", r)
    r = tapsys.cordon(programs, ["session", "new", "s"], who, env=free(who))
    tap.ok(r.code == 0 and (PINNED / str(uid) / "run").is_dir(), f"{who}: the holder of a pinned state folder listens in it", r.story())
    tapsys.cordon(programs, ["pool", "stop", "--force"], who, env=free(who))

    machine("final: [approval]\napproval: {mode: HITL, expiry: 200ms}\n")
    lax = file_of(who, "laxer.yaml", "approval: {mode: AUTONOMOUS}\n")
    state = {**free(who), "CORDON_STATE": str(other)}
    walked = []
    for words, text in [w for w in WAYS if w[0][0] in ("run", "exec", "check", "repl", "serve") or w[0][:2] in (["session", "new"], ["session", "run"])]:
        for options, env in ((["--policy", str(lax)], state), ([], {**state, "XDG_CONFIG_HOME": str(home)})):
            (home / "cordon/policy.yaml").write_text("approval: {mode: AUTONOMOUS}\n")
            os.chown(home / "cordon/policy.yaml", uid, uid)
            at = 2 if words[0] == "session" else 1
            r = tapsys.cordon(programs, [*words[:at], *options, *words[at:]], who, env=env, text=text)
            if r.code == 0 or "approval.mode is final" not in r.err + r.out:
                walked.append(f"{' '.join([*words[:at], *options, *words[at:]])}: {r.story()}")
    tap.eq(walked, [], f"{who}: neither --policy nor a policy of the user's own loosens what is final, in any command that runs or judges code")
    with Server(programs, "--profile", "standard", who=who, env=state) as s:
        r = s.tool("execute_code", code="print(1)")
        tap.eq((r.get("structuredContent") or {}).get("status"), "denied", f"{who}: a client of serve is denied what a person must approve", r)
        made = (s.tool("session", action="new").get("structuredContent") or {}).get("session_id")
        r = s.tool("execute_code", code="print(1)", session_id=made or "none")
        tap.ok(made and (r.get("structuredContent") or {}).get("status") == "denied", f"{who}: a call in a session of a client of serve is denied what a person must approve", made, r)
    tapsys.cordon(programs, ["pool", "stop", "--force"], who, env=state)
    machine("final: [rates, ceilings]\nrates: {executions: 3, window: 10m}\nlimits: {timeout: 1s}\nceilings: {timeout: 2s}\n")
    (other / "gate.live").unlink()  # its rates begin anew
    with Server(programs, who=who, env=state) as s:
        r = s.tool("execute_code", code="while True: pass", timeout_ms=60000)["structuredContent"]
        tap.ok(r["status"] == "timeout" and r["usage"]["wall_ms"] < 30000 * tapsys.SLOW, f"{who}: a client of serve has the machine's ceiling", r)
    machine("final: [rates]\nrates: {executions: 3, window: 10m}\n")  # what is to run has the time to
    with Server(programs, who=who, env=state) as s:
        left = [s.tool("execute_code", code="print(1)")["structuredContent"]["status"] for _ in range(3)]
        tap.eq(left, ["ok", "ok", "denied"], f"{who}: a client of serve has the machine's rates")


def interfaces(who, env, *options):
    """The tool function of a client of each interface of one server."""
    with Server(programs, *options, who=who, env=env) as s:
        yield "--stdio", s.tool
    folder = programs.dir / f"{who}-socket"
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        os.chown(folder, *[0 if who == "root" else tapsys.ROOTLESS] * 2)
    if who != "root":  # who connects must be the same user, and the test is root
        with Site(programs, *options, who=who, env=env) as h:
            yield "--http", h.tool
        return
    process = start(programs, ["--socket", str(folder / "s"), *options], who, env)
    appears(lambda: connects(folder / "s"))
    with Connection(folder / "s") as c:
        yield "--socket", c.tool
    process.send_signal(15)
    stop(process)
    with Site(programs, *options, who=who, env=env) as h:
        yield "--http", h.tool


def every_interface(who):
    """A client of a server, by whichever interface, has the machine's lids over it, and chooses nothing beyond them."""
    other = programs.dir / f"{who}-served"
    other.mkdir(mode=0o700)
    os.chown(other, *[0 if who == "root" else tapsys.ROOTLESS] * 2)
    env = {**free(who), "CORDON_STATE": str(other)}
    final = "final: [run.profiles, run.role, ceilings, limits, approval, roles, breakers]\nrun: {profiles: [strict]}\n"
    wide, narrow = (final + f"limits: {{timeout: {t}}}\nceilings: {{timeout: {t}}}\n" for t in ("40s", "1s"))
    machine(wide)
    lax = [file_of(who, f"lax-{i}.yaml", text) for i, text in enumerate((
        "run: {profiles: [strict, open]}\n", "run: {role: analyze}\n", "ceilings: {timeout: 10m}\n", "approval: {elicitation: true}\n", "roles: {execute: {tools: [ReadFile]}}\n"))]
    walked = []
    for where in (["--stdio"], ["--socket", str(programs.dir / "none" / "s")], ["--http", "127.0.0.1:0"]):
        for options, word in ((["--profile", "open"], "open"), (["--role", "analyze"], "run.role is final"), (["--timeout", "50s"], "ceiling"),
                              *((["--policy", str(f)], " final") for f in lax)):
            r = tapsys.cordon(programs, ["serve", *where, *options], who, env=env, text="")
            if r.code != 2 or word not in r.err:
                walked.append(f"{where[0]} {options}: {r.story()}")
    tap.eq(walked, [], f"{who}: no server begins, at any interface, with a profile, a role, a limit or a policy beyond what is final: it is a usage error, 2")
    for where, tool in interfaces(who, env):
        for name in ("policy", "profile", "role", "state", "approval"):
            r = tool("execute_code", code="print(1)", **{name: "open"})
            tap.ok(r["isError"] and name in text(r) and "structuredContent" not in r, f"{who}: {where}: a client cannot choose {name}", r)
        r = tool("execute_code", code="import ctypes")["structuredContent"]
        tap.eq(r["status"], "blocked", f"{who}: {where}: the machine's profile holds")
        machine(narrow)  # a ceiling cuts at once what the server began with
        r = tool("execute_code", code="while True: pass", timeout_ms=60000)["structuredContent"]
        tap.eq((r["status"], r["reason"]), ("timeout", "wall time limit of 1s"), f"{who}: {where}: a limit that a client asks for does not pass the policy's")
        for arguments in ({"action": "new", "profile": "open"}, {"action": "new", "workspace": "w"}):
            r = tool("session", **arguments)
            tap.ok(r["isError"] and ("profile" in text(r) or "workspace" in text(r)), f"{who}: {where}: session {arguments} is refused", r)
        machine(wide)
    machine("final: [approval]\napproval: {mode: HITL, expiry: 200ms}\n")
    for where, tool in interfaces(who, env):
        r = tool("execute_code", code=f"print({len(where)})")
        tap.eq((r.get("structuredContent") or {}).get("status"), "denied", f"{who}: {where}: a client is denied what a person must approve", r)
    tapsys.cordon(programs, ["pool", "stop", "--force"], who, env=env)


if os.geteuid() != 0:
    tap.skip("the machine's policy", "only root can have a /etc of its own")
    tap.done()
prepare()
for who in users():
    test(who)
    every_way(who)
    every_interface(who)
tap.done()
