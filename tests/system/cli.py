# SPDX-License-Identifier: Apache-2.0
"""The command line: bad input, the shape of results, environment, streams, terminals.

Usage: cli.py BUILD"""
import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

import exits
import tapsys

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
tapsys.honest_first(tap, programs)
home = programs.dir / "files"
home.mkdir()
os.chmod(home, 0o755)
(home / "file").write_text("content\n")
(home / "private").write_text("private\n")
os.chmod(home / "private", 0)
(home / "folder").mkdir()
(home / "link").symlink_to("folder")
(home / "noexec").write_text("#!/bin/sh\n")
(home / "fifo")
os.mkfifo(home / "fifo")

# --- bad input ------------------------------------------------------------------------------------

# arguments after `cordon`, and what the one line on stderr must name
BAD = [
    (["exec", "--no-such-option", "--", "/bin/true"], "--no-such-option"),
    (["exec", "--jsn", "--", "/bin/true"], "--jsn"),
    (["exec", "-Z", "--", "/bin/true"], "-Z"),
    (["exec", "-c", "1"], "unknown option -c; see --help"),
    (["exec", "-json", "--", "/bin/true"], "unknown option -json; did you mean --json"),
    (["exec", "-t5x", "--", "/bin/true"], r"-t \(--timeout\): '5x' is not"),
    (["exec", "-t"], r"-t \(--timeout\) needs a value"),
    (["run", "-x"], "unknown option -x; see --help"),
    (["session", "new", "--out", "x"], "--out is not for this command: a session keeps its files; cordon session get"),
    (["session", "new", "--ro", "/usr"], "--ro: /usr belongs to the interpreter that a session is forked from"),
    (["repl", "--out=x"], "--out is not for this command"),
    (["run", "-timeout", "5s", "-c", "1"], "unknown option -timeout; did you mean --timeout"),
    (["run", "--timout", "5s", "-c", "1"], "unknown option --timout; did you mean --timeout"),
    (["run", "-h1"], r"-h \(--help\) takes no value"),
    (["run", "-c", "1", "-x"], "unknown option -x; see --help"),
    (["run", "file.py", "-x"], "unknown option -x; what is for the program comes after --"),
    (["check", "-x"], "unknown option -x; see --help"),
    (["session", "run", "name", "-x"], "unknown option -x; see --help"),
    (["exec", "--ro", "file:file", "--", "/bin/true"], "--ro: DEST must be absolute, such as /file\n"),
    (["run", "--rw", "folder:", "-c", "1"], "--rw: DEST must be absolute, such as /data\n"),
    (["run", "-m", "1", "-c", "1"], "--memory: 1 byte is outside 4 MB to 1 TB\n"),
    (["exec", "--timeout", "0", "--", "/bin/true"], "--timeout: 0 ms is outside 1 ms to 168 h\n"),
    (["exec", "--descriptors", "2", "--", "/bin/true"], "--descriptors: 2 is outside 8 to 65536\n"),
    (["pool", "strat"], "'strat' is none of: start, status, stop; did you mean 'start'?"),
    (["pool"], "a subcommand is missing, one of: start, status, stop; see --help"),
    (["pool", "start", "strict"], "start: too many arguments"),
    (["session", "lsit"], "did you mean 'list'?"),
    (["session", "run", "", "-c", "1"], "'' is no name for a session: up to 32 of a-z, 0-9, - and _"),
    (["session", "end"], "did you mean 'close'?"),
    (["workspace", "rm"], "did you mean 'delete'?"),
    (["approve", "reject"], "did you mean 'no'?"),
    (["audit", "tial"], "'tial' is none of: tail, show, verify, export, anomalies; did you mean 'tail'?"),
    (["audit", "--follow"], "a subcommand is missing, one of: tail"),
    (["policy", "shwo"], "'shwo' is none of: show, check; did you mean 'show'?"),
    (["policy", "check", "production"], r"production: No such file.*`cordon policy show --policy production`"),
    (["session", "run", "nobody", "-c", "1"], "there is no session.*`cordon session new` makes one|nobody"),
    (["policy", "show", "limit"], "did you mean 'limits'?"),
    (["policy", "show", "limits.timeot"], "did you mean 'limits.timeout'?"),
    (["policy", "show", "nothing-like-it"], "cordon policy show prints all of it"),
    (["workspace", "snapshto"], "did you mean 'snapshot'?"),
    (["workspace"], "a subcommand is missing, one of: create, import, log"),
    (["approve", "lsit"], "did you mean 'list'?"),
    (["run", "--lang", "perl", "-c", "1"], "'perl' is none of: python"),
    *((["run", "--lang", word, "-c", "1"], f"this Cordon was built without {title}; .*make clean setup all") for word, title in (("ruby", "Ruby"), ("javascript", "JavaScript"), ("typescript", "TypeScript"))
      if not (programs.bin / f"cordon-{word.replace('type', 'java')}").exists()),
    (["check", "--lang", "cobol"], "'cobol' is none of: python.*, expr"),
    (["exec"], "program|PROGRAM"),
    (["exec", "--"], "program|PROGRAM"),
    (["exec", "--json"], "program|PROGRAM"),
    (["no-such-command"], "no-such-command"),
    (["ps"], "there is no command 'ps'; `cordon stop --list` lists what runs\n"),
    (["logs"], "there is no command 'logs'; `cordon audit tail` shows what ran\n"),
    (["python3"], "there is no command 'python3'; `cordon run FILE` runs a program, `cordon repl` is a prompt\n"),
    ([""], "command|''|\"\""),
    (["exec", "--", "/no/such/program"], "/no/such/program"),
    (["exec", "--", "no-such-program"], "no-such-program"),
    (["exec", "--", "/usr"], "/usr"),
    (["exec", "--", ""], "program|PROGRAM|''|\"\""),
    (["exec", "--ro", str(home / "missing"), "--", "/bin/true"], "missing"),
    (["exec", "--rw", str(home / "missing"), "--", "/bin/true"], "missing"),
    (["exec", "--rw", "missing", "--", "/bin/true"], "missing"),
    (["exec", "--rw", str(home / "link"), "--", "/bin/true"], "link"),
    (["exec", "--rw", "link", "--", "/bin/true"], "link"),
    (["exec", "--ro", str(home / "link"), "--", "/bin/true"], "link.*folder"),
    (["exec", "--ro", "link/../folder", "--", "/bin/true"], "link"),
    (["exec", "--rw", "link/../folder", "--", "/bin/true"], "link"),
    (["exec", "--rw", str(home / "link" / ".." / "folder"), "--", "/bin/true"], "link"),
    (["exec", "--ro", str(home) + ":relative", "--", "/bin/true"], "relative"),
    (["exec", "--ro", str(home) + ":/", "--", "/bin/true"], "/"),
    (["exec", "--ro", str(home) + ":/a/../../b", "--", "/bin/true"], r"\.\."),
    (["exec", "--ro"], "--ro"),
    (["exec", "--ro", "", "--", "/bin/true"], "--ro"),
    (["exec", "--stdin", str(home / "missing"), "--", "/bin/true"], "missing"),
    (["exec", "--env", "NOVALUE", "--", "/bin/true"], "NOVALUE"),
    (["exec", "--env", "=x", "--", "/bin/true"], "--env|=x"),
    (["exec", "--net", "host", "--", "/bin/true"], "host"),
    (["exec", "--mode", "none", "--", "/bin/true"], "none"),
    (["exec", "--memory-by", "hope", "--", "/bin/true"], "hope"),
    (["exec", "--timeout", "0", "--", "/bin/true"], "timeout"),
    (["exec", "--timeout", "-1s", "--", "/bin/true"], "timeout|-1s"),
    (["exec", "--timeout", "soon", "--", "/bin/true"], "soon"),
    (["exec", "--timeout", "99999999999999999999s", "--", "/bin/true"], "timeout|9999"),
    (["exec", "--timeout", "1000000h", "--", "/bin/true"], "timeout|1000000h"),
    (["exec", "--timeout", "1s2", "--", "/bin/true"], "1s2"),
    (["exec", "--timeout", "1 s", "--", "/bin/true"], "1 s"),
    (["exec", "--timeout", "0x10", "--", "/bin/true"], "0x10"),
    (["exec", "--timeout", "nan", "--", "/bin/true"], "nan"),
    (["exec", "--cpu", "0s", "--", "/bin/true"], "cpu"),
    (["exec", "--memory", "1", "--", "/bin/true"], "memory"),
    (["exec", "--memory", "0", "--", "/bin/true"], "memory"),
    (["exec", "--memory", "999999t", "--", "/bin/true"], "memory|999999t"),
    (["exec", "--memory", "18446744073709551616", "--", "/bin/true"], "memory|1844"),
    (["exec", "--memory", "-5m", "--", "/bin/true"], "memory|-5m"),
    (["exec", "--descriptors", "0", "--", "/bin/true"], "descriptors"),
    (["exec", "--descriptors", "2", "--", "/bin/true"], "descriptors"),
    (["exec", "--descriptors", "99999999", "--", "/bin/true"], "descriptors|9999"),
    (["exec", "--descriptors", "many", "--", "/bin/true"], "many"),
    (["exec", "--disk", "0", "--", "/bin/true"], "disk"),
    (["exec", "--inodes", "0", "--", "/bin/true"], "inodes"),
    (["exec", "--inodes", "1.5", "--", "/bin/true"], "1.5"),
    (["exec", "--processes", "-1", "--", "/bin/true"], "processes|-1"),
    (["exec", "--processes", "4294967297", "--", "/bin/true"], "processes|4294967297"),
    (["exec", "--threads", "-1", "--", "/bin/true"], "threads|-1"),
    (["exec", "--output", "0", "--", "/bin/true"], "output"),
    (["exec", "--output", "100g", "--", "/bin/true"], "output|100g"),
    (["exec", "--timeout"], "--timeout"),
    (["exec", "--rw", "/", "--", "/bin/true"], "/"),
    (["exec", "--ro", "/", "--", "/bin/true"], "/"),
    (["exec", "--", "\x1b[2Jgone\x07"], "gone"),
    (["exec", "--no\x1b[2J\nsecond line", "--", "/bin/true"], "second line"),
]


