# SPDX-License-Identifier: Apache-2.0
"""Whether the Python library is written for Python 3.9, the oldest that docs/agents.md names: Debian 12 has 3.11 alone, which runs what 3.9 would not.

Usage: oldest_python.py SOURCE. The grammar is the parser's own (feature_version); names of the standard library that came later are in NEWER, and types that are joined
by | are looked for where they are evaluated. Each kind is planted once, and must be found."""
import ast
import pathlib
import sys

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/system"))
import tapsys  # noqa: E402

tap = tapsys.Tap()
OLDEST = (3, 9)
NEWER = {"asyncio": {"Barrier", "Runner", "TaskGroup", "timeout", "timeout_at"}, "contextlib": {"aclosing", "chdir"}, "datetime": {"UTC"},
         "enum": {"EnumCheck", "StrEnum", "verify"}, "inspect": {"get_annotations"}, "itertools": {"batched", "pairwise"}, "types": {"EllipsisType", "NoneType", "UnionType"},
         "typing": {"Concatenate", "LiteralString", "Never", "NotRequired", "ParamSpec", "Required", "Self", "TypeAlias", "TypeGuard", "TypeVarTuple", "Unpack", "assert_never",
                    "assert_type", "dataclass_transform", "override", "reveal_type"}}
MODULES = {"tomllib"}
BUILTINS = {"BaseExceptionGroup", "EncodingWarning", "ExceptionGroup", "aiter", "anext"}
KEYWORDS = {"dataclass": {"kw_only", "match_args", "slots", "weakref_slot"}, "field": {"kw_only"}, "zip": {"strict"}}


def joined(node):
    """Whether a type is A | B; the texts of quoted types are never evaluated."""
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.BitOr) for n in ast.walk(node))


def annotations(tree):
    for n in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(n, name, None) is not None:
                yield getattr(n, name)


def of_names(tree):
    for n in ast.walk(tree):
        if isinstance(n, ast.ImportFrom) and not n.level:
            yield from (f"{n.module}.{a.name}" for a in n.names if n.module in MODULES or a.name in NEWER.get(n.module, ()))
        elif isinstance(n, ast.Import):
            yield from (a.name for a in n.names if a.name in MODULES)
        elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.attr in NEWER.get(n.value.id, ()):
            yield f"{n.value.id}.{n.attr}"
        elif isinstance(n, ast.Name) and n.id in BUILTINS:
            yield n.id
        elif isinstance(n, ast.Call):
            name = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
            yield from (f"{name}({k.arg}=)" for k in n.keywords if k.arg in KEYWORDS.get(name, ()))


def newer(text):
    """What of a text Python 3.9 does not have."""
    try:
        tree = ast.parse(text, feature_version=OLDEST)
    except SyntaxError as e:
        return [f"line {e.lineno}: {e.msg}"]
    late = any(isinstance(n, ast.ImportFrom) and n.module == "__future__" and any(a.name == "annotations" for a in n.names) for n in tree.body)
    return [*of_names(tree), *("a type with |" for a in annotations(tree) if joined(a) and not late)]


PLANTED = {"match": "match 1:\n    case 1: pass\n", "except*": "try:\n    pass\nexcept* OSError:\n    pass\n", "a type with |": "def f(a: int | None): pass\n",
           "a type of a result with |": "def f() -> int | None: pass\n", "a name of a module": "import asyncio\nasyncio.timeout(1)\n", "an imported name": "from typing import Self\n",
           "a module": "import tomllib\n", "a class of the language": "raise ExceptionGroup('', [])\n", "an argument of dataclass": "import dataclasses\n@dataclasses.dataclass(slots=True)\nclass A: pass\n",
           "an argument of zip": "zip([], strict=True)\n"}
for what, text in PLANTED.items():
    tap.ok(newer(text), f"{what}, which is newer than Python 3.9, is found")
tap.eq([newer(t) for t in ("from __future__ import annotations\ndef f(a: int | None): pass\n", "def f(a: 'int | None'): pass\n", "x = 1 | 2\n")], [[], [], []],
       "what Python 3.9 reads is not taken for newer")
files = sorted((SOURCE / "bindings/python").rglob("*.py"))
tap.ok(len(files) >= 6, "the files of the library are found", files)
for path in files:
    tap.eq(newer(path.read_text()), [], f"{path.relative_to(SOURCE)} has nothing that is newer than Python 3.9")
tap.done()
