# SPDX-License-Identifier: Apache-2.0
"""Every program of docs/agents.md, run as it stands there, against the real daemon and a scripted model on loopback.

Usage: agents.py BUILD SOURCE. A block of `text` behind a program is what it prints."""
import atexit
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

BUILD, SOURCE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/system"))
import mcptest  # noqa: E402
import tapsys  # noqa: E402

tap = tapsys.Tap()
programs = tapsys.Programs(BUILD)
CODE = ["total = sum(n * n for n in range(1, 101))", "import ctypes", "print(total)"]  # what the model wants to run, one a turn
asked = []  # what the model was told about each
SHAPES = {"An agent with the tool calls of OpenAI's API": "python", "An agent with the tool calls of Anthropic's API": "python",
          "An executor shaped as smolagents wants it": "python", "A tool shaped as LangChain wants it": "python",
          "A Ruby program that defines a generated method": "ruby", "Python": "python", "Node": "js", "Ruby": "ruby", "C": "c"}  # the page has a program of each


METHOD = ["Sure!\n\n```ruby\ndef initials(name)\n  `date`\n  name.split.map { |w| w[0] }.join\nend\n```\n",
          "```ruby\ndef initials(name)\n  name.split.map { |w| w[0] }.join\nend\n```\n"]  # what it writes first, and once it was told why not


def openai(body):
    """A turn: the next program, or the answer."""
    if "tools" not in body:
        told = body["messages"][-1]["content"]
        return {"choices": [{"message": {"role": "assistant", "content": METHOD["rb.call" in told or "Blocked name" in told]}, "finish_reason": "stop"}]}
    told = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    if len(told) < len(CODE):
        call = {"id": f"call-{len(told)}", "type": "function", "function": {"name": "execute_code", "arguments": json.dumps({"code": CODE[len(told)]})}}
        return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    asked.append(told)
    return {"choices": [{"message": {"role": "assistant", "content": answer(told)}, "finish_reason": "stop"}]}


def anthropic(body):
    told = [b["content"] for m in body["messages"] if m["role"] == "user" and isinstance(m["content"], list) for b in m["content"]]
    if len(told) < len(CODE):
        block = {"type": "tool_use", "id": f"use-{len(told)}", "name": "execute_code", "input": {"code": CODE[len(told)]}}
        return {"content": [{"type": "text", "text": "I compute it."}, block], "stop_reason": "tool_use"}
    asked.append(told)
    return {"content": [{"type": "text", "text": answer(told)}], "stop_reason": "end_turn"}


def answer(told):
    """From what the last program printed, as a model would read it."""
    number = re.search(r"stdout:\n(\d+)", told[-1])
    return f"The sum is {number.group(1) if number else 'unknown'}."


class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.headers.get("Authorization") == "Bearer key" or self.headers.get("x-api-key") == "key"
        shape = {"/chat/completions": openai, "/v1/messages": anthropic}.get(self.path) if known else None
        data = json.dumps(shape(body) if shape else {}).encode()
        self.send_response(200 if shape else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def blocks():
    """(language, heading, program, what it prints) of every fence of the page."""
    found, heading = [], ""
    page = (SOURCE / "docs/agents.md").read_text()
    for part in re.finditer(r"^## ([^\n]+)$|^```(\w*)\n(.*?)^```$", page, re.M | re.S):
        if part.group(1):
            heading = part.group(1)
        elif part.group(2) == "text" and found and found[-1][3] is None:
            found[-1][3] = part.group(3)
        else:
            found.append([part.group(2), heading, part.group(3), None])
    return found, len(re.findall(r"^```", page, re.M)) // 2


def run(language, text, folder, url):
    env = tapsys.clean_env({"PATH": f"{programs.bin}:/usr/bin:/bin", "PYTHONPATH": str(BUILD / "bindings/python"), "PYTHONDONTWRITEBYTECODE": "1",
                            "OPENAI_BASE_URL": url, "ANTHROPIC_BASE_URL": url, "OPENAI_API_KEY": "key", "ANTHROPIC_API_KEY": "key"})
    words = {"python": ["/usr/bin/python3", "-"], "c": [f"{folder}/program"], "js": [tapsys.NODE, "--input-type=module", "-"],
             "ruby": ["/usr/bin/ruby", f"-I{SOURCE / 'bindings/ruby'}", "-"]}.get(language)
    if not words:
        return f"nobody knows how to run {language!r}", ""
    if language == "js":  # as npm installs it
        pathlib.Path(folder, "node_modules").mkdir()
        pathlib.Path(folder, "node_modules/cordon").symlink_to(BUILD / "bindings/node")
    if language == "c":
        r = subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}/include", "-xc", "-", "-o", words[0], f"-L{BUILD}/src/client", "-lcordon",
                            f"-Wl,-rpath,{BUILD}/src/client"], input=text, cwd=folder, capture_output=True, text=True, timeout=mcptest.PATIENCE)
        if r.returncode:
            return "it does not compile", r.stderr
    r = subprocess.run(words, input=text, env=env, cwd=folder, capture_output=True, text=True, timeout=mcptest.PATIENCE)
    return r.stdout, r.stderr