def one_line_naming(run, name, thing, expected=exits.NEVER_RAN):
    lines = run.err.splitlines()
    told = len(lines) == 1 and re.search(thing, run.err)
    if run.json is not None:  # with --json the object may carry it
        told = told or re.search(thing, json.dumps(run.json))
    tap.ok(run.code == expected and told and "\x1b" not in run.err, name,
           f"exit {run.code}, stderr {run.err[:400]!r}, stdout {run.out[:200]!r}")


for who in tapsys.users():
    for args, thing in BAD:
        run = tapsys.cordon(programs, args, who, cwd=home)
        one_line_naming(run, f"{who}: {' '.join(args) or '(nothing)'}: one line"[:110].replace(str(home), "HOME"), thing,
                        exits.usage(args[0]))
who = "user"
if os.geteuid() == 0 or os.access("/etc/shadow", os.R_OK) is False:
    for option in ("--ro", "--rw", "--stdin"):
        run = tapsys.cordon(programs, ["exec", option, str(home / "private"), "--", "/bin/cat", str(home / "private")], who)
        if option == "--ro" and run.code == 1:  # shown, but its mode holds inside as well
            tap.ok("private\n" not in run.out, f"{who}: --ro of an unreadable file shows nothing", run.out)
        else:
            one_line_naming(run, f"{who}: {option} of an unreadable file", "private")
    run = tapsys.cordon(programs, ["exec", "--rw", "/root", "--", "/bin/ls", "/root"], who)
    tap.ok(run.code != 0 and ".bashrc" not in run.out, f"{who}: --rw of root's home gives nothing", run.story())
