# SPDX-License-Identifier: Apache-2.0
"""`cordon repl` at a terminal, key by key, and what interrupts a session: as root and as an ordinary user.

Usage: prompt.py BUILD [none]. `none`: the program was built without a line editor. The terminal is a pty. Each step waits for what it expects to see, never for a time."""
import atexit
import base64
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import zlib

import tapsys
from pooltest import User, until

BUILD = sys.argv[1]
tapsys.enter_empty_network()
tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
MARK = b">>> "
GREEN = b"\x1b[32m>>>\x1b[0m "  # the same where the terminal has colours


class Screen:
    """What a person would see: the part of a terminal's language that the line editor speaks."""

    def __init__(self):
        self.lines, self.y, self.x = [[]], 0, 0

    def put(self, c):
        line = self.lines[self.y]
        line.extend(" " * (self.x - len(line)))
        line[self.x:self.x + 1] = [c]
        self.x += 1

    def obey(self, number, letter):
        line, n = self.lines[self.y], int(number or 1) if number.isdigit() or not number else 1
        if letter == "K":
            del line[self.x:]
        elif letter == "J":
            del line[self.x:], self.lines[self.y + 1:]
        elif letter == "P":
            del line[self.x:self.x + n]
        elif letter == "@":
            line[self.x:self.x] = [" "] * n
        elif letter == "G":
            self.x = n - 1
        elif letter in "CD":
            self.x = max(0, self.x + (n if letter == "C" else -n))
        elif letter in "AB":
            self.y = max(0, self.y + (n if letter == "B" else -n))
            self.lines.extend([] for _ in range(self.y + 1 - len(self.lines)))

    def show(self, text):
        self.__init__()
        for number, letter, c in re.findall(r"\x1b\[\??([\d;]*)([A-Za-z@~])|([^\x1b])", text):
            if letter:
                self.obey(number, letter)
            elif c == "\r":
                self.x = 0
            elif c == "\n":
                self.obey("1", "B")
            elif c == "\b":
                self.x = max(0, self.x - 1)
            elif c >= " ":
                self.put(c)
        return "\n".join("".join(line).rstrip() for line in self.lines)


class Terminal:
    """A pty of 40 lines and 100 columns with `cordon repl` on it."""

    def __init__(self, u, *options, term="xterm", more={}, mark=MARK):
        self.main, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.theirs = theirs
        self.seen = b""
        self.at = 0
        env = tapsys.clean_env({"TERM": term, "NO_COLOR": "1", **more}, u.who)
        # a session of its own with this terminal: Ctrl-C reaches who is in front of it
        self.p = subprocess.Popen(["/usr/bin/setsid", "--ctty", "--wait", *programs.command(["repl", *options], u.who)],
                                  stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd="/")
        self.expect(mark)

    def more(self):
        if select.select([self.main], [], [], 0.1)[0]:
            try:
                self.seen += os.read(self.main, 65536)
            except OSError:
                return False
        return True

    def expect(self, what, seconds=20):
        """What came since the last one, up to WHAT; None: it did not come."""
        end = time.monotonic() + seconds * tapsys.SLOW
        while what not in self.seen[self.at:]:
            if time.monotonic() > end or not self.more():
                return None
        start, self.at = self.at, self.seen.index(what, self.at) + len(what)
        return self.seen[start:self.at]

    def screen(self):
        self.more()
        self.view = Screen()
        return self.view.show(self.seen.decode("utf-8", "replace"))

    def shows(self, end, column=None):
        """Whether the screen ends with END, and the cursor is in COLUMN, some time soon."""
        return until(lambda: self.screen().rstrip().endswith(end) and column in (None, self.view.x))

    def tail(self):
        return "\n".join(self.screen().splitlines()[-25:])

    def type(self, keys):
        os.write(self.main, keys)

    def forget(self):
        """What is typed is given up."""
        self.type(b"\x03")
        self.expect(b"\x1b[?2004l")
        self.expect(MARK)

    def run(self, line):
        """Types a block and gives what is printed until the next prompt."""
        self.type(line + b"\r")
        got = self.expect(b"\x1b[?2004l")
        return (self.expect(MARK) or b"?") if got is not None else b"?"

    def wait(self):
        end = time.monotonic() + 30 * tapsys.SLOW
        while self.p.poll() is None and time.monotonic() < end:
            self.more()
        before = -1
        while before < len(self.seen):  # what it wrote last
            before = len(self.seen)
            self.more()
        return self.p.poll()

    def close(self):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()
        os.close(self.theirs)
        os.close(self.main)


