#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`cordon monitor` from outside: text and events, the verdict while the writer still writes, what it gives up, its messages. With the
collected generations (../shared/corpora) no normal one is cut, and those that end in a loop are."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

import tapsys
from tapsys import Tap

tap = Tap()
programs = tapsys.Programs(sys.argv[1])
LOOP = "Let me think about it. " + "I will look at it once more. " * 40
CALM = ("The program reads a file, counts its words and prints the ten that come most often. It keeps a table from word to number, "
        "sorts it at the end, and takes care that a word at the end of a line is counted like any other.\n")


def monitor(args, text):
    cmd = programs.command(["monitor", *args], "root" if os.geteuid() == 0 else "user")
    run = subprocess.run(cmd, input=text if isinstance(text, bytes) else text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=tapsys.clean_env(), cwd="/", timeout=120)
    lines = [json.loads(x) for x in run.stdout.decode().splitlines()]
    return run.returncode, lines, run.stderr.decode()


code, lines, err = monitor([], LOOP)
last = lines[-1]
tap.ok(code == 1 and last["abort"] and last["reason"] == "high_repetition" and last["detector"] == "loop", "a sentence again and again is cut", last)
tap.ok(20 <= last["onset_byte"] <= 24 and last["tokens"] < 70,
       "the verdict says where the loop begins and comes after a few copies", last)
code, lines, err = monitor([], CALM)
tap.ok(code == 0 and not lines[-1]["abort"] and lines[-1]["onset"] is None and not err, "a calm text comes to its end", lines, err)
code, lines, err = monitor(["--every", "10"], CALM)
tap.ok(len(lines) >= 2 and all("metrics" in x and "abort" not in x for x in lines[:-1]), "--every prints metrics while it reads", len(lines))
code, lines, err = monitor(["--expected", "10"], CALM)
tap.ok(code == 1 and lines[-1]["reason"] == "runaway_length" and lines[-1]["tokens"] == 21, "more than twice the expected length is cut", lines[-1])
code, lines, err = monitor(["--tier", "architect", "--task", "code", "--set", "ngram_size=2"], CALM)
s = lines[-1]["settings"]
tap.ok((s["entropy_threshold"], s["repetition_threshold"], s["ngram_size"]) ==
       ({"value": 4.0, "from": "task"}, {"value": 0.4, "from": "tier"}, {"value": 2.0, "from": "option"}), "settings say where they come from", s)

# events: each shape carries the same loop
shapes = {
    "our own": lambda t: json.dumps({"text": t}),
    "a string": json.dumps,
    "OpenAI": lambda t: "data: " + json.dumps({"choices": [{"delta": {"content": t}}]}),
    "OpenAI's reasoning": lambda t: "data: " + json.dumps({"choices": [{"delta": {"reasoning_content": t}}]}),
    "completions": lambda t: "data: " + json.dumps({"choices": [{"text": t}]}),
    "Anthropic": lambda t: "event: content_block_delta\ndata: " + json.dumps({"type": "content_block_delta", "delta": {"type": "text_delta", "text": t}}),
    "llama.cpp": lambda t: "data: " + json.dumps({"content": t}),
}
for name, shape in shapes.items():
    for size in (1, 7, 1000):
        pieces = [LOOP[i:i + size] for i in range(0, len(LOOP), size)]
        code, lines, err = monitor(["--format", "events"], "\n".join(map(shape, pieces)) + "\n\ndata: [DONE]\n")
        tap.ok(code == 1 and lines[-1]["onset_byte"] == last["onset_byte"] and lines[-1]["tokens"] == last["tokens"] and not err,
               f"events of {name} in pieces of {size}: the same verdict", lines[-1:], err)
code, lines, err = monitor(["--format", "events"], "".join(json.dumps({"token": i % 5, "entropy": 1.5}) + "\n" for i in range(100)))
tap.ok(code == 1 and lines[-1]["period"] == 5 and lines[-1]["onset"] == 0 and lines[-1]["metrics"]["entropy"] == 1.5, "tokens that are given by number are taken", lines)
code, lines, err = monitor(["--format", "events"], json.dumps({"text": "x", "logits": [0.0] * 1000}) + "\n")
tap.ok(abs(lines[-1]["metrics"]["entropy"] - 6.908) < 0.001, "the entropy of a thousand equal logits is right", lines)
code, lines, err = monitor(["--format", "events"], "what is this\n{}\n" + json.dumps({"text": "fine"}) + "\n")
tap.ok(code == 0 and lines[-1]["unknown_lines"] == 2 and "2 lines are no event, line 1 first" in err, "lines that are no event are counted and named", lines, err)
code, lines, err = monitor(["--format", "events"], b'\xff\xfe{"text"\n' + b"[" * 100000 + b"\n" + b"{" * 50)
tap.ok(code == 0 and lines[-1]["unknown_lines"] == 3, "hostile lines are lines that are no event", lines, err)
code, lines, err = monitor([], os.urandom(200000))
tap.ok(code == 0 and not lines[-1]["abort"], "random bytes are no loop", lines)

