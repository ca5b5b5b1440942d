# SPDX-License-Identifier: Apache-2.0
"""What holds for every language that has a worker, from one list (languages.py).

Usage: mechanisms.py BUILD. A warm child says what a cold run says; a session keeps what calls bind, is interrupted, asked for input, forked;
refusals are not hidden by a crowd of others; forged messages are not believed; of a model's answer only the program goes on; without judge and guards a program of strict reaches nothing."""
import atexit
import hashlib
import json
import re
import shutil
import subprocess
import sys

import gatetest
import languages
import pooltest
import tapsys
from wiretest import TYPES, frame, head

BUILD = sys.argv[1]


def seen(r):
    """All that a result says about what the program did; addresses and times differ from process to process."""
    def plain(text):
        return re.sub(r"0x[0-9a-f]{8,}", "0x", text or "")
    return [r["status"], plain(r["stdout"]), plain(r["stderr"]), plain(r["value"]), r["final"], r["exit_code"], r["signal"], (r["error"] or {}).get("type"),
            plain((r["error"] or {}).get("message")), (r["error"] or {}).get("line"), sorted((v["layer"], v["rule"], v["outcome"]) for v in r["violations"] or ())]


def run(language, profile, text, who, *options):
    return tapsys.cordon(programs, ["run", "--json", "--lang", language.name, "--intake", "source", "--profile", profile, "--stdin", given, *options, "-"], who, text=text)


ZONE = ["--env", "TZ=UTC"]


def cold(profile):
    """No child of the pool has a mount of the run's own; under strict, where programs of two languages would not see one, none has a time zone."""
    return ZONE if profile == "strict" else [*ZONE, "--ro", "/usr/share"]


def leases(u):
    return u.status()["leases"] or 0


def same_warm(u, language):
    profiles = ("strict", "standard", "open")
    r = u("pool", "start", "--lang", language.name, *[w for p in profiles for w in ("--profile", p)])
    names = [p if language.name == "python" else f"{language.name}:{p}" for p in profiles]
    tap.ok(r.code == 0 and pooltest.until(lambda: all(u.full(n) for n in names)), f"{u.who}: {language.name}: the pool has children of every profile", r.story(), u.status())
    programs_of = [*language.answers, *language.ends, ("open", language.attempts)]
    before = leases(u)
    for profile, text in programs_of:
        alone = run(language, profile, text, u.who, *cold(profile))
        warm = u.warm(lambda: run(language, profile, text, u.who, *(ZONE if profile != "strict" else [])))
        tap.eq(seen(warm), seen(alone), f"{u.who}: {language.name}: {profile}: a warm child says what a cold run says: {text.strip().splitlines()[-1]}", alone.story())
        if text == language.attempts:
            tap.ok(len(alone["violations"]) >= 5 and alone["stdout"] == "done\n", f"{u.who}: {language.name}: open: what the kernel refuses is told", alone.story())
    status = u.status()
    tap.ok(leases(u) - before == len(programs_of) and all(t["crashes"] == 0 for t in status["templates"]), f"{u.who}: {language.name}: each of them was warm, and no template died", status)


def interrupted(u, name, text):
    """A call that says `on` and stays, interrupted once it has said so."""
    p = subprocess.Popen(programs.command(["session", "run", "--events", name, "-c", text], u.who), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                         env=tapsys.clean_env(None, u.who), text=True)
    lines = []
    for line in p.stdout:
        lines.append(json.loads(line))
        if "on\n" in "".join(x.get("text", "") for x in lines):  # written in one piece, or in two
            said = u("session", "interrupt", name)
            if said.code:
                p.kill()
                return {"interrupt": said.story()}
            break
    lines += [json.loads(line) for line in p.stdout]
    p.wait()
    return lines[-1].get("result", {}) if lines else {}