def edit(u):
    t = Terminal(u, "--profile", "standard")
    head = t.seen
    u.ok(b"profile standard" in head and b"120 s" in head and b"512 MB" in head and b"exit() or Ctrl-D leaves" in head,
         "the banner names the profile, the limits and how to leave", head)
    u.ok(b"42\r\n" in t.run(b"6 * 7") and b"43\r\n" in t.run(b"_ + 1"), "_ at the prompt is the value of the last block", t.seen)
    t.type(b"def twice(n):\r")
    indented = t.shows(">>> def twice(n):", 4)
    t.type(b"return n * 2\r")
    t.shows(">>> def twice(n):\n    return n * 2", 4)
    t.run(b"")
    u.ok(indented and t.run(b"twice(4)").startswith(b"8\r\n"), "a function that is typed over several lines is one block, indented for the typist", indented, t.tail())
    t.type(b"\x1b[200~def pasted():\r    a = 1\r\r    b = 2\r\r    return a + b\r\x1b[201~")
    pasted = ">>> def pasted():\n    a = 1\n\n    b = 2\n\n    return a + b"
    t.shows(pasted)
    t.type(b"\r")
    t.run(b"")
    u.ok(t.run(b"pasted()").startswith(b"3\r\n"), "a function with empty lines is pasted as one block", t.seen)
    t.type(b"\x1b[200~x\x1b]0;evil\x07 = 5\x1b[201~")
    t.shows(" = 5")
    t.forget()
    u.ok(b"\x1b]0;" not in t.seen, "a control sequence in a paste does not reach the terminal", t.seen)
    t.type(b"\x1b[A")
    t.shows(">>> pasted()")
    t.type(b"\x1b[A")
    u.ok(t.shows(pasted), "Up shows an earlier block with all of its lines", t.tail())
    t.forget()
    u.ok(t.run(b"4\x012 * 1\x05") == t.run(b"2 * 14"), "a line is edited in its middle", t.tail())
    t.run(b"kept = [1, 2]")
    t.type(b"kept.app\t")
    u.ok(t.shows(">>> kept.append"), "Tab completes an attribute of a variable", t.tail())
    t.forget()
    t.type(b"kept.in\t")
    u.ok(t.shows("index   insert\n>>> kept.in"), "Tab lists the names where there are several", t.tail())
    t.forget()
    hostile(u, t)
    u.ok(b"Help on built-in function len" in t.run(b"help(len)") and b"Ctrl-C" in t.run(b"help()"), "help() tells of the prompt, help(x) of x", t.tail())
    name = u.sessions()
    u.ok(any(f"cordon session put {s} FILE".encode() in t.run(b"?") for s in name), "help at the prompt names the session, for put and get", name, t.tail())
    u.ok(all(b"there is no shell here" in t.run(line) for line in (b"!ls", b"%timeit 1")), "a command of IPython is answered with what there is instead", t.tail())
    t.type(b"\x04")
    u.ok(t.wait() == 0, "Ctrl-D leaves the prompt with exit status 0", t.tail())
    modes = termios.tcgetattr(t.theirs)[3] & (termios.ECHO | termios.ICANON)
    u.ok(modes == termios.ECHO | termios.ICANON and t.seen.rindex(b"\x1b[?2004l") > t.seen.rindex(b"\x1b[?2004h"), "the prompt leaves the terminal as it was", modes)
    t.close()


def colour(u):
    for variable, mark in (("1", MARK), ("", GREEN)):
        t = Terminal(u, more={"NO_COLOR": variable}, mark=mark)
        u.ok((GREEN in t.seen) == (mark == GREEN) and mark in t.seen, f"the mark of the prompt is {'green' if mark == GREEN else 'plain where NO_COLOR is set'}", t.tail())
        t.type(b"\x04")
        t.wait()
        t.close()


