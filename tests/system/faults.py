# SPDX-License-Identifier: Apache-2.0
"""Faults at random instants against every process of ours, as root and as an ordinary user; Cordon must stay alive.

Usage: faults.py BUILD [--count N] [--seed S] [--only I]. Without --count the short campaign: every command with every kind
of fault once, and every victim killed and stopped. After each fault: the next run, cold and warm, gives the right answer
within a second; nothing is left; `audit verify` passes; whoever had asked was told the truth.

A second is the promise on a machine at rest. Where a run that nobody disturbs takes long just then, because others work
on the machine too, ten times as long as that is allowed."""
import argparse
import os
import random
import signal
import statistics
import sys
import time

import fault_commands
import fault_homes
import fault_kinds
import tapsys
import traces

ap = argparse.ArgumentParser()
ap.add_argument("build")
ap.add_argument("--count", type=int)
ap.add_argument("--seed", type=int)
ap.add_argument("--only", type=lambda s: {int(x) for x in s.split(",")})
ap.add_argument("--match", default="")
opt = ap.parse_args()
SEED = opt.seed if opt.seed is not None else 1 if opt.count is None else random.SystemRandom().randrange(1 << 30)
SECOND = 1.0 * tapsys.SLOW
KINDS = ("kill", "stop", "interrupt", "stall", "close", "full disk", "read-only disk", "full output", "descriptors", "memory")

tapsys.under_plant(opt.build)
tapsys.enter_empty_network()
traces.adopt_orphans()
tap = tapsys.Tap()
programs = tapsys.Programs(opt.build)
print(f"# SEED={SEED}", flush=True)


# --- what must be so after every fault --------------------------------------------------------------

NEXT = (("cold", ["run", "--json", *fault_commands.COLD, "-"]), ("warm", ["run", "--json", "-"]))


def next_run(home, args):
    return home(*args, text="print(6 * 7)\n", seconds=8)


def allowed(home, args):
    """How long a run may take now: a second, or ten times the slowest of five that nobody disturbs."""
    return max(SECOND, 10 * max(next_run(home, args).seconds for _ in range(5)))


def was_stopped(run):
    """By `cordon stop`: before it began, or while it ran."""
    return run.rules() == ["gate.stopped"] or (run["error"] or {}).get("type") == "Stopped"


def slow(run, again, limit):
    """Whether it took too long, and a second and a third try as well. AGAIN: tries it; None where that would say nothing."""
    if run.seconds <= SECOND or again and any(again().seconds <= SECOND for _ in range(2)):
        return False
    return run.seconds > limit()


def next_runs(home, when, held=False, switched=False, holder_of_lock=None):
    """What is wrong with the next runs and with the log, in words. HELD: the fault is still on, so a run that is slow for its
    sake is slow a second time, too. SWITCHED: by right they may be refused by `cordon stop`. HOLDER_OF_LOCK: a process
    that was stopped; if it holds a lock, a refusal that names it is right."""
    wrong = []
    for name, args in NEXT:
        r = next_run(home, args)
        if r.code is None:
            wrong.append(f"{when} a {name} run does not end within 8 s: {r.err[-600:]}")
        elif r["status"] == "refused" and holder_of_lock and f"pid {holder_of_lock} " in (r["reason"] or ""):
            continue
        elif (r["status"] != "ok" or r["stdout"] != "42\n") and not (switched and was_stopped(r)):
            wrong.append(f"{when} a {name} run: {r.story()}")
        elif slow(r, held and (lambda: next_run(home, args)), lambda: allowed(home, args)):
            wrong.append(f"{when} a {name} run takes {r.seconds:.2f} s")
    verify = lambda: home("audit", "verify", "--json", seconds=8)
    r = verify()
    if (r.code != 0 or r["ok"] is not True) and not (holder_of_lock and f"pid {holder_of_lock} " in r.err):
        wrong.append(f"{when} audit verify: {r.story()}")
    elif r.code == 0 and slow(r, held and verify, lambda: allowed(home, NEXT[0][1])):
        wrong.append(f"{when} audit verify takes {r.seconds:.2f} s")
    return wrong


