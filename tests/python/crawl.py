# SPDX-License-Identifier: Apache-2.0
"""Plays the guest: walks from every facade and builtin by all that guarded code can do, and looks at what it finds.

Run by `guard_tool crawl PROFILE crawl.py`, itself unguarded, with the guarded operations in its hands. An object is
walked by its attributes, items and elements, by its class, by calling it with a few plain arguments, and by the
exceptions that all this raises. With RAW it reads every attribute as Python itself does, private ones too: what is
then still out of reach is so by the interpreter's own doing, not by a guard's. It is a fault to reach a module, a frame, code, a namespace, or a function that opens,
executes or imports. Prints the way to each fault; the last line is `reached N objects, M faults`."""
import builtins
import collections
import io
import os
import sys
import types

RAW = False
LIMIT = 1200000 if RAW else 400000
NEVER_CALLED = {"sleep", "input", "exit", "quit", "main", "breakpoint", "print", "interact", "cmdloop", "pause", "getpass",
                "print_usage", "print_help", "help", "set_trace", "post_mortem", "pm", "fork", "abort", "_exit", "kill",
                "pager", "ttypager", "pipepager", "tempfilepager", "cli", "browse", "run", "debug", "collect", "acquire",
                "wait", "join", "get", "put", "stop", "exc_info", "setlocale", "register", "unregister"}
ARGUMENTS = [(), ("x",), (1,), ([],), ("x", 1), (int,), ({},), (lambda *a: 0,), ("os",), ("os.path", "x"), ("posix", "system"),
             ("x", "os"), (int, "__subclasses__"), ("__globals__",), (b"x", b"y")]
# frames, tracebacks and code give nothing away once the interpreter is closed, so RAW goes through them
CLOSED = (types.ModuleType,) if RAW else (types.ModuleType, types.FrameType, types.CodeType, types.TracebackType, types.CellType)
read = getattr if RAW else guard_attribute
namespaces = {id(m.__dict__): n for n, m in list(sys.modules.items()) if isinstance(m, types.ModuleType)}
namespaces[id(sys.modules)] = "sys.modules"
namespaces.pop(id(guest_globals), None)
forbidden = {id(v): n for n, v in vars(builtins).items()
             if n in ("eval", "exec", "compile", "open", "__import__", "getattr", "setattr", "delattr", "hasattr", "vars",
                      "globals", "locals", "dir", "breakpoint", "help")}
for module in ("os", "posix", "sys", "_posixsubprocess", "subprocess", "_socket", "socket", "_ctypes", "ctypes", "gc", "marshal",
               "importlib", "_imp", "_frozen_importlib", "_frozen_importlib_external", "builtins", "code", "runpy", "pickle"):
    m = sys.modules.get(module)
    for n, v in list(vars(m).items()) if m else ():
        if callable(v) and not isinstance(v, type) and v is not None and not n.startswith("__"):
            if id(v) not in forbidden and (module != "builtins"):
                forbidden[id(v)] = f"{module}.{n}"
forbidden[id(io.FileIO)] = "io.FileIO"
forbidden[id(types.FunctionType)] = None  # harmless: its constructor refuses
forbidden = {k: v for k, v in forbidden.items() if v}
HARMLESS = {"os.PathLike", "sys.intern", "posix.urandom", "os.urandom", "os.fspath", "posix.fspath", "os.fsencode", "os.fsdecode",
            "sys.getsizeof", "gc.collect", "os.strerror", "posix.strerror", "sys.exit", "sys.getrecursionlimit",
            "os.get_terminal_size", "posix.get_terminal_size", "sys.is_finalizing"}


def fault(v):
    if isinstance(v, CLOSED):
        return f"a {type(v).__name__}"
    if id(v) in namespaces:
        return f"the namespace of {namespaces[id(v)]}"
    if id(v) in forbidden and forbidden[id(v)] not in HARMLESS:
        return f"the function {forbidden[id(v)]}"
    if isinstance(v, io.FileIO) or type(v).__module__.startswith(("importlib", "_frozen_importlib")):
        return f"a {type(v).__name__}"
    return None