def hostile(u, t):
    """Names and attributes that a guest chose, to act on the terminal or to be run by a key."""
    t.run(b"A = type('A', (), {})")
    t.run(b"a = A(); vars(a).update({'ev\\x1b]0;owned\\x07il': 1, 'ev\\x1b[31mil': 1, 'evening': 2, 'e\\nv': 3})")
    t.type(b"a.ev\t")
    u.ok(t.shows(">>> a.evening") and b"\x1b]0;" not in t.seen and b"\x1b[31m" not in t.seen, "no name that a guest made up acts on the terminal", t.seen)
    t.forget()
    t.type(b"\x1b[200~class B:\r    def __dir__(self): print('RA' 'N'); return []\r    def __getattr__(self, n): print('RA' 'N')\r"
           b"    p = property(lambda s: print('RA' 'N'))\r    plain = 1\x1b[201~")
    t.shows("plain = 1")
    t.type(b"\r")
    t.run(b"")
    t.run(b"b = B()")
    t.type(b"b.pl\t")
    completed = t.shows(">>> b.plain")
    t.forget()
    t.type(b"b.p.\tq")  # nothing to offer: the letter shows that the key was answered
    t.shows(">>> b.p.q")
    t.forget()
    t.run(b"1")
    u.ok(completed and b"RAN" not in t.seen, "Tab runs no code of the guest", t.tail())


def history(u):
    file = pathlib.Path(tapsys.clean_env({}, u.who)["CORDON_STATE"]) / "history"
    file.unlink(missing_ok=True)
    t = Terminal(u, "--no-history")
    t.run(b"secret = 1")
    t.type(b"exit()\r")
    t.wait()
    t.close()
    u.ok(not file.exists(), "--no-history keeps nothing of what was typed")
    t = Terminal(u)
    t.run(b"first = 'a\\\\b'")
    t.type(b"for i in range(2):\r")
    t.shows("for i in range(2):", 4)
    t.type(b"i\r")
    t.shows("for i in range(2):\n    i", 4)
    t.run(b"")
    t.type(b"quit\r")
    u.ok(t.wait() == 0, "quit without brackets leaves the prompt", t.tail())
    t.close()
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else None
    u.ok(mode == 0o600, "the history is a file that its owner alone reads", mode)
    t = Terminal(u)
    t.type(b"\x1b[A")
    t.shows(">>> quit")
    t.type(b"\x1b[A")
    u.ok(t.shows(">>> for i in range(2):\n    i"), "a prompt remembers the blocks of an earlier one", t.tail())
    t.forget()
    t.type(b"\x12first")
    u.ok(until(lambda: "first = 'a\\\\b'" in t.tail()), "Ctrl-R finds an earlier block", t.tail())
    t.forget()
    t.type(b"raise SystemExit(0)\r")
    u.ok(t.wait() == 0, "SystemExit leaves the prompt", t.tail())
    t.close()


