# SPDX-License-Identifier: Apache-2.0
"""What a program whose process can open no file gets as `zipfile`: Python's own over files of ours. An archive is read and
written through a file object, so what differs is only how a path becomes one."""
import time as _time
import zipfile as _true
from zipfile import BadZipFile, LargeZipFile, ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipInfo as _Info

_files, _os, _shutil = _own("cordon.files"), _own("os"), _own("shutil")

__all__ = ["BadZipFile", "BadZipfile", "LargeZipFile", "ZIP_BZIP2", "ZIP_DEFLATED", "ZIP_LZMA", "ZIP_STORED", "ZipFile", "ZipInfo", "error", "is_zipfile"]

"".encode("cp437")  # names in an archive: loaded while there are files
error = BadZipfile = BadZipFile


def _is_path(file):
    return isinstance(file, (str, bytes)) or hasattr(type(file), "__fspath__")


class ZipInfo(_Info):
    __slots__ = ()

    @classmethod
    def from_file(cls, filename, arcname=None, *, strict_timestamps=True):
        st = _os.stat(filename)
        folder = _os.path.isdir(filename)
        when = _time.localtime(st.st_mtime)[:6]
        name = _os.path.normpath(_files.text(filename if arcname is None else arcname)).lstrip("/") + ("/" if folder else "")
        info = cls(name, max(when, (1980, 1, 1, 0, 0, 0)))
        info.external_attr = (st.st_mode & 0xFFFF) << 16 | (0x10 if folder else 0)
        info.file_size = 0 if folder else st.st_size
        return info


class ZipFile(_true.ZipFile):
    def __init__(self, file, mode="r", compression=ZIP_STORED, allowZip64=True, compresslevel=None, *, strict_timestamps=True, metadata_encoding=None):
        if mode not in ("r", "w", "x", "a"):
            raise ValueError("ZipFile requires mode 'r', 'w', 'x', or 'a'")
        own = None
        if _is_path(file):
            name = _files.text(file)
            how = {"r": "rb", "w": "w+b", "x": "x+b", "a": "r+b" if _os.path.exists(name) else "w+b"}[mode]
            file = own = _files.open(name, how)
        self._own_file = own
        more = {} if metadata_encoding is None else {"metadata_encoding": metadata_encoding}
        try:
            super().__init__(file, mode, compression, allowZip64, compresslevel, strict_timestamps=strict_timestamps, **more)
        except BaseException:
            if own is not None:
                own.close()
            raise

    def close(self):
        try:
            super().close()
        finally:
            own, self._own_file = getattr(self, "_own_file", None), None
            if own is not None:
                own.close()

    def write(self, filename, arcname=None, compress_type=None, compresslevel=None):
        info = ZipInfo.from_file(filename, arcname)
        if info.is_dir():
            self.writestr(info, b"")
            return
        info.compress_type = self.compression if compress_type is None else compress_type
        info._compresslevel = self.compresslevel if compresslevel is None else compresslevel
        with _files.open(filename, "rb") as one, self.open(info, "w") as other:
            _shutil.copyfileobj(one, other)

    def _extract_member(self, member, targetpath, pwd):
        info = member if isinstance(member, _Info) else self.getinfo(member)
        parts = [p for p in info.filename.split("/") if p not in ("", ".", "..")]
        target = _os.path.normpath(_os.path.join(_files.text(targetpath), *parts))
        if info.is_dir():
            _os.makedirs(target, exist_ok=True)
            return target
        _os.makedirs(_os.path.dirname(target) or ".", exist_ok=True)
        with self.open(info, pwd=pwd) as one, _files.open(target, "wb") as other:
            _shutil.copyfileobj(one, other)
        return target

    def extract(self, member, path=None, pwd=None):
        return self._extract_member(member, _os.getcwd() if path is None else path, pwd)

    def extractall(self, path=None, members=None, pwd=None):
        for member in self.namelist() if members is None else members:
            self.extract(member, path, pwd)


def is_zipfile(filename):
    try:
        if not _is_path(filename) and hasattr(filename, "read"):
            return _true._check_zipfile(filename)
        with _files.open(filename, "rb") as f:  # never by Python's own, which would take a descriptor
            return _true._check_zipfile(f)
    except OSError:
        return False
