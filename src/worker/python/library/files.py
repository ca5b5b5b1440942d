# SPDX-License-Identifier: Apache-2.0
"""Files of a program whose process can open none: each request goes over the worker's channel and is carried out outside.

`_ask(what, path, second, number, number, bytes)`, put here by the worker, is one request (src/wire/files.h): it gives numbers and
bytes, or raises OSError. A file is known by its path: nothing stays open outside, so a file that is removed or renamed while a
program has it open is gone for that program, too. What a program holds is a class of ours around Python's own buffers and
decoders; those get only values that are plain, since they were not written for the callbacks of a guest."""
import _operator as operator
import _weakref
import errno
import io
import os

(STAT, OPEN, READ, WRITE, TRUNCATE, LIST, MKDIR, RMDIR, UNLINK, RENAME, TOUCH) = range(11)
FOR_WRITING, CREATE, EXCLUSIVE, EMPTY = 1, 2, 4, 8
END, PIECE = 2**64 - 1, 128 * 1024
HOME = "/workspace"
_where = [HOME]
_unsaved = {}


def number(n):
    """N as a plain int: what N itself has to say is said before a buffer is looked at."""
    return int.__index__(operator.index(n))


def text(path):
    """PATH as a plain str; bytes, as the kernel has them, too."""
    path = os.fspath(path)
    if isinstance(path, bytes):
        return bytes.decode(path, "utf-8", "surrogateescape")
    return str.__str__(path)


def place(path):
    """What is asked for: the whole path, from where the program is."""
    path = text(path)
    if "\0" in path:
        raise ValueError("embedded null byte")
    if path and not path.startswith("/"):
        path = f"{_where[0]}/{path}"
    return path.encode("utf-8", "surrogateescape")


def ask(what, path, second=None, a=0, b=0, data=b""):
    """The error names the path as the program wrote it."""
    try:
        return _ask(what, place(path), b"" if second is None else place(second), a, b, data)
    except OSError as e:
        why = e.errno, e.strerror
    if second is None:
        raise OSError(*why, path)
    raise OSError(*why, path, None, second)


def look(path):
    return ask(STAT, path)[0]


def names(path):
    """(kind, name) of each thing in a folder."""
    found, done = [], 0
    while not done:
        (seen, done), data = ask(LIST, path, None, len(found))
        for row in data.split(b"\0")[:-1]:
            found.append((row[:1], row[1:].decode("utf-8", "surrogateescape")))
        if not data and not done:
            break
    return found


class Raw(io.RawIOBase):
    def __init__(self, path, may_read, may_write, appends):
        self._place, self._at = place(path), 0
        self._may = may_read, may_write, appends

    def readable(self):
        return self._may[0]

    def writable(self):
        return self._may[1]

    def seekable(self):
        return True

    def _get(self, most):
        data = _ask(READ, self._place, b"", self._at, min(most, PIECE), b"")[1]
        self._at += len(data)
        return data

    def readinto(self, room):
        data = self._get(len(room))
        room[:len(data)] = data
        return len(data)

    def readall(self):
        pieces = []
        while not pieces or pieces[-1]:
            pieces.append(self._get(PIECE))
        return b"".join(pieces)

    def write(self, data):
        data = bytes(data[:PIECE])
        self._at = _ask(WRITE, self._place, b"", END if self._may[2] else self._at, 0, data)[0][0]
        return len(data)

    def _size(self):
        return _ask(STAT, self._place, b"", 0, 0, b"")[0][1]

    def seek(self, offset, whence=0):
        at = offset + (0 if whence == 0 else self._at if whence == 1 else self._size())
        if at < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = at
        return at

    def tell(self):
        return self._at

    def truncate(self, size=None):
        size = self._at if size is None else size
        _ask(TRUNCATE, self._place, b"", size, 0, b"")
        return size


class File:
    """What a program holds. The stream inside is not for it: that is Python's own, and leads to types that open files."""
    name = property(lambda self: self._name)
    mode = property(lambda self: self._mode)
    closed = property(lambda self: self._io.closed)

    def __init__(self, *args, **kwargs):
        raise TypeError("a file is made by open()")

    def __enter__(self):
        if self._io.closed:
            raise ValueError("I/O operation on closed file.")
        return self

    def __exit__(self, kind, value, traceback):
        self.close()

    def __iter__(self):
        if self._io.closed:
            raise ValueError("I/O operation on closed file.")
        return self

    def __next__(self):
        line = self._io.readline()
        if not line:
            raise StopIteration
        return line

    def __repr__(self):
        return f"<file name={self._name!r} mode={self._mode!r}>"

    def close(self):
        _unsaved.pop(id(self), None)
        try:
            self._io.close()
        finally:
            if self._at_end is not None:
                self._at_end, end = None, self._at_end
                end()

    def flush(self):
        self._io.flush()

    def read(self, size=-1):
        return self._io.read(-1 if size is None else number(size))

    def readline(self, size=-1):
        return self._io.readline(-1 if size is None else number(size))

    def readlines(self, hint=-1):
        return self._io.readlines(-1 if hint is None else number(hint))

    def write(self, data):
        written = self._io.write(self._plain(data))
        if self._at_once:
            self._io.flush()
        return written

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def seek(self, offset, whence=0):
        return self._io.seek(number(offset), number(whence))

    def tell(self):
        return self._io.tell()

    def truncate(self, size=None):
        return self._io.truncate(None if size is None else number(size))

    def readable(self):
        return self._io.readable()

    def writable(self):
        return self._io.writable()

    def seekable(self):
        return self._io.seekable()

    def isatty(self):
        return False

    def fileno(self):
        raise io.UnsupportedOperation("fileno: a file here has no descriptor")


