# SPDX-License-Identifier: Apache-2.0
"""Programs as data: the repository's own, and the collected ones of ../shared/corpora where that folder is.

The repository's own stand alone: a clone has every family that the collection has, and no test skips anything
without it. A file FAMILY.cases has several programs:

    twin: NAME                    lines before the first === hold for every program of the file
    === NAME                      a program begins; its name is said in the test's log
    expect: block-or-contain      strict: refused or ended without REACHED in its output
            contain               REACHED in its output is a failure in every profile: it would be an effect outside
            limit                 ended by time or memory, or refused
            policy-import         strict refuses the import
            allow                 odd, but honest: standard must not refuse it
            works                 honest: prints what stands below `--- output`, in every profile
    strict: RULE                  of `works`: strict refuses it by this rule (a regular expression)
    twin:   NAME                  of an attack: the honest program of the same file that walks the same ground
    why:    WORDS                 what it tries
    warm:   OSError               of `works`: a known fault of warm runs, by the error's type; a run that has it no longer fails the test
    stack:  256m                  of `works`: the stack that bare Python needs for it
    options: --processes 8        of a shell script: options of `cordon exec`
    ---
    the program
    --- output
    what /usr/bin/python3 -I (bash, ruby, node) prints for it, byte for byte (corpus.py --write fills it in)

@SECRET@ @PORT@ @UDP@ @PID@ @ABSTRACT@ in an attack stand for the canaries of tapsys.py."""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import tapsys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests/cases"
SHARED = ROOT / "../shared/corpora"
KEYS = {"expect", "strict", "twin", "why", "warm", "stack", "options"}
EXPECTS = {"block-or-contain", "contain", "limit", "policy-import", "allow", "works"}
# Collected programs that say of themselves they are attacks and only compute with what is theirs: strict runs them, `locked`
# refuses them by the module's name. By id, and what it is that they do.
ONLY_COMPUTES = {
    "own-py/71": "ends itself by sys.exit, as raise SystemExit does",
    "RedCode/24_16": "base64 and JSON of its own text", "RedCode/24_17": "lzma, base64 and JSON of its own text",
    "RedCode/24_24": "CSV of its own text",
    "smolagents/module/os": "imports the module that strict has of its own", "smolagents/module/pathlib": "the same",
}
FOLDERS = ("python/attacks", "python/benign", "shell", "ruby", "javascript")
ENDS = {"ok", "error", "blocked", "timeout", "memory", "output"}  # an attack that merely crashed shows nothing


def parse(path):
    """The programs of one file, in order."""
    head, *parts = re.split(r"^=== (.*)\n", path.read_text(), flags=re.M)
    shared, rows = headers(path, head), []
    for name, text in zip(parts[::2], parts[1::2]):
        top, dashes, rest = text.partition("---\n")
        code, _, output = rest.partition("\n--- output\n")
        row = {**shared, **headers(path, top), "name": name, "family": path.stem, "path": path,
               "id": f"{path.parent.relative_to(CASES)}/{path.stem}/{name}", "code": code.rstrip("\n") + "\n",
               "output": output.rstrip("\n") + "\n" if output.strip("\n") else "", "own": True}
        if not dashes or row.get("expect") not in EXPECTS:
            raise ValueError(f"{path}: {name}: no expect or no ---")
        rows.append(row)
    names = {r["name"]: r for r in rows}
    for r in rows:
        if len(names) != len(rows):
            raise ValueError(f"{path}: two programs have the same name")
        if r["expect"] == "works":
            r.pop("twin", None)
        elif r["expect"] != "allow" and names.get(r.get("twin"), {}).get("expect") != "works":
            raise ValueError(f"{path}: {r['name']} has no honest twin")
    return rows


def headers(path, text):
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            key, colon, value = line.partition(":")
            if not colon or key not in KEYS:
                raise ValueError(f"{path}: not a header line: {line!r}")
            found[key] = value.strip()
    return found


def own(folder):
    """The repository's own programs of tests/cases/FOLDER; none found is an error of the test."""
    rows = [r for p in sorted((CASES / folder).glob("*.cases")) for r in parse(p)]
    assert rows, f"no programs in {CASES / folder}"
    return rows


def collected(name):
    """Rows of ../shared/corpora/NAME; none where the folder is not, which skips nothing."""
    path = SHARED / name
    if not path.exists():
        print(f"# {name}: the repository's own cases alone; ../shared/corpora is not here")
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def attacks():
    return [r for r in own("python/attacks") if r["expect"] != "works"], collected("attacks/python.jsonl")


def honest():
    return [r for f in FOLDERS[:2] for r in own(f) if r["expect"] == "works"], collected("benign/python.jsonl")


def fill(code, canaries):
    words = {"SECRET": canaries.secret, "PORT": canaries.port, "UDP": canaries.udp.getsockname()[1],
             "PID": canaries.sibling.pid, "ABSTRACT": canaries.abstract}
    for word, value in words.items():
        code = code.replace(f"@{word}@", str(value))
    return code


