# SPDX-License-Identifier: Apache-2.0
"""Attacks in bash, each in the jail with canaries around it, and honest scripts that must print what they print outside.

Usage: shell_corpus.py BUILD. The repository's own (tests/cases/shell) always; those of ../shared/corpora besides
them, where that folder is."""
import collections
import hashlib
import os
import pathlib
import re
import socket
import sys

import corpus
import tapsys

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
tapsys.honest_first(tap, programs)
rows = corpus.own("shell") + corpus.collected("attacks/shell.jsonl")

# lines of the host that must not come out, and files that must not change
PRIVATE = ["/etc/shadow", "/etc/gshadow", "/root/.bashrc", "/root/.profile", "/etc/ssh/ssh_config", "/etc/hosts", "/etc/fstab",
           "/etc/sudoers", "/etc/crontab", "/etc/machine-id", "/etc/environment", "/proc/cmdline", "/proc/version"]
secrets = set()
for name in PRIVATE:
    try:
        secrets.update(l.strip() for l in pathlib.Path(name).read_text().splitlines() if len(l.strip()) > 24 and not l.strip().endswith("fi"))
    except OSError:
        pass
watched = [pathlib.Path(p) for p in PRIVATE[:5] + ["/etc/passwd", "/etc/group", "/etc/hosts"] if os.access(p, os.R_OK)]
digest = lambda: {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in watched}
tops = lambda: {d: sorted(os.listdir(d)) for d in ("/", "/etc", "/home", "/usr/local/bin") + (("/root",) if os.geteuid() == 0 else ()) if os.access(d, os.R_OK)}
before, before_tops = digest(), tops()

# the services these scripts send to
extra = [socket.create_server(("127.0.0.1", 5758)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
extra[1].bind(("127.0.0.1", 5388))
for s in extra:
    s.setblocking(False)

# groups of the collection whose flaw is in their logic alone: no alarm may be raised over them
HARMLESS = {"12", "15", "22"}



def own_faults(row, r):
    bad = []
    if re.search("^REACHED", (r["stdout"] or "") + (r["stderr"] or ""), re.M):
        bad.append("it printed REACHED")
    if row["expect"] == "limit" and r["status"] not in ("timeout", "memory", "output"):
        bad.append(f"no limit held it: {r['status']}")
    if row["expect"] in ("works", "allow") and r["status"] != "ok":
        bad.append(f"status {r['status']}")
    if row["expect"] == "works" and r["stdout"] != row["output"]:
        bad.append(f"it printed {r['stdout']!r}, not {row['output']!r}")
    return bad


ended, alarmed = collections.Counter(), 0
for who in tapsys.users():
    canaries = tapsys.Canaries(programs, who)
    for row in rows:
        own = row.get("own")
        code = corpus.fill(row["code"], canaries) if own else row["code"]
        options = ["--timeout", "10s", *row.get("options", "--processes 32").split()]
        r = tapsys.exec_json(programs, options, ["/bin/bash", "-c", code], who, env=canaries.environment())
        bad = own_faults(row, r) if own else []
        if r["status"] not in ("ok", "error", "timeout", "output", "memory"):
            bad.append(f"status {r['status']}")
        text = (r["stdout"] or "") + (r["stderr"] or "")
        if row.get("red_marker") and row["red_marker"] in text:
            bad.append("its mark of success is in the output")
        leaked = [s for s in secrets if s in text]
        if leaked:
            bad.append(f"the host's own lines came out: {leaked[:2]}")
        for s in extra:
            try:
                bad.append(f"something arrived: {s.accept() if s.type == socket.SOCK_STREAM else s.recv(64)!r}")
            except BlockingIOError:
                pass
        group = re.sub(r"_.*", "", row["id"].split("/")[-1])
        harmless = row["expect"] in ("allow", "works") if own else group in HARMLESS
        if harmless and r["violations"]:
            bad.append(f"a false alarm: {r['violations'][:2]}")
        bad += canaries.faults()
        if digest() != before or tops() != before_tops:
            bad.append("files of the host changed")
        ended[r["status"]] += 1
        alarmed += bool(r["violations"])
        tap.ok(not bad, f"{who}: {row['id']}", *bad, r.story())
    canaries.close()
tap.figure(f"shell corpus: {len(rows)} scripts, ended {dict(ended)}, {alarmed} with violations")
tap.done()
