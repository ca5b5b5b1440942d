# SPDX-License-Identifier: Apache-2.0
"""What the Python library has besides the cases that all libraries share: threads, Control-C, fork, tasks, its own server.

Usage: python_own.py BUILD SOURCE."""
import asyncio
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading

BUILD, SOURCE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "tests/system"), str(BUILD / "bindings/python")]
import mcptest  # noqa: E402
import tapsys  # noqa: E402

import cordon  # noqa: E402
import cordon.aio  # noqa: E402

tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
os.environ.update(tapsys.clean_env({"PATH": f"{programs.bin}:/usr/bin:/bin"}))
QUICK = ["--answer", "100ms"]
FOREVER = "print('on', flush=True)\nwhile True: pass"


def threads():
    with cordon.Client() as c:
        got = {}

        def work(n):
            got[n] = c.run(f"{n} * 10").value
        workers = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        tap.eq(got, {n: str(n * 10) for n in range(6)}, "six threads share a client, and each gets its own answer")
        with c.session() as s:
            began, ended = threading.Event(), []
            run = threading.Thread(target=lambda: ended.append(s.run(FOREVER, on_output=lambda *_: began.set())))
            run.start()
            began.wait(mcptest.PATIENCE)
            s.interrupt()
            run.join(mcptest.PATIENCE)
            tap.ok(ended and ended[0].error["type"] == "KeyboardInterrupt", "another thread interrupts a session's call", ended)


def closing():
    folder = pathlib.Path(os.environ["CORDON_STATE"]) / "closing"
    folder.mkdir(mode=0o700)
    server = mcptest.start(programs, ["--socket", str(folder / "s"), "--answer", "10m", "--timeout", "10m"])
    mcptest.appears(lambda: mcptest.connects(folder / "s"))
    c, ended = cordon.Client(str(folder / "s")), []

    def work():
        try:
            c.run(FOREVER)
        except cordon.ServerGone as e:
            ended.append(str(e))
    run = threading.Thread(target=work, daemon=True)
    run.start()
    runs = mcptest.appears(lambda: mcptest.named(server.pid, "cordon-runner"))
    c.close()
    run.join(mcptest.PATIENCE)
    tap.eq((len(runs), ended), (1, ["the client is closed"]), "a call that waits ends where another thread closes the client")
    tap.eq(mcptest.gone(runs), [], "the run of that call has ended, too")
    server.terminate()
    server.wait(mcptest.PATIENCE)
    before = mcptest.family(os.getpid())
    c = cordon.Client()
    c.run("1")
    begun = [p for p in mcptest.family(os.getpid()) if p not in before]
    del c
    gc.collect()
    tap.ok(begun, "a client starts a server")
    tap.eq(mcptest.gone(begun), [], "the server of a client that was forgotten ends")


def control_c():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts us in the background ignores it
    with cordon.Client(options=QUICK) as c:
        try:
            c.run(FOREVER, on_output=lambda *_: os.kill(os.getpid(), signal.SIGINT))
            tap.ok(False, "Control-C ends a call")
        except KeyboardInterrupt:
            tap.ok(True, "Control-C ends a call")
        tap.eq(c.run("1 + 1").value, "2", "after Control-C the client goes on: its server was not meant")
        tap.eq(mcptest.gone(mcptest.named(os.getpid(), "cordon-runner")), [], "the run of a call that Control-C ended has ended, too")


