# SPDX-License-Identifier: Apache-2.0
"""`cordon policy` as people use it: what is in force and from where, what is wrong with a file, the order of the files.

Usage: policy.py BUILD SOURCE."""
import json
import os
import pathlib
import shutil
import sys

import yaml
import exits
from tapsys import Programs, Tap, cordon, users

build, source = sys.argv[1:3]
tap = Tap()
programs = Programs(build)
shutil.copytree(pathlib.Path(source, "policies"), programs.bin / "policies")


def policy(*args, who="root", **env):
    return cordon(programs, ["policy", *args], who, env={"XDG_CONFIG_HOME": "/nonexistent", **env})


def parsed(text):
    return yaml.load(text, Loader=yaml.BaseLoader)


def texts(value):
    """JSON as YAML's texts: 30 and "30" are the same there."""
    if isinstance(value, dict):
        return {k: texts(v) for k, v in value.items()}
    if isinstance(value, list):
        return [texts(v) for v in value]
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def leaves(value, path=()):
    if isinstance(value, dict) and set(value) == {"value", "origin"}:
        yield path, value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from leaves(v, (*path, k))
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from leaves(v, (*path, i))
    else:
        yield path, value


# --- show ---------------------------------------------------------------------------------------
for who in users():
    r = policy("show", "--yaml", who=who)
    plain = parsed(r.out)
    tap.ok(r.code == 0 and plain["limits"]["timeout"] == "30s", f"{who}: show --yaml is YAML", r.story())
r = policy("show", "--json")
tap.ok(r.code == 0 and r.json and r.out.count("\n") == 1, "show --json is one line of JSON", r.story())
for profile in plain["profiles"].values():
    tap.eq(profile.pop("base"), "none", "a profile is printed whole, from nothing")
tap.ok(texts(r.json) == plain, "show and show --json say the same")
default = parsed(pathlib.Path(source, "policies/default.yaml").read_text())
default["profiles"] = plain["profiles"]
tap.ok(plain == default, "show prints policies/default.yaml, whole")
for name in ("strict", "locked", "standard", "open"):
    table = parsed(pathlib.Path(source, f"policies/{name}.yaml").read_text())
    shown = plain["profiles"][name]
    tap.ok(table["rules"] == shown["rules"] and len(shown["rules"]) > 3, f"{name}: every rule of its file is shown")
r = policy("show")
lines = [l for l in r.out.splitlines() if not l.rstrip().endswith(":") and l.strip() not in ("base: none", "rules: []")]
tap.ok(lines and all(l.endswith("# built-in") for l in lines), "without files everything is built-in",
       *[l for l in lines if not l.endswith("# built-in")][:5])
r = policy("show", "--json", "--origin", "limits")
tap.eq({v["origin"] for _, v in leaves(r.json)}, {"built-in"}, "show --json has the origin of each value")
r = policy("show", "nothing.here")
tap.ok(r.code == exits.USAGE and "nothing.here" in r.err, "a part that is not there is usage", r.story())
for args in (["show", "a", "b"], ["show", "--json", "--yaml"], ["chek"], [], ["check"], ["check", "--origin", "x"]):
    r = policy(*args)
    tap.ok(r.code == exits.USAGE and r.err.count("\n") == 1, f"usage: {' '.join(args) or '(nothing)'}", r.story())

# --- check --------------------------------------------------------------------------------------
good, bad = programs.dir / "good.yaml", programs.dir / "bad.yaml"
good.write_text("limits:\n  timeout: 5s\naudit: {retention_days: 30}\n")
bad.write_text("limts: {}\nlimits:\n  timeout: soon\nrun: {mode: ful}\n")
r = policy("check", good)
tap.ok(r.code == 0 and f"{good}:3:9: warning: audit.retention_days: below 90 days" in r.out and "good, 1 warning" in r.out,
       "a good file with a warning passes the check", r.story())
r = policy("check", bad)
tap.ok(r.code == 1 and f"{bad}:1:1: error: unknown key 'limts'; did you mean 'limits'?" in r.out
       and f"{bad}:3:12: error: limits.timeout: 'soon' is not a duration" in r.out
       and f"{bad}:4:13: error: run.mode: 'ful' is none of full, landlock; did you mean 'full'?" in r.out
       and "3 errors, 0 warnings" in r.out, "check prints all errors of a bad file with line and column", r.story())
r = policy("check", "--json", bad)
tap.ok(r.json and not r["ok"] and [(p["line"], p["column"]) for p in r["problems"]] == [(1, 1), (3, 12), (4, 13)],
       "check --json lists all errors of a bad file with line and column", r.story())
tap.eq(policy("check", good, bad).code, 1, "of several files the worst counts")
r = policy("check", programs.dir / "absent.yaml")
tap.ok(r.code == exits.USAGE and "absent.yaml" in r.err, "a file that is not there is usage", r.story())
os.mkfifo(programs.dir / "fifo")
tap.eq(policy("check", programs.dir / "fifo").code, exits.USAGE, "a pipe is not waited for")
(programs.dir / "hostile.yaml").write_bytes(b"limits: {\"\\e[31mx\": 1}\n")
r = policy("check", programs.dir / "hostile.yaml")
tap.ok(r.code == 1 and "\033" not in r.out, "what a file says does not act on the terminal", r.story())
for name in ("default", "max-safety", "production"):
    tap.eq(policy("check", programs.bin / "policies" / f"{name}.yaml").code, 0, f"policies/{name}.yaml has no errors")

