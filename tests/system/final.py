#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The machine's policy binds callers: with a real /etc/cordon/policy.yaml, in a mount namespace of the test's own."""
import os
import pathlib
import subprocess
import sys

import exits
import tapsys
from tapsys import Tap, users

if os.geteuid() == 0 and "FINAL_INSIDE" not in os.environ:  # a copy of /etc that only this test sees
    os.environ["FINAL_INSIDE"] = "1"
    os.execv("/usr/bin/unshare", ["unshare", "-m", "--propagation", "private", "/usr/bin/python3", *sys.argv])

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
PINNED = programs.dir / "pinned"


def prepare():
    etc = programs.dir / "etc"
    subprocess.run(["cp", "-a", "/etc", etc], check=True)
    (etc / "cordon").mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", etc, "/etc"], check=True)
    PINNED.mkdir(mode=0o755)
    for uid in (0, tapsys.ROOTLESS):
        (PINNED / str(uid)).mkdir(mode=0o700)
        os.chown(PINNED / str(uid), uid, uid)


def machine(text):
    pathlib.Path("/etc/cordon/policy.yaml").write_text(text)


def file_of(who, name, text):
    path = programs.dir / f"{who}-{name}"
    path.write_text(text)
    path.chmod(0o644)
    return path


def free(who):
    """An environment that names no state folder."""
    return {"CORDON_STATE": "", "XDG_CONFIG_HOME": "/nonexistent", "XDG_STATE_HOME": str(programs.dir / f"{who}-elsewhere")}


def run(who, *options, env=None):
    return tapsys.cordon(programs, ["run", "--json", "--no-wait", *options, "-"], who, env={**free(who), **(env or {})}, text="print(1)\n")


def test(who):
    uid = 0 if who == "root" else tapsys.ROOTLESS
    other = programs.dir / f"{who}-other"
    other.mkdir(mode=0o700)
    os.chown(other, uid, uid)
    machine(f"final: [approval, ceilings, run.profiles, run.mode, run.role, run.memory_by, state]\n"
            f"state: {{folder: '{PINNED}/{{uid}}'}}\nceilings: {{timeout: 40s}}\nrun: {{profiles: [strict, standard]}}\n")
    r = run(who)
    tap.ok(r["status"] == "ok" and (PINNED / str(uid) / "audit").is_dir(), f"{who}: a run under the machine's policy is recorded in the pinned folder", r.story())
    shown = tapsys.cordon(programs, ["audit", "show", r["id"] or "none"], who, env=free(who))
    tap.ok(shown.code == 0 and (r["id"] or "none") in shown.out, f"{who}: cordon audit reads the pinned folder", shown.story())
    r = run(who, env={"CORDON_STATE": str(other)})
    tap.ok(r["status"] == "refused" and str(PINNED) in (r["reason"] or "") and not any(other.iterdir()),
           f"{who}: CORDON_STATE cannot name another state folder", r.story())
    r = run(who, env={"CORDON_STATE": f"{PINNED}/{uid}"})
    tap.eq(r["status"], "ok", f"{who}: CORDON_STATE may name the pinned folder", r.story())
    r = run(who, "--profile", "open")
    tap.ok(r.code == exits.NEVER_RAN and "open" in r.err, f"{who}: --profile does not pass the machine's policy", r.story())
    for options, what in ((("--mode", "landlock"), "run.mode is final"), (("--timeout", "50s"), "ceiling"),
                          (("--role", "explore"), "run.role is final"), (("--memory-by", "rlimit"), "run.memory_by is final")):
        r = tapsys.cordon(programs, ["exec", *options, "--", "/bin/true"], who, env=free(who))
        tap.ok(r.code == exits.NEVER_RAN and what in r.err, f"{who}: {' '.join(options)} does not pass the machine's policy", r.story())
    r = run(who, "--profile", "standard", "--timeout", "10s", "--role", "execute")
    tap.eq(r["status"], "ok", f"{who}: options of run within the machine's policy are taken", r.story())
    r = tapsys.cordon(programs, ["exec", "--mode", "full", "--timeout", "10s", "--", "/bin/true"], who, env=free(who))
    tap.eq(r.code, 0, f"{who}: options of exec within the machine's policy are taken", r.story())
    machine("final: [approval]\napproval: {mode: HITL}\n")
    lax = file_of(who, "lax.yaml", "approval: {mode: AUTONOMOUS}\n")
    state = {"CORDON_STATE": str(other)}
    r = run(who, env=state)
    tap.eq(r["status"], "denied", f"{who}: a machine that asks a person denies a run that does not wait", r.story())
    r = run(who, "--policy", lax, env=state)
    tap.ok(r.code == exits.NEVER_RAN and "approval.mode is final" in r.err, f"{who}: --policy does not walk around the approval", r.story())
    tight = file_of(who, "tight.yaml", "limits: {timeout: 5s}\n")
    r = run(who, "--policy", tight, env=state)
    tap.eq(r["status"], "denied", f"{who}: --policy may still tighten", r.story())
    machine("approval: {mode: HITL}\n")
    r = run(who, "--policy", lax, env=state)
    tap.eq(r["status"], "ok", f"{who}: what is not final can be changed by --policy", r.story())


if os.geteuid() != 0:
    tap.skip("the machine's policy", "only root can have a /etc of its own")
    tap.done()
prepare()
for who in users():
    test(who)
tap.done()
