# SPDX-License-Identifier: Apache-2.0
"""What the Python library has besides the cases that all libraries share: threads, Control-C, fork, tasks, its own server.

Usage: python_own.py BUILD SOURCE."""
import asyncio
import gc
import json
import os
import pathlib
import random
import signal
import socket
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
INTERRUPTS = 150
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


def stopped():
    """Control-C reaches the caller also where the server has stopped reading in the middle of what it is told."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with cordon.Client(patience=5 * tapsys.SLOW) as c:
        c.run("1")
        fronts = mcptest.named(os.getpid(), "cordon-front")
        for pid in fronts:
            os.kill(pid, signal.SIGSTOP)

        def interrupt():
            mcptest.appears(lambda: c._lines._writing.locked())
            os.kill(os.getpid(), signal.SIGINT)
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            c.run("#" * 3_000_000)
            ended = "nothing"
        except (KeyboardInterrupt, cordon.Error) as e:
            ended = repr(e)
        thread.join()
        for pid in fronts:
            os.kill(pid, signal.SIGCONT)
        tap.eq(ended, "KeyboardInterrupt()", "Control-C ends a call to a server that does not read, as Control-C")


def handled(handler):
    """How a call of a session ends in which the main thread is when HANDLER of a signal runs there."""
    with cordon.Client(options=["--answer", "10m"], patience=10 * tapsys.SLOW) as c:
        s = c.session()
        signal.signal(signal.SIGUSR1, lambda *_: handler(s))

        def tell():
            mcptest.appears(lambda: mcptest.named(os.getpid(), "cordon-runner") and c._reading.locked())
            os.kill(os.getpid(), signal.SIGUSR1)
        thread = threading.Thread(target=tell)
        thread.start()
        try:
            return s.run(FOREVER).reason or ""
        except (RuntimeError, cordon.Error) as e:
            return str(e)
        finally:
            thread.join()


def begun_and_interrupted(session):
    try:
        session.interrupt()
        return True
    except cordon.Failed:  # nothing runs in it yet
        return False


def handlers():
    said = handled(lambda s: s.interrupt())
    tap.ok("signal handler" in said or "KeyboardInterrupt" in said, "a call in a signal handler is refused at once, and says what to do instead", said)
    said = handled(lambda s: threading.Thread(target=mcptest.appears, args=(lambda: begun_and_interrupted(s),)).start())
    tap.ok("KeyboardInterrupt" in said, "a thread that a signal handler starts interrupts the call", said)


def scripted(path, count, stays=True):
    """A server that takes COUNT requests, sends their answers at once, and then waits for its client's end, or ends."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            numbers = [json.loads(line)["id"] for _, line in zip(range(count), lines)]
            connection.sendall(b"".join(json.dumps({"jsonrpc": "2.0", "id": n, "result": {"content": [], "structuredContent": {"status": "ok", "value": str(n)}}}).encode() + b"\n"
                                        for n in numbers))
            if stays:
                lines.read()


def interrupted():
    """Two answers come at once, and an exception of a signal handler ends the thread that reads them: the other has its own."""
    path = pathlib.Path(os.environ["CORDON_STATE"]) / "interrupted"
    server = scripted(path, 2)
    next(server)
    threading.Thread(target=lambda: next(server, None), daemon=True).start()
    real, ends = cordon._client.protocol.message_of, []

    def once(line):
        if not ends:
            ends.append("a thread")
            raise KeyboardInterrupt
        return real(line)

    def work():
        try:
            ends.append(c.run("1").value)
        except (KeyboardInterrupt, cordon.Error) as e:
            ends.append(type(e).__name__)
    cordon._client.protocol.message_of = once
    with cordon.Client(str(path), patience=10 * tapsys.SLOW) as c:
        workers = [threading.Thread(target=work) for _ in range(2)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    cordon._client.protocol.message_of = real
    tap.ok("KeyboardInterrupt" in ends and {"1", "2"} & {*ends}, "Control-C in the thread that reads does not lose the answer of another", ends)


def at_a_lock():
    """A signal handler runs in the moment in which its thread has just begun to write, or to read, and makes a call: it is told so, and does not wait for itself."""
    real, told = threading.get_ident, []

    def handled():
        own = c._lines._writing.locked() and sys._getframe(1).f_code.co_name == "send" or c._reading.locked() and sys._getframe(1).f_code.co_name == "_wait"
        if own and not told:
            told.append("in its middle")
            try:
                c.eval("1 + 1")
            except Exception as e:
                told.append(type(e).__name__)
        return real()
    with cordon.Client(options=["--answer", "100ms"], patience=20 * tapsys.SLOW) as c:
        cordon._client.threading.get_ident = handled
        try:
            value = c.eval("1 + 1").value
        except cordon.Error as e:
            value = str(e)
        finally:
            cordon._client.threading.get_ident = real
        tap.ok(value == 2 and told in ([], ["in its middle", "RuntimeError"]), "a signal handler that makes a call when its thread has just begun to write or read does not end the connection", value, told)


class Enough(BaseException):
    """What a signal handler raises, in the middle of anything."""


def raise_enough(*_):
    raise Enough


def interrupted_anywhere():
    """The main thread is interrupted wherever it is, again and again: it reads for the others and writes between them, and they
    get what is theirs, whole."""
    signal.signal(signal.SIGALRM, raise_enough)
    chance, wrong, over, rounds = random.Random(7), [], threading.Event(), []
    with cordon.Client(options=["--profile", "standard"], patience=30 * tapsys.SLOW) as c, c.session() as s:
        text = "".join(chr(97 + n % 26) for n in range(700_000))
        s.put("long", text)

        def work(name):
            try:
                while not over.is_set():
                    s.put(name, text[:200_000])
                    rounds.append(name)
                    if s.get("long") != text.encode() or s.get(name) != text[:200_000].encode():
                        wrong.append(f"{name}: other bytes")
            except Exception as e:
                wrong.append(f"{name}: {e!r}")
        workers = [threading.Thread(target=work, args=(f"file{n}",)) for n in range(2)]
        for w in workers:
            w.start()
        for n in range(INTERRUPTS):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0005, 0.02))
                while not wrong:
                    c.eval("1 + 1", {"long": text} if n % 3 == 0 else None)
            except Enough:
                pass
            except Exception as e:
                wrong.append(f"main: {e!r}")
            if wrong:
                break
        over.set()
        for w in workers:
            w.join(60)
        signal.setitimer(signal.ITIMER_REAL, 0)
        tap.eq((wrong, [w.is_alive() for w in workers], {*rounds}, s.run("1 + 1").value), ([], [False, False], {"file0", "file1"}, "2"),
               f"after {INTERRUPTS} exceptions of a signal handler, each somewhere in a call, every thread has its answers, and the client goes on")


