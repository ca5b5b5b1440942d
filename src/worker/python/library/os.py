# SPDX-License-Identifier: Apache-2.0
"""What a program whose process can open no file gets as `os`: its files and paths, and nothing else of the system."""
import os as _os
import stat as _modes
from os import PathLike, SEEK_CUR, SEEK_END, SEEK_SET, fsdecode, fsencode, fspath, stat_result, strerror, urandom

_files = _own("cordon.files")
path = _own("os.path")

__all__ = ["F_OK", "PathLike", "R_OK", "SEEK_CUR", "SEEK_END", "SEEK_SET", "W_OK", "X_OK", "access", "altsep", "chdir", "curdir",
           "devnull", "error", "extsep", "fsdecode", "fsencode", "fspath", "getcwd", "linesep", "listdir", "lstat", "makedirs", "mkdir",
           "name", "pardir", "path", "pathsep", "remove", "removedirs", "rename", "renames", "replace", "rmdir", "scandir", "sep", "stat",
           "stat_result", "strerror", "truncate", "unlink", "urandom", "walk"]

error = OSError
name, linesep = "posix", "\n"
sep, altsep, extsep, curdir, pardir, pathsep, devnull = "/", None, ".", ".", "..", ":", "/dev/null"
F_OK, R_OK, W_OK, X_OK = 0, 4, 2, 1


def _result(numbers):
    mode, size, inode, links, *times = numbers
    whole = [t // 10**9 for t in times]
    exact = {f"st_{n}time": t / 1e9 for n, t in zip("amc", times)}
    exact.update({f"st_{n}time_ns": t for n, t in zip("amc", times)})
    return stat_result((mode, inode, 0, links, 0, 0, size, *whole), exact)


def stat(path, *, follow_symlinks=True):
    numbers = _files.look(path)
    if follow_symlinks and _modes.S_ISLNK(numbers[0]):
        raise PermissionError(13, "links are not followed here", path)
    return _result(numbers)


def lstat(path):
    return _result(_files.look(path))


def access(path, mode):
    return _paths.exists(path) and not mode & X_OK


def getcwd():
    return _files._where[0]


def chdir(path):
    if not _modes.S_ISDIR(_files.look(path)[0]):
        raise NotADirectoryError(20, strerror(20), path)
    _files._where[0] = _paths.abspath(_files.text(path))


def listdir(path="."):
    return [name for _, name in _files.names(path)]


class DirEntry:
    def __init__(self, folder, name, kind):
        self._folder, self._name, self._kind = folder, name, kind

    name = property(lambda self: self._name)
    path = property(lambda self: _paths.join(self._folder, self._name))

    def is_dir(self, *, follow_symlinks=True):
        return self._kind == b"d"

    def is_file(self, *, follow_symlinks=True):
        return self._kind == b"f"

    def is_symlink(self):
        return self._kind == b"l"

    def stat(self, *, follow_symlinks=True):
        return stat(self.path, follow_symlinks=follow_symlinks)

    def inode(self):
        return lstat(self.path).st_ino

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self._name!r}>"


class _Entries:
    def __init__(self, entries):
        self._entries = entries

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close()

    def close(self):
        self._entries = iter(())


def scandir(path="."):
    folder = _files.text(path)
    return _Entries(iter([DirEntry(folder, name, kind) for kind, name in _files.names(folder)]))


def mkdir(path, mode=0o777):
    _files.ask(_files.MKDIR, path)


def makedirs(name, mode=0o777, exist_ok=False):
    head, tail = _paths.split(name)
    if not tail:
        head, tail = _paths.split(head)
    if head and tail and not _paths.exists(head):
        makedirs(head, exist_ok=True)
        if tail == curdir:
            return
    try:
        mkdir(name)
    except OSError:
        if not exist_ok or not _paths.isdir(name):
            raise


def remove(path):
    _files.ask(_files.UNLINK, path)


unlink = remove


def rmdir(path):
    _files.ask(_files.RMDIR, path)


def removedirs(name):
    rmdir(name)
    head, tail = _paths.split(_files.text(name).rstrip("/"))
    while head and tail:
        try:
            rmdir(head)
        except OSError:
            break
        head, tail = _paths.split(head)


def rename(src, dst):
    _files.ask(_files.RENAME, src, dst)


replace = rename


def renames(old, new):
    head = _paths.dirname(_files.text(new))
    if head and not _paths.exists(head):
        makedirs(head)
    rename(old, new)


def truncate(path, length):
    _files.ask(_files.TRUNCATE, path, None, _files.number(length))


def walk(top, topdown=True, onerror=None, followlinks=False):
    top = fspath(top)
    try:
        found = _files.names(top)
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    folders = [name for kind, name in found if kind == b"d"]
    others = [name for kind, name in found if kind != b"d"]
    if topdown:
        yield top, folders, others
    for name in folders:
        yield from walk(_paths.join(top, name), topdown, onerror, followlinks)
    if not topdown:
        yield top, folders, others


_paths = path
