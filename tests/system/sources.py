#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Where a program comes from: a pipe that nobody writes to, or that nobody closes, ends at the time limit with a
message that names it; a device is refused; a pipe that is written and closed is read to its end. Words of -c are a
program; a file of another language is not taken for Python. The program in a model's answer is found."""
import errno
import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import time

import exits
import tapsys
from gatetest import State
from tapsys import Tap, clean_env, users

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
LIMIT = "300ms"


def folder_of(who):
    path = pathlib.Path(tempfile.mkdtemp(prefix="source-", dir=programs.dir))
    if who == "user" and os.geteuid() == 0:
        os.chown(path, tapsys.ROOTLESS, tapsys.ROOTLESS)
    return path


def pipe_in(folder, name):
    path = folder / name
    os.mkfifo(path)
    os.chmod(path, 0o644)
    return path


def policy_in(folder, who):
    """`check` has no --timeout: its limit is the policy's."""
    path = folder / "policy.yaml"
    path.write_text(f"limits: {{timeout: {LIMIT}}}\nsessions: {{timeout: {LIMIT}}}\n")
    if who == "user" and os.geteuid() == 0:
        os.chown(path, tapsys.ROOTLESS, tapsys.ROOTLESS)
    return path


def commands(folder, who):
    """Each command that reads a program, with the words before FILE."""
    policy = policy_in(folder, who)
    return (("run", ["run", "--timeout", LIMIT]),
            ("check", ["check", "--policy", policy]),
            ("session run", ["session", "run", "--policy", policy, "nobody"]))


def writer_of(pipe, reader):
    """Opens PIPE for writing once READER has opened it for reading; fails if READER ended without."""
    while reader.poll() is None:
        try:
            return os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "wb", buffering=0)
        except OSError as e:
            if e.errno != errno.ENXIO:
                raise
            time.sleep(0.01)
    return open(os.devnull, "wb", buffering=0)


def says_why(run, name, command):
    return run.code == exits.usage(command) and name in run.err and "did not end within" in run.err and run.err.count("\n") == 1


def silent_pipes(who):
    folder = folder_of(who)
    pipe = pipe_in(folder, "silent")
    for what, words in commands(folder, who):
        r = tapsys.cordon(programs, [*words, pipe], who)
        tap.ok(says_why(r, str(pipe), words[0]), f"{who}: `{what}` of a named pipe that nobody writes to ends at the time limit and names it",
               r.story())
    held = os.open(pipe, os.O_RDWR)
    os.write(held, b"print(1)\n")
    r = tapsys.cordon(programs, ["run", "--timeout", LIMIT, pipe], who)
    tap.ok(says_why(r, str(pipe), "run"), f"{who}: a named pipe whose writer never closes it ends at the time limit", r.story())
    os.close(held)


def silent_input(who):
    folder = folder_of(who)
    for what, words in commands(folder, who):
        reading, writing = os.pipe()
        os.write(writing, b"print(1)\n")
        r = tapsys.cordon(programs, [*words, "-"], who, stdin=reading)
        os.close(reading)
        os.close(writing)
        tap.ok(says_why(r, "standard input", words[0]), f"{who}: `{what}` of a standard input that stays open ends at the time limit", r.story())


def written_pipes(who):
    """The twins: the writer comes late, writes in pieces, and closes."""
    folder = folder_of(who)
    pipe = pipe_in(folder, "written")
    for what, words in (("run", ["run"]), ("check", ["check", "--json"])):
        p = subprocess.Popen(programs.command([*words, pipe], who), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=clean_env(None, who), cwd="/", stdin=subprocess.DEVNULL)
        with writer_of(pipe, p) as f:
            for piece in (b"pri", b"nt(6 ", b"* 7)\n"):
                f.write(piece)
        out, err = p.communicate(timeout=60)
        good = '"violations": []' in out or '"violations":[]' in out if "check" in words else out == "42\n"
        tap.ok(p.returncode == 0 and good, f"{who}: `{what}` reads a named pipe whose writer comes late to its end", out, err)
    p = subprocess.run(["/bin/bash", "-c", 'exec "$@" <(echo "print(6 * 7)")', "x",
                        str(programs.cordon), "run"], capture_output=True, text=True, env=clean_env(None, who), cwd="/",
                       stdin=subprocess.DEVNULL, check=False,
                       **({"user": tapsys.ROOTLESS, "group": tapsys.ROOTLESS, "extra_groups": []}
                          if who == "user" and os.geteuid() == 0 else {}))
    tap.ok(p.returncode == 0 and p.stdout == "42\n", f"{who}: a shell's <(command) is read to its end", p.stdout, p.stderr)
    r = tapsys.cordon(programs, ["run", "-"], who, text="print(6 * 7)\n")
    tap.ok(r.code == 0 and r.out == "42\n", f"{who}: standard input that is closed is read to its end", r.story())


