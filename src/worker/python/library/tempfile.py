# SPDX-License-Identifier: Apache-2.0
"""What a program whose process can open no file gets as `tempfile`. A temporary file has a name until it is closed, since it is
known by that name; mkstemp gives a descriptor, so it is not here."""
import io as _io
import random as _random

_files, _os, _shutil = _own("cordon.files"), _own("os"), _own("shutil")

__all__ = ["NamedTemporaryFile", "SpooledTemporaryFile", "TMP_MAX", "TemporaryDirectory", "TemporaryFile", "gettempdir", "gettempprefix", "mkdtemp", "tempdir"]

TMP_MAX, tempdir = 10000, None
_letters = "abcdefghijklmnopqrstuvwxyz0123456789_"
_dice = _random.SystemRandom()


def gettempdir():
    return "/tmp"


def gettempprefix():
    return "tmp"


def _make(suffix, prefix, dir, make):
    folder = gettempdir() if dir is None else _files.text(dir)
    for _ in range(TMP_MAX):
        word = "".join(_dice.choice(_letters) for _ in range(8))
        name = _os.path.join(folder, f"{'tmp' if prefix is None else prefix}{word}{suffix or ''}")
        try:
            return name, make(name)
        except FileExistsError:
            continue
    raise FileExistsError(17, "No usable temporary file name found")


def mkdtemp(suffix=None, prefix=None, dir=None):
    return _os.path.abspath(_make(suffix, prefix, dir, _os.mkdir)[0])


def _forget(name):
    try:
        _os.remove(name)
    except OSError:
        pass


def NamedTemporaryFile(mode="w+b", buffering=-1, encoding=None, newline=None, suffix=None, prefix=None, dir=None, delete=True, *,
                       errors=None, delete_on_close=True):
    kind = mode.replace("w", "x").replace("a", "x")
    name, file = _make(suffix, prefix, dir, lambda name: _files.open(name, kind, buffering, encoding, errors, newline))
    file._mode = mode
    if delete:
        file._at_end = lambda: _forget(name)
    return file


def TemporaryFile(mode="w+b", buffering=-1, encoding=None, newline=None, suffix=None, prefix=None, dir=None, *, errors=None):
    return NamedTemporaryFile(mode, buffering, encoding, newline, suffix, prefix, dir, errors=errors)


def SpooledTemporaryFile(max_size=0, mode="w+b", buffering=-1, encoding=None, newline=None, suffix=None, prefix=None, dir=None, *, errors=None):
    """Kept in memory, whatever its size."""
    return _io.BytesIO() if "b" in mode else _io.StringIO(newline="\n" if newline is None else newline)


class TemporaryDirectory:
    def __init__(self, suffix=None, prefix=None, dir=None, ignore_cleanup_errors=False, *, delete=True):
        self._name, self._ignore, self._delete = mkdtemp(suffix, prefix, dir), ignore_cleanup_errors, delete

    name = property(lambda self: self._name)

    def __repr__(self):
        return f"<TemporaryDirectory {self._name!r}>"

    def __enter__(self):
        return self._name

    def __exit__(self, kind, value, traceback):
        if self._delete:
            self.cleanup()

    def cleanup(self):
        if _os.path.exists(self._name):
            _shutil.rmtree(self._name, ignore_errors=self._ignore)
