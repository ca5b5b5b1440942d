# SPDX-License-Identifier: Apache-2.0
"""Plays the guest: walks from every facade and builtin by all that guarded code can do, and looks at what it finds.

Run by `guard_tool crawl PROFILE crawl.py`, itself unguarded, with the guarded operations in its hands. An object is
walked by its attributes, items and elements, by its class, by calling it with a few plain arguments, and by the
exceptions that all this raises. With RAW it reads every attribute as Python itself does, private ones too: what is
then still out of reach is so by the interpreter's own doing, not by a guard's. It is a fault to reach a module, a frame, code, a namespace, or a function that opens,
executes or imports. Without RAW it also acts on what it reaches: it makes every live object again by __init__, sets an attribute on it and looks where that has gone,
asks isinstance about it with a __subclasshook__ that listens, and imports the private parts of packages. It is a fault to change an object of a library, to be handed
`type` or a closed class, and to be told an address. Prints the way to each fault; the last line is `reached N objects, M faults`."""
import abc
import builtins
import collections
import gc
import io
import json
import os
import pkgutil
import re
import sys
import types

RAW = False
STOP = False  # at the first fault
LIMIT = 1200000 if RAW else 400000
NEVER_CALLED = {"sleep", "input", "exit", "quit", "main", "breakpoint", "print", "interact", "cmdloop", "pause", "getpass",
                "print_usage", "print_help", "help", "set_trace", "post_mortem", "pm", "fork", "abort", "_exit", "kill",
                "pager", "ttypager", "pipepager", "tempfilepager", "cli", "browse", "run", "debug", "collect", "acquire",
                "wait", "join", "get", "put", "stop", "exc_info", "setlocale", "register", "unregister"}
ARGUMENTS = [(), ("x",), (1,), ([],), ("x", 1), (int,), ({},), (lambda *a: 0,), ("os",), ("os.path", "x"), ("posix", "system"),
             ("x", "os"), (int, "__subclasses__"), ("__globals__",), (b"x", b"y")]
VICTIM = json.dumps  # a function of a library, which no act may change
if not RAW:
    ARGUMENTS += [(VICTIM, lambda *a: 0), (VICTIM,)]
KEYS = [int, (VICTIM, 1), VICTIM]
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
            "os.get_terminal_size", "posix.get_terminal_size", "sys.is_finalizing", "sys.getdefaultencoding", "sys.get_int_max_str_digits",
            "sys.set_int_max_str_digits", "sys.setrecursionlimit"}


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


# --- acts ---

def innards(v):
    """All that is stored in an object: what __init__ of its class could change."""
    def one(x):  # some are made anew by each look
        return x if isinstance(x, (str, int, type(None))) else id(x)

    found = {("dict", k): one(x) for k, x in dict(getattr(v, "__dict__", None) or {}).items()}
    for base in type(v).__mro__:
        for k, d in base.__dict__.items():
            if isinstance(d, types.MemberDescriptorType):
                try:
                    found[base, k] = one(d.__get__(v))
                except AttributeError:
                    pass
    return found


def victim_state():
    return VICTIM.__name__, VICTIM.__doc__, VICTIM.__defaults__, tuple(VICTIM.__dict__)


def spared():
    """Did the last act leave the victim as it was? Puts it right again."""
    if victim_state() == UNTOUCHED:
        return True
    VICTIM.__dict__.clear()
    VICTIM.__name__, VICTIM.__doc__ = UNTOUCHED[:2]
    return False


def make_again(v, way):
    before, kept = innards(v), dict(getattr(v, "__dict__", None) or {})
    for of in ((v,), (type(v), v)):
        for args in MAKERS:
            try:
                guard_attribute(of[0], "__init__")(*of[1:], *args)
            except BaseException:
                pass
            if innards(v) != before:
                faults.append(f"{way}.__init__: makes an object of a library again ({type(v).__name__})")
                if kept:
                    v.__dict__.clear()
                    v.__dict__.update(kept)
                return


def set_through(v, way):
    try:
        setattr(guard_SET(v, "crawled"), "crawled", 1)
    except BaseException:
        return
    if not spared():
        faults.append(f"{way}.crawled = 1: sets an attribute of {VICTIM.__name__}")
    elif isinstance(v, type) and id(v) in library:
        faults.append(f"{way}.crawled = 1: sets an attribute of a library's class")


