# SPDX-License-Identifier: Apache-2.0
"""Looks for memory that CPython still uses after code of the guest, which it called meanwhile, has given it back.

Run by `guard_tool crawl PROFILE slots.py` (the types are then as a guest finds them) or by a plain python3 (they are as CPython
made them). It walks to every C type and C function that the listed modules and builtins offer, and calls each method and slot
with hostile arguments: objects whose every special method shrinks, clears, frees, grows or replaces an object that takes part in
the call, and then returns what is asked of it, or something else. Each type is also made without its arguments and without __init__,
initialized again while it lives, and each iterator asked for the next value by its own source; what comes of it is used. Some calls have
garbage whose finalizer does the same when it is collected. Children do it, each a batch of targets; one that a signal or a sanitizer ends
is a find, and its line says how to repeat it. The last line is `tried N calls on M of M targets of T types and U functions, F finds`.

Environment: SLOTS_ROUNDS calls of each target, SLOTS_ONLY a regular expression of targets, SLOTS_MODULES more modules,
SLOTS_FIRST the first round (to repeat one), SLOTS_SECONDS ends the search early, SLOTS_LOG a folder for what children say,
SLOTS_JOBS children at a time, SLOTS_SHARD=I/N only the targets of one machine of N, SLOTS_STATE a file that keeps which batches
are done, so that a search that was ended goes on where it was, SLOTS_CPU and SLOTS_ALARM the seconds of CPU and of time that one call may take."""
import collections
import copy
import gc
import hashlib
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import types
import warnings

env = os.environ.get
ROUNDS, FIRST = int(env("SLOTS_ROUNDS", "60")), int(env("SLOTS_FIRST", "0"))
ONLY = re.compile(env("SLOTS_ONLY", ""))
END = time.monotonic() + float(env("SLOTS_SECONDS", "1e9"))
LOG, BATCH, JOBS, STATE = env("SLOTS_LOG"), 40, int(env("SLOTS_JOBS", "1")), env("SLOTS_STATE")
SHARD, SHARDS = (int(n) for n in env("SLOTS_SHARD", "1/1").split("/"))
CPU, ALARM = float(env("SLOTS_CPU", "5")), float(env("SLOTS_ALARM", "20"))
LISTED = ("abc array binascii bisect calendar cmath collections contextlib copy dataclasses datetime decimal difflib enum fractions functools "
          "hashlib heapq itertools json math numbers operator random re statistics string textwrap time typing unicodedata").split()
MODULES = list(globals().get("allowed", LISTED)) + env("SLOTS_MODULES", "").split()
PLAIN = "guest_builtins" not in globals()
# what waits, ends the process, or needs more memory than there is
NEVER = {"sleep", "input", "exit", "quit", "breakpoint", "print", "help", "open", "open_code", "exec", "eval", "compile", "__import__", "abort", "fork",
         "pause", "wait", "main", "get", "put", "acquire", "join_thread", "setswitchinterval", "setrecursionlimit", "pbkdf2_hmac", "scrypt",
         "enable_load_extension", "load_extension", "FileIO", "opener", "clock_settime", "clock_settime_ns", "tzset", "pthread_getcpuclockid", "setlocale", "redirect_stdout", "redirect_stderr"}

# --- hostile objects ------------------------------------------------------------------------------

rng = random.Random(0)
world = []    # what takes part in the call
fuse = [0]    # callbacks until the act
refill = []   # new owners of what was given back


def quietly(f, *args):
    try:
        return f(*args)
    except Exception:
        return None


def drain(v):
    for _ in range(3):
        next(v)


