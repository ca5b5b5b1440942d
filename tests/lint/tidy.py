# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over every file that is compiled, for this machine and for the other, tests/ apart (probes do wrong things on
purpose).

Usage: tidy.py ROOT BUILD OTHER-BUILD [deep]. TAP, one case a file and architecture. The analyzer stops in a function after
20,000 states of it, not after its own 225,000: 50,000 already take twice the time; `deep` (make tidy-deep) lets it go on. For the other architecture the checks on the
syntax tree (a signed char, a cast) look at every file, and the analyzer, which follows paths and takes 95 % of the time,
at those files where a path can differ: the preprocessor leaves other lines of ours (`#if`, the number of a call, a size),
or there is a va_list. Both have 64-bit longs and the same order of bytes. The other machine's own run has the rest.
What came out clean is remembered in BUILD by a hash of all that the answer depends on (the preprocessed text, the list of
checks, the tool), so a second run only looks at changes."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

root, build, other = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
DEPTH = [] if "deep" in sys.argv[4:] else [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000")]
clean = build / "tidy-clean"
clean.mkdir(exist_ok=True)
version = subprocess.run(["/usr/bin/clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout
rules = (root / ".clang-tidy").read_bytes()
# warnings and options of gcc that clang 14 does not have, or has by another name
FOR_CLANG = ["-Wno-unknown-warning-option", "-Qunused-arguments",
             "-enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang"]


def commands(folder):
    """Source -> its commands, without what says where the result goes."""
    found = {}
    for c in json.loads((folder / "compile_commands.json").read_text()):
        source = pathlib.Path(c["directory"], c["file"]).resolve()
        if source.suffix != ".c" or root not in source.parents or any(a in source.parents for a in (root / "tests", build, other)):
            continue
        words = [w for w in shlex.split(c["command"]) if w not in ("-c", "-MD", "ccache")]
        for option in ("-o", "-MQ", "-MF"):
            if option in words:
                del words[words.index(option):words.index(option) + 2]
        words.remove(c["file"])
        found.setdefault(source, []).append((words, c["directory"]))
    return found


def preprocessed(source, words, folder):
    return subprocess.run([*words, "-E", str(source)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def our_lines(text, folder):
    """What is left of our own files, without the system's headers."""
    ours, lines = False, []
    for line in text.splitlines():
        if m := re.match(rb'# \d+ "([^"]*)"', line):
            path = pathlib.Path(folder, os.fsdecode(m.group(1))).resolve()
            ours = root in path.parents and not path.relative_to(root).parts[0].startswith("build")  # nor what was unpacked there
        elif ours and line.strip():
            lines.append(line.strip())
    return b"\n".join(lines)


def differs(source, text, folder):
    """Whether the analyzer could see another path than it sees here."""
    here = [our_lines(preprocessed(source, words, cwd), cwd) for words, cwd in native.get(source, ())]
    mine = our_lines(text, folder)
    return mine not in here or b"va_list" in mine


def look(job):
    """Every text that the preprocessor makes of a file, each by a process of its own: one that has analyzed another text
    before takes every va_list of x86-64 for uninitialized (a fault of clang 14)."""
    target, source, ways, other = job
    seen, code, said = set(), 0, ""
    for words, folder in ways:
        text = preprocessed(source, words, folder)
        checks = [] if not other or differs(source, text, folder) else ["--checks=-clang-analyzer-*"]
        # comments steer the tool (NOLINT) and are gone from that text
        stamp = clean / hashlib.sha256(version + rules + " ".join([target, *checks, *DEPTH]).encode() + text + source.read_bytes()).hexdigest()
        if text and (stamp.exists() or stamp in seen):
            continue
        seen.add(stamp)
        run = subprocess.run(["/usr/bin/clang-tidy", "--quiet", *checks, *DEPTH, str(source), "--", *words[1:], f"--target={target}", *FOR_CLANG],
                             cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        code, said = code or run.returncode, said + run.stdout.decode(errors="replace")
        if run.returncode == 0 and text:
            stamp.touch()
        analyzed[target] = analyzed.get(target, 0) + (not checks)
    return target, source, code, said


jobs, count, failures, native, analyzed = [], 0, 0, commands(build), {}
for folder in (build, other):
    if not (folder / "compile_commands.json").exists():
        count, failures = count + 1, failures + 1
        print(f"not ok {count} - {folder.name} is there to be looked at (make build-cross)")
        continue
    for source, ways in (native if folder == build else commands(folder)).items():
        compiler = pathlib.Path(ways[0][0][0]).name
        prefix = re.match(r"(x86_64|aarch64)-linux-gnu", compiler)
        jobs.append((prefix.group(0) if prefix else os.uname().machine + "-linux-gnu", source, ways, folder == other))
with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    for target, source, code, said in pool.map(look, jobs):
        count += 1
        failures += code != 0
        name = f"clang-tidy {target.split('-')[0]} {source.relative_to(root)}"
        print(f"{'ok' if code == 0 else 'not ok'} {count} - {name}", flush=True)
        for line in [l for l in said.splitlines() if ": error:" in l or ": warning:" in l][:10] if code else ():
            print("#", line.replace(str(root) + "/", ""))
print("#= clang-tidy: the analyzer looked at " + (", ".join(f"{n} texts for {t}" for t, n in analyzed.items()) or "nothing new"))
print(f"1..{count}")
sys.exit(failures > 0 or not count)
