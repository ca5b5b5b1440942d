# SPDX-License-Identifier: Apache-2.0
"""os.path of a program whose process can open no file: what only computes is Python's own, what looks asks outside."""
import posixpath
import stat as _modes
from posixpath import (altsep, basename, commonpath, commonprefix, curdir, defpath, devnull, dirname, extsep, isabs, join, normcase,
                       normpath, pardir, pathsep, samestat, sep, split, splitdrive, splitext)

_files = _own("cordon.files")

__all__ = ["abspath", "altsep", "basename", "commonpath", "commonprefix", "curdir", "defpath", "devnull", "dirname", "exists",
           "expanduser", "expandvars", "extsep", "getatime", "getctime", "getmtime", "getsize", "isabs", "isdir", "isfile", "islink",
           "ismount", "join", "lexists", "normcase", "normpath", "pardir", "pathsep", "realpath", "relpath", "samefile", "samestat",
           "sep", "split", "splitdrive", "splitext"]
supports_unicode_filenames = True


def abspath(path):
    path = _files.os.fspath(path)
    here = _files._where[0]
    return normpath(join(here.encode() if isinstance(path, bytes) else here, path))


def realpath(filename, *, strict=False):
    """No link is followed, so the path is where it says."""
    path = abspath(filename)
    if strict:
        _files.look(path)
    return path


def relpath(path, start=None):
    path = _files.os.fspath(path)
    if start is None:
        start = b"." if isinstance(path, bytes) else "."
    return posixpath.relpath(abspath(path), abspath(start))


def expanduser(path):
    path = _files.text(path)
    return _files.HOME + path[1:] if path == "~" or path.startswith("~/") else path


def expandvars(path):
    """There is no variable to put in."""
    return _files.os.fspath(path)


def _mode(path):
    try:
        return _files.look(path)[0]
    except (OSError, ValueError):
        return 0


def lexists(path):
    return _mode(path) != 0


def exists(path):
    mode = _mode(path)
    return mode != 0 and not _modes.S_ISLNK(mode)


def isfile(path):
    return _modes.S_ISREG(_mode(path))


def isdir(path):
    return _modes.S_ISDIR(_mode(path))


def islink(path):
    return _modes.S_ISLNK(_mode(path))


def ismount(path):
    return False


def getsize(filename):
    return _files.look(filename)[1]


def getatime(filename):
    return _files.look(filename)[4] / 1e9


def getmtime(filename):
    return _files.look(filename)[5] / 1e9


def getctime(filename):
    return _files.look(filename)[6] / 1e9


def samefile(f1, f2):
    return _files.look(f1)[2] == _files.look(f2)[2]