ACTS = [lambda v: v.clear(), lambda v: v.__delitem__(slice(None)), lambda v: v.__init__(), lambda v: v.__init__([]), lambda v: v.pop(), lambda v: v.popitem(),
        lambda v: v.__delitem__(0), lambda v: v.extend(bytes(5000)), lambda v: v.extend([0] * 700), lambda v: v.append(1), lambda v: v.appendleft(1),
        lambda v: v.update({i: i for i in range(40)}), lambda v: v.update(range(40)), lambda v: v.__setitem__(slice(None), []), lambda v: v.close(),
        lambda v: v.release(), lambda v: v.detach(), lambda v: v.__setitem__(0, 1), lambda v: v.insert(0, 1), lambda v: v.add(3), lambda v: v.reverse(),
        drain, next, lambda v: v.truncate(0), lambda v: v.__init__(b"x"), lambda v: v.__init__("x"), lambda v: v.seek(0), lambda v: v.write(b"y" * 3000),
        lambda v: v.write("y" * 3000), lambda v: v.__init__(lambda *a: 0), lambda v: v.cache_clear(), lambda v: v.setdefault(9, 9), lambda v: v.rotate(1),
        lambda v: v.move_to_end(1), lambda v: v.__setattr__("args", ()), lambda v: v.__setattr__("object", b""), lambda v: v.__ior__({7: 7}), lambda v: v.send(None),
        lambda v: v.remove(v[0]), lambda v: v.__imul__(0), lambda v: v.throw(ValueError), lambda v: v.sort()]


def fire():
    if not fuse[0]:
        return
    fuse[0] -= 1
    if fuse[0]:
        return
    for v in world if rng.random() < .4 else [rng.choice(world)] if world else []:
        for act in rng.sample(ACTS, 6) if rng.random() < .7 else ACTS:
            quietly(act, v)
    if rng.random() < .5:
        world.clear()
    if rng.random() < .2:
        gc.collect()
    for n in (16, 24, 32, 40, 48, 56, 64, 96, 128, 256, 512, 1024):
        refill.extend([b"\x41" * (n - 33 if n > 33 else 1), bytearray(b"\x41" * n)])


NUMBERS = (0, 1, 2, 3, 5, -1, 65, 8)
SELVES = []   # an answer that is itself an object in the call


WRONG = (None, 1, -1, "x", b"x", (), (1,), [], {}, 1.5, int, NotImplemented, 2**70)


def answer(name):
    if rng.random() < .1:   # not what was asked for
        return rng.choice(WRONG + (Hostile(),))
    if name in ("__len__", "__length_hint__"):
        return rng.choice((0, 1, 3, 8))
    if name in ("__index__", "__int__", "__round__", "__trunc__", "__floor__", "__ceil__"):
        return rng.choice(NUMBERS)
    if name == "__hash__":
        return rng.choice((1, 1, 1, 2))
    if name == "__float__":
        return 1.5
    if name == "__complex__":
        return 1j
    if name == "__bool__":
        return rng.random() < .5
    if name in ("__str__", "__repr__", "__format__", "__fspath__"):
        return rng.choice(("s", "s" * 50))
    if name == "__bytes__":
        return b"bytes"
    if name == "__iter__":
        return iter([Hostile(), 65, Hostile()])
    if name == "__next__":
        if rng.random() < .3:
            raise StopIteration
        return rng.choice((65, Hostile()))
    if name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
        return rng.choice((True, False, NotImplemented))
    if name in ("utcoffset", "dst"):
        return None
    return rng.choice((0, 65, "x", b"x", None, Hostile(), NotImplemented))


def special(name):
    def method(self, *args, **kwargs):
        fire()
        return answer(name)
    method.__name__ = name
    return method


BINARY = "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul divmod".split()
NAMES = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__len__", "__length_hint__", "__index__", "__int__", "__float__", "__complex__", "__bool__",
         "__str__", "__repr__", "__format__", "__bytes__", "__iter__", "__next__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__call__", "__enter__", "__exit__",
         "__round__", "__trunc__", "__floor__", "__ceil__", "__fspath__", "__abs__", "__neg__", "__pos__", "__invert__", "__reversed__", "__copy__", "__missing__", "__divmod__",
         "keys", "items", "values", "read", "write", "readline", "readinto", "flush", "send", "throw", "close", "utcoffset", "dst", "tzname", "isoformat", "append", "get", "copy",
         *[f"__{p}{n}__" for n in BINARY for p in ("", "r", "i")]]
