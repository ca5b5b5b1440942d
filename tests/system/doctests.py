# SPDX-License-Identifier: Apache-2.0
"""doctest in `strict`: prints what Python's own prints, runs nothing that was not judged with the program.

Usage: doctests.py BUILD. Each honest program is run by bare Python, too."""
import atexit
import subprocess
import sys

import tapsys

BUILD = sys.argv[1]
tapsys.under_plant(BUILD)
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
who = tapsys.users()[-1]

STACK = '''"""A stack.

>>> s = Stack()
>>> s.push(1); s.push(2)
>>> len(s), s.pop(), s
(2, 2, Stack([1]))
"""
import doctest
class Stack:
    def __init__(self):
        self._items = []
    def push(self, x):
        """
        >>> s = Stack()
        >>> for i in range(2):
        ...     s.push(i)
        ...     i
        0
        1
        >>> # nothing
        >>> print(s)
        Stack([0, 1])
        """
        self._items.append(x)
    def pop(self):
        """
        >>> Stack().pop()
        Traceback (most recent call last):
            ...
        IndexError: pop from empty list
        >>> Stack().pop() # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        IndexError: anything
        """
        return self._items.pop()
    def __len__(self):
        return len(self._items)
    def __repr__(self):
        return f"Stack({self._items})"
def table(n):
    """
    >>> print(table(2))
    a
    <BLANKLINE>
    b
    >>> list(range(20)) # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    [0,  1, ...,   18, 19]
    >>> 1 / 0 # doctest: +SKIP
    >>> import math
    >>> math.floor(2.5)
    2
    """
    return "a\\n\\nb"
'''
WRONG = '''import doctest
def twice(x):
    """
    >>> twice(2)
    5
    >>> twice(3)
    6
    >>> print()
    >>> twice(1)
    """
    return 2 * x
'''
ENDS = {"quiet": "print(doctest.testmod())\n", "verbose": "doctest.testmod(verbose=True)\n",
        "by options": "print(doctest.testmod(optionflags=doctest.FAIL_FAST | doctest.ELLIPSIS, extraglobs={'y': 1}))\n"}


def bare(code):
    return subprocess.run(["/usr/bin/python3", "-I", "-"], input=code, capture_output=True, text=True, timeout=60, cwd="/").stdout


def run(code):
    return tapsys.cordon(programs, ["run", "--json", "-"], who, text=code)


for how in ("cold", "warm"):
    if how == "warm":
        tap.eq(tapsys.cordon(programs, ["pool", "start", "--profile", "strict"], who).code, 0, "a pool is started")
        atexit.register(tapsys.cordon, programs, ["pool", "stop", "--force"], who)
    for name, program in (("a module, a class and its methods", STACK), ("examples that fail", WRONG)):
        for end, call in ENDS.items():
            want, r = bare(program + call), run(program + call)
            tap.ok(r["status"] == "ok" and want and r["stdout"] == want,
                   f"{how}: doctest.testmod, {end}, of {name} prints what Python's own prints", r["stdout"], "but:", want, r.story())
    r = run(WRONG + "doctest.testmod()\n")
    tap.ok(", line 4, in __main__.twice" in (r["stdout"] or ""), f"{how}: a failed example is told with its line", r.story())
    r = run(WRONG + "doctest.run_docstring_examples(twice, {'twice': lambda x: 5}, name='t')\n")
    tap.ok((r["stdout"] or "").count("Failed example") == 3, f"{how}: run_docstring_examples takes the names that it is given", r.story())

LATER = {
    "set": "def f(): pass\nf.__doc__ = '''\n>>> print(\"REACHED\")\n'''\n",
    "put together": "def f():\n    pass\nclass C:\n    __doc__ = '>' * 3 + ' print(\"REACHED\")'\n",
    "of another text": "def f():\n    '''\n    >>> 1\n    1\n    '''\nf.__doc__ = f.__doc__ + '>>> print(\"REACHED\")\\n'\n",
}
for name, code in LATER.items():
    r = run("import doctest\n" + code + "doctest.testmod()\n")
    tap.ok(r["status"] == "error" and "py.guard.doctest" in r.rules() and "REACHED" not in r.out, f"a docstring that was {name} later is refused", r.story())
r = run("import doctest\ndef f():\n    '''\n    >>> g(\"REACHED\")\n    '''\nprint(doctest.testmod(globs={'__builtins__': {'g': print}, '__name__': 'x'}))\n")
tap.ok("NameError: name 'g' is not defined" in (r["stdout"] or "") and "failed=1, attempted=1" in r["stdout"], "names that a program gives bring no builtins along", r.story())
r = run("import doctest\ndef f():\n    '''\n    >>> getattr(f, '__glo' + 'bals__')\n    '''\ndoctest.testmod()\n")
tap.ok("py.attr.__globals__" in r.rules(), "examples go through the guards", r.story())
tap.done()