def interrupt(u):
    t = Terminal(u, "--profile", "standard")
    t.run(b"import time; kept = 'kept'")
    for what, block in (("at once", b"time.sleep(600)"), ("while it sleeps", b"print('sl' 'eeps', flush=True); time.sleep(600)")):
        t.type(block + b"\r")
        t.expect(b"\x1b[?2004l" if what == "at once" else b"sleeps")
        t.type(b"\x03")
        said = t.expect(MARK) or b""
        u.ok(b"KeyboardInterrupt" in said and b"'kept'" in t.run(b"kept"), f"Ctrl-C ({what}) raises KeyboardInterrupt in the block, and variables stay", t.tail())
    t.type(b"name = input('wh' 'o? ')\r")
    t.expect(b"who? ")
    t.type(b"somebody\r")
    t.expect(MARK)
    u.ok(b"'somebody'" in t.run(b"name"), "input() asks at the terminal", t.tail())
    t.type(b"input('wh' 'o? ')\r")
    t.expect(b"who? ")
    t.type(b"\x04")
    u.ok(b"EOFError" in (t.expect(MARK) or b""), "Ctrl-D at a question is EOFError", t.tail())
    u.ok(b"''" in t.run(b"import sys; sys.stdin.read()"), "who reads standard input at a prompt without asking finds its end", t.tail())
    t.type(b"input('wh' 'o? ')\r")
    t.expect(b"who? ")
    t.type(b"\x03")
    u.ok(b"KeyboardInterrupt" in (t.expect(MARK) or b""), "Ctrl-C interrupts a question", t.tail())
    # the block itself lets the two seconds pass, from its first interrupt on: the second one comes later than that
    t.type(b"\x1b[200~try:\r    print('be' 'gun', flush=True)\r    while True: pass\rexcept KeyboardInterrupt:\r    end = time.monotonic() + 2.1\r    while time.monotonic() < end: pass\r"
           b"    print('la' 'ter', flush=True)\r    while True: pass\x1b[201~")
    t.shows("while True: pass")
    t.type(b"\r")
    t.type(b"\r")
    t.expect(b"begun")
    t.type(b"\x03")
    later = t.expect(b"later")
    t.type(b"\x03")
    said = t.expect(MARK) or b""
    u.ok(later and b"KeyboardInterrupt" in said and b"'kept'" in t.run(b"kept"), "a second Ctrl-C after more than two seconds is a first one, and the session lives on", t.tail())
    t.type(b"\x1b[200~while True:\r    try:\r        print('be' 'gun', flush=True)\r        while True: pass\r    except BaseException: print('de' 'af', flush=True)\x1b[201~")
    t.shows("'af', flush=True)")
    t.type(b"\r")
    t.type(b"\r")
    t.expect(b"begun")
    t.type(b"\x03")
    deaf = t.expect(b"deaf\r\n")
    for _ in range(10):  # on a busy machine the second one may come later than that, and is a first one: the block hears it
        t.type(b"\x03")
        until(lambda: not t.more() or t.p.poll() is not None or b"deaf\r\n" in t.seen[t.at:])
        if t.p.poll() is not None or t.expect(b"deaf\r\n", 1) is None:
            break
    code = t.wait()
    u.ok(deaf and code == 130 and b"is over: interrupted (Ctrl-C)" in t.seen, "a second Ctrl-C within two seconds ends a session that ignores the first", code, t.tail())
    t.close()
    u.ok(not u.sessions(), "a prompt that was left, and one that was ended, leave no session", u.sessions())


def pastes(u):
    """What a paste must not do: take the keys that come after it, or a signal that comes during it."""
    t = Terminal(u, "--profile", "standard")
    long = b"\x1b[200~" + b"x" * (600 << 10) + b"\x1b[201~"
    while long:
        long = long[os.write(t.main, long):]
    said = t.expect(b"the paste is longer than 512 KB, and forgotten")
    u.ok(said and t.shows(">>> ".rstrip()) and t.run(b"6 * 7").startswith(b"42"), "a paste beyond the limit is forgotten, and the next key is heard", t.tail()[-300:])
    t.close()
    t = Terminal(u, "--profile", "standard")
    t.type(b"\x1b[200~lost = 1")
    until(lambda: struct.unpack("i", fcntl.ioctl(t.theirs, termios.FIONREAD, bytes(4)))[0] == 0)
    t.forget()
    u.ok(t.run(b"'lost' in dir()").startswith(b"False"), "Ctrl-C during a paste forgets it", t.tail())
    t.close()


def mistakes(u):
    """Whoever mistypes at a prompt is not made to wait for it, as a loop of failures would be."""
    policy = programs.dir / f"breakers-{u.who}.yaml"
    policy.write_text(tapsys.POLICY.replace("breakers: {failures: 1000}", "breakers: {failures: 3}"))
    os.chmod(policy, 0o600)
    if u.who == "user" and os.geteuid() == 0:
        os.chown(policy, tapsys.ROOTLESS, tapsys.ROOTLESS)
    t = Terminal(u, "--policy", str(policy))
    raised = [t.run(b"mistyped").count(b"NameError") for _ in range(4)]
    u.ok(raised == [1] * 4 and t.run(b"6 * 7").startswith(b"42"), "four mistakes in a row at a prompt open no breaker", raised, t.tail())
    t.type(b"\x04")
    t.wait()
    t.close()