def devices(who):
    for path in ("/dev/zero", "/dev/null", "/dev/tty"):
        for command in ("run", "check"):
            r = tapsys.cordon(programs, [command, path], who)
            tap.ok(r.code == exits.usage(command) and path in r.err and "a device" in r.err, f"{who}: `{command} {path}` is refused as a device", r.story())
    r = tapsys.cordon(programs, ["run", "-"], who)
    tap.ok(r.code == exits.NEVER_RAN and "no program in the text" in r.err, f"{who}: an empty standard input is refused: there is no program in it", r.story())


def texts(who):
    """A model's answer on standard input: the program in it runs, and what was left out is told."""
    answer = "Sure!\n\n```python\nprint(6 * 7)\n```\n\nInstall:\n```bash\nls\n```\n"
    run = lambda text, *options: tapsys.cordon(programs, ["run", "--json", *options, "-"], who, text=text)
    r = tapsys.cordon(programs, ["run", "-"], who, text=answer)
    tap.ok(r.code == 0 and r.out == "42\n" and "line 4" in r.err and "bash" in r.err, f"{who}: the block of a model's answer runs, and what was left out is told", r.story())
    r = run(answer)
    took = r["intake"] or {"notes": []}
    tap.ok(r["stdout"] == "42\n" and (took.get("language"), took.get("line"), took.get("blocks")) == ("python", 4, 1)
           and [n["what"] for n in took["notes"]] == ["prose", "block"], f"{who}: the JSON object says what was taken from a text", r.story())
    r = run("print(1)\n")
    tap.ok(r["stdout"] == "1\n" and "intake" in r.json and r["intake"] is None, f"{who}: intake is null where the text is the program", r.story())
    r = run("```js\nconsole.log(1)\n```\n")
    tap.ok(r["stdout"] == "1\n" and r["intake"]["language"] == "javascript", f"{who}: a block of JavaScript runs as JavaScript", r.story())
    r = run("```ts\nlet a: number = 1\n```\n")
    tap.ok(r["status"] == "ok" and r["intake"]["language"] == "typescript", f"{who}: a block of TypeScript runs as TypeScript", r.story())
    r = run("```expr\n1 < 2\n```\n")
    tap.ok(r["status"] == "blocked" and (r["error"] or {}).get("type") == "ValidationError" and r.rules() == ["intake"] and "expr" in r["reason"],
           f"{who}: a block of a language that does not run here is refused by name", r.story())
    r = run("<think>\nprint(1)\n")
    tap.ok(r["status"] == "blocked" and r.rules() == ["intake"] and "never closed" in r["reason"], f"{who}: reasoning that never ends is refused", r.story())
    r = run(b"print('\xe9')\n")
    tap.ok(r["status"] == "blocked" and r.rules() == ["encoding"] and "line 1" in r["reason"], f"{who}: a text that is not UTF-8 is refused with its line", r.story())
    r = run(answer, "--intake", "source")
    tap.ok(r["status"] == "blocked" and r.rules() == ["syntax"], f"{who}: with --intake source the text is the program", r.story())
    r = run(answer, "--intake", "both")
    tap.ok("text, source" in r.err, f"{who}: --intake names its values", r.story())
    r = tapsys.cordon(programs, ["check", "-"], who, text=answer)
    tap.ok(r.code == 0, f"{who}: check finds the same program as run", r.story())
    folder = folder_of(who)
    (folder / "answer.md").write_text(answer)
    (folder / "program.py").write_text('"""\n```python\nraise SystemExit(1)\n```\n"""\nprint("whole")\n')
    r = tapsys.cordon(programs, ["run", str(folder / "answer.md")], who)
    tap.ok(r.code == 0 and r.out == "42\n", f"{who}: a file of markdown is a text", r.story())
    r = tapsys.cordon(programs, ["run", str(folder / "program.py")], who)
    tap.ok(r.code == 0 and r.out == "whole\n", f"{who}: a file of Python is the program itself", r.story())