def numbers():
    digits = "9" * 5000  # more than Python reads at once
    with cordon.Client() as c:
        for sign in ("", "-"):
            got = c.eval(f"ctx['n'] {sign or '+'} 1", f'{{"n": {sign}{digits}}}').value
            tap.ok(got == int(f"{sign}1") * 10 ** 5000, f"an integer of 5001 digits is a result, {sign or 'with no sign'}")
        tap.eq(c.run("1").value, "1", "the client goes on after it")
        for what, make, word in (("a number that no JSON has", lambda: c.run("1", timeout_ms=1j), "timeout_ms"), ("bytes for a program", lambda: c.run(b"1"), "code")):
            try:
                make()
                tap.ok(False, f"{what} is refused by the name of the argument")
            except TypeError as e:
                tap.ok(word in str(e), f"{what} is refused by the name of the argument", e)


def pipes():
    """A program that has taken SIGPIPE back, as those do that are used in pipelines of a shell."""
    words = "import cordon, signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nc = cordon.Client(options=['--profile', 'nonesuch'])\nc._process.wait()\n" \
        "try:\n    c.run('1')\nexcept cordon.ServerGone:\n    print('gone')"
    r = subprocess.run(["/usr/bin/python3", "-c", words], env={**os.environ, "PYTHONPATH": str(BUILD / "bindings/python")}, capture_output=True, text=True,
                       timeout=mcptest.PATIENCE)
    tap.eq((r.returncode, r.stdout), (0, "gone\n"), "a server that is gone does not end a program by SIGPIPE", r.stderr)


def let_go():
    """What cordon.run connected to and lost is not kept until the program ends."""
    os.environ["CORDON_SOCKET"] = str(path := pathlib.Path(os.environ["CORDON_STATE"]) / "lost")
    counts = []
    for _ in range(4):
        server = scripted(path, 1, stays=False)
        next(server)
        thread = threading.Thread(target=lambda: next(server, None))
        thread.start()
        cordon.run("1")
        thread.join()
        try:
            cordon.run("1")
            tap.ok(False, "a server that ended is not answered by")
        except cordon.ServerGone:
            pass
        path.unlink()
        counts.append(len(os.listdir("/proc/self/fd")))
    del os.environ["CORDON_SOCKET"]
    tap.eq(counts[1:], counts[:1] * 3, "a connection of cordon.run that was lost leaves no descriptor")


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
        except UnicodeEncodeError as e:
            tap.ok("code is not Unicode" in str(e), "a lone surrogate is refused by the name of its argument", e)
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


def loops():
    async def opened():
        await c.__aenter__()
        return (await c.run("1")).value

    async def used():
        try:
            return (await c.run("1")).value
        except (RuntimeError, cordon.Error) as e:
            return str(e)
    c = cordon.aio.Client(patience=5 * tapsys.SLOW)
    first = asyncio.new_event_loop()
    tap.eq(first.run_until_complete(opened()), "1", "aio: a client is opened in an event loop")
    tap.ok("event loop" in asyncio.run(used()), "aio: in another event loop it says so at once")
    first.run_until_complete(c.close())
    first.close()


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
numbers()
interrupted()
at_a_lock()
interrupted_anywhere()
stopped()
handlers()
pipes()
loops()
let_go()
threads()
closing()
control_c()
mistakes()
asyncio.run(tasks())
defaults()
tap.done()