def bad_history(u):
    """A history file that cannot be used takes neither the prompt nor its editor away."""
    file = pathlib.Path(tapsys.clean_env({}, u.who)["CORDON_STATE"]) / "history"
    file.unlink(missing_ok=True)
    file.symlink_to("/dev/null")
    t = Terminal(u, "--profile", "standard")
    said = t.seen.replace(b"\r\n", b" ")
    u.ok(str(file).encode() in said and said.count(b"nothing is kept this time") == 1 and b"--no-history" in said,
         "a history file that cannot be used is named, with what to do", t.seen)
    t.run(b"kept = [1, 2]")
    t.type(b"kept.app\t")
    u.ok(t.shows(">>> kept.append"), "a prompt without its history file has its line editor", t.tail())
    t.forget()
    t.close()
    file.unlink()


def busy(u):
    """A session that somebody else calls, or that is refused for its memory: the prompt outlives the refusal."""
    policy = programs.dir / f"little-{u.who}.yaml"
    policy.write_text(tapsys.POLICY + "sessions: {memory_percent: 1}\n")
    os.chmod(policy, 0o600)
    if u.who == "user" and os.geteuid() == 0:
        os.chown(policy, tapsys.ROOTLESS, tapsys.ROOTLESS)
    percent = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 100
    options = ("--profile", "standard", "--memory", f"{(percent >> 20) + 256}m")
    s = u.new(*options)
    t = Terminal(u, "--session", s, "--policy", str(policy))
    t.run(b"kept = 'kept'")

    def called():
        p = subprocess.Popen(programs.command(["session", "run", s, "-"], u.who), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=tapsys.clean_env({}, u.who), cwd="/")
        p.stdin.write(b"print('begun', flush=True)\nwhile True: pass\n")
        p.stdin.close()
        p.stdout.readline()
        return p

    def free(p):
        u("session", "interrupt", s)
        p.wait(60 * tapsys.SLOW)
        p.stdout.close()

    p = called()
    said = t.run(b"kept")
    free(p)
    u.ok(said.count(b"is in another call") == 1 and said.startswith(b"cordon repl: "), "a prompt whose session is in another call says so once, on a line of its own", said, t.tail())
    u.ok(t.run(b"kept").startswith(b"'kept'"), "a prompt whose session was in another call goes on", t.tail())
    large = u.new(*options)
    u.cell(large, f"held = bytearray({percent * 3 // 4})\nfor i in range(0, len(held), 4096): held[i] = 1\n")
    said = t.run(b"kept")
    u("session", "close", large)
    u.ok(f"close {large}".encode() in said.replace(b"\r\n", b"") and t.run(b"kept").startswith(b"'kept'"), "a prompt that is refused for the memory of idle sessions goes on", said, t.tail())
    p = called()
    t.run(b"kept")
    t.type(b"\x04")
    code = t.wait()
    free(p)
    t.close()
    u.ok(code == 75 and s in u.sessions(), "a prompt that was last told that its session is in another call exits with 75", code)
    u("session", "close", s)


DRAW = r"""import struct, zlib
def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))

def draw(path, width, height):
    rows = (b'\0' + b'\xff\x80\x00' * width) * height
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) +
                chunk(b'tEXt', b'who\0guest-wrote-this') + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
"""