run = tapsys.cordon(programs, ["exec", "--", str(home / "file")], "root" if os.geteuid() == 0 else "user")
one_line_naming(run, "a program that is not executable is refused by name", "file")
for args in (["--help"], ["exec", "--help"], ["--version"]):
    run = tapsys.cordon(programs, args)
    tap.ok(run.code == 0 and run.out and not run.err, f"cordon {' '.join(args)}", run.story())
run, twin = tapsys.cordon(programs, []), tapsys.cordon(programs, ["--help"])
tap.ok(run.code == exits.usage("") and run.out == twin.out and not run.err, "cordon without a command prints the commands there are", run.story())
run = tapsys.cordon(programs, ["run", "--help"])
tap.ok("locked has no files" in " ".join(run.out.split()), "run --help says in which profiles a program has files", run.out)
for args, like in ((["-h"], ["--help"]), (["help"], ["--help"]), (["-V"], ["--version"]), (["version"], ["--version"]), (["help", "run"], ["run", "--help"]),
                   (["exec", "-h"], ["exec", "--help"]), (["eval", "-h"], ["eval", "--help"])):
    run, twin = tapsys.cordon(programs, args), tapsys.cordon(programs, like)
    tap.ok(run.code == 0 and run.out == twin.out and not run.err, f"cordon {' '.join(args)} is cordon {' '.join(like)}", run.story())
