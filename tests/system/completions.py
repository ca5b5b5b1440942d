# SPDX-License-Identifier: Apache-2.0
"""What bash, zsh and fish themselves offer behind `cordon COMMAND WORD --`: in each of them the options that --help lists.

Usage: completions.py BUILD SOURCE. The shells run the files that are installed; none of them is a terminal's."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tapsys

build, source = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
tap = tapsys.Tap()
home = tempfile.TemporaryDirectory(prefix="cordon-completions-")
env = {"PATH": f"{build}:/usr/bin:/bin", "HOME": home.name, "LC_ALL": "C.UTF-8", "TERM": "dumb", "XDG_CONFIG_HOME": home.name, "XDG_DATA_HOME": home.name}


def run(*words):
    r = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
                       cwd=home.name, timeout=120 * tapsys.SLOW)
    return r.stdout, r.stderr


BASH = """source {file}
offer() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _cordon; for w in "${{COMPREPLY[@]}}"; do echo "$w"; done; }}
"""
# the functions of zsh's completion that the file calls: they print what they are given
ZSH = """_describe() {{ print -l -- ${{${{(P)2}}%%:*}} }}
_values() {{ shift; print -l -- "$@" }}
_arguments() {{ print -l -- "$@" }}
offer() {{ words=("$@"); CURRENT=$#; load }}
eval "load() {{ $(<{file}) }}"
"""
FISH = """source {file}
function offer; complete -C (string join ' ' -- $argv); end
"""
SHELLS = {"bash": (BASH, source / "completions/cordon.bash", ["bash", "--norc", "-c"]),
          "zsh": (ZSH, source / "completions/_cordon", ["zsh", "-f", "-c"]),
          "fish": (FISH, build / "completions/cordon.fish", ["fish", "--no-config", "-c"])}
listed = run(build / "cordon", "--help")[0]
commands = re.findall(r"^  ([a-z]+)  +\S", listed, re.M)


def options_of(command):
    text = run(build / "cordon", command, "--help")[0]
    found = set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", text))
    rows = set(re.findall(r"^  +(?:-\w, )?--([a-z-]+)", text, re.M))
    return (rows if len(rows) > 1 and "[--" not in text else found) | {"help"}


tap.ok(len(commands) > 10, "cordon --help lists the commands", listed)
wanted = {c: options_of(c) for c in commands}
for shell, (head, file, start) in SHELLS.items():
    if not shutil.which(shell):
        tap.skip(f"{shell} offers what cordon has", f"{shell} is not installed")
        continue
    ask = "\n".join(f"echo '== {c}'\noffer cordon {c} x --" for c in commands)
    out, err = run(*start, head.format(file=file) + "echo '== .'\noffer cordon ''\n" + ask)
    parts = dict(re.findall(r"^== (\S+)\n(.*?)(?=^== |\Z)", out, re.M | re.S))
    first = set(re.findall(r"^([a-z]+)\b", parts.get(".", ""), re.M))
    tap.ok(first == set(commands) and not err, f"{shell} offers the commands of cordon", sorted(first ^ set(commands)), err)
    for c in commands:
        got = set(re.findall(r"^(?:\([^)]*\))?\*?\{?(?:-\w,)?--([a-z][a-z-]*)", parts.get(c, ""), re.M))
        tap.eq(sorted(got ^ wanted[c]), [], f"{shell} offers the options of cordon {c}", parts.get(c))
head, file, start = SHELLS["bash"]
(pathlib.Path(home.name) / "here.yaml").touch()
for words, want in (("exec --policy he", {"here.yaml"}), ("run --policy he", {"here.yaml"}), ("exec --role ''", {"explore", "analyze", "execute"}),
                    ("repl --role ''", {"explore", "analyze", "execute"}), ("run --intake ''", {"text", "source"}), ("check --intake ''", {"text", "source"})):
    out, err = run(*start, head.format(file=file) + f"offer cordon {words}")
    tap.eq((set(out.split()), err), (want, ""), f"bash offers the values of cordon {words.rpartition(' ')[0]}")
out, err = run("fish", "--no-config", "-c", FISH.format(file=build / "completions/cordon.fish") +
               "offer cordon run --profile ''; echo ==; offer cordon exec -- /bin/ech") if shutil.which("fish") else ("", "")
if out:
    words, _, program = out.partition("==\n")
    tap.ok({w.split("\t")[0] for w in words.splitlines()} >= {"strict", "standard", "open"}, "fish offers the values of an option", out)
    tap.ok("/bin/echo" in program, "fish completes the program that exec runs", out)
tap.done()