# it ends while the writer still writes: no end of the stream is waited for
cmd = programs.command(["monitor"], "root" if os.geteuid() == 0 else "user")
with subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=tapsys.clean_env(), cwd="/") as p:
    p.stdin.write(LOOP.encode())
    p.stdin.flush()
    code = p.wait(timeout=60)  # standard input is still open
    tap.ok(code == 1 and json.loads(p.stdout.read())["abort"], "the verdict comes before the end of the stream", code)
    try:
        p.stdin.close()
    except BrokenPipeError:
        pass

# what it is while it reads
with subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=tapsys.clean_env(), cwd="/") as p:
    status = ""
    while p.poll() is None and not status.count("Seccomp:\t2"):
        status = pathlib.Path(f"/proc/{p.pid}/status").read_text()
    tap.ok("NoNewPrivs:\t1" in status and "Seccomp:\t2" in status, "cordon monitor is confined before it reads", status[-600:])
    p.stdin.close()

code, lines, err = monitor([], "def check():\n" + "assert \n" * 100)
tap.ok(code == 1 and lines[-1]["detector"] == "loop", "one word a line, again and again, is a loop", code, lines)
code, lines, err = monitor([], "table = (\n" + "    '\\ufffe'\n" * 40 + ")\n")
tap.ok(code == 0, "forty lines of a table with one word each are none", code, lines)

with tempfile.TemporaryDirectory() as folder:
    good, bad = pathlib.Path(folder, "good.txt"), pathlib.Path(folder, "bad.txt")
    good.write_text("Once there was a fox that lived beside the river and had seven clever friends.\n")
    bad.write_text("It begins well. " + "I will look at it again. " * 60)
    code, lines, err = monitor(["score", str(good), str(bad)], "")
    tap.eq([(x["file"], x["abort"]) for x in lines], [(str(good), False), (str(bad), True)], "score judges each file, a line each", code, err)
    peak = lines[1]["peaks"]["repetition"]
    tap.ok(code == 1 and peak["value"] >= lines[1]["metrics"]["repetition"] > 0.5 and 0 < peak["token"] <= lines[1]["tokens"], "score says how high a signal rose, and where", lines[1])
    alone = monitor([], bad.read_text())[1][-1]
    tap.eq({k: lines[1][k] for k in ("reason", "detector", "onset", "onset_byte", "period", "tokens")}, {k: alone[k] for k in ("reason", "detector", "onset", "onset_byte", "period", "tokens")},
           "a recorded generation has the verdict that it has while it is written")
    code, lines, err = monitor(["score", str(good)], "")
    tap.ok(code == 0 and len(lines) == 1, "score ends with 0 where no file is bad", code, err)
    code, lines, err = monitor(["score", str(good), folder + "/missing"], "")
    tap.ok(code == 2 and not lines and "missing" in err, "score judges nothing if a file cannot be opened", code, lines, err)


# --- pictures ---