def strays():
    """Processes below this test that belong to no holder of a home."""
    traces.reap_orphans(fault_homes.started)
    kept = {h.holder for h in homes.values()}
    return {p.pid: f"{p.name} ({p.state})" for c in traces.children(os.getpid()) if c not in kept and traces.alive(c)
            for p in [traces.process(c), *traces.below(c).values()] if p}


def state_files(home):
    """Names in the state folder and below that a run has no business to leave."""
    known = ("audit", "seal", "run", "gate.live", "stop.bell", "approvals", "stopped")
    return [str(p.relative_to(home.state)) for p in home.state.rglob("*")
            if home.state / "workspaces" not in (p, *p.parents)  # what is left half done there goes with the next command: workspace.py
            and (not p.name.startswith(known) and p.parent.name not in ("audit", "seal", "run", "approvals") or p.name.endswith((".tmp", ".new", "~")))]


def left(home):
    """What is left of the runs so far, in words."""
    found = []
    if strays():
        found.append(f"processes: {strays()}")
    if traces.mounts() != machine["mounts"]:
        found.append(f"mounts: {set(traces.mounts()) ^ set(machine['mounts'])}")
    groups = traces.cgroups(fault_homes.started)
    if groups:
        found.append(f"cgroups: {sorted(groups)[:5]}")
    if os.listdir(home.tmp):
        found.append(f"scratch: {os.listdir(home.tmp)[:5]}")
    if state_files(home):
        found.append(f"files: {state_files(home)[:5]}")
    listed = home("stop", "--list", "--json")
    if listed["count"] != 0 or listed["stopped"]:
        found.append(f"the gate: {listed.story()}")
    return found


def holder_grew(home):
    """Whether the holder's tree has more processes, or it has more descriptors, than with as many sessions before."""
    if not home.holder:
        return None
    sessions = len(home.sessions())
    size = lambda: (traces.lasting(traces.below(home.holder)), traces.descriptors(home.holder) or 0)
    now = size()
    rest = home.usual.setdefault((home.holder, sessions), None)
    if rest is None:
        still = now
        while True:  # what ends, ends a little later
            time.sleep(0.3)
            now = size()
            if now == still:
                break
            still = now
        home.usual[home.holder, sessions] = rest = now
    grew = now[0] > rest[0] or now[1] > rest[1] + 2
    return f"the holder's processes and descriptors: {rest} -> {now}, {sessions} sessions" if grew else None


def afterwards(home, command, fault):
    wrong = next_runs(home, "afterwards", switched=command.switches)
    wrong += command.after(home, fault.takes_sessions)
    if command.switches:
        wrong += next_runs(home, "after a resume")
    broken = home.restore()
    if broken:
        wrong.append(broken)
    remains = traces.until(lambda: None if left(home) else [True])
    wrong += [] if remains else [f"left: {x}" for x in left(home)]
    if not broken and not traces.until(lambda: holder_grew(home) is None):
        wrong.append(f"left: {holder_grew(home)}")
    return wrong


# --- whether the caller was told the truth ----------------------------------------------------------

def untrue(command, fault, run):
    """None, or what is wrong with an answer."""
    if run.code is None:
        return "it did not end"
    if fault.out == "pipe" and not fault.silent and command.right(run):
        return None
    if fault.must_work(command):
        return "it has to work in spite of that"
    if fault.excuses(command, run):
        return None
    if fault.silent:  # what the pipe took before its reader closed it was handed over
        lost = fault.close and run.code == 0 and command.size > fault.quota + 2 * fault.capacity
        return "exit status 0, and output is lost" if lost else None
    if run.code == 0:
        return "exit status 0, but the answer is not right"
    if run.code < 0:
        return f"it died of signal {-run.code}"
    if fault.out == "pipe" and command.json and command.judges and command.answer(run) is None:
        return "no JSON, though it was asked for"
    if not run.err.strip() and command.answer(run) is None:
        return "it failed without a word"
    return None if command.names_host(run) else f"the program is blamed, exit status {run.code}"


# --- one fault --------------------------------------------------------------------------------------

