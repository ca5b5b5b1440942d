# SPDX-License-Identifier: Apache-2.0
"""Every place where one of our trusted processes may wait is listed in the head of its file, with its deadline.

    /* ...
     * Waits: poll in follow; a change of the folder; 1 s; looks again
     *        fsync in audit_day_open; the disk; none (the kernel's own); others are refused by name */

One entry a call and function, each on a line of its own that may go on (`in *`: anywhere in the file): call in function; for whom or what; deadline; what happens
then. A call without an entry fails, an entry without a call fails, and so does `none` without a reason in brackets. Where
the deadline is `the caller's`, the function counts as a call itself: whoever calls it lists it, too.

What cannot wait is not listed: WNOHANG, MSG_DONTWAIT, a time of 0. src/worker is not looked at: it is the guest's side, and
waits at the mercy of its supervisor. Usage: waits.py SOURCE [--list]. TAP; --list prints all of them as a table."""
import pathlib
import re
import sys

from tap import case, done

root = pathlib.Path(sys.argv[1])
src = root / "src"

CALLS = {"curl_multi_poll", "poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_pwait2", "select", "pselect", "accept", "accept4", "connect", "flock",
         "lockf", "wait", "wait3", "wait4", "waitpid", "waitid", "nanosleep", "clock_nanosleep", "usleep", "sleep", "pause", "sigwait",
         "sigwaitinfo", "sigtimedwait", "sigsuspend", "sem_wait", "sem_timedwait", "pthread_cond_wait", "pthread_cond_timedwait",
         "pthread_join", "pthread_mutex_lock", "mtx_lock", "fsync", "fdatasync", "syncfs", "sync", "msync", "read", "readv", "recv",
         "recvmsg", "recvfrom", "recvmmsg", "write", "writev", "send", "sendmsg", "sendto", "splice", "sendfile", "copy_file_range", "pread", "preadv", "pwrite", "pwritev",
         "sqlite3_step", "sqlite3_exec", "vfork", "posix_spawn", "posix_spawnp",
         "fread", "fgets", "fgetc", "getc", "getchar", "getline", "getdelim", "fscanf", "scanf", "el_gets", "el_wgets", "getaddrinfo", "tcdrain"}
WORDS = {"F_SETLKW", "F_OFD_SETLKW", "SECCOMP_IOCTL_NOTIF_RECV", "SYS_futex", "CLONE_VFORK"}
AT_ONCE = re.compile(r"\bWNOHANG\b|\bMSG_DONTWAIT\b|\bFUTEX_WAKE\b|\bMS_ASYNC\b")


def blank(text):
    """The code without comments and strings, line for line."""
    keep = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', keep, text, flags=re.S)


def functions(code):
    """(name, first character, last character) of each; the format of the house puts both braces at the margin."""
    for m in re.finditer(r"^(?!\s|#|typedef|(?:struct|enum|union)(?: \w+)? \{)[^\n;{}=]*?(\w+)\((?:[^;{}]*)\)[^;{}=]*\n\{\n(.*?)^\}", code, re.M | re.S):
        yield m.group(1), m.start(2), m.end(2)


def statement(code, at):
    end = code.find(";", at)
    return code[at:end if end >= 0 else None]


def arguments(call):
    """What stands between the brackets of a call that begins here."""
    first, depth = call.find("("), 0
    for i, c in enumerate(call[first:], first):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return call[first + 1:i]
    return call[first + 1:]


def found_in(code, wrappers):
    """{(call, function): line}"""
    names = "|".join(sorted(CALLS | wrappers, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w.>])(?:SYS_)?({names})\s*[(,]|\b({'|'.join(WORDS)})\b")
    every = list(functions(code))
    found = {}
    for m in pattern.finditer(code):
        call = m.group(1) or m.group(2)
        text = m.group(0)
        if text.endswith(",") and "SYS_" not in text:
            continue
        inside = [n for n, a, b in every if a <= m.start() < b]
        if not inside:
            continue
        rest = statement(code, m.start())
        if AT_ONCE.search(rest) or (call in ("poll", "epoll_wait") and "SYS_" not in text and re.search(r",\s*0\s*$", arguments(rest))):
            continue
        found.setdefault((call, inside[-1]), code[:m.start()].count("\n") + 1)
    return found


def listed_in(text):
    """{(call, function): [whom, deadline, then]}, faults"""
    head = re.match(r"(?:/\* SPDX[^\n]*\n)?/\*(.*?)\*/", text, re.S)
    if not head or "Waits:" not in head.group(1):
        return {}, []
    lines = [line.strip().lstrip("*").strip() for line in head.group(1).split("Waits:", 1)[1].splitlines()]
    starts = [m for m in (re.match(r"(\w+) in (\w+|\*);", line) for line in lines)]
    groups = []
    for line, start in zip(lines, starts):
        if start:
            groups.append((start, line[start.end():]))
        elif groups and line:
            groups[-1] = (groups[-1][0], groups[-1][1] + " " + line)
    entries, faults = {}, []
    for m, words in groups:
        fields = [f.strip() for f in words.split(";")]
        where = f"{m.group(1)} in {m.group(2)}"
        if len(fields) != 3 or not all(fields):
            faults.append(f"{where}: it is `call in function; for whom; deadline; what then`")
        elif fields[1].startswith("none") and not re.match(r"none \(.+\)", fields[1]):
            faults.append(f"{where}: a wait without a deadline needs its reason: none (reason)")
        elif re.search(r"no deadline yet|todo", fields[1], re.I):
            faults.append(f"{where}: it needs a deadline, or the reason why it cannot wait for ever, not a promise")
        if (m.group(1), m.group(2)) in entries:
            faults.append(f"{where} is listed twice")
        entries[m.group(1), m.group(2)] = fields
    return entries, faults


files = sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h") and not p.name.startswith(("test_", "fuzz_", "testing"))
               and p.relative_to(src).parts[0] != "worker")