def defaults():
    tap.eq(cordon.run("6 * 7").value, "42", "cordon.run starts a server and runs")
    first = cordon.default()
    tap.ok(cordon.check("1").is_safe and cordon.eval("1 + 1").value == 2 and cordon.default() is first, "check and eval use the same one")
    with cordon.Session() as s:
        s.run("x = 5")
        tap.eq(s.run("x").value, "5", "cordon.Session() uses it, too")
    while (job := cordon.run("import time\ntime.sleep(1.5)\nprint(1)", wait=False)).status != "running":
        pass  # it was over before the first answer: the server had slept for so long
    tap.eq((job.status, cordon.wait(job.job_id).stdout), ("running", "1\n"), "cordon.wait gives the result of a job")
    tap.eq(cordon.eval("ctx['n'] == 100000000000000000000000000000001", {"n": 10 ** 32 + 1}).value, True, "an integer of a context is not rounded on its way")
    pid = os.fork()
    if pid == 0:
        os._exit(0 if cordon.run("1").value == "1" and cordon.default() is not first else 1)
    tap.eq((os.waitpid(pid, 0)[1], cordon.run("2").value), (0, "2"), "a forked process has a server of its own, and its parent keeps the first")
    folder = pathlib.Path(os.environ["CORDON_STATE"]) / "socket"
    folder.mkdir(mode=0o700)
    server = mcptest.start(programs, ["--socket", str(folder / "s")])
    mcptest.appears(lambda: mcptest.connects(folder / "s"))
    words = "import cordon; print(cordon.run('1 + 1').value, cordon.default()._process)"
    r = subprocess.run(["/usr/bin/python3", "-c", words], env={**os.environ, "CORDON_SOCKET": str(folder / "s"), "PYTHONPATH": str(BUILD / "bindings/python")},
                       capture_output=True, text=True, timeout=mcptest.PATIENCE)
    tap.eq(r.stdout, "2 None\n", "CORDON_SOCKET names a server that runs", r.stderr)
    server.terminate()
    server.wait(mcptest.PATIENCE)


def mistakes():
    for what, make, words in (("a program that is not there", lambda: cordon.Client(program="/nowhere/cordon"), "is Cordon installed"),
                              ("an option that the server refuses", lambda: cordon.Client(options=["--profile", "nonesuch"]).run("1"), "nonesuch")):
        try:
            make()
            tap.ok(False, f"{what} is told in words")
        except cordon.ServerGone as e:
            tap.ok(words in str(e), f"{what} is told in words", e)
    with cordon.Client() as c:
        try:
            c.run("'\ud800'")
            tap.ok(False, "a lone surrogate is refused before it is sent")
        except UnicodeEncodeError:
            tap.eq(c.run("3").value, "3", "a lone surrogate is refused before it is sent, and the client goes on")
    try:
        c.run("1")
        tap.ok(False, "a closed client says that it is closed")
    except cordon.ServerGone as e:
        tap.ok("closed" in str(e), "a closed client says that it is closed", e)


async def tasks():
    async with cordon.aio.Client(options=QUICK) as c:
        values = await asyncio.gather(*(c.run(f"{n} * 10") for n in range(6)))
        tap.eq([r.value for r in values], [str(n * 10) for n in range(6)], "aio: six runs at once get their own answers")
        began = asyncio.Event()
        task = asyncio.ensure_future(c.run(FOREVER, on_output=lambda *_: began.set()))
        await began.wait()
        task.cancel()
        await asyncio.wait([task])
        tap.ok(task.cancelled(), "aio: a task that is cancelled ends")
        tap.eq((await c.run("1")).value, "1", "aio: the client goes on after it")
        tap.eq(mcptest.gone(mcptest.named(os.getpid(), "cordon-runner")), [], "aio: the run of a cancelled task has ended")
    try:
        async with cordon.aio.Client(options=["--profile", "nonesuch"]) as c:
            await c.run("1")
        tap.ok(False, "aio: an option that the server refuses is told in words")
    except cordon.ServerGone as e:
        tap.ok("nonesuch" in str(e), "aio: an option that the server refuses is told in words", e)


def imports():
    from cordon import Schema, compile_condition
    tap.ok(compile_condition("ctx['a'] > 1", Schema(["a"]))({"a": 2}) is True, "the conditions are where they were: from cordon import compile_condition")
    tap.ok({"compile_condition", "Schema", "run"} <= set(dir(cordon)) and set(cordon.__all__) <= set(dir(cordon)), "dir() and __all__ have conditions and client")
    alone = pathlib.Path(os.environ["CORDON_STATE"]) / "alone"
    alone.mkdir()
    subprocess.run(["cp", "-r", str(SOURCE / "bindings/python/cordon"), str(alone)], check=True)
    words = "import cordon\ntry:\n    cordon.Schema\nexcept ImportError:\n    print(cordon.run('1 + 1').value)"
    r = subprocess.run(["/usr/bin/python3", "-c", words], env={**os.environ, "PYTHONPATH": str(alone), "PYTHONDONTWRITEBYTECODE": "1"},
                       capture_output=True, text=True, timeout=mcptest.PATIENCE)
    tap.eq(r.stdout, "2\n", "the client works where the C module is not built", r.stderr)


imports()
threads()
closing()
control_c()
mistakes()
asyncio.run(tasks())
defaults()
tap.done()
