# SPDX-License-Identifier: Apache-2.0
"""What a guarded program gets as `doctest`: the examples of its own docstrings, each judged and compiled with the program.

Python's own compiles text at run time. Here the judge has read every docstring of a program that imports doctest, and the
worker gives what it made of them: `_known(text)` is the line of a docstring and the sources of its examples, `_run(text,
number, names)` runs one, `_names(more)` is a new namespace like the program's. A docstring that was made later is refused."""
import collections as _collections
import io as _io
import re as _re
import sys as _sys
import traceback as _traceback
import types as _types

__all__ = ["DONT_ACCEPT_BLANKLINE", "DONT_ACCEPT_TRUE_FOR_1", "ELLIPSIS", "FAIL_FAST", "IGNORE_EXCEPTION_DETAIL", "NORMALIZE_WHITESPACE",
           "REPORT_ONLY_FIRST_FAILURE", "SKIP", "TestResults", "run_docstring_examples", "testmod"]

TestResults = _collections.namedtuple("TestResults", "failed attempted")
_flags = {}


def _flag(name):
    _flags[name] = 1 << len(_flags)
    return _flags[name]


DONT_ACCEPT_TRUE_FOR_1 = _flag("DONT_ACCEPT_TRUE_FOR_1")
DONT_ACCEPT_BLANKLINE = _flag("DONT_ACCEPT_BLANKLINE")
NORMALIZE_WHITESPACE = _flag("NORMALIZE_WHITESPACE")
ELLIPSIS = _flag("ELLIPSIS")
SKIP = _flag("SKIP")
IGNORE_EXCEPTION_DETAIL = _flag("IGNORE_EXCEPTION_DETAIL")
REPORT_ONLY_FIRST_FAILURE = _flag("REPORT_ONLY_FIRST_FAILURE")
FAIL_FAST = _flag("FAIL_FAST")

_EXAMPLE = _re.compile(r"^(?P<indent>[ ]*)>>>.*(?:\n[ ]*\.\.\..*)*\n?(?P<want>(?:(?![ ]*$)(?![ ]*>>>).+$\n?)*)", _re.M)
_ERROR = _re.compile(r"^(?P<hdr>Traceback\ \((?:most\ recent\ call\ last|innermost\ last)\):)\s*$(?P<stack>.*?)^(?P<msg>\w+.*)", _re.M | _re.S)
_OPTION = _re.compile(r"#\s*doctest:\s*([^\n\'\"]*)$", _re.M)
_LINE = "*" * 70
_Example = _collections.namedtuple("_Example", "source want error line options")
_Test = _collections.namedtuple("_Test", "name text line examples")


def _options(source, name):
    found = {}
    for words in _OPTION.findall(source):
        for word in words.replace(",", " ").split():
            if word[0] not in "+-" or word[1:] not in _flags:
                raise ValueError(f"the docstring for {name} has an invalid option: {word!r}")
            found[_flags[word[1:]]] = word[0] == "+"
    return found


def _parse(name, text):
    """The examples of a docstring beside what the judge has read there: one for each, or none is run."""
    known = _known(text)
    line, sources = known[:2] if known else (None, ())
    examples, text = [], text.expandtabs()
    matches = [m for m in _EXAMPLE.finditer(text)
               if not all(_blank(part) for part in m.group().removesuffix(m["want"]).rstrip("\n").split("\n"))]
    if len(matches) != len(sources):
        _refuse(name)
    for m, source in zip(matches, sources):
        at = text.count("\n", 0, m.start())
        lines = m["want"].split("\n")
        if len(lines) > 1 and not lines[-1].strip():
            del lines[-1]
        if any(l and not l.startswith(m["indent"]) for l in lines):
            raise ValueError(f"line {at + 1} of the docstring for {name} has inconsistent leading whitespace")
        want = "\n".join(l[len(m["indent"]):] for l in lines)
        want += "\n" if want and not want.endswith("\n") else ""
        error = _ERROR.match(want)
        examples.append(_Example(source, want, error and error["msg"].rstrip("\n") + "\n", at, _options(source, name)))
    return _Test(name, known and known[2], line, examples)


def _blank(line):
    """A prompt alone, or with nothing but a comment behind it: no example."""
    rest = line.strip()[3:].strip()
    return not rest or rest.startswith("#")


def _tests(name, found, done):
    """The tests of a function or a class of the program, and of its members."""
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    if isinstance(found, property):
        text, members = found.__doc__, {}
    elif type(found) is _types.FunctionType and found.__module__ == "__main__":
        text, members = found.__doc__, {}
    elif issubclass(type(found), type) and found.__module__ == "__main__":
        if found in done:
            return
        done.append(found)
        text, members = type.__dict__["__doc__"].__get__(found), type.__dict__["__dict__"].__get__(found)
    else:
        return
    yield _parse(name, text) if type(text) is str and ">>>" in text else _Test(name, None, None, [])
    for word, member in list(members.items()):
        yield from _tests(f"{name}.{word}", member, done)


# ---- what is asked for, and what came ----

def _matches(want, got, options):
    if got == want:
        return True
    if not options & DONT_ACCEPT_TRUE_FOR_1 and (got, want) in (("True\n", "1\n"), ("False\n", "0\n")):
        return True
    if not options & DONT_ACCEPT_BLANKLINE:
        want = _re.sub(r"(?m)^<BLANKLINE>\s*?$", "", want)
        got = _re.sub(r"(?m)^[^\S\n]+$", "", got)
        if got == want:
            return True
    if options & NORMALIZE_WHITESPACE:
        got, want = " ".join(got.split()), " ".join(want.split())
        if got == want:
            return True
    return bool(options & ELLIPSIS) and _ellipsis(want, got)