def make_fault(kind, victim, command, home, dice, index):
    """The fault of an attempt, all of it from its own dice."""
    instant = dice.uniform(0, dice.choice((0.3, 1.05))) * command.usual
    if kind in ("kill", "stop"):
        return fault_kinds.Signal(signal.SIGKILL if kind == "kill" else signal.SIGSTOP, victim, 0 if victim == "builder" else instant)
    if kind == "interrupt":
        return fault_kinds.Signal(dice.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)), "client", instant)
    if kind in ("stall", "close"):
        return fault_kinds.Reader(dice.choice((0, 1, 4096, dice.randrange(100000))), kind == "close")
    if kind.endswith("disk"):
        what = "read-only" if kind == "read-only disk" else dice.choice(("blocks", "inodes"))
        return fault_kinds.Disk(what, dice.choice((0, instant)))
    if kind == "full output":
        return fault_kinds.FullOutput()
    if kind == "descriptors":
        return fault_kinds.FewDescriptors(3 + index % 38)
    if dice.random() < 0.5 and fault_kinds.SmallGroup.place():
        return fault_kinds.SmallGroup(int(2 ** dice.uniform(18, 26)))
    return fault_kinds.LittleMemory(int(2 ** dice.uniform(20, 29)))


def start(home, command, fault=fault_kinds.Fault()):
    return fault_homes.Client(home, command.arguments(home), command.source(home), out=fault.out, capacity=fault.capacity,
                              quota=fault.quota, closes=fault.close, prepare=fault.before_start(), terminal=command.terminal)


def attempt(index, who, command, kind, victim):
    """True if the fault hit somebody."""
    dice = random.Random(f"{SEED}/{index}/{command.name}/{kind}/{victim}")
    home = homes[who, kind.endswith("disk")]
    fault = make_fault(kind, victim, command, home, dice, index)
    wrong = []
    if kind in ("descriptors", "memory") and command.holds_place and not command.needs_pool and dice.random() < 0.5:
        home.fresh_state()  # whoever comes first makes the files that all others rely on
    for _ in range(6):
        broken = command.prepare(home)
        if broken:
            wrong.append(f"before the fault: {broken}")
        fault.early(home)
        client = start(home, command, fault)
        hit = fault.strike(home, command, client)
        if hit:
            wrong += fault.hold(home, command, client, lambda when, stopped: next_runs(home, when, True, command.switches, stopped))
        if not fault.until_end:
            fault.lift(home, client)
        run = client.finish(15)
        if fault.until_end:
            fault.lift(home, client)
        if hit or wrong:
            break
        fault.instant /= 2  # its victim was gone, or never there: sooner, then
        wrong += [f"without a fault: {x}" for x in [untrue(command, fault, run), *command.after(home, False), home.restore()] if x]
    lie = untrue(command, fault, run)
    if lie:
        wrong.append(f"{lie}: {run.story()}")
    wrong += afterwards(home, command, fault)
    if isinstance(fault, fault_kinds.SmallGroup):
        fault.remove()
    sentence = f"{who}: {command.name}, {fault.name}: the next run works, nothing is left, the log is whole, the answer is true"
    again = f"attempt {index}; again: --seed {SEED} --only {index}" + (f" --count {opt.count}" if opt.count else "")
    if not tap.ok(not wrong, sentence, again, *wrong):
        start_again(home)
    return hit


def every_limit(who, command):
    """The command with 3, 4, 5 … descriptors until three in a row were enough, each time as the first in a new state folder
    where it needs no more than that."""
    home, wrong, enough, count = homes[who, False], [], 0, 2
    while enough < 3 and count < 160:  # `pool start` needs most: about 80
        count += 1
        if command.holds_place and not command.needs_pool:
            home.fresh_state()
        broken = command.prepare(home)
        fault = fault_kinds.FewDescriptors(count)
        run = start(home, command, fault).finish(15)
        lie = broken or untrue(command, fault, run)
        enough = enough + 1 if command.right(run) else 0
        after = [f"{lie}: {run.story()}"] if lie else []
        after += command.after(home, False)
        if command.holds_place and next_run(home, NEXT[0][1])["stdout"] != "42\n":
            after.append("afterwards no run works")
            home.fresh_state()
        wrong += [f"{fault.name}: {x}" for x in after]
        home.restore() if command.needs_pool else None
    wrong += afterwards(home, command, fault)
    tap.ok(enough == 3 and not wrong, f"{who}: {command.name} with each number of descriptors from 3 to {count}: refused by name, or right", *wrong)
    if wrong:
        start_again(home)