def drawing(u, *options, **variables):
    """A prompt whose session can draw."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        pathlib.Path(folder, "drawing.py").write_text(DRAW)
        wide = (pathlib.Path(__file__).resolve().parents[1] / "fuzz").glob("image_*/wide.*")
        t = Terminal(u, "--profile", "standard", "--in", f"{folder}/drawing.py", *(w for p in sorted(wide) for w in ("--in", str(p))), *options, more=variables)
    t.run(b"import os; from drawing import draw")
    return t


def png_of(data):
    """(width, height, the colours that are in it, what it says beside its pixels) of a PNG file with eight bits a channel."""
    at, pixels, head, said = 8, b"", None, b""
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        head, pixels, said = (body if name == b"IHDR" else head), pixels + (body if name == b"IDAT" else b""), said + (body if name in (b"tEXt", b"iTXt") else b"")
        at += size + 12
    width, height, depth, colour = struct.unpack(">IIBB", head[:10])
    raw, rows, before = zlib.decompress(pixels), [], bytes(3 * width)
    assert (depth, colour) == (8, 2)
    for y in range(height):
        line = raw[y * (3 * width + 1):(y + 1) * (3 * width + 1)]
        now = bytearray(line[1:])
        for x in range(len(now)):  # the five filters of PNG
            a, b, c = (now[x - 3] if x > 2 else 0), before[x], (before[x - 3] if x > 2 else 0)
            near = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            now[x] = (now[x] + (0, a, b, (a + b) // 2, near)[line[0]]) & 255
        rows.append(bytes(now))
        before = bytes(now)
    return width, height, {bytes(r[i:i + 3]) for r in rows for i in range(0, len(r), 3)}, said


def pictures(u):
    """A picture that a block leaves, on terminals that can show it and on one that cannot."""
    orange = {b"\xff\x80\x00"}
    t = drawing(u, KITTY_WINDOW_ID="1")
    got = t.run(b"draw('a.png', 1600, 400)")
    text = b"".join(re.findall(rb"\x1b_G(?:a=T,f=100,q=2,)?m=[01];([A-Za-z0-9+/=]*)\x1b\\", got))
    shown = png_of(base64.b64decode(text)) if text else None
    u.ok(shown == (800, 200, orange, b""), "a picture is shown on kitty, shrunk, written anew and without the guest's texts", shown, got[:300])
    u.ok(b"image: /workspace/a.png (image/png, " in got and b"session get" in got, "a picture's file is named, and how to copy it", got[-300:])
    for kind in ("jpeg", "gif", "webp"):
        wide = next((pathlib.Path(__file__).resolve().parents[1] / "fuzz" / f"image_{kind}").glob("wide.*"))
        got = t.run(f"import shutil; shutil.copy('{wide.name}', 'wide')".encode())
        text = b"".join(re.findall(rb"\x1b_G(?:a=T,f=100,q=2,)?m=[01];([A-Za-z0-9+/=]*)\x1b\\", got))
        shown = png_of(base64.b64decode(text)) if text else (0, 0, set())
        near = shown[2] and all(abs(r - 255) + abs(g - 128) + b < 12 for r, g, b in shown[2])
        u.ok(shown[:2] == (800, 200) and near, f"a picture of the kind {kind} is shown at the prompt, as a PNG of our own", shown[:2], got[:300])
        u.ok(f"image: /workspace/wide (image/{kind}, ".encode() in got, f"a picture of the kind {kind} is named, and how to copy it", got[-300:])
    u.ok(b"image:" not in t.run(b"1 + 1"), "a block that leaves no picture shows none", t.tail())
    got = t.run(b"draw('b.png', 64, 64); os.truncate('b.png', 90)")
    u.ok(b"\x1b_G" not in got and b"image: /workspace/b.png" in got, "a broken picture is named and not shown", got)
    got = t.run(b"draw('\\x1b]0;owned\\x07.png', 8, 8)")
    u.ok(b"\x1b]0;" not in got and b"image: " in got, "a picture's name does not act on the terminal", got)
    got = t.run(b"draw('c.png', 8, 8); os.remove('a.png'); os.symlink('/etc/hostname', 'a.png')")
    u.ok(got.count(b"image: ") == 1 and b"c.png" in got, "a link that a block leaves is no picture", got)
    t.close()
    t = drawing(u, TERM_PROGRAM="iTerm.app")
    got = t.run(b"draw('a.png', 40, 20)")
    text = re.findall(rb"\x1b\]1337;File=inline=1;size=(\d+):([A-Za-z0-9+/=]*)\x07", got)
    shown = png_of(base64.b64decode(text[0][1])) if text else None
    u.ok(shown == (40, 20, orange, b"") and int(text[0][0]) == len(base64.b64decode(text[0][1])), "a picture is shown on iTerm", shown, got[:300])
    t.close()
    t = drawing(u, "--images", "sixel")
    got = t.run(b"draw('a.png', 40, 20)")
    text = re.findall(rb"\x1bP([^\x1b]*)\x1b\\", got)
    u.ok(len(text) == 1 and b'"1;1;40;20' in text[0] and re.search(rb"#\d+;2;(9\d|100);50;0", text[0]), "a picture is shown by sixels where --images says so", got[:300])
    t.close()
    t = drawing(u, TMUX="x", KITTY_WINDOW_ID="1")
    got = t.run(b"draw('a.png', 40, 20)")
    u.ok(b"\x1b_G" not in got and b"image: /workspace/a.png" in got, "a terminal that shows no pictures is given their names", got)
    t.close()
    r = u("repl", "--images", "polaroid", text="")
    u.ok(r.code == 125 and "--images: 'polaroid' is none of: none, kitty, iterm, sixel, auto" in r.err, "a way to show pictures that there is not is refused", r)


def others(u):
    """The same without a terminal."""
    s = u.new("--profile", "standard")
    u.cell(s, "kept = 'kept'\n")
    run = programs.command(["session", "run", s, "-"], u.who)
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": tapsys.clean_env({}, u.who), "cwd": "/"}

    def started(source):
        p = subprocess.Popen(run, stdin=subprocess.PIPE, **quiet)
        p.stdin.write(source)
        p.stdin.close()
        p.stdin = None
        fcntl.fcntl(p.stdout, fcntl.F_SETFL, os.O_NONBLOCK)
        return p if until(lambda: p.stdout.read()) else p

    loop = b"print('begun', flush=True)\nwhile True: pass\n"
    p = started(loop)
    r = u("session", "interrupt", s)
    err = p.communicate(timeout=60 * tapsys.SLOW)[1]
    u.ok(r.code == 0 and p.returncode == 1 and b"KeyboardInterrupt" in err, "session interrupt raises KeyboardInterrupt in the call", r, err)
    u.ok(u.cell(s, "kept\n")["value"] == "'kept'", "a session that was interrupted has its variables")
    r = u("session", "interrupt", s)
    u.ok(r.code == 125 and "nothing runs" in r.err, "session interrupt where nothing runs is refused", r)
    u.ok(u.cell(s, "1 + 1\n")["value"] == "2", "an interrupt does not reach the call after the one that it was for")
    p = started(loop)
    p.send_signal(signal.SIGINT)
    err = p.communicate(timeout=60 * tapsys.SLOW)[1]
    u.ok(b"KeyboardInterrupt" in err and u.cell(s, "kept\n")["value"] == "'kept'", "SIGINT to session run interrupts the call and keeps the session", err)
    u.cell(s, "exit()\n")
    r = u.cell(s, "input()\n", "--stdin", "/etc/hostname")
    u.ok(r["status"] == "ok" and r["value"], "after exit() a session still reads its input", r)
    r = u.cell(s, "input()\n")
    u.ok(r["error"]["type"] == "EOFError", "input() where nobody is there is EOFError", r)
    p = started(loop)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60 * tapsys.SLOW)
    u.ok(p.returncode == 143 and s not in u.sessions(), "SIGTERM during a call ends the session, exit status 143", p.returncode, u.sessions())
    r = u("repl", "--session", "nope", text="")
    u.ok(r.code == 125 and "no session 'nope'" in r.err, "repl --session with a name that there is not fails before anything is read", r)
    with subprocess.Popen(programs.command(["repl"], u.who), stdin=os.open("/tmp", os.O_RDONLY), **quiet) as p:
        try:
            err = p.communicate(timeout=30 * tapsys.SLOW)[1]
        except subprocess.TimeoutExpired:
            p.kill()
            err = b"it reads for ever"
    u.ok(p.returncode == 125 and b"standard input" in err, "a repl whose input cannot be read ends, and says so", p.returncode, err)
    r = u("repl", text="x = 1\nexit()\nprint('not here')\n")
    u.ok(r.code == 0 and "not here" not in r.out, "exit() ends a repl that reads a pipe", r)


for who in tapsys.users():
    user = User(tap, programs, who)
    atexit.register(user, "pool", "stop", "--force")
    if "none" in sys.argv[2:]:
        tap.skip(f"{who}: the prompt at a terminal", "built without libedit")
    else:
        edit(user)
        colour(user)
        history(user)
        interrupt(user)
        pictures(user)
        busy(user)
        pastes(user)
        bad_history(user)
        mistakes(user)
    others(user)
tap.done()
