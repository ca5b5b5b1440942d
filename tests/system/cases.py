# SPDX-License-Identifier: Apache-2.0
"""Runs tests/cases/jail: attacks and their benign twins as data files, one program text each.

Usage: cases.py BUILD CASES-FOLDER. A case is header lines, a line of three dashes, and the payload:

    language: shell | python        what runs it
    expect:   contained | works     an attack, or an honest twin
    twin:     NAME.case             attacks only: the honest one of the same family
    options:  --processes 8         of `cordon exec`; {rw} {ro} {secret} {port} {word} are filled in
    rule:     seccomp\\.connect      a violation that must be listed (regular expression)
    status:   ok|error              how the run may end; ok for twins unless said
    present:  REGEX                 must be in stdout
    absent:   REGEX                 must not be in stdout or stderr (a line REACHED… never may)"""
import collections
import os
import pathlib
import re
import sys

import tapsys

BUILD, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
KNOWN = {"language", "expect", "twin", "options", "rule", "status", "present", "absent"}
RUNNERS = {"shell": ["/bin/bash", "-c"], "python": ["/usr/bin/python3", "-I", "-c"]}


def read(path):
    head, dashes, payload = path.read_text().partition("\n---\n")
    case = {"payload": payload, "path": path}
    for line in head.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon or key not in KNOWN:
            raise ValueError(f"{path}: not a header line: {line!r}")
        case[key] = value.strip()
    if not dashes or case.get("language") not in RUNNERS or case.get("expect") not in ("contained", "works"):
        raise ValueError(f"{path}: no language, no expect or no ---")
    return case


tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
tapsys.honest_first(tap, programs)
cases = [read(p) for p in sorted(FOLDER.rglob("*.case"))]
attacks = [c for c in cases if c["expect"] == "contained"]
tap.ok(len(attacks) > 0, "there are cases", FOLDER)
for c in attacks:
    twin = c["path"].parent / c.get("twin", "none")
    if not twin.exists() or read(twin)["expect"] != "works":
        tap.ok(False, f"{c['path'].relative_to(FOLDER)} has a benign twin", twin)
tap.ok(all((c["path"].parent / c.get("twin", "none")).exists() for c in attacks), "every attack has a benign twin in its family")

count = collections.Counter()
for who in tapsys.users():
    canaries = tapsys.Canaries(programs, who)
    for c in cases:
        canaries.fresh_rw()
        (canaries.rw / "input").write_text("some input\n")
        os.chown(canaries.rw / "input", canaries.rw.stat().st_uid, canaries.rw.stat().st_gid)
        name = c["path"].relative_to(FOLDER)
        payload = c["payload"]
        for key in ("ro", "rw", "secret", "port", "word", "pid", "abstract", "udp"):
            payload = payload.replace("{" + key + "}", canaries.fill("{" + key + "}")[0])
        options = [*tapsys.LONG, *canaries.fill(c.get("options", ""))]
        r = tapsys.exec_json(programs, options, [*RUNNERS[c["language"]], payload], who, env=canaries.environment())
        text = (r["stdout"] or "") + (r["stderr"] or "")
        bad = tapsys.shape_faults(r.json)
        allowed = c.get("status", "ok" if c["expect"] == "works" else "ok|error")
        if r["status"] not in allowed.split("|"):
            bad.append(f"status {r['status']}, not {allowed}")
        if re.search("^REACHED", text, re.M):
            bad.append("REACHED")
        if c.get("absent") and re.search(c["absent"], text, re.M):
            bad.append(f"{c['absent']!r} is in the output")
        if c.get("present") and not re.search(c["present"], r["stdout"] or "", re.M):
            bad.append(f"{c['present']!r} is not in stdout")
        if c.get("rule") and not any(re.search(c["rule"], x) for x in r.rules()):
            bad.append(f"no violation matches {c['rule']!r}: {r.rules()}")
        if c["expect"] == "works" and r["violations"]:
            bad.append(f"a false alarm: {r['violations'][:3]}")
        bad += canaries.faults()
        tap.ok(not bad, f"{who}: {name}", *bad, r.story())
        count[c["expect"], name.parts[0]] += 1
    canaries.close()
rounds = len(tapsys.users())
tap.figure("cases: " + ", ".join(f"{family} {n // rounds}" for (kind, family), n in sorted(count.items()) if kind == "contained")
           + f"; {sum(n for (k, _), n in count.items() if k == 'works') // rounds} honest twins")
tap.done()