def profiles():
    """The table of README.md: the head of a column is a program, each cell says whether a profile runs it."""
    text = (SOURCE / "README.md").read_text()
    table = re.search(r"^\| profile \| (`import csv`.*?) \| what it costs \|\n.*?\n(.*?)\n\n", text, re.M | re.S)
    probes = re.findall(r"`(.*?)`", table.group(1))
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in table.group(2).splitlines()]
    tap.eq([r[0].strip("`") for r in rows], ["strict", "locked", "standard", "open"], "README.md: what an agent gets is told for each profile")
    tap.eq([r[0] for r in rows if len(r[-1]) < 10], [], "README.md: what it costs is told for each profile")
    folder = tempfile.mkdtemp(prefix="cordon-profiles-", dir="/tmp")  # a state of its own: runs without a pool
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    alone = {"CORDON_STATE": folder, "XDG_RUNTIME_DIR": folder}
    for row in rows:
        name = row[0].strip("`")
        for probe, cell in zip(probes, row[1:]):
            r = tapsys.cordon(programs, ["run", "--json", "--profile", name, "-c", probe], env=alone)
            tap.ok((r["status"] == "ok") == (cell == "yes"), f"README.md: {name}: {probe}: {cell}", r.story())
        for what, code in (("network", "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)"), ("second process", "import subprocess\nsubprocess.run(['/bin/true'])")):
            r = tapsys.cordon(programs, ["run", "--json", "--profile", name, "-c", code], env=alone)
            tap.ok(r["status"] == "blocked" or r["error"]["type"] == "PermissionError", f"README.md: {name} has no {what}", r.story())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
found, fences = blocks()
texts = sum(1 for b in found if b[3] is not None)
tap.eq(len(found) + texts, fences, "every block of the page is a program or what it prints")
tap.ok(texts == len(found) and len(found) > 5, "every program of the page is followed by what it prints", [b[1] for b in found if b[3] is None])
tap.eq([h for h, language in SHAPES.items() if (language, h) not in {(b[0], b[1]) for b in found}], [], "the page has an agent of each kind of API, an executor of each shape, and every library")
for language, heading, program, prints in found:
    if "--lang" in program and not (programs.bin / "cordon-ruby").exists():
        tap.skip(f"{language}, {heading}", "this build has no cordon-ruby")
        continue
    with tempfile.TemporaryDirectory(prefix="cordon-agents-", dir="/tmp") as folder:
        out, err = run(language, program, folder, f"http://127.0.0.1:{server.server_port}")
        tap.ok(out == prints, f"{language}, {heading or 'the first program'}: {program.strip().splitlines()[-1].strip()[:60]} prints what the page says", out, err[-2000:])
tap.ok(len(asked) == 2 and all("ctypes" in told[1] and "status: blocked" in told[1] for told in asked),
       "both models were told what was refused, and went on", asked)
server.shutdown()
profiles()
tap.done()