def pixels(data):
    """Width, height, and the colour at (x, y) of a PNG of 8 bits a colour, by its definition."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    at, packed = 8, b""
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if name == b"IDAT" else b""
        at += 12 + size
    raw, bpp, rows = zlib.decompress(packed), {2: 3, 6: 4}[kind], []
    before = bytearray(width * bpp)
    for y in range(height):
        way, row = raw[y * (width * bpp + 1)], bytearray(raw[y * (width * bpp + 1) + 1:(y + 1) * (width * bpp + 1)])
        for i in range(len(row)):
            a, b, c = (row[i - bpp] if i >= bpp else 0), before[i], (before[i - bpp] if i >= bpp else 0)
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[i] = (row[i] + (0, a, b, (a + b) // 2, paeth)[way]) & 255
        rows.append(row)
        before = row
    assert depth == 8
    return width, height, lambda x, y: tuple(rows[y][x * bpp:x * bpp + 3])


RED, GREEN = (217, 0, 0), (0, 128, 0)  # of the lines at the onset and at the verdict
LEFT, RIGHT, TOP, BOTTOM = 120, 940, 50, 560  # src/image/plot.h
if not (programs.bin / "cordon-plot").exists():
    tap.skip("--plot draws the signals", "built without cairo")
else:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        picture = folder + "/p.png"
        code, lines, err = monitor(["--plot", picture], LOOP)
        tap.ok(code == 1 and lines[-1]["abort"] and not err, "--plot does not change the verdict", code, err)
        width, height, at = pixels(pathlib.Path(picture).read_bytes())
        tap.eq((width, height), (960, 600), "a picture has its size")
        onset = int(LEFT + (RIGHT - LEFT) * lines[-1]["onset"] / lines[-1]["tokens"])
        heights = range(TOP + 20, BOTTOM, 37)
        tap.eq({at(x, y) for x in (onset - 1, onset) for y in heights}, {RED}, "the line of the onset stands at the token where the loop begins")
        tap.eq({at(RIGHT - 1, y) for y in heights}, {GREEN}, "the line of the verdict stands at its token")
        tap.ok(RED not in {at(x, TOP + 57) for x in range(width) if not onset - 1 <= x <= onset}, "there is one onset")
        curve = [(x, y) for x in range(LEFT, RIGHT) for y in range(TOP + 2 * 85 + 14, TOP + 3 * 85) if at(x, y)[2] > at(x, y)[0] + 60]
        tap.ok(len(curve) > 100 and min(y for x, y in curve if x > RIGHT - 40) < min(y for x, y in curve if x < LEFT + 40) - 30, "the curve of the repetition rises towards the verdict", len(curve))
        monitor(["--plot", picture], CALM)
        _, _, at = pixels(pathlib.Path(picture).read_bytes())
        tap.ok(not {RED, GREEN} & {at(x, TOP + 57) for x in range(width)}, "a calm generation has neither onset nor verdict in its picture")
        picture = folder + "/p.svg"
        code, lines, err = monitor(["--plot", picture], LOOP)
        root = xml.etree.ElementTree.parse(picture).getroot()
        tap.ok(root.tag == "{http://www.w3.org/2000/svg}svg" and root.get("width", "").startswith("960") and len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10,
               "an SVG is XML, with curves in it", root.tag, root.attrib)
        drawn = pathlib.Path(picture).read_text()
        tap.ok("85%,0%,0%" in drawn and "0%,50%,0%" in drawn, "an SVG has the lines of onset and verdict", drawn[-300:])
        code, lines, err = monitor(["--plot", "-"], LOOP)
        rows = err.splitlines()
        tap.ok(code == 1 and len(rows) == 8 and "from token" in rows[0] and "\u2588" in rows[3] and rows[7].count("O") == 1 + 1 and rows[7].index("O") < rows[7].index("V"),
               "--plot - draws on the terminal, with onset and verdict", err)
        long = "".join(f" word{i}" for i in range(60000))
        code, lines, err = monitor(["--plot", folder + "/long.png"], long)
        tap.ok(code == 0 and pixels(pathlib.Path(folder, "long.png").read_bytes())[0] == 960, "a long generation has a picture of the same size", code, err)
        for file, word in ((folder + "/p.gif", ".svg"), (folder + "/none/p.png", "none/p.png")):
            code, lines, err = monitor(["--plot", file], CALM)
            tap.ok(code == 2 and word in err and not lines, f"--plot {word}: a picture that cannot be made is refused before anything is read", code, err)
        code, lines, err = monitor(["score", "--plot", folder + "/p.png", folder + "/p.svg", folder + "/long.png"], "")
        tap.ok(code == 2 and "one FILE" in err, "--plot with two files is refused", code, err)

# on a terminal it says how far it has read
leader, follower = os.openpty()
with subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=follower, env=tapsys.clean_env(), cwd="/") as p:
    os.close(follower)
    p.stdin.write(b"It reads. ")
    p.stdin.flush()
    shown = os.read(leader, 1000)  # the first is told at once
    p.stdin.close()
    p.wait(timeout=60)
    tap.ok(b"read 0 MB" in shown, "on a terminal it is told how far it has read", shown)
os.close(leader)

for args, word in ((["score"], "a FILE is missing"), (["--tier", "boss"], "architect"), (["--task", "art"], "reasoning"), (["--mode", "x"], "literal"), (["--format", "x"], "events"),
                   (["--set", "nothing=1"], "nothing=1"), (["--set", "ngram_size=99"], "8"), (["a", "b"], "'b'"), (["/nothing/here"], "/nothing/here")):
    code, lines, err = monitor(args, "")
    tap.ok(code == 2 and word in err and err.count("\n") == 1 and not lines, f"{' '.join(args)}: one line that says what is wrong", code, err)

# What is not cut may be a loop all the same, and the verdict tells it.
zeros = "x = [" + "0, " * 100 + "0"
for text, want in ((zeros, {"onset": 6, "onset_byte": 6, "period": 2, "copies": 100}), ("x = [" + "0, " * 15 + "0", None), (zeros + ", 1", None),
                   ("a, b, c, d, e, f = " + "1 2 3 4 5 6 7 8\n" * 3, None)):
    lines = monitor([], text)[1]
    tap.eq((lines[-1]["abort"], lines[-1]["repeats"]), (False, want), f"what the end of {text[:30]!r}, of {len(text)} bytes, repeats is told: {want}")
looped = monitor([], "I will look at it again. " * 20)[1][-1]
tap.eq({k: looped["repeats"][k] for k in ("onset", "onset_byte", "period")}, {k: looped[k] for k in ("onset", "onset_byte", "period")}, "of what is cut it tells the same place", looped)

# Generations that the corpus's heuristic labels `loop-at-end` and that are not cut, each with its reason. A monitor that cut them would cut what is
# meant, too: it must leave alone tables of one number, images in letters, test cases that are listed.
NUMBERS = "one number, or a row of numbers, again and again: so do tables, matrices and images in letters, for longer than this"
GRID = "two marks of a grid again and again: so do boards and tables"
FEW = "fewer than ten copies of lines of code: so do cards of a page, unrolled steps and cases of a test"
NOT_CUT = {
    **{f"CodeT-tests/code-davinci-002/{n}": NUMBERS for n in ("14/0", "29/0", "29/6", "35/4", "38/5", "40/0", "45/0", "48/3", "75/7", "144/5")},
    "CodeT/134/3": NUMBERS, "CodeT/150/4": NUMBERS, "CodeT-tests/CodeGen-16B/73/1": GRID, "CodeT-tests/CodeGen-16B/73/4": GRID,
    **{f"CodeT-tests/code-davinci-002/{n}": FEW for n in ("56/2", "60/6", "61/4", "111/4", "135/1")},
    "CodeT-tests/CodeGen-16B/47/5": "no loop: cases of a test that differ in their spaces",
}
corpus = pathlib.Path(__file__).resolve().parents[3] / "shared/corpora/degenerate_text.jsonl"
if corpus.exists():
    rows = list(map(json.loads, corpus.read_text().splitlines()))
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for row in rows:
            if row["label"] in ("normal", "loop-at-end"):
                files[f"{folder}/{len(files)}"] = row
                pathlib.Path(folder, str(len(files) - 1)).write_text(row["text"])
        os.chmod(folder, 0o755)
        lines = []
        for first in range(0, len(files), 200):  # of 256 arguments
            lines += monitor(["score", *list(files)[first:first + 200]], "")[1]
    repeats = {files[x["file"]]["id"] for x in lines if x["repeats"]}
    cut = {(files[x["file"]]["label"], files[x["file"]]["id"]) for x in lines if x["abort"]}
    loops = {row["id"] for row in files.values() if row["label"] == "loop-at-end"}
    tap.eq(len(lines), len(files), "each generation of the corpus is judged")
    tap.eq([i for label, i in cut if label == "normal"], [], f"no abort in {len(files) - len(loops)} normal generations")
    found = {i for label, i in cut if label == "loop-at-end"}
    tap.eq(sorted(loops - found - set(NOT_CUT)), [], f"{len(found)} of {len(loops)} generations that are labelled loops are cut: all but those whose reason is told")
    tap.eq(sorted(found & set(NOT_CUT)), [], "what is said not to be cut is not cut")
    tap.eq(sorted(loops - found - repeats), ["CodeT-tests/CodeGen-16B/47/5"], "what is not cut is told as what the end repeats, but for the one that is no loop")
tap.done()
