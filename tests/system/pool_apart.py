# SPDX-License-Identifier: Apache-2.0
"""What one warm run learns does not serve another: templates are replaced, by age and by number, and lend meanwhile.

Usage: pool_apart.py BUILD. All children of a template have its hash seed, so a string's hash tells which template a run
came from."""
import atexit
import collections
import os
import pathlib
import subprocess
import sys

import tapsys
from pooltest import Processes, User, until

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
processes = Processes(programs)
ours = processes.all
HASH = "print(hash('cordon'))\n"


def start(u, pool, profile="standard"):
    """A fresh holder with these keys of the policy."""
    u("pool", "stop", "--force")
    until(lambda: not ours())
    policy = pathlib.Path(tapsys.House.of(u.who)["XDG_CONFIG_HOME"]) / "cordon/policy.yaml"
    policy.write_text(tapsys.POLICY + pool)
    r = u("pool", "start", "--profile", profile, "--size", "2")
    u.ok(r.code == 0, f"a pool is started with {pool.strip()}", r)
    u.ok(u.full(profile), "the children of a template wait", u.status())


def warm(u, code, profile="standard"):
    return u.warm(lambda: u("run", "--json", "--profile", profile, "-", text=code))


def hash_of(u):
    r = warm(u, HASH)
    return (r["stdout"] or r.story()).strip()


def states(u):
    return sorted(t["state"] for t in u.status().get("templates", ()))


# --- ids ----------------------------------------------------------------------------------------------

SHUT = "import os\nos.makedirs('d', 0o700)\nopen('d/x', 'w').write('hi')\nos.chmod('d/x', 0o600)\n"


def own_ids(u):
    """Of root's children each has an id of its own, and whoever has given root up still reads what one left."""
    start(u, "pool: {renew: 24h, renew_runs: 1000000}\n")
    # of an init and its child alike; the template and its init have one of their own
    owners = collections.Counter(os.stat(f"/proc/{pid}").st_uid for pid, name in processes.at_rest().items() if name == "cordon-python")
    u.ok(all(n <= 2 for n in owners.values()) and len(owners) >= 3, "each waiting child of a pool has an id of its own on the host", owners)
    r = warm(u, SHUT)
    u.ok([f["path"] for f in r["files"] or ()] == ["/workspace/d/x"], "what a warm run left in a folder that it shut is listed", r)


# --- renewal ----------------------------------------------------------------------------------------

def by_number(u):
    start(u, "pool: {renew: 24h, renew_runs: 5}\n")
    first = hash_of(u)
    u.ok(hash_of(u) == first, "two runs of one template have the same hash seed")
    session = u.new("--profile", "standard", "kept")
    u.ok(u.cell(session, "x = hash('cordon')\nx\n")["value"] == first, "a session of the same template has the same hash seed")
    before = u.template("standard")  # two runs, the session and the judge of its call had its children
    hashes = [hash_of(u) for _ in range(3)]  # more than it serves
    u.ok(until(lambda: states(u) == ["ending", "ready"]), "after its number of runs another template takes its place; the old one stays for its session", u.status())
    later = [hash_of(u) for _ in range(2)]
    u.ok(first not in later and later[0] == later[1], "runs after a renewal by number have another hash seed", first, hashes, later)
    r = u.cell(session, "x == hash('cordon')\n")
    u.ok(r["value"] == "True", "the session of the old template goes on", r)
    u("session", "close", session)
    u.ok(until(lambda: states(u) == ["ready"]) and u.template("standard")["serial"] > before["serial"], "the old template ends with its last session", u.status())
    t = u.template("standard")
    # where the second came early it has served its number, too, by now
    u.ok(t["starts"] - before["starts"] == t["serial"] - before["serial"] and t["crashes"] == 0, "a renewal is a start, and no crash", before, t)


def by_age(u):
    start(u, "pool: {renew: 1s, renew_runs: 1000000}\n")
    serial = u.template("standard")["serial"]
    looked = until(lambda: u.template("standard")["age_ms"] > 1500)
    u.ok(looked and u.template("standard")["serial"] == serial, "a template of which nobody had a child is kept, however old", u.status())
    first = hash_of(u)
    u.ok(until(lambda: u.template("standard")["serial"] > serial and states(u) == ["ready"]), "a template that has served is replaced when it is old", u.status())
    u.ok(hash_of(u) != first, "a run after a renewal has another hash seed", first)


def crowd(u):
    """24 runs, two at a time: whether each was warm, and what was wrong with them."""
    before = u.status()
    results = [r for _, r in tapsys.side_by_side(lambda n: u("run", "--json", "--profile", "standard", "-", text=f"print({n})\n"), range(24))]
    wrong = [r.story() for n, r in enumerate(results) if r["status"] != "ok" or r["stdout"] != f"{n}\n"]
    now = u.status()
    renewed = max(t["serial"] for t in now["templates"]) - max(t["serial"] for t in before["templates"])
    return now["leases"] - before["leases"] == 24 and now["declined"] == before["declined"], wrong, renewed, now


def under_load(u):
    """Each run must be warm and right while templates come and go."""
    start(u, "pool: {renew: 24h, renew_runs: 4}\n")
    held = subprocess.Popen(programs.command(["run", "--profile", "standard", "-c", "import time\nfor i in range(300):\n    time.sleep(0.01)\nprint('whole')"], u.who), env=tapsys.clean_env({}, u.who),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd="/")
    until(lambda: u.template("standard")["lent"])
    all_warm, renewed = False, 0
    for _ in range(10):  # on a busy machine a client may go without; a renewal that loses runs would do so each time
        warm_now, wrong, more, now = crowd(u)
        u.ok(not wrong, "runs during renewals give what they should", *wrong)
        all_warm, renewed = all_warm or warm_now, renewed + more
        if all_warm and renewed > 1:  # runs may be quicker than the start of the template that is to serve the next of them
            break
    u.ok(renewed > 1, "the template was replaced more than once during the runs", now)
    u.ok(all_warm, "every run during renewals was given a warm child", now)
    u.ok(held.communicate()[0] == b"whole\n" and held.returncode == 0, "a run that is under way when its template is replaced goes on to its end")
    u.ok(until(lambda: states(u) == ["ready"]), "one template is left after many renewals", u.status())


for who in tapsys.users():
    user = User(tap, programs, who)
    atexit.register(user, "pool", "stop", "--force")  # also when the test itself breaks
    if who == "root":
        own_ids(user)
    if who == tapsys.users()[0]:
        by_number(user)
    if who == tapsys.users()[-1]:
        by_age(user)
        under_load(user)
    user("pool", "stop", "--force")
tap.done()
