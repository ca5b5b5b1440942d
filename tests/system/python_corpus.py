# SPDX-License-Identifier: Apache-2.0
"""Python programs: attacks that must not succeed, honest ones that must run and print what they print without Cordon.

Usage: python_corpus.py BUILD attacks|benign|truth. The repository's own (tests/cases/python/attacks, .../benign) always;
those of ../shared/corpora besides them, where that folder is.

    attacks   each in every profile, as root and as a user, and by a warm pool; with canaries outside
    benign    each in every profile, without and with a pool: its output, byte for byte; strict may refuse where the case says by which rule
    truth     the output that a case states is what /usr/bin/python3 prints (and /bin/bash, ruby and node for the cases of theirs)"""
import atexit
import collections
import pathlib
import sys

import corpus
import tapsys

BUILD, WHAT = sys.argv[1:3]
PROFILES = ("strict", "standard", "open")


def run(code, profile, who, env=None, options=()):
    return tapsys.cordon(programs, ["run", "--json", "--profile", profile, "--timeout", "10s", *options, "-"], who, env=env, text=code)


def warm(who):
    r = tapsys.cordon(programs, ["pool", "start", *(w for p in PROFILES for w in ("--profile", p))], who)
    tap.eq(r.code, 0, f"{who}: a pool is started", r.err)
    atexit.register(tapsys.cordon, programs, ["pool", "stop", "--force"], who)  # also when the test itself breaks


def cool(who, least):
    """The pool is gone again, and has served."""
    r = tapsys.cordon(programs, ["pool", "status", "--json"], who)
    tap.ok((r["leases"] or 0) >= least, f"{who}: at least {least} runs were warm", r.story())
    tap.eq(tapsys.cordon(programs, ["pool", "stop"], who).code, 0, f"{who}: the pool is stopped")


# ---- attacks ----

def attacks():
    own, others = corpus.attacks()
    for who, pool in [(w, False) for w in tapsys.users()] + [(tapsys.users()[-1], True)]:
        canaries = tapsys.Canaries(programs, who)
        if pool:
            warm(who)
        for profile in PROFILES:
            def attack(row):
                quick = ["--timeout", "2s"] if row.get("own") and row["expect"] == "limit" else []
                code = corpus.fill(row["code"], canaries) if row.get("own") else row["code"]
                return run(code, profile, who, canaries.environment(), quick)

            ended = collections.Counter()
            for row, r in tapsys.side_by_side(attack, *((own, 1) if pool else (own + others,))):
                ended[r["status"]] += 1
                faults = corpus.attack_faults(row, profile, r, canaries.word)
                what = f"{who}: {profile}{', warm' if pool else ''}: {row['id']}: {row.get('why') or row.get('expects')}"
                tap.ok(not faults, what[:150], *faults, r.story())
            tap.figure(f"{who}: {profile}{', warm' if pool else ''}: " + ", ".join(f"{n} {s}" for s, n in ended.most_common()))
        if pool:
            cool(who, len(own))
        tap.eq(canaries.faults(), [], f"{who}: every canary is as it was")
        canaries.close()


# ---- honest programs ----

def own_honest(rows, who):
    for pool in (False, True):
        if pool:
            warm(who)
        for profile in PROFILES:
            work = lambda row: run(row["code"], profile, who, options=["--timeout", "30s"])
            for row, r in tapsys.side_by_side(work, *((rows, 1) if pool else (rows,))):
                if pool and row.get("warm") and profile != "strict":
                    tap.eq((r["error"] or {}).get("type"), row["warm"], f"{profile}, warm: {row['id']} still has the known fault that its case names", r.story())
                    continue
                faults = corpus.own_faults(row, profile, r)
                tap.ok(not faults, f"{profile}{', warm' if pool else ''}: {row['id']} prints what Python prints"
                       + (", or is refused by name" if profile == "strict" and row.get("strict") else ""), *faults, r.story())
        if pool:
            cool(who, 2 * len(rows))
    for row in rows:
        if row.get("warm"):
            tap.figure(f"known fault of warm runs: {row['id']} ends with {row['warm']}")
    refused = sum(bool(r.get("strict")) for r in rows)
    tap.figure(f"own honest programs: {len(rows)}; strict refuses {refused} of them by a named rule")


def best_of(row, profile, who, good):
    """Some of them draw random numbers and fail at times, also under bare Python."""
    for _ in range(5):
        r = run(row["code"], profile, who)
        if r["status"] in good:
            break
    return r


def others_honest(rows, who):
    noisy = 0
    for row, r in tapsys.side_by_side(lambda row: best_of(row, "standard", who, ["ok"]), rows):
        noisy += bool(r["violations"])
        tap.ok(r["status"] == "ok", f"standard: {row['id']} runs right", r.story())
    tap.figure(f"standard reports something about {noisy} of {len(rows)} honest programs")
    right, refused, plain = 0, collections.Counter(), [r for r in rows if not r.get("needs")]
    for row, r in tapsys.side_by_side(lambda row: best_of(row, "strict", who, ["ok", "blocked"]), rows):
        rules = r.rules()
        if r["status"] == "blocked":
            tap.ok(bool(rules) and all(rules), f"strict: {row['id']} is refused by a named rule", r.story())
            refused.update(set(rules))
        else:
            tap.ok(r["status"] == "ok", f"strict: {row['id']} runs right or is refused by name", r.story())
        right += r["status"] == "ok" and not row.get("needs")
    tap.figure(f"strict runs {right} of {len(plain)} honest programs right ({100 * right / len(plain):.1f} %)")
    for rule, n in refused.most_common():
        tap.figure(f"strict refuses by {rule}: {n}")
    tap.ok(right >= 0.97 * len(plain), "strict runs at least 97 % of those that need no further module", f"{right} of {len(plain)}")


def benign():
    own, others = corpus.honest()
    own_honest(own, tapsys.users()[-1])
    if others:
        others_honest(others, tapsys.users()[-1])


# ---- whether the cases are true ----

def truth():
    built = {"shell", *(p.name.removeprefix("cordon-") for p in tapsys.find_programs(pathlib.Path(BUILD)))}
    for row in corpus.honest()[0] + [r for f in corpus.FOLDERS[2:] if f in built for r in corpus.own(f) if r["expect"] == "works"]:
        code, out, err = corpus.bare(row)
        tap.ok(code == 0 and out == row["output"], f"{row['id']} states what it prints without Cordon", f"exit {code}", out, err[-400:])


if WHAT != "truth":
    tapsys.under_plant(BUILD)
    tapsys.enter_empty_network()
    programs = tapsys.Programs(BUILD)
tap = tapsys.Tap()
{"attacks": attacks, "benign": benign, "truth": truth}[WHAT]()
tap.done()