for args, near in ((["rnu"], "run"), (["exce", "--", "/bin/true"], "exec"), (["help", "exce"], "exec"), (["docter"], "doctor")):
    run = tapsys.cordon(programs, args)
    tap.ok(run.code == exits.USAGE and f"did you mean '{near}'?" in run.err, f"cordon {' '.join(args)} suggests {near}", run.story())
run = tapsys.cordon(programs, ["something"])
tap.ok(run.code == exits.USAGE and "did you mean" not in run.err and "--help" in run.err, "a word that is like no command is told of --help", run.story())
run = tapsys.cordon(programs, ["exec", "-t", "200ms", "--", "/bin/sleep", "60"])
tap.ok(run.code == exits.LIMIT, "-t is --timeout", run.story())
for word in ("-t200ms", "-t=200ms"):
    run = tapsys.cordon(programs, ["exec", word, "--", "/bin/sleep", "60"])
    tap.ok(run.code == exits.LIMIT, f"{word} is --timeout 200ms", run.story())
run = tapsys.exec_json(programs, ["-m", "64m"], ["/bin/true"])
tap.ok(run["status"] == "ok", "-m is --memory", run.story())
run = tapsys.cordon(programs, ["exec", "-x", "--", "/bin/true"])
tap.ok(run.code == exits.NEVER_RAN and "-x" in run.err, "a letter that is no option is named", run.story())

for command, what in (("session", "sessions"), ("workspace", "workspaces")):
    with tempfile.TemporaryDirectory() as empty:
        run = tapsys.cordon(programs, [command, "list"], "root" if os.geteuid() == 0 else "user", env={"CORDON_STATE": empty, "XDG_RUNTIME_DIR": empty})
        tap.ok(run.code == 0 and not run.out and run.err == f"cordon {command}: no {what}\n", f"{command} list says that there are no {what}", run.story())
        run = tapsys.cordon(programs, [command, "list", "--json"], "root" if os.geteuid() == 0 else "user", env={"CORDON_STATE": empty, "XDG_RUNTIME_DIR": empty})
        tap.ok(run.code == 0 and json.loads(run.out) == [] and not run.err, f"{command} list --json of nothing is an empty list", run.story())

# a bad line is refused before anything is built; a good twin of each kind runs
os.chmod(home / "folder", 0o777)
for who in tapsys.users():
    for args in (["--ro", str(home)], ["--rw", str(home / "folder")], ["--ro", str(home) + ":/data"], ["--env", "A="], ["--env", "A=b=c"],
                 ["--net", "none"], ["--mode", "full"], ["--timeout", "60500ms"], ["--timeout", "1m"], ["--memory", "1g"], ["--memory", "64m"],
                 ["--descriptors", "16"], ["--disk", "1m"], ["--inodes", "100"], ["--processes", "3"], ["--threads", "0"], ["--output", "1k"],
                 ["--stdin", str(home / "file")], ["--ro", str(home / "folder")], ["--proc"], ["--memory-by", "auto"], ["--memory-by", "rlimit"]):
        run = tapsys.cordon(programs, ["exec", *args, "--", "/bin/true"], who)
        tap.ok(run.code == 0 and not run.err, f"{who}: twin: exec {' '.join(args)}".replace(str(home), "HOME"), run.story())
    run = tapsys.cordon(programs, ["exec", "--", "true"], who)
    tap.ok(run.code == 0, f"{who}: twin: a program by its name", run.story())
    run = tapsys.cordon(programs, ["exec", "/bin/echo", "-n", "--json"], who)
    tap.ok(run.code == exits.NEVER_RAN or run.out == "--json", f"{who}: options of the program are not ours", run.story())

# --- a caller with odd streams, and one that is told to stop ---------------------------------------

