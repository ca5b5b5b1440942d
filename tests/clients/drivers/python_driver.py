# SPDX-License-Identifier: Apache-2.0
"""Does what tests/clients/clients.py says, a JSON object a line, with the Python library. python_driver.py SOCKET|- [aio]"""
import asyncio
import base64
import dataclasses
import inspect
import json
import os
import sys
import threading

import cordon
import cordon.aio


class GivenUp(Exception):
    pass


RAISED = {"cancel": GivenUp, "stop": StopIteration}


def plain(value):
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.name != "raw"}
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value if isinstance(value, (list, dict)) else None


def forked(client):
    """Raises what a call of a forked copy of the client raises; it is closed there, and not here."""
    pid = os.fork()
    if pid == 0:
        try:
            client.run("1")
        except cordon.ServerGone:
            client.close()
            os._exit(3)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3:
        raise cordon.ServerGone("in the forked process")


async def copied(kind):
    """Whether a client of KIND closes while a forked process has a copy of it, and its server ends by itself, unkilled."""
    client, (end, ours) = kind(options=OPTIONS), os.pipe()
    asynchronous = kind is cordon.aio.Client
    if asynchronous:
        await client.__aenter__()
    (await client.run("1")) if asynchronous else client.run("1")
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        os.read(end, 1)  # until its parent is done
        os._exit(0)
    (await client.close()) if asynchronous else client.close()
    os.close(ours)
    os.waitpid(pid, 0)
    os.close(end)
    return {"closed": client._process.returncode == 0}


def closing():
    """How the calls of six threads end when the client is closed that they share."""
    client, begun, ends = cordon.Client(options=OPTIONS), threading.Semaphore(0), set()

    def work():
        try:
            r = client.run("print('on', flush=True)\nwhile True: pass", on_output=lambda *_: begun.release())
            ends.add(f"{r.status}: {r.reason}")
        except Exception as e:
            ends.add(f"{type(e).__name__}: {e}")
        begun.release()  # one that was refused never begins
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for _ in threads:
        begun.acquire()
    client.close()
    for thread in threads:
        thread.join()
    return {"ends": [*ends]}


async def step(client, held, ask, serve):
    """SERVE: how an answer that may have to be awaited is awaited."""
    place = held[ask["on"]] if "on" in ask else client
    seen, args, heard = {"output": [], "progress": [], "interrupted": None}, dict(ask.get("args", {})), args_of(ask)
    hears = args.get("on_progress")

    def on_output(stream, text):
        seen["output"].append(text)
        if heard in RAISED:
            raise RAISED[heard]("given up")

    def on_progress(ms, message):
        seen["progress"].append(ms)
        if hears == "stop":
            raise StopIteration
        if seen["output"] and not seen["interrupted"]:
            seen["interrupted"] = place.interrupt() or True
            if inspect.isawaitable(seen["interrupted"]):
                seen["interrupted"] = asyncio.ensure_future(seen["interrupted"])
    if "data" in args:
        args["data"] = base64.b64decode(args["data"])
    if heard:
        args["on_output"] = on_output
    if "on_progress" in args:
        args["on_progress"] = on_progress
    try:
        if ask["do"] == "copied":
            value = await copied(type(client))
        else:
            own = {"forked": lambda: forked(client), "closing": closing}.get(ask["do"])
            value = own() if own else await serve(getattr(place, ask["do"])(**args))
    except Exception as e:
        return {"raised": type(e).__name__, "message": str(e), "result": plain(getattr(e, "result", None))}
    if isinstance(value, (cordon.Session, cordon.aio.Session)):
        held[ask["as"]] = value
        value = {"id": value.id, "expires_in_s": value.expires_in_s}
    else:
        value = plain(value)
    return {"result": value, "output": seen["output"], "progress": seen["progress"]}


def args_of(ask):
    return ask.get("args", {}).get("on_output")


async def as_is(value):
    return value


async def awaited(value):
    return await value


async def main(client, serve):
    held = {}
    for line in sys.stdin:
        print(json.dumps(await step(client, held, json.loads(line), serve)), flush=True)


async def main_aio(path):
    async with cordon.aio.Client(path, options=OPTIONS) as client:
        await main(client, awaited)


OPTIONS = ["--answer", "100ms", "--timeout", "10m", "--profile", "standard", "--workspaces", "stdio,socket"]
path = None if sys.argv[1] == "-" else sys.argv[1]
if sys.argv[2:] == ["aio"]:
    asyncio.run(main_aio(path))
else:
    with cordon.Client(path, options=OPTIONS) as c:
        coroutine = main(c, as_is)
        try:
            coroutine.send(None)
        except StopIteration:
            pass