seen, queue, faults, keep, kinds = set(), collections.deque(), [], [], collections.Counter()


def reach(v, way):
    if id(v) in seen or isinstance(v, (str, bytes, int, float, complex, type(None))) and type(v).__module__ == "builtins":
        return
    seen.add(id(v))
    keep.append(v)
    bad = fault(v)
    if bad:
        faults.append(f"{way}: {bad}")
        return
    # a few of a kind are enough: objects by their class, callables by their name as well
    named = callable(v) and not isinstance(v, type)
    kind = (type(v), str(getattr(v, "__module__", "")) + str(getattr(v, "__qualname__", "")) if named else None)
    kinds[kind] += 1
    if kinds[kind] <= 4 or isinstance(v, type) or type(v).__name__ == "module":
        queue.append((v, way))


def attempt(way, f, *args):
    """Does what guest code could do, and reaches what comes of it, also the exception."""
    try:
        v = f(*args)
    except (SystemExit, KeyboardInterrupt, GeneratorExit):
        return
    except BaseException as e:
        if type(e).__name__ != "SecurityError":
            reach(e, way + "!")
        return
    reach(v, way)


for name, v in guest_builtins.items():
    if name not in ("__import__", "__build_class__"):
        reach(v, name)
for name in allowed:
    attempt(f"import {name}", guest_builtins["__import__"], name, None, None, ("x",))
facades = sum(type(v).__name__ == "module" for v in keep)


class Guest:
    def method(self):
        return self

    async def coroutine(self):
        pass

    def generator(self):
        yield self

    async def agen(self):
        yield self


for v, way in ((Guest, "class"), (Guest(), "object"), (lambda x: x, "lambda"), ([1], "[1]"), ({"a": 1}, "{}"), ("text", "''"),
               ((1, 2), "()"), (b"b", "b''"), (1.5, "1.5"), (iter([]), "iter"), (Guest().generator(), "generator")):
    keep.append(v)
    queue.append((v, way))

plant = lambda *a: os  # to see that the walk sees
queue.append((plant, "plant"))
calls = members = 0
while queue and len(seen) < LIMIT:
    v, way = queue.popleft()
    names = set()
    if type(v).__name__ == "module":  # a facade
        names = set(v.__all__)
        members += len(names)
    else:
        try:
            names = set(object.__dir__(v)) | (set(type.__dir__(v)) if isinstance(v, type) else set())
        except BaseException:
            pass
    for name in sorted(n for n in names if isinstance(n, str)):
        attempt(f"{way}.{name}", read, v, name)
    reach(type(v), f"type({way})")
    if isinstance(v, (list, tuple, set, frozenset, dict, collections.deque)) or type(v).__name__ in ("mappingproxy", "dict_values"):
        for i, x in enumerate(list(v)[:50]):
            attempt(f"{way}[{i}]", guard_UNPACK, x)
            if isinstance(v, dict) or type(v).__name__ == "mappingproxy":
                attempt(f"{way}[{x!r:.20}]", guard_ITEM, v, x)
    elif hasattr(type(v), "__iter__") and not isinstance(v, (str, bytes)):
        try:
            it = iter(guard_ITER(v))
            for i in range(3):
                attempt(f"{way}<{i}>", next, it)
        except BaseException:
            pass
    last = way.rpartition(".")[2]
    if callable(v) and last not in NEVER_CALLED and way.count("(") < 3:
        for args in ARGUMENTS:
            calls += 1
            attempt(f"{way}({', '.join(map(repr, args)):.20})", v, *args)

if faults and any(f.startswith("plant") for f in faults):
    print("plant() was found")
for f in (f for f in faults if not f.startswith("plant")):
    print("fault:", f)
print(f"from {facades} of {len(allowed)} modules with {members} members reached {len(seen)} objects by {calls} calls, {len(faults)} faults, {len(queue)} left")