# --- the files in force -------------------------------------------------------------------------
config = programs.dir / "config"
(config / "cordon").mkdir(parents=True)
user = config / "cordon/policy.yaml"
user.write_text("limits:\n  timeout: 7s\n  threads: 3\n")
env = {"XDG_CONFIG_HOME": str(config)}
r = policy("show", "limits", **env)
tap.ok(f"timeout: 7s" in r.out and f"# {user}:2\n" in r.out and "# built-in" in r.out, "a value of the user's file is shown with its line", r.story())
r = policy("show", "limits", "--policy", good, **env)
tap.ok("timeout: 5s" in r.out and f"# {good}:2\n" in r.out and "threads: 3" in r.out and f"# {user}:3\n" in r.out,
       "--policy over the user's, value by value", r.story())
r = policy("show", "--yaml", "--policy", good, **env)
again = programs.dir / "again.yaml"
again.write_text(r.out)
r2 = policy("show", "--yaml", "--policy", again)
tap.ok(r2.code == 0 and r2.out == r.out, "what show prints is a policy file that means the same", r2.story())
for name, mode in (("max-safety", "EVERY_N"), ("production", "HITL")):
    r = policy("show", "--json", "--policy", name)
    tap.ok(r.json and r["approval"]["mode"] == mode and r["arena"]["enabled"] and r["run"]["profiles"] == ["locked"] and r["run"]["profile"] == "locked",
           f"--policy {name} by its name", r.story())
r = policy("show", "--policy", "nobody")
tap.ok(r.code == exits.USAGE and "max-safety" in r.err, "--policy with a name that is not shipped is refused", r.story())
user.write_text("limits:\n  timeout: soon\n")
r = policy("show", **env)
tap.ok(r.code == exits.USAGE and f"{user}:2:12" in r.err and not r.out, "a broken file gives no policy, and the line says where", r.story())
user.write_text("limits:\n  timeout: 7s\n")
os.chmod(user, 0o666)
r = policy("show", **env)
tap.ok(r.code == exits.USAGE and "writable for others" in r.err, "a policy file that others may write is not taken", r.story())
os.chmod(user, 0o644)
if os.geteuid() == 0:
    os.chown(user, 4321, 4321)
    r = policy("show", **env)
    tap.ok(r.code == exits.USAGE and "somebody else" in r.err, "somebody else's policy file is not taken", r.story())
    os.chown(user, 0, 0)
    r = policy("show", "limits", who="user", **env)
    tap.ok(r.code == 0 and "timeout: 7s" in r.out, "root's file counts for an ordinary user", r.story())

# --- what a policy does to a run ------------------------------------------------------------------
source_file = programs.dir / "hello.py"
source_file.write_text("print('hello')\n")
for args, code, words in ((["--profile", "open", "--policy", "production"], exits.NEVER_RAN, "does not let 'open' be chosen; it may be: locked"),
                          (["--profile", "opn"], exits.NEVER_RAN, "'opn' is none of: strict, locked, standard, open"),
                          (["--timeout", "2h", "--policy", str(programs.dir / "low.yaml")], exits.NEVER_RAN, "ceiling")):
    (programs.dir / "low.yaml").write_text("ceilings: {timeout: 1m}\n")
    r = cordon(programs, ["run", *args, source_file], env={"XDG_CONFIG_HOME": "/nonexistent"})
    tap.ok(r.code == code and words in r.err, f"run {' '.join(args[:2])}: {words}", r.story())
plant = programs.dir / "plant"
(plant / "cordon").mkdir(parents=True)
os.chmod(plant, 0o755)
for bind, why in ((plant, "a folder in which a policy could be planted"), (plant / "cordon", "the folder of the policy itself"),
                  (programs.dir, "a folder above it")):
    r = cordon(programs, ["exec", "--rw", f"{bind}:/workspace", "--", "/bin/true"], env={"XDG_CONFIG_HOME": str(plant)})
    tap.ok(r.code == exits.NEVER_RAN and "which the program may write" in r.err, f"--rw of {why} is refused", r.story())
r = cordon(programs, ["exec", "--ro", f"{plant}:/workspace", "--", "/bin/true"], env={"XDG_CONFIG_HOME": str(plant)})
tap.ok(r.code == 0, "a policy's folder may be shared with --ro", r.story())
state = programs.dir / "house/state"
(state / "inner").mkdir(parents=True)
os.chmod(state, 0o700)
for bind, why in ((state, "the state folder"), (state.parent, "a folder above it"), (state / "inner", "a folder in it")):
    r = cordon(programs, ["exec", "--rw", f"{bind}:/workspace", "--", "/bin/true"], env={"XDG_CONFIG_HOME": "/nonexistent", "CORDON_STATE": str(state)})
    tap.ok(r.code == exits.NEVER_RAN and "the state folder" in r.err, f"--rw of {why} is refused", r.story())
(plant / "cordon/policy.yaml").write_text("limits: {timeout: 300ms}\n")
r = cordon(programs, ["exec", "--json", "--", "/bin/sleep", "1000"], env={"XDG_CONFIG_HOME": str(plant)})
tap.eq((r["status"], r["reason"]), ("timeout", "wall time limit of 0.300s"), "a limit of the user's policy is the run's", r.story())
tap.done()