def start_again(home):
    """A new state folder and a new pool: what a fault broke does not fail the attempts after it."""
    home.fresh_state()
    next_run(home, NEXT[0][1])  # there is a log
    if home.restore():
        tap.ok(False, f"{home.who}: a new state folder works")


def crowd_in_holder(who, count):
    """Sessions until the holder has no descriptor left: the one that does not fit is refused, and all the others live."""
    home = homes[who, False]
    home.fresh_state()
    limit = fault_kinds.FewDescriptors(count)
    start_of_pool = home("pool", "start", "--size", "2", prepare=limit.before_start())
    home.holder = home.status().get("pid")
    made, refused = [], None
    while len(made) < 64 and refused is None:
        r = home("session", "new")
        made.append(r.out.strip()) if r.code == 0 else (refused := r)
    lost = [s for s in made if home("session", "run", "--json", s, "-", text="6 * 7\n")["value"] != "42"]
    wrong = next_runs(home, "afterwards")
    tap.ok(start_of_pool.code == 0 and refused is not None and not lost and not wrong,
           f"{who}: a holder with {limit.name}: {len(made)} sessions are made, one more is refused, the others live, and runs go on",
           start_of_pool.story(), refused.story() if refused else "none was refused", f"lost: {lost}", *wrong)
    start_again(home)


# --- the campaign -----------------------------------------------------------------------------------

def combinations():
    """(command's number, kind, victim): all of them, in the order of the table."""
    return [(c, kind, victim) for c, command in enumerate(commands[tapsys.users()[0]]) for kind in KINDS
            for victim in (command.victims if kind in ("kill", "stop") else ("client",))]


def plan():
    """[(who, command's number, kind, victim)] of the campaign."""
    dice = random.Random(SEED)
    every, users = combinations(), tapsys.users()
    if opt.count is None:
        return [(users[0] if victim == "janitor" else users[i % len(users)], c, kind, victim) for i, (c, kind, victim) in enumerate(every)]
    return [(users[0] if victim == "janitor" else dice.choice(users), c, kind, victim) for c, kind, victim in dice.choices(every, k=opt.count)]


def undisturbed(who):
    """Every command once without a fault: it must be right, and its time is what instants are spread over."""
    for command in commands[who]:
        home = homes[who, False]
        broken = command.prepare(home)
        run = start(home, command).finish(30)
        command.usual, command.size = run.seconds, len(run.out)
        lasting = command.after(home, False)
        broken = broken or home.restore()
        tap.ok(not broken and command.right(run) and not lasting, f"{who}: {command.name} without a fault gives the right answer",
               broken, run.story(), lasting)


began = time.monotonic()
homes, commands, hits = {}, {}, {}
for who in tapsys.users():
    for small in (False, True):
        homes[who, small] = fault_homes.Home(programs, who, small)
        start_again(homes[who, small])
        if tap.failures:
            print("Bail out! no pool starts here", flush=True)
            tap.done()
    commands[who] = fault_commands.all_commands(homes[who, False])
machine = {"mounts": traces.mounts()}
for who in tapsys.users():
    undisturbed(who)
for who in tapsys.users() if opt.only is None else ():
    if opt.match in f"{who}: many sessions":
        crowd_in_holder(who, 160)
    for command in commands[who] if opt.count is not None else ():
        if opt.match in f"{who}: {command.name}, each number of descriptors":
            every_limit(who, command)
for index, (who, number, kind, victim) in enumerate(plan()):
    if opt.only is not None and index not in opt.only or opt.match not in f"{who}: {commands[who][number].name}, {kind} {victim}":
        continue
    hit = attempt(index, who, commands[who][number], kind, victim)
    for key in (kind, f"{kind} {victim}") if kind in ("kill", "stop") else (kind,):
        hits[key] = hits.get(key, 0) + hit
missed = [k for k, n in hits.items() if n == 0]
tap.ok(not missed, "every kind of victim was met by a fault", missed)
tap.figure("faults that hit: " + ", ".join(f"{k} {n}" for k, n in sorted(hits.items())) + f"; {time.monotonic() - began:.0f} s; SEED={SEED}")
if opt.count is not None:
    print(f"{tap.count - tap.failures} passed, {tap.failures} failed, 0 skipped", flush=True)
tap.done()
