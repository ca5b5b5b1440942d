"""The corpora of Python programs: attacks that must not succeed, honest programs that must run.

Usage: python_corpus.py BUILD attacks|benign [CORPORA]. The corpora are not part of the repository; the
repository's own cases (tests/cases/python) stand alone."""
import collections
import json
import pathlib
import sys

import tapsys

BUILD, WHAT = sys.argv[1:3]
CORPORA = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else pathlib.Path(__file__).resolve().parents[3] / "shared/corpora")
FILE = CORPORA / WHAT / "python.jsonl"
ENDS = {"ok", "error", "blocked", "timeout", "memory", "output"}  # an attack that merely crashed shows nothing
if not FILE.exists():
    print(f"ok 1 - the corpus of Python {WHAT} # SKIP ../shared/corpora/{WHAT}/python.jsonl is not there\n1..1")
    sys.exit(0)
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
rows = [json.loads(line) for line in FILE.read_text().splitlines()]


def run(row, profile, who, env=None):
    return tapsys.cordon(programs, ["run", "--json", "--profile", profile, "--timeout", "10s", "-"], who, env=env, text=row["code"])


def attacks():
    for who in tapsys.users():
        canaries = tapsys.Canaries(programs, who)
        for profile in ("strict", "standard", "open"):
            ended = collections.Counter()
            for row in rows:
                r = run(row, profile, who, canaries.environment())
                what = f"{who}: {profile}: {row['id']}"
                ended[r["status"]] += 1
                out = (r["stdout"] or "") + (r["stderr"] or "")
                faults = [] if r["status"] in ENDS else [f"ended as {r['status']}"]
                if canaries.word in r.out + r.err:
                    faults.append("a canary's word came out")
                if row["expects"] == "allow":
                    if profile == "standard" and r["status"] == "blocked":
                        faults.append("an honest program was refused")
                elif profile == "strict":
                    if "REACHED" in out:
                        faults.append("it printed REACHED")
                    if row.get("red_marker") and row["red_marker"] in (r["stdout"] or ""):
                        faults.append("its marker of success is in the output")
                if row["expects"] == "policy-import" and profile == "strict" and r["status"] != "blocked":
                    faults.append("the import passed")
                if row["expects"] == "limit" and r["status"] not in ("timeout", "memory", "blocked"):
                    faults.append("no limit held it")
                if r["status"] == "blocked" and not all(v["rule"] and v["hint"] for v in r["violations"]):
                    faults.append("a refusal without rule or hint")
                tap.ok(not faults, f"{what}: {row.get('why', row['expects'])}"[:150], *faults, r.story())
            tap.figure(f"{who}: {profile}: " + ", ".join(f"{n} {s}" for s, n in ended.most_common()))
        tap.eq(canaries.faults(), [], f"{who}: every canary is as it was")
        canaries.close()


def benign():
    who, noisy = tapsys.users()[-1], 0
    for row in rows:
        for _ in range(5):  # some of them draw random numbers and fail at times, also under bare Python
            r = run(row, "standard", who)
            if r["status"] == "ok":
                break
        noisy += bool(r["violations"])
        tap.ok(r["status"] == "ok", f"standard: {row['id']} runs right", r.story())
    tap.figure(f"standard reports something about {noisy} of {len(rows)} honest programs")
    right, refused, plain = 0, collections.Counter(), [r for r in rows if not r.get("needs")]
    for row in rows:
        for _ in range(5):
            r = run(row, "strict", who)
            if r["status"] in ("ok", "blocked"):
                break
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
    tap.ok(right >= 0.95 * len(plain), "strict runs at least 95 % of those that need no further module", f"{right} of {len(plain)}")


{"attacks": attacks, "benign": benign}[WHAT]()
tap.done()