def session(u, language):
    calls = language.session
    for profile in ("strict", "standard"):
        name, branch = f"{language.name}-{profile}", f"{language.name}-{profile}-branch"
        about = f"{u.who}: {language.name}: {profile}"
        made = u("session", "new", "--lang", language.name, "--profile", profile, name)
        tap.ok(made.code == 0 and u.sessions().get(name, {}).get("language") == language.name, f"{about}: a session is made, and listed with its language", made.story())
        r = u.cell(name, calls["binds"])
        tap.ok(r["status"] == "ok" and [u.cell(name, calls["counts"])["value"] for _ in range(2)] == ["7", "8"], f"{about}: a session keeps what a call has bound", r.story())
        r = u("session", "fork", name, branch)
        counted = [u.cell(s, calls["counts"])["value"] for s in (branch, branch, name)]
        tap.eq((r.code, counted), (0, ["9", "10", "9"]), f"{about}: a branch goes on by itself, and so does its session", r.story())
        for s in (name, branch):
            r, again = (u.cell(s, calls["reads"], "--stdin", str(given)) for _ in range(2))
            tap.eq((r["stdout"], again["stdout"]), ("a line\n", "a line\n"), f"{about}: {s}: each call reads its own input", r.story())
            r = u.cell(s, calls["refused"])
            tap.ok(r["status"] == "blocked" and u.cell(s, calls["counts"])["status"] == "ok", f"{about}: {s}: a call that is refused leaves the session alive", r.story())
            r = interrupted(u, s, calls["runs"])
            tap.eq((r.get("error") or {}).get("type"), calls["interrupt"], f"{about}: {s}: an interrupt ends a call that computes", r)
            r = interrupted(u, s, calls["sleeps"])
            tap.ok(r.get("status") == "ok" and not r.get("violations"), f"{about}: {s}: an interrupt wakes a call that sleeps, and can be caught", r)
        r = u.cell(name, calls["asks"], "--tool", "echo")
        tap.eq(r["stdout"], "[5]\n", f"{about}: a program calls a tool", r.story())
        r = u.cell(name, calls["ends"])
        tap.ok(r["is_final"] and r["final"] == u.cell(name, calls["variable"])["value"], f"{about}: FINAL ends the call, and the session goes on", r.story())
        u("session", "close", branch)
        u("session", "close", name)
    text, printed = language.typed
    r = u("repl", "--lang", language.name, text=text)
    tap.eq(r.out, printed, f"{u.who}: {language.name}: a prompt takes blocks of several lines, and _ is the last value", r.story())


def crowd(u, language):
    for way, options in (("cold", cold("open")), ("warm", [])):
        r = run(language, "open", language.crowds, u.who, *options)
        tap.ok(r["status"] == "ok" and r["stdout"] == "done\n" and not languages.MATTER - set(r.rules()) and (r["violations_total"] or 0) >= 1204,
               f"{u.who}: {language.name}: {way}: 1,200 refused mounts hide none of four other refusals, and each is counted", r.rules(), r["violations_total"], r["stderr"])


FORGED = {
    "a REPORT that clears the program after it ran": frame("REPORT", 1, 0),
    "an EVENT in the name of the supervisor's filter": frame("EVENT", b"syscalls", b"seccomp.execve", b"x", b"", 0),
    "an EVENT of a rule that nobody has": frame("EVENT", b"input", b"made.up", b"x", b"", 0),
    "half a message": frame("DONE", 0)[:-1],
    "a READY in the wrong place": frame("READY"),
    "a METHOD, which is the supervisor's": frame("METHOD"),
}


def forged(u, language):
    for name, message in FORGED.items():
        r = run(language, "open", language.forges % message.hex(), u.who)
        tap.ok(r["status"] == "error" and (r["error"] or {}).get("type") == "ProtocolError", f"{u.who}: {language.name}: {name} ends the run as a broken channel", r.story())
    r = run(language, "open", language.forges % frame("VALUE", 1, b"</stdout> forged").hex(), u.who)
    tap.ok(r["status"] == "ok" and r["value"] == "</stdout> forged" and r["stdout"] == "went on\n", f"{u.who}: {language.name}: a VALUE is the program's own word, and data", r.story())
    name, numbers = f"{language.name}-stays", {k.lower(): head(0, TYPES[k][0]).hex() for k in ("DONE", "JOB", "REPORT", "GO")}
    u("session", "new", "--lang", language.name, "--profile", "open", name)
    r = u.cell(name, language.stays % numbers)
    tap.eq(r["status"], "ok", f"{u.who}: {language.name}: a guest says that its call is done, and stays", r.story())
    r = u.cell(name, "this is no program at all ((\n")
    tap.ok(r["status"] == "blocked" and "syntax" in r.rules(), f"{u.who}: {language.name}: a guest that stayed does not pass for the judge of the next call", r.story())
    u("session", "close", name)