BODY = {n: special(n) for n in NAMES}


class Hostile:
    locals().update(BODY)

    def __del__(self):
        fire()


def subclass(base, *names):
    try:
        return types.new_class("Hostile" + base.__name__.capitalize(), (base,), {}, lambda ns: ns.update({n: BODY[n] for n in names if n in BODY}))
    except TypeError:
        return None


ORDER = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__")
HostileInt = subclass(int, "__index__", "__int__", "__bool__", "__add__", "__mul__", *ORDER)
HostileStr = subclass(str, "__len__", "__str__", "__iter__", "__getitem__", "__contains__", *ORDER)
HostileBytes = subclass(bytes, "__len__", "__iter__", "__getitem__", *ORDER)
HostileList = subclass(list, "__len__", "__iter__", "__getitem__", "__contains__", *ORDER)
HostileTuple = subclass(tuple, "__len__", "__iter__", "__getitem__", *ORDER)
HostileDict = subclass(dict, "__len__", "__iter__", "__getitem__", "__contains__", "keys", "items", "__missing__", "__eq__")
HostileFloat = subclass(float, "__float__", "__eq__", "__add__", "__hash__")


class Mutable:
    """Equal hashes: every look-up asks for equality."""
    __hash__ = BODY["__hash__"]
    __eq__ = BODY["__eq__"]
    __lt__ = BODY["__lt__"]
    __repr__ = BODY["__repr__"]

    def __del__(self):
        fire()


def generator():
    for i in range(4):
        fire()
        yield rng.choice((Mutable(), 65, (1, Mutable()), Hostile()))


def garbage():
    """A cycle whose finalizer fires when it is collected."""
    ring = [Mutable()]
    ring.append(ring)


def function(*args, **kwargs):
    fire()
    return rng.choice((0, 1, "x", b"x", None, Mutable(), Hostile(), args[0] if args else 1))


def elements(n=3):
    return [rng.choice((Mutable, Mutable, Hostile, lambda: 65, lambda: [Mutable()], lambda: (1, Mutable()), lambda: HostileInt(1)))() for _ in range(rng.randrange(n + 1))]


def value(depth=0):
    """An argument. What can be changed is put into the world, where the acts find it."""
    v = rng.choice(MAKERS)() if depth or rng.random() < .75 or not world else rng.choice(world)
    if rng.random() < .6:
        world.append(v)
    return v


MAKERS = [Hostile, Hostile, Hostile, Mutable, elements, lambda: elements(6), lambda: bytearray(b"A" * rng.choice((1, 5, 40, 600))), lambda: tuple(elements()), lambda: generator(),
          lambda: function, lambda: slice(*[rng.choice((None, 0, 2, Hostile())) for _ in range(3)]), lambda: HostileInt(rng.choice(NUMBERS)), lambda: HostileStr("xA"),
          lambda: HostileBytes(b"A"), lambda: HostileList(elements()), lambda: HostileTuple(elements()), lambda: HostileDict(a=1), lambda: HostileFloat(1.5),
          lambda: {Mutable(): 1 for _ in range(3)}, lambda: dict(enumerate(elements())), lambda: {i: i for i in range(3)}, lambda: {Mutable(), Mutable(), 1},
          lambda: collections.deque(elements()), lambda: collections.OrderedDict(enumerate(elements())), lambda: collections.OrderedDict({Mutable(): 1, 1: 2}),
          lambda: iter(elements()), lambda: rng.choice(NUMBERS), lambda: rng.choice(("x", "abc", "", "%s %r", "(a)b*", "[1, {}]")), lambda: rng.choice((b"A", b"%s", b"")),
          lambda: None, lambda: 1.5, lambda: True, lambda: int, lambda: (Hostile(), 1), lambda: [Hostile(), Hostile()], lambda: [[Mutable()], [Mutable()]]]

# --- what can be reached --------------------------------------------------------------------------

