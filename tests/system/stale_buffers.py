# SPDX-License-Identifier: Apache-2.0
"""A value whose conversion moves or empties the buffer that it is put into: CPython 3.11 then writes to memory that it gave back (gh-91153).

Usage: stale_buffers.py BUILD. In strict values are converted first, so the assignment sees the object as it is afterwards."""
import atexit
import sys

import pooltest
import tapsys

tapsys.under_plant(sys.argv[1])
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(sys.argv[1])

HEAD = """
from array import array
log = []
def attempt(name, act):
    try:
        log.append((name, act()))
    except (IndexError, ValueError, BufferError, TypeError, OverflowError) as e:
        log.append((name, str(e)))
class V:
    def __init__(self, act, value=65):
        self.act, self.value = act, value
    def __index__(self):
        self.act()
        return self.value
    def __float__(self):
        self.act()
        return 1.5
    def __bytes__(self):
        self.act()
        return b'x'
"""
GROW = "b = bytearray(4096)\nkeep = []\ndef grow():\n    b.extend(bytes(1 << 20))\n    keep.append(bytearray(b'Z') * 4096)\n"
ATTACKS = {
    "an item of a bytearray": (GROW + "b[0] = V(grow)\nprint(b[0], len(b))", "65 1052672"),
    "bytearray.__setitem__": (GROW + "b.__setitem__(0, V(grow))\nprint(b[0], len(b))", "65 1052672"),
    "an index of a bytearray": (GROW + "b[V(grow, 9)] = 66\nprint(b[9], len(b))", "66 1052672"),
    "an item of a bytearray that gets empty": ("b = bytearray(4096)\ndef f():\n    b[0] = V(b.clear)\nattempt('x', f)\nprint(log, len(b))", "[('x', 'bytearray index out of range')] 0"),
    "a slice with steps": (GROW + "b[V(grow, 0):4096:2] = b'a' * 2048\nprint(bytes(b[:4]), len(b))", "b'a\\x00a\\x00' 1052672"),
    "the elements of a slice": (GROW + "b[0:4:2] = [V(grow), 67]\nprint(bytes(b[:4]), len(b))", "b'A\\x00C\\x00' 1052672"),
    "a format that is a bytearray": ("b = bytearray(b'%b' + b'-' * 4096)\nkeep = []\ndef f():\n    b.clear()\n    keep.append(bytearray(b'Z' * 4098))\n"
                                     "c = b % (V(f),)\nprint(len(c), c[:3], len(b))", "4097 bytearray(b'x--') 0"),
    "an item of an array": ("a = array('l', [0] * 4096)\ndef f():\n    a[4095] = V(lambda: a.__delitem__(slice(0, 4096)))\nattempt('x', f)\nprint(log, len(a))",
                            "[('x', 'array assignment index out of range')] 0"),
    "an item of an array of floats": ("a = array('d', [0] * 4096)\ndef f():\n    a[4095] = V(lambda: a.__delitem__(slice(0, 4096)))\nattempt('x', f)\nprint(log, len(a))",
                                      "[('x', 'array assignment index out of range')] 0"),
    "what is appended to an array": ("a = array('l', [0] * 4096)\na.append(V(lambda: a.__delitem__(slice(0, len(a)))))\nprint(a.tolist())", "[65]"),
    "what is inserted into an array": ("a = array('l', [0] * 4096)\na.insert(4000, V(lambda: a.__delitem__(slice(0, len(a)))))\nprint(a.tolist())", "[65]"),
    "what extends an array": ("a = array('l', [0] * 4096)\na.extend([V(lambda: a.__delitem__(slice(0, len(a)))), 7])\nprint(a.tolist())", "[65, 7]"),
    "a list for an array": ("a = array('l', [0] * 4096)\na.fromlist([V(lambda: a.__delitem__(slice(0, len(a)))), 7])\nprint(a.tolist())", "[65, 7]"),
}
HONEST = ("b = bytearray(b'hello')\nb[0] = 72; b[-1:] = b'O!'; b[1:3] = [69, 76]; del b[3]; b[::2] = bytearray(b'abc')\nprint(b, bytearray(b'%s-%d') % (b'x', 3))\n"
          "a = array('i', [1, 2, 3])\na[0] = 9; a[1:2] = array('i', [5, 6]); del a[-1]; a.append(4); a.insert(0, True); a.extend((7, 8)); a.extend(array('i', [1])); a.fromlist([2])\n"
          "f = array('d'); f.append(1); f.extend([2.5, 3]); u = array('u', 'ab'); u[0] = 'c'; u.append('d')\nprint(a.tolist(), f.tolist(), u.tounicode())\n"
          "for bad in (lambda: b.__setitem__(0, 256), lambda: b.__setitem__(0, 'x'), lambda: a.append('x'), lambda: a.append(2**40), lambda: f.append('1')):\n    attempt('x', bad)\n"
          "print([m for _, m in log])\n")
WANT = ("bytearray(b'aEbOc') bytearray(b'x-3')\n[1, 9, 5, 6, 4, 7, 8, 1, 2] [1.0, 2.5, 3.0] cbd\n"
        "['byte must be in range(0, 256)', \"'str' object cannot be interpreted as an integer\", \"'str' object cannot be interpreted as an integer\", "
        "'signed integer is greater than maximum', 'must be real number, not str']\n")


def look(who, how, call):
    for name, (code, want) in ATTACKS.items():
        r = call(HEAD + code + "\n")
        tap.ok(r["status"] == "ok" and (r["stdout"] or "").strip() == want, f"{who}, {how}: {name} whose conversion moves or empties the buffer is converted first", r.story())
    r = call(HEAD + HONEST)
    tap.ok((r["stdout"] or "") == WANT, f"{who}, {how}: honest use is as in Python", r.story())


for who in tapsys.users():
    cordon = lambda *args, code=None: tapsys.cordon(programs, args, who, text=code)
    run = lambda code: cordon("run", "--json", "-", code=code)
    look(who, "cold", run)
    tap.eq(cordon("pool", "start", "--profile", "strict").code, 0, f"{who}: a pool is started")
    atexit.register(cordon, "pool", "stop", "--force")

    def warm(code):
        pooltest.until(lambda: all(t["ready"] for t in cordon("pool", "status", "--json")["templates"]))
        return run(code)
    look(who, "warm", warm)
    tap.eq(cordon("pool", "stop", "--force").code, 0, f"{who}: the pool is stopped")
tap.done()
