# SPDX-License-Identifier: Apache-2.0
"""A test program in C that builds jails: as root and as an ordinary user, in an empty network of the test's own.

Usage: live_c.py BUILD PROGRAM [ARGUMENT...]. The program gets the path of cordon-nest first, and speaks TAP."""
import pathlib
import re
import shutil
import subprocess
import sys

import tapsys

BUILD, program, extra = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
copy = shutil.copy2(program, programs.bin / program.name)
copy.chmod(0o755) if hasattr(copy, "chmod") else None
for who in tapsys.users():
    cmd = [str(copy), str(programs.nest), *extra]
    if who == "user" and len(tapsys.users()) == 2:
        cmd = ["/usr/bin/setpriv", f"--reuid={tapsys.ROOTLESS}", f"--regid={tapsys.ROOTLESS}", "--clear-groups", "--", *cmd]
    if len(tapsys.users()) == 2:
        cmd = ["/usr/bin/unshare", "-n", "--", *cmd]
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240 * tapsys.SLOW,
                       env=tapsys.clean_env({"TAPSYS_SLOW": str(tapsys.SLOW)}), cwd="/", text=True, errors="replace")
    seen = 0
    for line in p.stdout.splitlines():
        m = re.fullmatch(r"(not )?ok \d+ - (.*)", line)
        if m and " # SKIP " in m.group(2):
            tap.skip(f"{who}: " + m.group(2).split(" # SKIP ")[0], m.group(2).split(" # SKIP ")[1])
        elif m:
            seen += 1
            tap.ok(not m.group(1), f"{who}: {m.group(2)}")
        else:
            print("#=" + line[2:] if line.startswith("#=") else "# " + line, flush=True)
    tap.ok(p.returncode == 0 and seen > 0, f"{who}: {program.name} came to its end", p.returncode)
tap.done()
