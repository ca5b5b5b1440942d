# SPDX-License-Identifier: Apache-2.0
"""What a program whose process can open no file gets as `zipfile`: Python's own, which opens, lists and copies by our functions."""
import io as _io
import types as _types
import zipfile as _true

__all__ = ["BadZipFile", "BadZipfile", "LargeZipFile", "ZIP_BZIP2", "ZIP_DEFLATED", "ZIP_LZMA", "ZIP_STORED", "ZipFile", "ZipInfo", "error", "is_zipfile"]

_files = _own("cordon.files")
_opens = {"open", "open_code", "FileIO", "OpenWrapper"}
_true.io = _types.SimpleNamespace(**{n: v for n, v in vars(_io).items() if n not in _opens and not n.startswith("_")}, open=_files.open)
_true.open, _true.os, _true.shutil = _files.open, _own("os"), _own("shutil")
"".encode("cp437")  # names in an archive: loaded while there are files
from zipfile import (BadZipFile, BadZipfile, LargeZipFile, ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile, ZipInfo, error,  # noqa: E402
                     is_zipfile)
