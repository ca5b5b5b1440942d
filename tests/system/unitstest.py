# SPDX-License-Identifier: Apache-2.0
"""The systemd units as they are installed, for the tests of them."""
import json
import pathlib
import re
import subprocess


def installed(build, cordon):
    """{kind: {name: text}}, with CORDON as the program that is started."""
    listed = json.loads(subprocess.run(["/usr/bin/meson", "introspect", "--installed", str(build)], stdout=subprocess.PIPE, check=True).stdout)
    found = {"system": {}, "user": {}}
    for made, placed in listed.items():
        m = re.search(r"/lib/systemd/(system|user)/([^/]+)$", placed)
        if m:
            text = pathlib.Path(made).read_text()
            found[m.group(1)][m.group(2)] = re.sub(r"^(ExecStart=)\S+/cordon ", rf"\1{cordon} ", text, flags=re.M)
    return found
