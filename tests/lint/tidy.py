"""clang-tidy over every file that the build compiles, tests/ apart (probes do wrong things on purpose).

Usage: tidy.py ROOT BUILD. TAP, one case a file. What came out clean is remembered in BUILD by a hash of all that
the answer depends on (the preprocessed text, the list of checks, the tool), so a second run only looks at changes."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
clean = build / "tidy-clean"
clean.mkdir(exist_ok=True)
version = subprocess.run(["/usr/bin/clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout
# FILE CHECK: findings that someone has to judge yet; a new one fails all the same
known = {}
for line in (root / "tests/lint/tidy.known").read_text().splitlines():
    if line and line[0] != "#":
        known.setdefault(line.split()[0], set()).add(line.split()[1])
rules = (root / ".clang-tidy").read_bytes()


def look(job):
    source, words, folder = job
    # the same command, stopped after the preprocessor
    words = [w for w in shlex.split(words) if w not in ("-c", "-MD")]
    for option in ("-o", "-MQ", "-MF"):
        if option in words:
            del words[words.index(option):words.index(option) + 2]
    text = subprocess.run(words + ["-E"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    # comments steer the tool (NOLINT) and are gone from that text
    stamp = clean / hashlib.sha256(version + rules + text + source.read_bytes()).hexdigest()
    if text and stamp.exists():
        return source, 0, ""
    run = subprocess.run(["/usr/bin/clang-tidy", "-p", str(build), "--quiet", "--extra-arg=-Wno-unknown-warning-option",
                          "--extra-arg=-Qunused-arguments",
                          "--extra-arg=-enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang",
                          str(source)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = run.stdout.decode(errors="replace")
    found = set(re.findall(r" error: .*\[([\w.-]+)", said))
    name = str(source.relative_to(root.resolve()))
    if found and found <= known.get(name, set()):
        return source, 0, ""
    if run.returncode == 0:
        stamp.touch()
    return source, run.returncode, said


apart = (root.resolve() / "tests", build.resolve())
jobs = {}
for c in json.loads((build / "compile_commands.json").read_text()):
    source = pathlib.Path(c["directory"], c["file"]).resolve()
    if source.suffix == ".c" and root.resolve() in source.parents and not any(a in source.parents for a in apart):
        jobs.setdefault(source, (source, c["command"], c["directory"]))
failures = count = 0
with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    for source, code, said in pool.map(look, jobs.values()):
        count += 1
        failures += code != 0
        print(f"{'ok' if code == 0 else 'not ok'} {count} - clang-tidy {source.relative_to(root.resolve())}", flush=True)
        for line in [l for l in said.splitlines() if ": error:" in l or ": warning:" in l][:10] if code else ():
            print("#", line.replace(str(root.resolve()) + "/", ""))
print(f"1..{count}")
sys.exit(failures > 0 or not count)