case(len(files) > 100, "there are files to look at")
texts = {p: p.read_text() for p in files}
codes = {p: blank(t) for p, t in texts.items()}
lists = {p: listed_in(t) for p, t in texts.items()}


def is_static(p, function):
    return re.search(rf"^static\b[^;{{}}]*\b{function}\(", codes[p], re.M) is not None


everywhere, here = set(), {p: set() for p in files}
for p, (entries, _) in lists.items():
    for (_, function), fields in entries.items():
        if len(fields) == 3 and fields[1].startswith("the caller's") and function != "*":
            (here[p] if is_static(p, function) else everywhere).add(function)

# the checker itself, on what it must find
sample = "/* Why.\n *\n * Waits: poll in a; them; 1 s; gives up\n *        wait4 in c; them; none; goes on */\n" \
         "static int a(void)\n{\n    return poll(p, 1, 1000) + poll(p, 1, 0);\n}\n" \
         "int b(int fd)\n{\n    if (waitpid(1, 0, WNOHANG) < 0)\n        x.read(fd);\n    return raw_syscall(SYS_read, fd, 0, 0, 0, 0);\n}\n"
found, (entries, faults) = found_in(blank(sample), set()), listed_in(sample)
case(set(found) == {("poll", "a"), ("read", "b")}, "what may wait is found, what cannot is not", found)
case(entries[("poll", "a")] == ["them", "1 s", "gives up"] and len(faults) == 1 and "needs its reason" in faults[0],
     "an entry without a deadline and without a reason is a fault", entries, faults)
promise = "/* Why.\n *\n * Waits: poll in a; them; none (NO DEADLINE YET: later); goes on */\n"
case(len(listed_in(promise)[1]) == 1 and "promise" in listed_in(promise)[1][0], "a promise of a deadline is a fault", listed_in(promise))
case(set(found_in(blank("int a(void)\n{\n    return clone(f, s, CLONE_VM | CLONE_VFORK, 0);\n}\n"), set())) == {("CLONE_VFORK", "a")},
     "a clone that waits for its child's end is a wait")
case(set(found_in(blank("enum got a(void)\n{\n    return poll(p, 1, 9);\n}\n"), set())) == {("poll", "a")}, "a function that returns an enum is looked at like another")
stdio = "int a(FILE *f)\n{\n    return fgets(line, 9, f) && sscanf(line, form, &n) == 1;\n}\n"
case(set(found_in(blank(stdio), set())) == {("fgets", "a")}, "who reads a stream of the C library waits, who reads a text in memory does not", found_in(blank(stdio), set()))
case(set(found_in(blank("int b(void)\n{\n    return a(1);\n}\n"), {"a"})) == {("a", "b")}, "who calls what waits for its caller's time waits too")

table = []
for p in files:
    rel = p.relative_to(root)
    entries, bad = lists[p]
    bad = [f"{rel}: {b}" for b in bad]
    used = set()
    for (call, function), line in found_in(codes[p], everywhere | here[p]).items():
        key = next((k for k in ((call, function), (call, "*")) if k in entries), None)
        if key:
            used.add(key)
            table.append((str(rel), call, function, *entries[key]))
        else:
            bad.append(f"{rel}:{line}: {call} in {function} may wait, and the head of the file does not say for how long")
    bad += [f"{rel}: {c} in {f} is listed, but not there" for c, f in entries if (c, f) not in used]
    case(not bad, f"every wait is listed: {rel}", *bad)

endless = [row for row in table if row[-2].startswith("none") and "kernel" not in row[-2]]
if "--list" in sys.argv:
    for row in table:
        print("# " + " | ".join(row))
print(f"#= waits: {len(table)} places, {len(endless)} without a deadline of ours")
for row in endless:
    print(f"# without a deadline: {row[0]}: {row[1]} in {row[2]}: {row[4]}")
done()
