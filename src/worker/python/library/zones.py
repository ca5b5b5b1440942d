# SPDX-License-Identifier: Apache-2.0
"""Time zones for programs that only compute: every file of the zones is read here, before the program runs; from then on
zoneinfo asks for a zone by its name and opens nothing."""
import io
import os
import zoneinfo
from zoneinfo import _common

_zones, _texts = {}, {}


def _read(folder, name):
    for entry in sorted(os.listdir(os.path.join(folder, name))):
        path = os.path.join(name, entry)
        if os.path.isdir(os.path.join(folder, path)):
            if entry not in ("posix", "right"):  # the same zones again, and those that count leap seconds
                _read(folder, path)
            continue
        try:
            with open(os.path.join(folder, path), "rb") as f:
                text = f.read()
        except OSError:
            continue  # localtime is a link into /etc, where the jail has no time zone
        if text.startswith(b"TZif"):
            _zones.setdefault(path, _texts.setdefault(text, text))


for _folder in zoneinfo.TZPATH:
    if os.path.isdir(_folder):
        _read(_folder, "")
_texts.clear()


def load_tzdata(key):
    if key not in _zones:
        raise _common.ZoneInfoNotFoundError(f"No time zone found with key {key}")
    return io.BytesIO(_zones[key])


def available_timezones():
    return set(_zones) - {"posixrules"}


zoneinfo.reset_tzpath(())
zoneinfo.available_timezones = available_timezones
_common.load_tzdata = load_tzdata