for who in tapsys.users():
    for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        odd = home / f"odd-{who}"
        odd.mkdir(exist_ok=True)
        if who == "user" and os.geteuid() == 0:
            os.chown(odd, tapsys.ROOTLESS, tapsys.ROOTLESS)
        inner = "for f in 0 1 2; do readlink /proc/self/fd/$f; done > /data/kinds; ls /proc/self/fd | wc -l >> /data/kinds"
        cmd = programs.command(["exec", "--proc", "--processes", "4", "--rw", f"{odd}:/data", "--", "/bin/sh", "-c", inner], who)
        (odd / "kinds").unlink(missing_ok=True)
        code = subprocess.run(["/bin/sh", "-c", '"$@" ' + closed, "sh", *cmd], env=tapsys.clean_env(who=who), cwd="/", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode
        seen = (odd / "kinds").read_text().split() if (odd / "kinds").exists() else []
        safe = all(re.match(r"/dev/null|pipe:", k) or k.endswith("kinds") for k in seen[:-1])
        tap.ok(code == 0 and len(seen) >= 3 and safe, f"{who}: a caller with {closed}", code, seen)
    seconds = f"98.{os.getpid()}"  # nobody else sleeps so long

    def sleepers():
        return subprocess.run(["/usr/bin/pgrep", "-f", f"^/bin/sleep {seconds}"], stdout=subprocess.PIPE, text=True).stdout

    def signalled(number):
        p = subprocess.Popen(programs.command(["exec", "--json", "--", "/bin/sleep", seconds], who), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, env=tapsys.clean_env(who=who), start_new_session=True)
        while not sleepers() and p.poll() is None:
            time.sleep(0.01)
        start = time.monotonic()
        p.send_signal(number)
        try:
            p.communicate(timeout=60 * tapsys.SLOW)
            took = time.monotonic() - start
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            took = 1e9
        alive = sleepers()
        tap.ok(not alive and p.returncode == exits.by_signal(number), f"{who}: signal {number} ends the run, and all of it", p.returncode, alive)
        return took, p
    for name, number in (("TERM", 15), ("INT", 2), ("HUP", 1)):
        took, _ = tapsys.soonest(lambda: signalled(number))
        tap.ok(took <= tapsys.LATE, f"{who}: SIG{name} ends the run within {tapsys.LATE * 1000:.0f} ms", f"{took:.3f} s in the best try")
    # a reader that goes away, and one that never reads
    p = subprocess.Popen(programs.command(["exec", "--timeout", "10m", "--", "/usr/bin/yes"], who), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, env=tapsys.clean_env(who=who))
    p.stdout.read(10)
    p.stdout.close()
    try:
        p.wait(60 * tapsys.SLOW)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
    tap.eq(p.returncode, exits.READER_LEFT, f"{who}: a reader that goes away ends the run")
    p.stderr.close()
    loop = f"while :; do echo 98.{os.getpid()}; done"  # nobody else says so
    looping = lambda: subprocess.run(["/usr/bin/pgrep", "-f", f"^/bin/sh -c {loop}"], stdout=subprocess.PIPE, text=True).stdout
    p = subprocess.Popen(programs.command(["exec", "--timeout", "1s", "--output", "100m", "--", "/bin/sh", "-c", loop], who),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=tapsys.clean_env(who=who))
    wrote = select.select([p.stdout], [], [], 60 * tapsys.SLOW)[0]
    tap.ok(wrote and tapsys.until(lambda: not looping()), f"{who}: a reader that never reads does not stop the clock", wrote, looping())
    p.stdout.close()
    p.stderr.close()
    p.kill()
    p.wait()
    # input that nobody reads, and more input than anybody wants
    big = home / "big"
    if not big.exists():
        big.write_bytes(b"x" * (8 << 20))
    r = tapsys.exec_json(programs, ["--stdin", str(big)], ["/bin/true"], who)
    tap.ok(r["status"] == "ok", f"{who}: 8 MB of input that is not read", r.story())
    r = tapsys.exec_json(programs, ["--stdin", str(big), "--timeout", "500ms"], ["/bin/sleep", "100"], who)
    tap.ok(r["status"] == "timeout" and r.seconds < 30 * tapsys.SLOW, f"{who}: a sleeper with 8 MB of input", r.story())
    r = tapsys.exec_json(programs, ["--stdin", str(big)], ["/usr/bin/wc", "-c"], who)
    tap.ok((r["stdout"] or "").strip() == str(8 << 20), f"{who}: 8 MB of input, all of it", r.story())

    # a shared folder in which an earlier guest left a link where a mount point belongs
    trap = home / f"trap-{who}"
    trap.mkdir()
    (trap / "sub").symlink_to("/etc")
    os.chmod(trap, 0o777)
    if who == "user" and os.geteuid() == 0:
        os.chown(trap, tapsys.ROOTLESS, tapsys.ROOTLESS)
    r = tapsys.exec_json(programs, ["--rw", f"{trap}:/data", "--ro", f"{home}:/data/sub"], ["/bin/ls", "/etc"], who)
    tap.ok(r.code == exits.NEVER_RAN or "file" not in (r["stdout"] or "").split(), f"{who}: no mount through a link that a guest left", r.story())

# --- results --------------------------------------------------------------------------------------

for who in tapsys.users():
    ex = lambda *argv, options=(), **more: tapsys.exec_json(programs, ["--processes", "8", *options], argv, who, **more)
    r = ex("/bin/sh", "-c", "echo out; echo err >&2")
    tap.ok(not tapsys.shape_faults(r.json), f"{who}: a result has every key, with its type", *tapsys.shape_faults(r.json))
    tap.ok(r["status"] == "ok" and r["stdout"] == "out\n" and r["stderr"] == "err\n" and r["stdout_bytes"] == 4 and r["stderr_bytes"] == 4
           and r["exit_code"] == 0 and r["signal"] is None and r["error"] is None and r["violations"] == [] and r.code == 0,
           f"{who}: a good run ends as ok", r.story())
    tap.ok(r.out.count("\n") == 1 and r.out.endswith("\n") and r.err == "", f"{who}: --json prints one object in one line, and nothing on stderr", r.out[:100], r.err)
    r2 = ex("/bin/true")
    tap.ok(r["id"] != r2["id"] and r["id"], f"{who}: every run has an id of its own", r["id"], r2["id"])
    layers = r["layers"] or {}
    for l in ("process", "syscalls", "resources", "network", "filesystem"):
        tap.ok(str(layers.get(l)).startswith("on") or l == "resources" and who == "user" and str(layers.get(l)).startswith("weak"),
               f"{who}: layer {l} is proved", layers)
    for code in (1, 2, 3, 4, 5, 10, 126, 127, 255):
        r = ex("/bin/sh", "-c", f"exit {code}")
        tap.ok(r["status"] == "error" and r["exit_code"] == code and r.code == code and not tapsys.shape_faults(r.json), f"{who}: exit {code} of the program", r.story())
    for signal in (1, 2, 6, 9, 11, 13, 15):
        r = ex("/bin/sh", "-c", f"kill -{signal} $$")
        tap.ok(r["status"] == "crashed" and r["signal"] == signal and r["exit_code"] == -signal and r.code == exits.by_signal(signal), f"{who}: death by signal {signal}", r.story())
    r = ex("/usr/bin/python3", "-S", "-c", "import socket\ntry: socket.create_connection(('8.8.8.8', 53), 1)\nexcept OSError as e: print('went on', e.errno)")
    tap.ok(r["status"] == "ok" and r.code == 0 and any("socket" in x for x in r.rules()), f"{who}: a guest that goes on after EPERM ends in ok, with violations", r.story())
    r = tapsys.exec_json(programs, [], [str(programs.dir / "nowhere")], who)
    tap.ok(r.code == exits.NEVER_RAN, f"{who}: a missing program with --json", r.story())
    r = tapsys.exec_json(programs, [], ["/bin/sh", "-c", "/bin/true; echo after"], who)
    tap.ok(any("clone" in x or "fork" in x for x in r.rules()), f"{who}: a fork where there is none to give is named", r.story())

    r = tapsys.exec_json(programs, ["--mode", "landlock"], ["/bin/sh", "-c", "echo weak; echo text > file; read t < file; echo $t"], who)
    tap.ok(r["status"] == "ok" and r["stdout"] == "weak\ntext\n"
           and str((r["layers"] or {}).get("process")).startswith("weak") or r.code == exits.NEVER_RAN and "Linux 6.12" in r.out,
           f"{who}: the weaker mode runs a program, or is refused by what it needs", r.story())

    # --- the world inside ---
    secret = {"CORDON_CANARY": "s3cret", "LD_PRELOAD": "", "TERM": "xterm", "LC_ALL": "de_DE.UTF-8", "USER": "root", "PWD": "/root"}
    caches = ["PWD=/workspace", "XDG_CACHE_HOME=/tmp/.cache", "MPLCONFIGDIR=/tmp/.cache/matplotlib", "HF_HOME=/tmp/.cache/huggingface", "PYTHONDONTWRITEBYTECODE=1", "MALLOC_ARENA_MAX=1"]
    show = ("/usr/bin/python3", "-c", "import os; print(*(f'{k.decode()}={v.decode()}' for k, v in os.environb.items()), sep='|', end='')")
    r = ex(*show, env=secret)
    tap.eq(sorted(r["stdout"].split("|")) if r.json else None,
           sorted(["HOME=/tmp", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "TMPDIR=/tmp", *caches]), f"{who}: the environment is exactly the promised one", r.story())
    r = ex(*show, options=("--env", "B=2", "--env", "A=x y\n", "--env", "HOME=/workspace"), env=secret)
    tap.eq(sorted(r["stdout"].split("|")) if r.json else None,
           sorted(["A=x y\n", "B=2", "HOME=/workspace", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "TMPDIR=/tmp", *caches]), f"{who}: --env adds and replaces", r.story())
    r = ex("/bin/sh", "-c", "pwd; id -u; id -g; echo $$; echo $PPID; umask; ls -a / /dev; echo ~")
    out = (r["stdout"] or "").splitlines()
    tap.eq(out[:1], ["/workspace"], f"{who}: a shell names its working folder as the options do")
    tap.ok(len(out) > 2 and "0" not in out[1:3], f"{who}: a program is not root inside", out[:3])
    tap.ok(len(out) > 4 and out[3:5] == ["2", "1"], f"{who}: a program is pid 2 under an init", out[:5])
    tap.ok("proc" not in out and "sys" not in out, f"{who}: no /proc and no /sys unless asked", out)
    r = ex("/bin/sh", "-c", "ls /proc | grep -c '^[0-9]'; ls /proc/sys 2>&1; cat /proc/self/comm", options=("--proc",))
    tap.ok((r["stdout"] or "").split("\n")[0] in ("1", "2", "3", "4", "5"), f"{who}: --proc shows only the run's own processes", r.story())
    for options in ((), ("--processes", "4")): # one program: its exec waits for the builder; several: it does not
        r = tapsys.exec_json(programs, ["--proc", *options], ["/bin/cat", "/proc/self/mountinfo"], who)
        mounts = [line.split()[3:5] for line in (r["stdout"] or "").splitlines()]
        tap.ok(["/", "/"] in mounts and not [m for m in mounts if m[1].startswith("/.old")] and len(mounts) < 12,
               f"{who}: nothing of the host's mounts is left", mounts)
        r = tapsys.exec_json(programs, options, ["/bin/ls", "-A", "/.old"], who)
        tap.ok(r["status"] == "ok" and r["stdout"] == "", f"{who}: where the host's root hung is an empty folder", r.story())
    r = ex("/bin/cat", "/proc/self/status", "/proc/self/cgroup", options=("--proc",))
    status = dict(line.split(":", 1) for line in (r["stdout"] or "").splitlines() if ":" in line)
    sets = {k: status.get(k, "").strip().strip("0") for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    tap.ok(sets == dict.fromkeys(sets, "") and status.get("NoNewPrivs", "").strip() == "1" and status.get("Seccomp", "").strip() == "2",
           f"{who}: no capability in any set, no-new-privs, a filter", sets, r.story())
    paths = [line.rsplit(":", 1)[1] for line in (r["stdout"] or "").splitlines() if re.match(r"\d+:[^:]*:/", line)]
    tap.ok(all(p == "/" for p in paths), f"{who}: the cgroup's name outside is not shown", paths)
    r = ex("/bin/cat", options=("--stdin", str(home / "file")))
    tap.ok(r["stdout"] == "content\n", f"{who}: --stdin FILE is the program's input", r.story())
    r = ex("/bin/cat")
    tap.ok(r["stdout"] == "" and r["status"] == "ok", f"{who}: stdin is empty by default", r.story())
    with subprocess.Popen(["/bin/sleep", "1000"], stdout=subprocess.PIPE) as never:  # a guest that reads it is ended by its time limit
        r = ex("/bin/cat", stdin=never.stdout)
        tap.ok(r["status"] == "ok", f"{who}: the caller's stdin is not the guest's", r.story())
        never.kill()
    r = ex("/bin/sh", "-c", f"cat {home}/file; echo changed > {home}/file", options=("--ro", str(home)))
    tap.ok((r["stdout"] or "") == "content\n" and (home / "file").read_text() == "content\n", f"{who}: --ro shows and keeps", r.story())
    r = ex("/bin/sh", "-c", "cat /data/file; ls /data", options=("--ro", f"{home}:/data"))
    tap.ok((r["stdout"] or "").startswith("content\n"), f"{who}: --ro PATH:DEST shows a folder at DEST", r.story())
    lent = home / f"lent-{who}"
    lent.mkdir()
    if os.geteuid() == 0 and who == "user":
        os.chown(lent, tapsys.ROOTLESS, tapsys.ROOTLESS)
    r = ex("/bin/sh", "-c", f"echo made > {lent}/made && mkdir {lent}/sub && echo x > {lent}/sub/x", options=("--rw", str(lent)))
    made = lent / "made"
    tap.ok(r["status"] == "ok" and made.exists() and made.read_text() == "made\n", f"{who}: --rw writes through", r.story())
    tap.ok(made.exists() and made.stat().st_uid == lent.stat().st_uid, f"{who}: what is made in --rw belongs to the folder's owner",
           made.exists() and made.stat().st_uid)
    r = subprocess.run(programs.command(["exec", "--rw", "sub", "--", "/bin/ls", str(lent / "sub")], who), cwd=lent, env=tapsys.clean_env(who=who),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    tap.ok(r.returncode == 0 and r.stdout == "x\n" or r.returncode == exits.NEVER_RAN and "sub" in r.stderr, f"{who}: twin: a relative --rw without a link", r)

    # --- without --json ---
    r = tapsys.cordon(programs, ["exec", "--processes", "2", "--", "/bin/sh", "-c", "printf 'a\\033[31mb\\377\\000c'; echo e >&2; exit 3"], who)
    p = subprocess.run(programs.command(["exec", "--", "/usr/bin/printf", r"a\033[31mb\377\000c"], who), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                       env=tapsys.clean_env(who=who))
    tap.eq(p.stdout, b"a\x1b[31mb\xff\x00c", f"{who}: into a pipe the bytes go raw")
    tap.ok(r.code == 3 and "e" in r.err, f"{who}: the program's own exit status is that of exec", r.story())

    # --- under a terminal ---
    def under_terminal(args):
        """Runs cordon with a terminal for all three streams; what the terminal got."""
        pid, master = pty.fork()
        if pid == 0:
            os.environ.clear()
            os.environ.update(tapsys.clean_env({"TERM": "xterm"}, who))
            os.execv(programs.command(args, who)[0], programs.command(args, who))
        got, end = b"", time.monotonic() + 20
        while time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    block = os.read(master, 65536)
                except OSError:
                    break
                if not block:
                    break
                got += block
        os.close(master)
        return got, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    got, code = under_terminal(["exec", "--processes", "4", "--", "/bin/sh", "-c", "for f in 0 1 2; do test -t $f && echo tty$f; done; tty; (: </dev/tty) 2>&1; echo end"])
    tap.ok(b"tty0" not in got and b"tty1" not in got and b"tty2" not in got and b"/dev/pts" not in got and b"end" in got, f"{who}: no stream of the guest is a terminal", got)
    got, code = under_terminal(["exec", "--", "/usr/bin/printf", r"x\033]52;c;aGk=\007\033[2J\033]0;owned\007\302\233y\n"])
    tap.ok(b"\x1b" not in got and b"\x07" not in got and b"\x9b" not in got.replace("\u009b".encode(), b"\x9b") and b"x" in got and b"52;c" in got,
           f"{who}: escape sequences are made visible on a terminal", got)
    got, code = under_terminal(["exec", "--", "/usr/bin/printf", r"\233\377\000x\n"])
    tap.ok(b"[Binary output detected and removed]" in got and b"\xff" not in got and b"\x9b" not in got,
           f"{who}: bytes that are no text do not reach a terminal", got)
    got, code = under_terminal(["exec", "--", "/bin/echo", "ghp_" + "a1" * 20 + " in /home/somebody/x"])
    tap.ok(b"[REDACTED:github] in /home/USER/x" in got and b"a1a1" not in got, f"{who}: secrets and paths do not reach a terminal", got)
    r = tapsys.cordon(programs, ["exec", "--", "/bin/echo", "ghp_" + "a1" * 20 + " in /home/somebody/x"], who)
    tap.ok("a1a1" in r.out and "/home/somebody/x" in r.out, f"{who}: a pipe gets the bytes as they are", r.story())
    got, code = under_terminal(["exec", "--processes", "2", "--", "/bin/sh", "-c", r"printf '\033[2J\r\033[6n' >&2; printf 'plain \303\274 \tText\n'"])
    tap.ok(b"\x1b" not in got and "plain ü \tText".encode() in got.replace(b"        ", b"\t"), f"{who}: plain text stays plain, on stderr too", got)
    got, code = under_terminal(["exec", "--", "/bin/cat"])
    tap.ok(code == 0, f"{who}: the terminal's input is not the guest's", code, got)
tap.done()