class TextFile(File):
    encoding = property(lambda self: self._io.encoding)
    errors = property(lambda self: self._io.errors)
    newlines = property(lambda self: self._io.newlines)
    line_buffering = property(lambda self: self._io.line_buffering)

    def _plain(self, data):
        if not isinstance(data, str):
            raise TypeError(f"write() argument must be str, not {type(data).__name__}")
        return str.__str__(data)


class BinaryFile(File):
    def _plain(self, data):
        if not isinstance(data, (bytes, bytearray)) and type(data).__name__ not in ("array", "memoryview"):
            raise TypeError(f"a bytes-like object is required, not {type(data).__name__!r}")
        return bytes(data)

    def read1(self, size=-1):
        return self.read(PIECE if size is None or size < 0 else size)

    def readinto(self, room):
        data = self.read(len(room))
        room[:len(data)] = data
        return len(data)

    def peek(self, size=0):
        at = self.tell()
        data = self.read(max(number(size), 1))
        self.seek(at)
        return data


def _stream(raw, reads, writes, binary, encoding, errors, newline, lines):
    buffer = (io.BufferedRandom if reads and writes else io.BufferedWriter if writes else io.BufferedReader)(raw, PIECE // 2)
    return buffer if binary else io.TextIOWrapper(buffer, encoding, errors, newline, lines)


def _words(mode):
    """As Python reads it: what it is for, whether it may also do the other, whether it is of bytes."""
    kinds = [c for c in mode if c in "rwax"]
    if set(mode) - set("axrwb+t") or len(mode) > len(set(mode)):
        raise ValueError(f"invalid mode: {mode!r}")
    if "t" in mode and "b" in mode:
        raise ValueError("can't have text and binary mode at once")
    if len(kinds) > 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    if not kinds:
        raise ValueError("Must have exactly one of create/read/write/append mode and at most one plus")
    return kinds[0], "+" in mode, "b" in mode


def _word(value, name, binary):
    if value is None:
        return None
    if binary:
        raise ValueError(f"binary mode doesn't take an {name} argument" if name != "newline" else "binary mode doesn't take a newline argument")
    if not isinstance(value, str):
        raise TypeError(f"open() argument {name!r} must be str or None, not {type(value).__name__}")
    return str.__str__(value)


def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    if isinstance(file, int):
        raise OSError(errno.EBADF, "a number is no file here: open it by its path", file)
    if opener is not None or not closefd:
        raise ValueError("opener and closefd are about descriptors, and there are none here")
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    mode, buffering = str.__str__(mode), number(buffering)
    kind, both, binary = _words(mode)
    encoding, errors, newline = _word(encoding, "encoding", binary), _word(errors, "errors", binary), _word(newline, "newline", binary)
    if buffering == 0 and not binary:
        raise ValueError("can't have unbuffered text I/O")
    if newline not in (None, "", "\n", "\r", "\r\n"):
        raise ValueError(f"illegal newline value: {newline!r}")
    if encoding == "locale":
        encoding = None
    name = os.fspath(file)
    flags = {"r": 0, "w": CREATE | EMPTY, "a": CREATE, "x": CREATE | EXCLUSIVE}[kind]
    size = ask(OPEN, name, None, flags | (FOR_WRITING if both or kind != "r" else 0))[0][0]
    raw = Raw(name, both or kind == "r", both or kind != "r", kind == "a")
    if kind == "a":
        raw.seek(size)
    made = object.__new__(BinaryFile if binary else TextFile)
    made._io = _stream(raw, raw.readable(), raw.writable(), binary, encoding or "utf-8", errors, newline, buffering == 1)
    if binary:  # as a descriptor's would say it
        mode = (kind if not both or kind in "xa" else "r") + "b" + "+" * both
    made._name, made._mode, made._at_once, made._at_end = name, mode, buffering == 0, None
    if raw.writable():
        _remember(made)
    return made


def _remember(file):
    key = id(file)
    _unsaved[key] = _weakref.ref(file, lambda gone: _unsaved.pop(key, None))


def save():
    """At the end of a program: what it wrote and did not close."""
    for ref in list(_unsaved.values()):
        file = ref()
        if file is not None and not file._io.closed:
            try:
                file._io.flush()
            except (OSError, ValueError):
                pass
