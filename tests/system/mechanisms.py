# SPDX-License-Identifier: Apache-2.0
"""What holds for every language that has a worker, from one list (languages.py).

Usage: mechanisms.py BUILD. A warm child says what a cold run says."""
import atexit
import re
import sys

import languages
import pooltest
import tapsys

BUILD = sys.argv[1]


def seen(r):
    """All that a result says about what the program did; addresses and times differ from process to process."""
    def plain(text):
        return re.sub(r"0x[0-9a-f]{8,}", "0x", text or "")
    return [r["status"], plain(r["stdout"]), plain(r["stderr"]), plain(r["value"]), r["final"], r["exit_code"], r["signal"], (r["error"] or {}).get("type"),
            plain((r["error"] or {}).get("message")), (r["error"] or {}).get("line"), sorted((v["layer"], v["rule"], v["outcome"]) for v in r["violations"] or ())]


def run(language, profile, text, who, *options):
    return tapsys.cordon(programs, ["run", "--json", "--lang", language.name, "--intake", "source", "--profile", profile, "--stdin", given, *options, "-"], who, text=text)


COLD = ["--env", "TZ=UTC", "--ro", "/usr/share"]  # a mount of its own: no child of the pool has it


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
        cold, warm = (run(language, profile, text, u.who, *options) for options in (COLD, ["--env", "TZ=UTC"] if profile != "strict" else []))
        tap.eq(seen(warm), seen(cold), f"{u.who}: {language.name}: {profile}: a warm child says what a cold run says: {text.strip().splitlines()[-1]}", cold.story())
        if text == language.attempts:
            tap.ok(len(cold["violations"]) >= 5 and cold["stdout"] == "done\n", f"{u.who}: {language.name}: open: what the kernel refuses is told", cold.story())
    status = u.status()
    tap.ok(leases(u) - before == len(programs_of) and all(t["crashes"] == 0 for t in status["templates"]), f"{u.who}: {language.name}: each of them was warm, and no template died", status)


tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
programs = tapsys.Programs(BUILD)
given = programs.dir / "mechanisms-input"
given.write_text("a line\n")
given.chmod(0o644)
tap = tapsys.Tap()
for who in tapsys.users()[-1:]:
    u = pooltest.User(tap, programs, who)
    atexit.register(tapsys.cordon, programs, ["pool", "stop", "--force"], who)
    for language in languages.built(programs):
        same_warm(u, language)
tap.done()