def words(who):
    r = tapsys.cordon(programs, ["run", "-c", "print(6 * 7)"], who)
    tap.ok((r.code, r.out) == (0, "42\n"), f"{who}: run -c runs the words behind it", r.story())
    r = tapsys.cordon(programs, ["run", "--code=raise ValueError('here')"], who)
    tap.ok(r.code == 1 and 'File "<string>", line 1' in r.err, f"{who}: a program of -c is called <string> in its traceback", r.story())
    r = tapsys.cordon(programs, ["run", "-c", "import subprocess; subprocess.run('id')"], who)
    tap.ok(r.code == exits.NEVER_RAN and "Blocked import: subprocess" in r.err, f"{who}: a program of -c is judged", r.story())
    r = tapsys.cordon(programs, ["check", "-c", "import subprocess"], who)
    tap.ok(r.code == exits.FAILED and "<string>" in r.out and "Blocked import: subprocess" in r.out and r.out.endswith("\n1 finding, risk high\n"), f"{who}: check -c judges the words behind it", r.story())
    r = tapsys.cordon(programs, ["check", "--json", "-c", "print(6 * 7)"], who)
    tap.ok(r.code == exits.DONE and r.json["is_safe"], f"{who}: check -c of a good program finds nothing", r.story())
    for words in (["-c", "1", "file.py"], ["-c", "1", "-e", "1"], ["-c", "1", "--lang", "expr"]):
        r = tapsys.cordon(programs, ["check", *words], who)
        tap.ok(r.code == exits.USAGE and "-e EXPR" in r.err, f"{who}: check {' '.join(words)} is refused: one thing to judge", r.story())
    in_sessions(who)
    arguments(who)
    values(who)
    at_terminal(who)


def in_sessions(who):
    s = State(programs, who)
    name = s.run("session", "new").out.strip()
    r = s.run("session", "run", name, "-c", "x = 6 * 7")
    tap.ok((r.code, r.out, r.err) == (exits.DONE, "", ""), f"{who}: session run NAME -c runs the words behind it", r.story())
    r = s.run("session", "run", "-cprint(x)\nraise ValueError('here')", name)
    tap.ok(r.code == exits.FAILED and r.out == "42\n" and 'File "<string>", line 2' in r.err, f"{who}: a program of session run -c is called <string>", r.story())
    for what, words in (("run with a FILE and -c", ["run", name, "file.py", "-c", "1"]), ("list with -c", ["list", "-c", "1"])):
        r = s.run("session", *words)
        tap.ok(r.code == exits.NEVER_RAN and "--code is for run" in r.err, f"{who}: session {what} is refused", r.story())
    s.run("pool", "stop", "--force")
    s.close()


def arguments(who):
    script = folder_of(who) / "script.py"
    script.write_text("import sys\nprint([*sys.argv, __file__])\n")
    os.chmod(script, 0o644)
    run = lambda *args, text=None: tapsys.cordon(programs, ["run", "--profile", "standard", *args], who, text=text)
    own = "/workspace/script.py"
    for args, want in ((["{}"], ["script.py", own]), (["{}", "a", "b c", ""], ["script.py", "a", "b c", "", own]),
                       (["{}", "a", "--", "--json", "-x"], ["script.py", "a", "--json", "-x", own]), (["--", "{}", "--json"], ["script.py", "--json", own]),
                       (["{}", "\udcff\u00e9"], ["script.py", "\udcff\u00e9", own])):
        r = run(*[a.format(script) for a in args])
        tap.eq(r.out, f"{want}\n", f"{who}: run {' '.join(args).format('FILE')!a}: the words behind the file are in sys.argv", r.story())
    r = run("-c", "import sys\nprint(sys.argv)", "1", "2")
    tap.eq(r.out, "['-c', '1', '2']\n", f"{who}: the words behind -c CODE are in sys.argv", r.story())
    r = run("-", "1", text="import sys\nprint(sys.argv, '__file__' in globals())\n")
    tap.eq(r.out, "['-', '1'] False\n", f"{who}: the words behind - are in sys.argv, and standard input has no __file__", r.story())
    r = run(str(script), "--verbose")
    tap.ok(r.code == exits.NEVER_RAN and "--verbose; what is for the program comes after --" in r.err, f"{who}: an option that is not ours says how it reaches the program", r.story())
    r = tapsys.cordon(programs, ["run", "--profile", "locked", str(script), "word"], who)
    tap.ok(r.code == exits.NEVER_RAN and "'word': under locked a program has no sys.argv" in r.err, f"{who}: words that a profile hides from the program are refused", r.story())
    s = State(programs, who)
    ask = ["run", "--json", "--no-wait", "--profile", "standard", "--policy", s.policy("approval: {mode: HITL}\n"), str(script)]
    one, two, again = (s.run(*ask, word)["reason"] for word in ("one", "two", "one"))
    tap.ok(one and one == again and one != two, f"{who}: an approval is bound to the words behind the file", one, two, again)
    records = [r for r in s.audit() if r["kind"] == "begin"]
    tap.ok(records and "two" in json.dumps(records), f"{who}: the words behind the file are recorded", records)
    s.close()


