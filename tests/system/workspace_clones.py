#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clones of a workspace: a line of commits of its own, verified in a jail, merged only where nothing is lost, or discarded.

Usage: workspace_clones.py BUILD."""
import json
import subprocess
import sys

sys.dont_write_bytecode = True
import tapsys
from tapsys import cordon, users
from workspacetest import TOP, fresh, git, own_disks, programs, tap, workspace

own_disks(users())


def shell(name, script, *options, who):
    return cordon(programs, ["exec", "--json", "--processes", "8", "--workspace", name, *options, "--", "/bin/sh", "-c", script], who)


def policy(text, who):
    """A file of it; a user's commands have no cgroup on some machines."""
    path = TOP / "policy.yaml"
    path.write_text("version: 1\n" + ("run: {memory_by: rlimit}\n" if who == "user" else "") + text)
    return str(path)


def ids(name, who):
    """{ref: id} of the heads of a store."""
    lines = git(name, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads", who=who).splitlines()
    return dict(line.split() for line in lines)


def ordinary(who):
    start = fresh("w", {"a": "a\n", "good.py": "print(1)\n"}, who)
    made = workspace("clone", "w", "try", who=who)
    tap.ok(made.code == 0 and made.out == "w@try\n" and ids("w", who) == {"main": start, "try": start}, f"{who}: a clone is a ref that begins with the head of its workspace",
           made.story(), ids("w", who))
    r = shell("w@try", "echo more >> a; echo 'print(2)' > new.py", who=who)
    now = (r["snapshot"] or {}).get("id")
    tap.ok(r["status"] == "ok" and r["snapshot"]["workspace"] == "w@try" and ids("w", who) == {"main": start, "try": now}, f"{who}: a run in a clone moves the clone, and not its workspace",
           r.story())
    tap.eq(shell("w", "cat a", who=who)["stdout"], "a\n", f"{who}: a run in the workspace does not see the files of a clone")
    tap.eq(shell("w@try", "cat a", who=who)["stdout"], "a\nmore\n", f"{who}: the next run in a clone sees them")
    listed = [e["workspace"] for e in json.loads(workspace("list", "--json", who=who).out)]
    tap.eq(listed, ["w", "w@try"], f"{who}: list has a workspace and behind it its clones")
    log = workspace("log", "w@try", who=who)
    tap.eq(log.out, git("w", "log", "try", who=who), f"{who}: log of a clone is git log of its ref")
    early = workspace("merge", "w@try", who=who)
    tap.ok(early.code == 1 and "cordon workspace verify w@try" in early.err and ids("w", who)["main"] == start, f"{who}: a clone that was not verified is not merged", early.story())
    seen = workspace("verify", "w@try", "--json", "--policy", policy("workspaces:\n  verify: ['test -f new.py && grep -q more a', 'echo left > made-by-verify']\n", who), who=who)
    parts = [(p["kind"], p["what"], p["exit_code"]) for p in (seen.json or {}).get("parts", ())]
    tap.ok(seen.code == 0 and seen["verified"] is True and seen["id"] == now and parts[:1] == [("check", "new.py", 0)] and [p[0] for p in parts] == ["check", "command", "command", "gate"],
           f"{who}: verify checks the source that the clone added, runs the commands of the policy on its files and asks the gate", seen.story())
    tap.eq(ids("w", who), {"main": start, "try": now}, f"{who}: what a command of verify writes is in no commit")
    done = workspace("merge", "w@try", who=who)
    tap.ok(done.code == 0 and ids("w", who) == {"main": now}, f"{who}: merge makes the clone's commits the workspace's, and the clone is gone", done.story(), ids("w", who))
    tap.eq(shell("w", "cat a new.py", who=who)["stdout"], "a\nmore\nprint(2)\n", f"{who}: the workspace has the files of the clone that was merged")
    tap.eq(git("w", "fsck", "--strict", "--no-dangling", "--no-progress", who=who), "", f"{who}: git fsck is clean after a merge")


def languages(who):
    """A changed source is judged by the judge of its own language."""
    fresh("l", {"a": "a\n"}, who)
    workspace("clone", "l", "c", who=who)
    shell("l@c", "mkdir d.py; echo 'puts 1' > good.rb; echo 'eval gets' > d.py/evil.rb; echo 'import subprocess' > notes.txt; echo 'print(1)' > .py", who=who)
    r = workspace("verify", "l@c", "--json", who=who)
    tap.eq({p["what"]: p["exit_code"] for p in r["parts"]}, {"good.rb": 0, "d.py/evil.rb": 1, ".py": 0}, f"{who}: verify judges Ruby as Ruby, and no file without a language")
    tap.ok(r.code == 1 and r["verified"] is False, f"{who}: a Ruby source that is refused fails the verification", r.story())


# A judge: keeps what it was shown, and says no to a patch that adds the word forbidden.
JUDGE = """#!/bin/sh
cat > {seen}/patch
printf '%s %s %s' "$CORDON_TOOL" "$CORDON_RISK" "$CORDON_ARGUMENTS" > {seen}/asked
if grep -q '^+.*forbidden' {seen}/patch; then verdict=reject; else verdict=approve; fi
printf 'cordon-verdict 1\ncode %s\nverdict %s\nreason it was read\n' "$CORDON_CODE_SHA256" "$verdict"
"""


def judged(who):
    """The arena judges the diff of a clone."""
    seen, judge = TOP / "seen", TOP / "judge"
    seen.mkdir(exist_ok=True)
    seen.chmod(0o777)
    for name in ("patch", "asked"):
        (seen / name).unlink(missing_ok=True)
    judge.write_text(JUDGE.format(seen=seen))
    judge.chmod(0o755)
    rules = policy(f"arena:\n  enabled: true\n  judges: [{{name: reader, command: [{judge}]}}]\n", who)
    start = fresh("j", {"a": "old\n"}, who)
    workspace("clone", "j", "good", who=who)
    shell("j@good", "echo new > a; echo b > b; ln -s /etc/passwd link", who=who)
    r = workspace("verify", "j@good", "--json", "--policy", rules, who=who)
    tap.ok(r.code == 0 and [p["kind"] for p in r["parts"]] == ["gate"] and r["verified"] is True, f"{who}: a clone whose patch the judges approve is verified", r.story())
    tap.eq((seen / "patch").read_text(), git("j", "diff", "main", "good", who=who), f"{who}: the judges are shown what git diff prints between the workspace and the clone")
    tool, risk, arguments = (seen / "asked").read_text().split(" ", 2)
    tap.eq((tool, risk, json.loads(arguments)), ("merge", "high", {"workspace": "j@good", "id": ids("j", who)["good"]}), f"{who}: the judges are told that it is a merge, and of what")
    workspace("clone", "j", "bad", who=who)
    shell("j@bad", "echo forbidden > c", who=who)
    r = workspace("verify", "j@bad", "--json", "--policy", rules, who=who)
    tap.ok(r.code == 1 and r["verified"] is False and "gate.arena" in r["parts"][-1]["what"] and "it was read" in r["parts"][-1]["what"],
           f"{who}: a clone whose patch a judge rejects is not verified, and the reason is told", r.story())
    tap.ok(workspace("merge", "j@bad", who=who).code == 1 and ids("j", who)["main"] == start, f"{who}: a clone that the judges rejected is not merged")
    r = workspace("verify", "j@bad", "--json", "--policy", policy("arena: {enabled: true}\n", who), who=who)
    tap.ok(r.code == 1 and "no gateway to models answers" in r["parts"][-1]["what"], f"{who}: an arena without judges and without a gateway verifies no clone", r.story())
    (seen / "patch").unlink()
    shell("j@bad", "echo 'import subprocess' > evil.py", who=who)
    r = workspace("verify", "j@bad", "--json", "--policy", rules, who=who)
    tap.ok(r.code == 1 and not (seen / "patch").exists(), f"{who}: no judge is asked about a clone whose source is refused anyway", r.story())
    readers = TOP / "readers.yaml"
    readers.write_text("version: 1\nroles: {reader: {tools: [ReadFile]}}\nrun: {memory_by: rlimit, role: reader}\n")
    r = workspace("verify", "j@good", "--json", "--policy", readers, who=who)
    tap.ok(r.code == 1 and "gate.role" in r["parts"][-1]["what"], f"{who}: a role without the tool merge verifies no clone", r.story())


def refused(who):
    start = fresh("w", {"a": "a\n"}, who)
    workspace("clone", "w", "bad", who=who)
    shell("w@bad", "echo 'import subprocess' > evil.py", who=who)
    r = workspace("verify", "w@bad", "--json", who=who)
    tap.ok(r.code == 1 and r["verified"] is False and r["parts"][0]["what"] == "evil.py" and "py.module.subprocess" in r.err, f"{who}: a source that the profile refuses fails the verification", r.story())
    r = workspace("verify", "w@bad", "--profile", "open", "--policy", policy("workspaces: {verify: ['exit 3']}\n", who), "--json", who=who)
    tap.ok(r.code == 1 and r["parts"][-1]["exit_code"] == 3, f"{who}: a command that exits with 3 fails the verification", r.story())
    tap.ok(workspace("merge", "w@bad", who=who).code == 1 and ids("w", who)["main"] == start, f"{who}: a clone that failed its verification is not merged")
    tap.ok(workspace("verify", "w@bad", "--profile", "open", who=who).code == 0, f"{who}: the same clone passes by the rules of profile open")
    shell("w@bad", "echo later > later", who=who)
    r = workspace("merge", "w@bad", who=who)
    tap.ok(r.code == 1 and "not verified as it is" in r.err, f"{who}: a clone that moved after its verification is not merged", r.story())
    workspace("verify", "w@bad", "--profile", "open", who=who)
    shell("w", "echo b > b", who=who)
    moved = ids("w", who)
    r = workspace("merge", "w@bad", who=who)
    tap.ok(r.code == 1 and "conflict: w changed after w@bad began" in r.err and ids("w", who) == moved, f"{who}: a merge into a workspace that has moved is a conflict, and changes nothing", r.story())
    tap.ok(workspace("discard", "w@bad", who=who).code == 0 and "bad" not in ids("w", who), f"{who}: discard removes a clone")
    r = shell("w@bad", "true", who=who)
    tap.ok(r.code == 125 and "has no clone 'bad'" in r.err + r.out, f"{who}: a run in a clone that is gone is refused by name", r.story())
    workspace("clone", "w", "bad", who=who)
    shell("w@bad", "echo again > again", who=who)
    tap.ok(workspace("merge", "w@bad", who=who).code == 1, f"{who}: a new clone of the same name does not inherit a verification")
    tap.eq(git("w", "fsck", "--strict", "--no-dangling", "--no-progress", who=who), "", f"{who}: git fsck is clean after a discard")


def recorded(who):
    """Each command that changes a workspace is a record, done or not."""
    workspace("delete", "audited", who=who)
    workspace("create", "audited", who=who)
    workspace("snapshot", "audited", "--name", "one", who=who)
    workspace("clone", "audited", "c", who=who)
    workspace("verify", "audited@c", who=who)
    workspace("merge", "audited@c", who=who)
    workspace("restore", "audited", "nowhere", who=who)
    workspace("delete", "audited", who=who)
    lines = [json.loads(l) for l in cordon(programs, ["audit", "tail", "--json", "--lines", "40"], who).out.splitlines()]
    seen = [(r["args"]["event"], r["args"]["workspace"], r["exit_code"]) for r in lines if r["kind"] == "workspace" and r["args"]["workspace"].startswith("audited")]
    tap.eq(seen[-7:], [("create", "audited", 0), ("snapshot", "audited", 0), ("clone", "audited", 0), ("verify", "audited@c", 0), ("merge", "audited@c", 0), ("restore", "audited", 2), ("delete", "audited", 0)],
           f"{who}: each command that changes a workspace is in the audit, with its exit status", seen)
    tap.eq(cordon(programs, ["audit", "verify"], who).code, 0, f"{who}: the audit with these records verifies")


def names(who):
    fresh("w", {"a": "a\n"}, who)
    tap.eq([workspace("clone", "w", who=who).out for _ in range(2)], ["w@clone-1\n", "w@clone-2\n"], f"{who}: a clone without a name gets a number")
    for words, what in ((("clone", "w", "main"), "main may not name a clone"), (("clone", "w", "clone-1"), "a clone's name is taken once"), (("discard", "w"), "a workspace is no clone to discard"),
                        (("merge", "w"), "a workspace is no clone to merge"), (("verify", "w"), "a workspace is no clone to verify"), (("delete", "w@clone-1"), "a clone is not deleted but discarded"),
                        (("create", "w@x"), "create makes no clone"), (("log", "w@none"), "a clone that is not there is a usage error"), (("log", "w@../x"), "a path may not name a clone")):
        r = workspace(*words, who=who)
        tap.ok(r.code == 2 and r.err.count("\n") == 1, f"{who}: {what}", r.story())


def by_policy(who):
    start = fresh("w", {"a": "a\n"}, who)
    r = shell("w", "echo x > a", "--discard", who=who)
    tap.ok(r["status"] == "ok" and r["snapshot"]["id"] is None and "--discard" in r["snapshot"]["reason"] and ids("w", who) == {"main": start}, f"{who}: --discard commits nothing", r.story())
    r = shell("w", "echo x > a", "--policy", policy("workspaces: {commit: never}\n", who), who=who)
    tap.ok(r["status"] == "ok" and "workspaces.commit" in r["snapshot"]["reason"] and ids("w", who) == {"main": start}, f"{who}: with workspaces.commit never no run is committed", r.story())
    r = shell("w", "echo x > a; exit 4", "--policy", policy("workspaces: {commit: ended}\n", who), who=who)
    tap.ok(r["status"] == "error" and r["exit_code"] == 4 and r["snapshot"]["changed"] is True, f"{who}: with workspaces.commit ended a run that exits with 4 is committed", r.story())
    r = shell("w", "echo y > a; sleep 9", "--timeout", "300ms", "--policy", policy("workspaces: {commit: ended}\n", who), who=who)
    tap.ok(r["status"] == "timeout" and r["snapshot"]["id"] is None, f"{who}: with workspaces.commit ended a run that a limit ended is discarded", r.story())
    r = cordon(programs, ["exec", "--discard", "--", "/bin/true"], who)
    tap.ok(r.code == 125 and "--workspace" in r.err, f"{who}: --discard without a workspace is a usage error", r.story())


def planted(who):
    """A clone's files may name a policy that is read relative to them."""
    fresh("w", {"a": "a\n"}, who)
    workspace("clone", "w", "p", who=who)
    shell("w@p", "echo 'import subprocess' > x.py; printf 'version: 1\\nrun: {profile: open}\\n' > policy.yaml", who=who)
    here = TOP / "here"
    here.mkdir(exist_ok=True)
    (here / "policy.yaml").write_text("version: 1\n")
    r = subprocess.run(programs.command(["workspace", "verify", "w@p", "--policy", "policy.yaml"], who), cwd=here, env=tapsys.clean_env(None, who), stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tap.ok(r.returncode == 1 and "py.module.subprocess" in r.stdout, f"{who}: verify reads the caller's policy, and not one that the clone holds", r.stdout)


for person in users():
    ordinary(person)
    refused(person)
    languages(person)
    judged(person)
    by_policy(person)
names(users()[-1])
recorded(users()[-1])
planted(users()[-1])
tap.done()
