# SPDX-License-Identifier: Apache-2.0
"""A bounded search for memory that CPython uses after the guest's code gave it back: slots.py inside cordon exec.

Usage: slots_run.py BUILD TOOL. With guards no call ends the interpreter. The same search without guards does, which shows that it
would be seen. The long search, under AddressSanitizer, is `make slots-asan`."""
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import tapsys  # noqa: E402

BUILD, TOOL = sys.argv[1], pathlib.Path(sys.argv[2])
SEARCH = (pathlib.Path(__file__).resolve().parent / "slots.py").read_text()
LAST = r"^tried (\d+) calls on (\d+) of (\d+) targets of (\d+) types and (\d+) functions, (\d+) finds$"
tap = tapsys.Tap()
who = tapsys.users()[0]
os.environ.setdefault("TAPSYS_UID", f"{os.getuid()}:{os.getgid()}")
tapsys.enter_empty_network()
programs = tapsys.Programs(BUILD)
tapsys.honest_first(tap, programs)
shutil.copy2(TOOL, programs.bin / "guard_tool")


def search(command, **settings):
    file = programs.dir / "slots.py"
    file.write_text(f"import os\nos.environ.update({settings!r})\n" + SEARCH)
    r = tapsys.exec_json(programs, ["--ro", str(programs.dir), "--timeout", "600s", "--cpu", "600s", "--memory", "4g", "--processes", "4"], [*command, file], who, timeout=700)
    finds = re.findall(r"^find: (.*)$", r["stdout"] or "", re.M)
    return r, finds, re.search(LAST, r["stdout"] or "", re.M)


r, finds, last = search([programs.bin / "guard_tool", "crawl", "strict"], SLOTS_ROUNDS="12")
tap.ok(r["status"] == "ok" and last is not None, "strict: the search comes to its end", r.story(), (r["stdout"] or "")[-300:])
tap.eq(finds, [], "strict: no callback that changes an object midway ends the interpreter")
tap.ok(last is not None and last[2] == last[3] and int(last[3]) > 1500 and int(last[4]) > 200,
       "strict: the search calls more than 1,500 methods and functions of more than 200 types", last and last[0])
tap.figure(f"stale memory, strict: {last and last[0]}")
# every operation of these types is tried; which of them ends the process depends on what the allocator does with freed memory
r, finds, last = search(["/usr/bin/python3", "-I"], SLOTS_ROUNDS="150", SLOTS_ONLY="OrderedDict|pairwise|groupby|builtins.list.__")
tap.ok(len(finds) > 0, "without guards the same search ends the interpreter", r.story(), (r["stdout"] or "")[-300:])
tap.figure(f"stale memory, without guards: {last and last[0]}")
tap.done()