def values(who):
    for code, want in (("6 * 7", "42\n"), ("print(1)\n'x'", "1\n'x'\n"), ("FINAL('the answer')", "the answer\n"), ("x = 1", ""), ("None", "")):
        r = tapsys.cordon(programs, ["run", "-c", code], who)
        tap.ok((r.code, r.out, r.err) == (exits.DONE, want, ""), f"{who}: run -c {code!r} prints what a session prints", r.story())


def at_terminal(who):
    """On a terminal somebody types: he is told that he is waited for, and one Ctrl-D is enough."""
    for command, want in (("run", b"42\r\n"), ("check", b"Code passed validation\r\n")):
        ours, theirs = pty.openpty()
        p = subprocess.Popen(programs.command([command], who), stdin=theirs, stdout=theirs, stderr=theirs, env=clean_env({"NO_COLOR": "1"}, who))
        os.close(theirs)
        seen, typed = b"", False
        while True:
            try:
                seen += os.read(ours, 4096)
            except OSError:  # nobody has it open any more
                break
            if not typed and b"Ctrl-D ends it\r\n" in seen:
                typed = True
                os.write(ours, b"print(6 * 7)\n\x04")
        os.close(ours)
        tap.ok(p.wait(60) == exits.DONE and seen.startswith(b"cordon: reading the program from standard input; Ctrl-D ends it\r\n") and seen.endswith(want),
               f"{who}: {command} on a terminal says that it reads standard input, and one Ctrl-D ends that", seen)


def other_languages(who):
    folder = folder_of(who)
    for ending, language in ((".lua", "Lua"), (".pl", "Perl"), (".sh", "shell")):
        script = folder / f"script{ending}"
        script.write_text("print(6 * 7)\n")
        os.chmod(script, 0o644)
        for command in ("run", "check"):
            r = tapsys.cordon(programs, [command, str(script)], who)
            tap.ok(r.code == exits.usage(command) and language in r.err and "--lang python" in r.err, f"{who}: {command} does not take a {ending} file for Python", r.story())
        r = tapsys.cordon(programs, ["run", "--lang", "python", str(script)], who)
        tap.ok((r.code, r.out) == (0, "42\n"), f"{who}: run --lang python runs a {ending} file as Python", r.story())
    for ending in (".js", ".mjs", ".cjs", ".ts"):  # languages that a build may be without: then they are named, with what to do
        script = folder / f"script{ending}"
        script.write_text("print(6 * 7)\n")  # Python, and in the other language a name that there is not
        os.chmod(script, 0o644)
        r = tapsys.cordon(programs, ["run", str(script)], who)
        tap.ok(r.code != exits.DONE and r.out == "" and ("ReferenceError" in r.err or "was built without" in r.err), f"{who}: run does not take a {ending} file for Python", r.story())


for who in users():
    words(who)
    texts(who)
    other_languages(who)
    silent_pipes(who)
    silent_input(who)
    written_pipes(who)
    devices(who)
# options of run before and behind the program
for word in ("-t200ms", "-t=200ms"):
    run = tapsys.cordon(programs, ["run", word, "-c", "while True: pass"])
    tap.ok(run.code == exits.LIMIT and "0.200s" in run.err, f"{word} before -c limits the program of run", run.story())
    run = tapsys.cordon(programs, ["run", "-cwhile True: pass", word])
    tap.ok(run.code == exits.LIMIT and "0.200s" in run.err, f"{word} behind -cCODE limits the program of run", run.story())
run = tapsys.cordon(programs, ["run", "-c", "import sys; print(sys.argv[1:])", "--", "-t1s", "-x"])
tap.ok(run.code == 0 and run.out == "['-t1s', '-x']\n", "behind -- what looks like an option is a word of the program", run.story())
for profile, status in (("strict", "ok"), ("locked", "blocked"), ("standard", "ok"), ("open", "ok")):
    run = tapsys.cordon(programs, ["run", "--json", "--profile", profile, "-c", "open('note', 'w').close()"])
    tap.ok(run["status"] == status and bool(run["files"]) == (status == "ok"), f"under {profile} a program that writes a file is {status}", run.story())
tap.done()