def guards_lost(u, language):
    """The worker without its judge and guards: what is left is the jail and the table of computation."""
    ours = programs.bin / language.worker
    kept = ours.read_bytes()
    if not (programs.probes / language.lost).exists():
        tap.skip(f"{u.who}: {language.name}: a worker without judge and guards reaches nothing", f"{language.lost} is not built")
        return
    ours.unlink()  # templates run it
    shutil.copy2(programs.probes / language.lost, ours)
    try:
        r = run(language, "strict", language.reaches, u.who, *cold("strict"))
        tap.ok(r["stdout"] == "done\n" and r["violations"], f"{u.who}: {language.name}: strict: a program whose judge and guards are lost reaches nothing, and it is told", r.story())
    finally:
        ours.unlink()
        ours.write_bytes(kept)
        ours.chmod(0o755)


def taken_in(u, language):
    """Of a model's answer only the program goes further than intake: what stands around it is in no record, and nothing that is too long is judged."""
    s = gatetest.State(programs, u.who)
    profile, program = language.answers[0]
    raw = f"<think>private-thought</think>\nprivate-prose\n```{language.name}\n{program}```\nprivate-end\n"
    r = s.run("run", "--json", "--profile", profile, "--intake", "text", "-", text=raw)
    took, records = r["intake"] or {}, json.dumps(s.audit())
    tap.ok(r["status"] == "ok" and took.get("language") == language.name and took.get("line") == 4, f"{u.who}: {language.name}: the block of an answer is run, and where it stood is told", r.story())
    alone = s.run("run", "--json", "--profile", profile, "--lang", language.name, "--intake", "source", "-", text=program)
    begins = [e["code_hash"] for e in s.audit() if e["kind"] == "begin"]
    tap.ok("private-" not in records and begins == [hashlib.sha256(program.encode()).hexdigest()] * 2, f"{u.who}: {language.name}: the record has the program alone, as if it had come by itself", alone.story(), begins)
    for how in ("text", "source"):
        long = s.run("run", "--json", "--profile", profile, "--lang", language.name, "--intake", how, "-", text=program * ((1 << 20) // len(program) + 2))
        tap.ok(long["status"] == "blocked" and long.rules() == ["size"], f"{u.who}: {language.name}: {how}: more than a megabyte is refused by its size", long.story())
    s.close()


def differently_compiled(u):
    """A variable of an earlier call decides what a text means: the judge compiles it with that variable."""
    u("session", "new", "--lang", "ruby", "--profile", "standard", "divides")
    u.cell("divides", "x = 6\n")
    r = u.cell("divides", "x /system('ls');1#/\n")
    tap.ok(r["status"] == "blocked" and "rb.call.process" in r.rules(), f"{u.who}: ruby: a division that would be a pattern without its variable is judged as a division", r.story())
    r = u.cell("divides", "y /system('ls');1#/\n")
    tap.ok(r["status"] == "error" and (r["error"] or {}).get("type") == "NoMethodError", f"{u.who}: ruby: without the variable it is a pattern, and that runs", r.story())
    u("session", "close", "divides")


tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
programs = tapsys.Programs(BUILD)
languages.arm(programs)
given = programs.dir / "mechanisms-input"
given.write_text("a line\n")
given.chmod(0o644)
tap = tapsys.Tap()
r = tapsys.cordon(programs, ["doctor"])
# TypeScript is JavaScript's worker: what is true of that one is true of it
told = [name for name in re.search("^Languages: (.*)$", r.out, re.M)[1].split() if name != "typescript"]
tap.ok(told == [l.name for l in languages.built(programs)], "cordon doctor tells which languages are there", r.out)
for who in tapsys.users()[-1:]:
    u = pooltest.User(tap, programs, who)
    atexit.register(tapsys.cordon, programs, ["pool", "stop", "--force"], who)
    for language in languages.built(programs):
        u("pool", "stop", "--force")  # a holder has places for two languages in every profile
        same_warm(u, language)
        session(u, language)
        crowd(u, language)
        forged(u, language)
        taken_in(u, language)
    if languages.RUBY in languages.built(programs):
        differently_compiled(u)
    for language in languages.built(programs):
        guards_lost(u, language)
tap.done()
