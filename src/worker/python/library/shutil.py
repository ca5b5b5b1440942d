# SPDX-License-Identifier: Apache-2.0
"""What a program whose process can open no file gets as `shutil`: copies, moves and removes by our `os`. Modes and owners are
not copied: files here have none that matter."""
import fnmatch as _fnmatch

_files, _os = _own("cordon.files"), _own("os")

__all__ = ["Error", "SameFileError", "copy", "copy2", "copyfile", "copyfileobj", "copytree", "ignore_patterns", "move", "rmtree"]

COPY_BUFSIZE = 64 * 1024


class Error(OSError):
    pass


class SameFileError(Error):
    pass


def copyfileobj(fsrc, fdst, length=0):
    length = length or COPY_BUFSIZE
    while piece := fsrc.read(length):
        fdst.write(piece)


def _is_same(src, dst):
    return _os.path.exists(dst) and _os.path.exists(src) and _os.path.samefile(src, dst)


def copyfile(src, dst, *, follow_symlinks=True):
    if _is_same(src, dst):
        raise SameFileError(f"{src!r} and {dst!r} are the same file")
    with _files.open(src, "rb") as one, _files.open(dst, "wb") as other:
        copyfileobj(one, other)
    return dst


def _inside(src, dst):
    return _os.path.join(dst, _os.path.basename(_files.text(src))) if _os.path.isdir(dst) else dst


def copy(src, dst, *, follow_symlinks=True):
    return copyfile(src, _inside(src, dst))


copy2 = copy


def ignore_patterns(*patterns):
    def ignored(path, names):
        return {name for pattern in patterns for name in _fnmatch.filter(names, pattern)}
    return ignored


def copytree(src, dst, symlinks=False, ignore=None, copy_function=copy2, ignore_dangling_symlinks=False, dirs_exist_ok=False):
    found = _files.names(src)
    left_out = set(ignore(_os.fspath(src), [name for _, name in found])) if ignore else ()
    _os.makedirs(dst, exist_ok=dirs_exist_ok)
    for kind, name in found:
        one, other = _os.path.join(src, name), _os.path.join(dst, name)
        if name in left_out:
            continue
        if kind == b"d":
            copytree(one, other, symlinks, ignore, copy_function, ignore_dangling_symlinks, dirs_exist_ok)
        elif kind == b"l":
            raise Error(f"{one!r} is a link, and links are not followed here")
        else:
            copy_function(one, other)
    return dst


def rmtree(path, ignore_errors=False, onerror=None):
    def failed(function, name, error):
        if onerror is not None:
            onerror(function, name, (type(error), error, None))
        elif not ignore_errors:
            raise error
    try:
        if not _os.path.isdir(path):
            raise NotADirectoryError(20, _os.strerror(20), path) if _os.path.lexists(path) else FileNotFoundError(2, _os.strerror(2), path)
        found = _files.names(path)
    except OSError as e:
        failed(_os.scandir, path, e)
        return
    for kind, name in found:
        below = _os.path.join(path, name)
        if kind == b"d":
            rmtree(below, ignore_errors, onerror)
            continue
        try:
            _os.remove(below)
        except OSError as e:
            failed(_os.remove, below, e)
    try:
        _os.rmdir(path)
    except OSError as e:
        failed(_os.rmdir, path, e)


def move(src, dst, copy_function=copy2):
    real = dst
    if _os.path.isdir(dst) and not _is_same(src, dst):
        real = _os.path.join(dst, _os.path.basename(_files.text(src).rstrip("/")))
        if _os.path.exists(real):
            raise Error(f"Destination path '{real}' already exists")
    try:
        _os.rename(src, real)
    except OSError as e:
        if e.errno != 18:  # of two file systems, where /workspace is one of its own
            raise
        if _os.path.isdir(src):
            copytree(src, real, copy_function=copy_function)
            rmtree(src)
        else:
            copy_function(src, real)
            _os.remove(src)
    return real