def listen(v, way):
    heard.clear()
    try:
        guest_builtins["isinstance"](v, Listener)
    except BaseException:
        return
    for other in heard:
        if other is type or issubclass(other, (types.ModuleType, types.FrameType, types.CodeType, types.TracebackType, types.CellType)):
            faults.append(f"isinstance({way}): hands {other} to a __subclasshook__")


def told(way, numbers):
    """Numbers that lie where objects do, as they are or as text."""
    for number in numbers:
        number = number if isinstance(number, int) else int(number, 16)
        if number >> 24 in regions:
            faults.append(f"{way}: tells the address {number:#x}")
            return


def look_at_numbers(v, way):
    try:
        told(f"repr({way})", re.findall(r"0x[0-9a-f]{7,}", repr(v)))
        if guest_builtins["id"](v) == true_address(v):
            faults.append(f"id({way}): tells the address")
        number = hash(v) & (1 << 64) - 1  # CPython turns an address by four bits
        if (number << 4 | number >> 60) & (1 << 64) - 1 == true_address(v):
            faults.append(f"hash({way}): tells the address")
    except BaseException:  # a repr or hash that fails tells nothing
        return


def act(v, way):
    if id(v) in library and not isinstance(v, (list, dict, set, type)):
        make_again(v, way)
    set_through(v, way)
    listen(v, way)
    look_at_numbers(v, way)
    if hasattr(type(v), "__getitem__") and not isinstance(v, (list, tuple, dict, str, bytes, range)) or isinstance(v, type):
        for key in KEYS:
            attempt(f"{way}[{key!r:.20}]", guard_ITEM, v, key)


def private_parts():
    for name in allowed:
        for part in pkgutil.iter_modules(getattr(sys.modules.get(name), "__path__", [])):
            if part.name.startswith("_") and part.name != "__main__":
                try:
                    guest_builtins["__import__"](f"{name}.{part.name}", None, None, ("x",))
                except BaseException:
                    continue
                faults.append(f"import {name}.{part.name}: a private part of a package")


heard, UNTOUCHED, MAKERS = [], victim_state(), [(), (lambda *a: 0,), ("x",), ("x", 1), (int, 1)]
regions = set()

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
        v = None
    if not RAW and not spared():
        faults.append(f"{way}: changes {VICTIM.__name__}")
    if not RAW and type(v) is tuple and v and type(v[0]) is int or type(v) is int:
        told(way, [v[0] if type(v) is tuple else v])
    reach(v, way)


for name, v in guest_builtins.items():
    if name not in ("__import__", "__build_class__"):
        reach(v, name)
for name in allowed:
    attempt(f"import {name}", guest_builtins["__import__"], name, None, None, ("x",))
facades = sum(type(v).__name__ == "module" for v in keep)

if not RAW:
    gc.collect()
    library = {id(v): v for v in gc.get_objects()}
    regions = {true_address(v) >> 24 for v in library.values()} - {0}

    def body():
        pass

    def hook(cls, other):
        heard.append(other)
        return NotImplemented

    Listener = guest_builtins["__build_class__"](body, "Listener", abc.ABC)
    type.__setattr__(Listener, "__subclasshook__", classmethod(hook))
    private_parts()
    listen(int, "int")  # before a cache knows its class


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
while queue and len(seen) < LIMIT and not (STOP and any(not f.startswith("plant") for f in faults)):
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
    if not RAW:
        act(v, way)
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
    waits = type(getattr(v, "__self__", None)).__module__ in ("_thread", "_queue")  # for nobody
    if callable(v) and last not in NEVER_CALLED and not waits and way.count("(") < 3:
        for args in ARGUMENTS:
            calls += 1
            attempt(f"{way}({', '.join(map(repr, args)):.20})", v, *args)

if faults and any(f.startswith("plant") for f in faults):
    print("plant() was found")
for f in (f for f in faults if not f.startswith("plant")):
    print("fault:", f)
print(f"from {facades} of {len(allowed)} modules with {members} members reached {len(seen)} objects by {calls} calls, {len(faults)} faults, {len(queue)} left")
