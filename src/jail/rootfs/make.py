# SPDX-License-Identifier: Apache-2.0
"""The rootfs, in the build folder and where `make install` puts it: folders, empty files, links, and copies.

Usage: make.py STAMP CELL KIND:PATH[=VALUE]... With the stamp - CELL is below the folder that meson installs to."""
import os
import pathlib
import shutil
import sys

stamp, rootfs = (pathlib.Path(a) for a in sys.argv[1:3])
if str(stamp) == "-":
    rootfs = pathlib.Path(os.environ["MESON_INSTALL_DESTDIR_PREFIX"]) / rootfs
    rootfs.parent.mkdir(parents=True, exist_ok=True)
shutil.rmtree(rootfs, ignore_errors=True)
rootfs.mkdir()
for word in sys.argv[3:]:
    kind, rest = word.split(":", 1)
    path, _, value = rest.partition("=")
    at = rootfs / path
    if kind == "dir":
        at.mkdir()
        at.chmod(0o755)
    elif kind == "link":
        at.symlink_to(value)
    else:
        at.write_bytes(pathlib.Path(value).read_bytes() if kind == "copy" else b"")
        at.chmod(0o444)
rootfs.chmod(0o755)
if str(stamp) != "-":
    stamp.write_text("made\n")