found, functions, instances = {}, {}, {}
KINDS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.BuiltinFunctionType, types.GetSetDescriptorType,
         types.MemberDescriptorType, staticmethod, classmethod)


def is_c_type(t):
    return isinstance(t, type) and any(isinstance(v, KINDS[:5]) for v in vars(t).values()) and not t.__module__.startswith(("importlib", "_frozen", "posix"))


def name_of(t):
    return f"{t.__module__}.{t.__qualname__}"


def learn(v, way):
    t = v if isinstance(v, type) else type(v)
    for base in t.__mro__:
        if is_c_type(base) and base not in found and base not in (type, types.CodeType, types.FrameType, types.ModuleType):
            found[base] = way
    if isinstance(v, (types.BuiltinFunctionType, types.BuiltinMethodType)) and v.__name__ not in NEVER:
        owner = getattr(v, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            functions.setdefault(f"{v.__module__ or 'builtins'}.{v.__name__}", v)


PLAINLY = [(), ([1, 2],), ("ab",), (b"ab",), (1,), (lambda *a: 1, [1, 2]), (lambda *a: 1,), ([1, 2], 1), ("a", "b"), (b"a", b"b"), (1, 2, 3), ({1: 2},), (2020, 1, 1), ("i", [1]),
           ([1, 2], [3, 4]), (int, "x"), ("utf-8", b"x", 0, 1, "r"), ("utf-8", "x", 0, 1, "r"), ("i",), (iter([1, 2]),)]


def make(t, hostile=False):
    """An instance of T. With plain arguments for a start; the way that succeeded is kept."""
    ways = instances.get(t)
    if hostile and rng.random() < .5:
        for _ in range(6):
            args = [value(1) for _ in range(rng.randrange(1, 4))]
            v = quietly(lambda: t(*args))
            if v is not None:
                world.extend(args)
                return v
    if not ways:
        return None
    f, args = rng.choice(ways)
    return quietly(lambda: f(*[list(a) if type(a) is list else a for a in args]))


def walk():
    if PLAIN:
        import builtins
        start = [(n, v) for n, v in vars(builtins).items()]
    else:
        start = [(n, v) for n, v in guest_builtins.items()]
    for m in dict.fromkeys(MODULES):
        module = quietly(lambda: __import__(m, None, None, ("x",)) if PLAIN else guest_builtins["__import__"](m, None, None, ("x",)))
        if module is None:
            continue
        names = vars(module) if PLAIN else module.__all__
        start += [(f"{m}.{n}", quietly(getattr, module, n)) for n in names if not n.startswith("__")]
    todo = collections.deque((v, n, 0) for n, v in start)
    seen, keep = set(), []
    while todo:
        v, way, depth = todo.popleft()
        last = way.rpartition(".")[2]
        if id(v) in seen or last in NEVER or isinstance(v, types.ModuleType):
            continue
        seen.add(id(v))
        keep.append(v)
        learn(v, way)
        if isinstance(v, type) and is_c_type(v) and v is not type and last not in NEVER:
            for args in PLAINLY:
                x = quietly(lambda: v(*args))
                if x is not None:
                    instances.setdefault(type(x), []).append((v, args))
                    todo.append((x, f"{way}()", depth + 1))
        elif 0 < depth < 3 and type(v) in found:
            # iterators and views: what its methods give, each called on an object of its own
            made = instances.get(type(v), [None])[0]
            for n in dir(type(v)):
                m = quietly(getattr, type(v), n)
                if isinstance(m, (types.MethodDescriptorType, types.WrapperDescriptorType)) and n not in ("__init__", "__del__", "__reduce__", "__reduce_ex__") and n not in NEVER:
                    for args in ((), (b"a",), ("a",), (1,)) if made else ():
                        again = lambda *a, made=made, m=m, args=args: m(made[0](*made[1]), *args)
                        x = quietly(again)
                        if x is not None and type(x) not in found and is_c_type(type(x)):
                            instances.setdefault(type(x), []).append((again, ()))
                            todo.append((x, f"{way}.{n}()", depth + 1))
        elif isinstance(v, types.FunctionType) and depth < 2 and not last.startswith("_"):
            for args in PLAINLY[:8]:
                x = quietly(lambda: v(*args))
                if x is not None and is_c_type(type(x)):
                    instances.setdefault(type(x), []).append((v, args))
                    todo.append((x, f"{way}()", depth + 1))


def targets():
    for t in sorted(found, key=name_of):
        if issubclass(t, BaseException) and t not in (BaseException, StopIteration, OSError, SyntaxError, ImportError, UnicodeEncodeError, UnicodeDecodeError, UnicodeTranslateError,
                                                     SystemExit, KeyError, AttributeError, NameError):
            continue
        for n, m in sorted(vars(t).items()):
            if isinstance(m, KINDS) and n not in NEVER and n not in ("__getattribute__", "__reduce_ex__", "__reduce__", "__setstate__", "__init_subclass__", "__subclasshook__", "__sizeof__", "__dir__", "__del__"):
                yield f"{name_of(t)}.{n}", t, n, m
        for n in MADE:
            yield f"{name_of(t)}.{n}", t, n, None
    for n, f in sorted(functions.items()):
        yield n, None, n, f


# --- one target -----------------------------------------------------------------------------------

OPERATORS = [lambda v, w: v == w, lambda v, w: v < w, lambda v, w: w in v, lambda v, w: v + w, lambda v, w: list(v), lambda v, w: repr(v), lambda v, w: hash(v), lambda v, w: next(v),
             lambda v, w: v[w], lambda v, w: str(v), lambda v, w: bool(v), lambda v, w: [x for x in v], lambda v, w: tuple(v), lambda v, w: v(w)]


class Again:
    """An iterator that asks the iterator over it for the next value, and a callable that does the same."""
    left = 3

    def __init__(self, box):
        self.box = box

    def __iter__(self):
        return self

    def __next__(self, *args):
        self.left -= 1
        if self.left > 0:
            for v in self.box:
                quietly(next, v)
        if self.left < -3:
            raise StopIteration
        return rng.choice((65, [1, 2], "ab"))
    __call__ = __next__
    __getitem__ = __next__


def use(v):
    """Each operator, then some of its methods and attributes."""
    for operator in OPERATORS if not hasattr(type(v), "__next__") else ENDING:
        quietly(operator, v, 1)
    names = [n for n in dir(type(v)) if n not in NEVER and n not in ("__class__", "__del__")]
    for n in rng.sample(names, min(12, len(names))):
        x = quietly(getattr, v, n)
        if isinstance(x, CALLED):
            args = [value() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
            quietly(lambda: x(*args))


def bare(t):
    v = t.__new__(t)
    world.append(v)
    fuse[0] = rng.choice((0, 1, 2))
    use(v)


def kind_again(t):
    x = make(t)
    v = type(x)() if rng.random() < .5 else type(x)(*[value() for _ in range(rng.choice((1, 2)))])
    world.append(v)
    fuse[0] = rng.choice((0, 1, 2))
    use(v)


def init_again(t):
    v = make(t, True)
    # not itself: what wraps itself is asked without end, and the stack ends it
    args = rng.choice(PLAINLY) if rng.random() < .4 else [value() for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    world.append(v)
    fuse[0] = rng.choice((1, 1, 2, 3))
    quietly(lambda: v.__init__(*args))
    use(v)


def reentered(t):
    if not hasattr(t, "__next__"):
        return
    box = []
    ways = [(Again(box),), (Again(box), Again(box)), (Again(box), 1), (function, Again(box)), (Again(box), None, 2), (Again(box), Again(box), Again(box)), (2, Again(box))]
    v = t(*rng.choice(ways))
    box.append(v)
    world.append(v)
    fuse[0] = rng.choice((0, 0, 2))
    for _ in range(4):
        x = quietly(next, v)
        if hasattr(type(x), "__next__"):
            box.append(x)
            quietly(next, x)
    quietly(lambda: v.__reduce__())
    quietly(lambda: copy.copy(v))


CALLED = (types.BuiltinMethodType, types.MethodWrapperType, types.MethodType)
MADE = {"<bare>": bare, "<kind again>": kind_again, "<init again>": init_again, "<re-entered>": reentered}


ENDING = [lambda v, w: drain(v), lambda v, w: repr(v), lambda v, w: v == w, lambda v, w: hash(v), lambda v, w: drain(iter(v))]


def one(t, name, m, number):
    global rng
    rng = random.Random(f"{name} {number}")
    world.clear()
    refill.clear()
    SELVES.clear()
    fuse[0] = 0
    if rng.random() < .3:
        garbage()
    if name in MADE and number % 4:     # each of them is many calls
        return
    if name in MADE:
        MADE[name](t)
        return
    args = [value() for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
    if t is None:
        fuse[0] = rng.choice((1, 1, 2, 3, 4, 6))
        x = m(*args)
        if hasattr(type(x), "__next__"):
            drain(x)
        return
    v = make(t, True)
    if v is None:
        return
    world.append(v)
    if rng.random() < .4:       # its own kind as an argument
        args = [make(t, True), *args[1:]]
        world.append(args[0])
    for method in ("append", "extend", "update", "add", "__init__"):     # fill it with what calls back
        if rng.random() < .5 and isinstance(v, t):
            quietly(lambda: getattr(v, method)(value(1)))
    fuse[0] = rng.choice((1, 1, 1, 2, 2, 3, 4, 6))
    if isinstance(m, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        m.__set__(v, args[0]) if args else m.__get__(v)
        return
    if rng.random() < .15 and name.startswith("__"):
        rng.choice(ENDING if hasattr(type(v), "__next__") else OPERATORS)(v, args[0] if args else 1)
        return
    bound = m.__get__(v, type(v)) if hasattr(type(m), "__get__") else m
    held = rng.random() < .5
    if not held:
        v = None
    x = bound(*args)
    if hasattr(type(x), "__next__"):
        drain(x)


def child(work, end, first, report, slot):
    """Does targets of WORK before END, from target and round FIRST on, and says where it is."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not LOG:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    out = os.open(said_by(slot) if LOG else "/dev/null", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.unraisablehook = lambda *a: None
    for i in range(first[0], end):
        name, t, n, m = work[i]
        for number in range(first[1] if i == first[0] else FIRST, FIRST + ROUNDS):
            os.pwrite(report, b"%10d%10d" % (i, number), 20 * slot)
            # a call that computes without end, and one that waits
            signal.setitimer(signal.ITIMER_PROF, CPU)
            signal.setitimer(signal.ITIMER_REAL, ALARM)
            try:
                one(t, n, m, number)
            except BaseException:
                pass
            fuse[0] = 0
            try:
                world.clear()
            except BaseException:
                pass
    os.pwrite(report, b"%10d%10d" % (end, FIRST), 20 * slot)
    os._exit(0)


def said_by(slot):
    return os.path.join(LOG, f"said.{slot}")


def kind_of(name, code, slot):
    """What a child's end means. A debug build also ends at a failed assertion, which by itself is no use of stale memory."""
    if code in (-signal.SIGALRM, -signal.SIGPROF, 9):
        return "stopped"
    if LOG:
        with open(said_by(slot), errors="replace") as f:
            text = f.read()
        os.replace(said_by(slot), os.path.join(LOG, re.sub(r"\W", "_", name)))
        if code == -signal.SIGABRT and "AddressSanitizer" not in text:
            return "assertion"
    return "find"


class Batch:
    """Targets BEGIN to END: where its child is, how many calls were made, how its children ended."""

    def __init__(self, begin, end):
        self.begin, self.end, self.at, self.tried, self.ends = begin, end, (begin, FIRST), 0, []

    def start(self, work, report, slot):
        self.slot = slot
        os.pwrite(report, b"%10d%10d" % self.at, 20 * slot)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                child(work, self.end, self.at, report, slot)
            finally:
                os._exit(9)

    def ended(self, work, report, code):
        """Whether it is done; otherwise it goes on behind what ended its child."""
        now = int(os.pread(report, 10, 20 * self.slot)), int(os.pread(report, 10, 20 * self.slot + 10))
        self.tried += (now[0] - self.at[0]) * ROUNDS + now[1] - self.at[1]
        self.at = now
        if code:
            name = work[now[0]][0]
            kind = kind_of(name, code, self.slot)
            print(f"{kind}: {name} in round {now[1]} ({code})", flush=True)
            self.ends.append((kind, name))
            # a few more rounds, then the next target
            again = self.ends.count((kind, name)) < (3 if kind == "stopped" else 5) and now[1] + 1 < FIRST + ROUNDS
            self.at = (now[0], now[1] + 1) if again else (now[0] + 1, FIRST)
        return self.at[0] >= self.end


def done_before(work):
    """Batches that an earlier search of the same targets finished, by where they begin."""
    this = hashlib.sha256(repr([ROUNDS, FIRST, BATCH, [w[0] for w in work]]).encode()).hexdigest()
    if not STATE:
        return {}, None
    lines = open(STATE).read().splitlines() if os.path.exists(STATE) else []
    if not lines or lines[0] != this:
        lines = [this]
        with open(STATE, "w") as f:
            f.write(this + "\n")
    # the last line may be cut where the search was killed
    return {b["begin"]: b for b in (quietly(json.loads, line) for line in lines[1:]) if b}, open(STATE, "a", buffering=1)


def search():
    said = os.dup(1)
    quiet = os.open("/dev/null", os.O_WRONLY)
    os.dup2(quiet, 1)
    warnings.simplefilter("ignore")
    walk()
    sys.stdout.flush()
    os.dup2(said, 1)
    # what the walk made is no garbage of a call: a collection looks at what the call made alone
    gc.collect()
    gc.freeze()
    if PLAIN:   # a collection in the middle of every call; where guards are, there is none
        gc.set_threshold(3, 2, 2)
    place = tempfile.TemporaryFile()     # where each child is, also when it has died
    report = place.fileno()
    work = [w for w in targets() if ONLY.search(w[0])][SHARD - 1::SHARDS]
    before, state = done_before(work)
    todo = collections.deque(Batch(i, min(i + BATCH, len(work))) for i in range(0, len(work), BATCH) if i not in before)
    tried, finds, reached = (sum(b["tried"] for b in before.values()), {n for b in before.values() for k, n in b["ends"] if k == "find"},
                             sum(b["end"] - b["begin"] for b in before.values()))
    for kind, name in (end for b in before.values() for end in b["ends"]):
        print(f"{kind}: {name}, before this search went on", flush=True)
    running, free = {}, list(range(JOBS))
    while running or (todo and time.monotonic() < END):
        while free and todo and time.monotonic() < END:
            batch = todo.popleft()
            batch.start(work, report, free.pop())
            running[batch.pid] = batch
        pid, status = os.waitpid(-1, 0)
        batch = running.pop(pid)
        free.append(batch.slot)
        if not batch.ended(work, report, os.waitstatus_to_exitcode(status)):
            todo.appendleft(batch)
            continue
        tried, reached = tried + batch.tried, reached + batch.end - batch.begin
        finds |= {name for kind, name in batch.ends if kind == "find"}
        if state:
            state.write(json.dumps({"begin": batch.begin, "end": batch.end, "tried": batch.tried, "ends": batch.ends}) + "\n")
    for batch in todo:   # SLOTS_SECONDS ended them midway
        tried, reached = tried + batch.tried, reached + batch.at[0] - batch.begin
        finds |= {name for kind, name in batch.ends if kind == "find"}
    print(f"tried {tried} calls on {reached} of {len(work)} targets of {len(found)} types and {len(functions)} functions, {len(finds)} finds", flush=True)


search()
