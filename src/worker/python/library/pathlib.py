# SPDX-License-Identifier: Apache-2.0
"""What a program whose process can open no file gets as `pathlib`: Python's own pure paths, and what they do by our `os`."""
import fnmatch as _fnmatch
import re as _re
import stat as _modes
from pathlib import PurePath, PurePosixPath

_files, _os = _own("cordon.files"), _own("os")

__all__ = ["Path", "PosixPath", "PurePath", "PurePosixPath"]

_flavour = type(getattr(PurePosixPath, "_flavour", None))
if "pathmod" in vars(_flavour):
    del _flavour.pathmod  # a module that nothing uses


class Path(PurePosixPath):
    __slots__ = ()

    def __new__(cls, *args, **kwargs):
        return super().__new__(PosixPath if cls is Path else cls, *args, **kwargs)

    @classmethod
    def cwd(cls):
        return cls(_os.getcwd())

    @classmethod
    def home(cls):
        return cls(_files.HOME)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        pass

    # looking

    def _mode(self):
        try:
            return _files.look(self)[0]
        except (OSError, ValueError):
            return 0

    def exists(self):
        return _os.path.exists(self)

    def is_file(self):
        return _modes.S_ISREG(self._mode())

    def is_dir(self):
        return _modes.S_ISDIR(self._mode())

    def is_symlink(self):
        return _modes.S_ISLNK(self._mode())

    def is_mount(self):
        return False

    is_socket = is_fifo = is_block_device = is_char_device = is_mount

    def stat(self, *, follow_symlinks=True):
        return _os.stat(self, follow_symlinks=follow_symlinks)

    def lstat(self):
        return _os.lstat(self)

    def samefile(self, other_path):
        return _os.path.samefile(self, other_path)

    def absolute(self):
        return self if self.is_absolute() else type(self)(_os.getcwd(), self)

    def resolve(self, strict=False):
        return type(self)(_os.path.realpath(self, strict=strict))

    def expanduser(self):
        return type(self)(_os.path.expanduser(self))

    # contents

    def open(self, mode="r", buffering=-1, encoding=None, errors=None, newline=None):
        return _files.open(self, mode, buffering, encoding, errors, newline)

    def read_text(self, encoding=None, errors=None):
        with self.open("r", encoding=encoding, errors=errors) as f:
            return f.read()

    def read_bytes(self):
        with self.open("rb") as f:
            return f.read()

    def write_text(self, data, encoding=None, errors=None, newline=None):
        if not isinstance(data, str):
            raise TypeError(f"data must be str, not {type(data).__name__}")
        with self.open("w", encoding=encoding, errors=errors, newline=newline) as f:
            return f.write(data)

    def write_bytes(self, data):
        with self.open("wb") as f:
            return f.write(data)

    def touch(self, mode=0o666, exist_ok=True):
        _files.ask(_files.OPEN, self, None, _files.FOR_WRITING | _files.CREATE | (0 if exist_ok else _files.EXCLUSIVE))
        _files.ask(_files.TOUCH, self)

    # names

    def mkdir(self, mode=0o777, parents=False, exist_ok=False):
        try:
            _os.mkdir(self)
        except FileNotFoundError:
            if not parents or self.parent == self:
                raise
            self.parent.mkdir(parents=True, exist_ok=True)
            self.mkdir(exist_ok=exist_ok)
        except OSError:
            if not exist_ok or not self.is_dir():
                raise

    def rmdir(self):
        _os.rmdir(self)

    def unlink(self, missing_ok=False):
        try:
            _os.remove(self)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rename(self, target):
        _os.rename(self, target)
        return type(self)(target)

    def replace(self, target):
        return self.rename(target)

    def iterdir(self):
        for name in _os.listdir(self):
            yield self / name

    def walk(self, top_down=True, on_error=None, follow_symlinks=False):
        for folder, folders, others in _os.walk(self, top_down, on_error):
            yield type(self)(folder), folders, others

    def _below(self):
        yield self
        for kind, name in _files.names(self):
            if kind == b"d":
                yield from (self / name)._below()

    def _select(self, parts):
        if not parts:
            yield self
        elif parts[0] == "**":
            for folder in self._below():
                yield from folder._select(parts[1:])
        elif not any(c in parts[0] for c in "*?["):
            below = self / parts[0]
            if parts[0] == ".." or below._mode():
                yield from below._select(parts[1:])
        elif self.is_dir():
            match = _re.compile(_fnmatch.translate(parts[0])).fullmatch
            for kind, name in _files.names(self):
                if match(name) and (len(parts) == 1 or kind == b"d"):
                    yield from (self / name)._select(parts[1:])

    def glob(self, pattern):
        pattern = _files.text(pattern)
        if not pattern:
            raise ValueError(f"Unacceptable pattern: {pattern!r}")
        if pattern.startswith("/"):
            raise NotImplementedError("Non-relative patterns are unsupported")
        parts = [p for p in pattern.split("/") if p not in ("", ".")]
        yield from dict.fromkeys(self._select(parts) if self.is_dir() else ())

    def rglob(self, pattern):
        return self.glob("**/" + _files.text(pattern))


class PosixPath(Path):
    __slots__ = ()