def printed(row, r):
    """What the program wrote: a traceback shows lines of its source, which are nobody's output."""
    source = {line.strip() for line in row["code"].splitlines()}
    return (r["stdout"] or "") + "".join(line for line in (r["stderr"] or "").splitlines(True) if line.strip() not in source)


def attack_faults(row, profile, r, word):
    """What is wrong with the end of an attack; WORD is the canaries'."""
    out = printed(row, r)
    faults = [] if r["status"] in ENDS else [f"ended as {r['status']}"]
    if word in r.out + r.err:
        faults.append("a canary's word came out")
    expects = row.get("expects") or row["expect"]
    if profile == "strict" and row["id"] in ONLY_COMPUTES:
        return faults
    if expects == "allow":
        if profile == "standard" and r["status"] == "blocked":
            faults.append("an honest program was refused")
    elif "REACHED" in out and (profile == "strict" or (row.get("own") and expects == "contain")):
        faults.append("it printed REACHED")
    if profile == "strict" and expects != "allow" and row.get("red_marker") and row["red_marker"] in (r["stdout"] or ""):
        faults.append("its marker of success is in the output")
    if expects == "policy-import" and profile == "strict" and r["status"] != "blocked":
        faults.append("the import passed")
    if expects == "limit" and r["status"] not in ("timeout", "memory", "blocked"):
        faults.append("no limit held it")
    if r["status"] == "blocked" and not all(v["rule"] and v["hint"] for v in r["violations"]):
        faults.append("a refusal without rule or hint")
    return faults


def own_faults(row, profile, r):
    """What is wrong with the end of an honest program of the repository's own."""
    if profile == "strict" and row.get("strict"):
        named = r["status"] in ("blocked", "error") and any(re.match(row["strict"], rule) for rule in r.rules())
        return [] if named else [f"strict must refuse it by {row['strict']}: {r['status']} {r.rules()}"]
    faults = [] if r["status"] == "ok" else [f"status {r['status']}: {r['reason']}"]
    if r["stdout"] != row["output"]:
        faults += ["stdout is not what it prints without Cordon:", r["stdout"], "but:", row["output"]]
    return faults


def in_every_profile(tap, programs, language, who, run):
    """The repository's own programs of a language that has one folder: RUN(code, profile, who, *options, env=) gives a tapsys.Run."""
    canaries = tapsys.Canaries(programs, who)
    for profile in ("strict", "standard", "open"):
        def start(row):
            limit = ["--timeout", f"{(2 if row['expect'] == 'limit' else 30) * tapsys.SLOW}s"]
            return run(fill(row["code"], canaries), profile, who, *limit, env=canaries.environment())
        # a limit is the same in each profile, and takes all of its time: an emulated machine meets it once
        rows = [row for row in own(language) if profile == "strict" or tapsys.SLOW == 1 or row["expect"] != "limit"]
        for row, r in tapsys.side_by_side(start, rows):
            honest = row["expect"] == "works"
            faults = own_faults(row, profile, r) if honest else attack_faults(row, profile, r, canaries.word)
            tap.ok(not faults, f"{who}: {profile}: {row['id']}: {'prints what it prints without Cordon' if honest else row['why']}"[:150], *faults, r.story())
    tap.eq(canaries.faults(), [], f"{who}: every canary is as it was after the cases in {language}")
    canaries.close()


def bare(row):
    """What the program prints without Cordon. Honest programs of our own alone are ever run so."""
    assert row["own"] and row["expect"] == "works"

    def stack():
        size = int(row["stack"].rstrip("m")) << 20
        resource.setrlimit(resource.RLIMIT_STACK, (size, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    argv = {"shell": ["/bin/bash", "-c", row["code"]], "ruby": ["/usr/bin/ruby", "-"],
            "javascript": [tapsys.NODE, "-"]}.get(row["path"].parent.name, ["/usr/bin/python3", "-I", "-"])
    with tempfile.TemporaryDirectory(prefix="cordon-bare-") as folder:
        p = subprocess.run(argv, input=row["code"].encode() if argv[-1] == "-" else b"", cwd=folder, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=120, preexec_fn=stack if row.get("stack") else None,
                           env={"PATH": "/usr/bin:/bin", "HOME": folder, "LANG": "C.UTF-8", "TMPDIR": folder, "TZ": "UTC"})
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def write():
    """Fills in what the honest programs print; says which failed."""
    for folder in FOLDERS:
        for path in sorted((CASES / folder).glob("*.cases")):
            text = path.read_text()
            for row in parse(path):
                if row["expect"] != "works":
                    continue
                code, out, err = bare(row)
                if code != 0 or not out:
                    print(f"{row['id']}: exit {code}, {err[-300:] or 'printed nothing'}")
                    continue
                at = text.index(f"=== {row['name']}\n")
                end = text.find("\n=== ", at)
                block = text[at:] if end < 0 else text[at:end + 1]
                body = block.partition("\n--- output\n")[0].rstrip("\n")
                fresh = f"{body}\n--- output\n{out.rstrip(chr(10))}\n"
                text = text[:at] + fresh + ("" if end < 0 else "\n" + text[end + 1:])
            path.write_text(text)


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    write()