def _ellipsis(want, got):
    if "..." not in want:
        return want == got
    first, *middle, last = want.split("...")
    if not (got.startswith(first) and got.endswith(last)) or len(first) + len(last) > len(got):
        return False
    at, end = len(first), len(got) - len(last)
    for piece in middle:
        at = got.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def _kind(message):
    """The exception's name, without its module and what it says."""
    return message.split("\n", 1)[0].split(":", 1)[0].rpartition(".")[2].strip()


def _show(value):
    if value is not None:
        _sys.stdout.write(repr(value) + "\n")


def _perform(test, number, names):
    """What the example printed, and its exception."""
    before, hook, caught = _sys.stdout, _sys.displayhook, _io.StringIO()
    _sys.stdout, _sys.displayhook = caught, _show
    try:
        _run(test.text, number, names)
        return caught.getvalue(), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return caught.getvalue(), error
    finally:
        _sys.stdout, _sys.displayhook = before, hook


def _indent(text):
    return _re.sub("(?m)^(?!$)", "    ", text)


def _difference(example, got, options):
    if not options & DONT_ACCEPT_BLANKLINE:
        got = _re.sub("(?m)^[ ]*(?=\n)", "<BLANKLINE>", got)
    parts = [f"{word}:\n{_indent(text)}" if text else f"{word} nothing\n" for word, text in (("Expected", example.want), ("Got", got))]
    return "".join(parts)


class _Runner:
    def __init__(self, verbose, options):
        self.verbose, self.options = verbose, options
        self.results, self.file = [], _names({}).get("__file__") or "<stdin>"

    def _head(self, test, example):
        line = test.line + example.line if test.line else "?"
        return f"{_LINE}\nFile \"{self.file}\", line {line}, in {test.name}\nFailed example:\n{_indent(example.source)}"

    def _judge(self, example, got, error, options):
        """What is to be told about it; None: it is as it should be."""
        if error is None:
            return None if not example.error and _matches(example.want, got, options) else _difference(example, got, options)
        said = "".join(_traceback.format_exception_only(type(error), error)[-1:])
        if example.error is None:
            return "Exception raised:\n" + _indent("Traceback (most recent call last):\n" + said)
        if _matches(example.error, said, options) or (options & IGNORE_EXCEPTION_DETAIL and _kind(example.error) == _kind(said)):
            return None
        return _difference(example, got + "Traceback (most recent call last):\n" + said, options)

    def run(self, test, names):
        failed = tried = 0
        for number, example in enumerate(test.examples):
            options = self.options
            for flag, on in example.options.items():
                options = options | flag if on else options & ~flag
            if options & SKIP:
                continue
            tried += 1
            if self.verbose:
                expecting = f"Expecting:\n{_indent(example.want)}" if example.want else "Expecting nothing\n"
                _sys.stdout.write(f"Trying:\n{_indent(example.source)}{expecting}")
            got, error = _perform(test, number, names)
            wrong = self._judge(example, got, error, options)
            if wrong is None and self.verbose:
                _sys.stdout.write("ok\n")
            if wrong is not None:
                if not (failed and options & REPORT_ONLY_FIRST_FAILURE):
                    _sys.stdout.write(self._head(test, example) + wrong)
                failed += 1
                if options & FAIL_FAST:
                    break
        self.results.append((test.name, failed, tried))

    def summary(self):
        """As Python's own: what has no tests, what passed, what failed."""
        def said(title, rows):
            print(f"{len(rows)} items {title}:")
            for row in rows:
                print(row)
        failures = [r for r in sorted(self.results) if r[1]]
        if self.verbose:
            without = [f"    {name}" for name, _, tried in sorted(self.results) if not tried]
            if without:
                said("had no tests", without)
            passed = [r for r in sorted(self.results) if r[2] and not r[1]]
            if passed:
                said("passed all tests", [f" {tried:3d} tests in {name}" for name, _, tried in passed])
        if failures:
            print(_LINE)
            said("had failures", [f" {failed:3d} of {tried:3d} in {name}" for name, failed, tried in failures])
        all_failed, all_tried = (sum(r[i] for r in self.results) for i in (1, 2))
        if self.verbose:
            print(f"{all_tried} tests in {len(self.results)} items.\n{all_tried - all_failed} passed and {all_failed} failed.")
        if failures:
            print(f"***Test Failed*** {all_failed} failures.")
        elif self.verbose:
            print("Test passed.")

    def total(self):
        return TestResults(sum(r[1] for r in self.results), sum(r[2] for r in self.results))


def testmod(m=None, name=None, globs=None, verbose=None, report=True, optionflags=0, extraglobs=None, raise_on_error=False, exclude_empty=False):
    if m is not None:
        raise TypeError("testmod: only the program itself has docstrings that were judged: leave `m` out")
    names = _names({})
    more = {**(globs or {}), **(extraglobs or {})}
    name = name or "__main__"
    text, done = names.get("__doc__"), []
    found = [_parse(name, text) if type(text) is str and ">>>" in text else _Test(name, None, None, [])]
    for word, value in names.items():
        found += _tests(f"{name}.{word}", value, done)
    if verbose is None:
        verbose = "-v" in _sys.argv
    runner = _Runner(verbose, optionflags)
    for test in sorted(found, key=lambda t: t.name):
        runner.run(test, _names(more))
    if report:
        runner.summary()
    return runner.total()


def run_docstring_examples(f, globs, verbose=False, name="NoName", compileflags=None, optionflags=0):
    runner = _Runner(verbose, optionflags)
    for test in _tests(name, f, []):
        if test.name == name:
            runner.run(test, _names(dict(globs) if globs else {}))
