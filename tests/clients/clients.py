# SPDX-License-Identifier: Apache-2.0
"""The client libraries against the real daemon: the same cases for each, from tests/clients/cases.json.

Usage: clients.py BUILD SOURCE LIBRARY."""
import base64
import json
import pathlib
import sys

BUILD, SOURCE, LIBRARY = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/system"))
import driving  # noqa: E402
import mcptest  # noqa: E402
import tapsys  # noqa: E402

tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
KNOWN = {"code", "language", "session_id", "timeout_ms", "memory_mb", "max_output_chars"}  # that every library has
ENV = tapsys.clean_env({"PATH": f"{programs.bin}:/usr/bin:/bin"})


def drive(path, env=()):
    return driving.Driver(driving.libraries(BUILD, SOURCE)[LIBRARY], path, {**ENV, **dict(env)})


def pattern(words):
    """So many bytes, as base64, in which no part is like another."""
    return base64.b64encode(b"".join(n.to_bytes(4, "big") for n in range(int(words[1:]) // 4))).decode()


def fits(got, want):
    """*: something; ~text: contains it; a list of words for a word: one of them."""
    if want == "*":
        return got is not None
    if want == ["*"]:
        return isinstance(got, list) and len(got) > 0
    if isinstance(want, str) and want.startswith("~"):
        return isinstance(got, str) and want[1:] in got
    if isinstance(want, str) and want.startswith("@"):
        return got == pattern(want)
    if isinstance(want, list) and want and isinstance(got, str):
        return got in want
    return got == want


def fill(args, results, workspace):
    filled = {}
    for key, value in args.items():
        if isinstance(value, str) and value.startswith("$") and results:
            name, field = value[1:].split(".")
            value = results[name][field]
        elif isinstance(value, str) and value.startswith("%"):
            value = "#" * int(value[1:])
        elif isinstance(value, str) and value.startswith("@"):
            value = pattern(value)
        elif value == "&":
            value = workspace
        filled[key] = value
    return filled


def wrong(step, answer):
    """What is not as STEP wants it."""
    if "raises" in step:
        bad = [] if fits(answer.get("raised"), step["raises"]) and "the driver" not in answer["raised"] else ["it raised " + str(answer.get("raised"))]
    else:
        bad = ["it raised " + answer["raised"]] if answer.get("raised") else []
    if step.get("says", "") not in str(answer.get("message")):
        bad.append(f"it says {answer.get('message')}")
    result = answer.get("result") or {}
    if isinstance(result, dict) and "hex" in result:
        result["base64"] = base64.b64encode(bytes.fromhex(result["hex"])).decode()
    bad += [f"{k}: {result.get(k)!r}, not {v!r}" for k, v in step.get("want", {}).items() if k not in result or not fits(result[k], v)]
    if "count" in step and len(answer.get("result") or ()) != step["count"]:
        bad.append(f"there are {answer.get('result')}")
    told = "".join(answer.get("output") or ())  # in how many pieces it came is up to the pipe
    if "first" in step and (told if step["first"] is None else not told.startswith(step["first"])):
        bad.append(f"output came as {answer.get('output')}")
    return bad


def carry_out(driver, case, server, workspace):
    results, story = {}, []
    for step in case["steps"]:
        if step["do"] == "idle":  # nothing runs any more: what was given up has ended
            if not mcptest.appears(lambda: not runners(server())):
                return [f"runs go on: {runners(server())}"]
            continue
        answer = driver.tell({**step, "args": fill(step.get("args", {}), results, workspace)})
        results[step.get("as")] = answer.get("result") or {}
        bad = wrong({**step, "want": fill(step.get("want", {}), {}, workspace)}, answer)
        if bad:
            return [f"{step['do']}:", *bad, str(answer)[:1500]]
    return story


def runners(pid):
    """The runs of a server. One that starts has this name, too, until it waits for a request as cordon-ready."""
    return [p for p in mcptest.family(pid) if p != pid and (mcptest.stat(p) or ("",))[0] in ("cordon", "cordon-runner")]


def all_cases(how, driver, server, workspace):
    for case in json.loads((SOURCE / "tests/clients/cases.json").read_text()):
        if LIBRARY not in case.get("only", LIBRARY).split():
            continue
        story = carry_out(driver, case, server, workspace)
        tap.ok(not story, f"{LIBRARY}, {how}: {case['name']}", *story)


def over_stdio():
    driver = drive("-")
    all_cases("a server of its own", driver, lambda: driver.process.pid, "stdio")
    family = mcptest.family(driver.process.pid)
    tap.eq(driver.end(), 0, f"{LIBRARY}: the program ends with its client")
    tap.eq(mcptest.gone(family), [], f"{LIBRARY}: the server that it started ends with it")
    temporary = programs.dir / "temporary"
    temporary.mkdir(mode=0o700)
    driver = drive("-", {"TMPDIR": str(temporary)})
    driver.tell({"do": "run", "args": {"code": "1"}})
    family = mcptest.family(driver.process.pid)
    driver.process.kill()
    driver.process.wait()
    tap.eq(mcptest.gone(family), [], f"{LIBRARY}: a program that is killed leaves no server behind")
    tap.eq([*temporary.iterdir()], [], f"{LIBRARY}: a program that is killed leaves no file behind")


def over_socket():
    folder = pathlib.Path(tapsys.House.of("root")["CORDON_STATE"]) / f"socket-{LIBRARY}"
    folder.mkdir(mode=0o700)
    path = folder / "s"
    server = mcptest.start(programs, ["--socket", str(path), "--answer", "100ms", "--timeout", "10m", "--profile", "standard", "--workspaces", "stdio,socket"])
    mcptest.appears(lambda: mcptest.connects(path))
    driver = drive(str(path))
    all_cases("a socket", driver, lambda: server.pid, "socket")
    server.terminate()
    server.wait(mcptest.PATIENCE)
    answer = driver.tell({"do": "run", "args": {"code": "1"}})
    tap.ok("ServerGone" in str(answer.get("raised")), f"{LIBRARY}: a server that ended is an error that says so", answer)
    driver.end()
    driver = drive(str(path))  # nobody is there
    answer = driver.tell({"do": "run", "args": {"code": "1"}})
    tap.ok("ServerGone" in answer["raised"] or driver.end() != 0, f"{LIBRARY}: a socket where nobody listens is an error", answer)
    driver.process.kill()
    driver.process.wait()


# What an operator may close: options of the server, its policy, and what of a run then cannot be had by any argument.
LIDS = [
    ("time", ["--timeout", "300ms"], "", [({"code": "sum(range(5 * 10**8))", "timeout_ms": 3600000}, "reason", ["wall time limit of 0.300s"])]),
    ("memory and output", ["--memory", "200m", "--output", "1000"], "",
     [({"code": "x = bytearray(400 << 20)", "memory_mb": 4000}, "status", ["memory", "error"]), ({"code": "print('x' * 5000)", "max_output_chars": 1 << 30}, "truncated", [True])]),
    ("profile", [], "run: {profiles: [strict]}\n",
     [({"code": "import ctypes", **more}, "status", ["blocked"]) for more in ({}, *({name: "open"} for name in ("profile", "policy", "role", "state", "env", "workspace", "options")))]),
    ("approval", [], "approval: {mode: HITL, expiry: 200ms}\n", [({"code": "print(1)", **more}, "status", ["denied"]) for more in ({}, {"approval": "AUTONOMOUS"}, {"approve": True})]),
]


def under_lids():
    """What the operator has closed stays closed, whatever the library is told: an argument that it does not have is an error of its language, or nothing."""
    folder = pathlib.Path(tapsys.House.of("root")["CORDON_STATE"]) / f"lids-{LIBRARY}"
    folder.mkdir(mode=0o700)
    for what, options, policy, rows in LIDS:
        path, file = folder / "s", folder / "policy.yaml"
        file.write_text(policy)
        server = mcptest.start(programs, ["--socket", str(path), "--policy", str(file), *options])
        mcptest.appears(lambda: mcptest.connects(path))
        driver = drive(str(path))
        for args, field, want in rows:
            answer = driver.tell({"do": "run", "args": args})
            raised = answer.get("raised")
            tap.ok((answer.get("result") or {}).get(field) in want if not raised else "the driver" not in raised and not {*args} <= KNOWN,
                   f"{LIBRARY}, the lid of {what}: {', '.join(args)} does not lift it", args, answer)
        answer = driver.tell({"do": "session", "args": {"workspace": "stdio"}, "as": "w"})
        tap.ok(answer.get("raised") == "Failed" and "none of that name" in str(answer), f"{LIBRARY}, the lid of {what}: a workspace that was not given is refused", answer)
        driver.end()
        server.terminate()
        server.wait(mcptest.PATIENCE)
    (folder / "cordon").mkdir()
    (folder / "cordon/policy.yaml").write_text("run: {profiles: [strict]}\n")
    driver = drive("-", {"XDG_CONFIG_HOME": str(folder)})  # its own server, with --profile standard
    answer = driver.tell({"do": "run", "args": {"code": "1"}})
    tap.ok("ServerGone" in str(answer.get("raised")) or driver.end() != 0, f"{LIBRARY}: a server of its own does not begin with a profile beyond the policy", answer)
    driver.process.kill()
    driver.process.wait()


for name in ("stdio", "socket"):
    made = tapsys.cordon(programs, ["workspace", "create", name])
    tap.ok(made.code == 0, f"{LIBRARY}: a workspace is made for the server", made.story())
over_stdio()
over_socket()
under_lids()
tap.done()
