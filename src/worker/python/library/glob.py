# SPDX-License-Identifier: Apache-2.0
"""What a program whose process can open no file gets as `glob`: names beneath its folders, looked up by our `os`."""
import fnmatch as _fnmatch
import re as _re

_files, _os = _own("cordon.files"), _own("os")

__all__ = ["escape", "glob", "has_magic", "iglob"]


def has_magic(s):
    return any(c in _files.text(s) for c in "*?[")


def escape(pathname):
    return _re.sub("([*?[])", r"[\1]", _files.text(pathname))


def _names(folder):
    try:
        return _files.names(folder or ".")
    except OSError:
        return []


def _below(folder, hidden):
    """FOLDER itself, and every one in it."""
    yield folder
    for kind, name in _names(folder):
        if kind == b"d" and (hidden or not name.startswith(".")):
            yield from _below(_os.path.join(folder, name), hidden)


def _match(folder, parts, recursive, hidden):
    first, rest = parts[0], parts[1:]
    if recursive and first == "**":
        for below in _below(folder, hidden):
            if rest:
                yield from _match(below, rest, recursive, hidden)
            elif below == folder:
                yield _os.path.join(below, "")
            if not rest:
                for _, name in _names(below):
                    if hidden or not name.startswith("."):
                        yield _os.path.join(below, name)
        return
    if has_magic(first):
        match = _re.compile(_fnmatch.translate(first)).fullmatch
        shown = hidden or first.startswith(".")
        found = [(kind, name) for kind, name in _names(folder) if match(name) and (shown or not name.startswith("."))]
    else:
        found = [(b"d" if _os.path.isdir(_os.path.join(folder, first)) else b"f", first)] if _os.path.lexists(_os.path.join(folder, first)) else []
    for kind, name in found:
        path = _os.path.join(folder, name)
        if not rest:
            yield path
        elif kind == b"d":
            yield from [path + "/"] if rest == [""] else _match(path, rest, recursive, hidden)


def iglob(pathname, *, root_dir=None, dir_fd=None, recursive=False, include_hidden=False):
    pathname = _files.text(pathname)
    if dir_fd is not None:
        raise ValueError("dir_fd is a descriptor, and there are none here")
    if not pathname:
        return iter(())
    whole = pathname.startswith("/")
    start = "/" if whole else "" if root_dir is None else _os.path.join(_files.text(root_dir), "")
    parts = [p for i, p in enumerate(pathname.split("/")) if p or i == pathname.count("/")]
    if whole and parts and has_magic(parts[0]):
        return iter(())
    found = dict.fromkeys(_match(start, parts, recursive, include_hidden))
    return iter([path[len(start):] for path in found if path != start] if not whole and start else [p for p in found if p])


def glob(pathname, *, root_dir=None, dir_fd=None, recursive=False, include_hidden=False):
    return list(iglob(pathname, root_dir=root_dir, dir_fd=dir_fd, recursive=recursive, include_hidden=include_hidden))
