# SPDX-License-Identifier: Apache-2.0
"""The official libraries of OpenAI and Anthropic at `cordon proxy`, before a scripted model: streaming, tool calls, errors, cancellation.
`make official-models` installs them and runs this; without them it fails. Usage: official_models.py BUILD SOURCE"""
import json
import pathlib
import platform
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
import proxytest
import tapsys
from proxytest import DONE, KEY, LOOP, chat, event, words

tap = tapsys.Tap()
programs = tapsys.Programs(sys.argv[1])
source = pathlib.Path(sys.argv[2])
home = source / "build-official-models"
node = home / f"node_modules/node-linux-{'arm64' if platform.machine() == 'aarch64' else 'x64'}/bin/node"
proxytest.own_network()
closed = {"endless": threading.Event(), "message_endless": threading.Event()}
START = {"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": [], "stop_reason": None, "stop_sequence": None,
         "usage": {"input_tokens": 1, "output_tokens": 1}}


def stream(*parts):
    def script(line):
        for p in parts:
            line.send(p)
        line.end()
    return script


def endless(name, before, make):
    def script(line):
        for p in before:
            line.send(p)
        i = 0
        while not line.closed(0.001):
            line.send(make(words(20, 20 * i)))
            i += 1
        closed[name].set()
        return "close"
    return script


def looping(before, make):
    def script(line):
        for p in before:
            line.send(p)
        while not line.closed():
            line.send(make(LOOP))
        return "close"
    return script


def late_error(line):
    for i in range(100):
        line.send(chat(words(10, 10 * i)))
    return "close"


def block(text):
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


ROLE = b"data: " + json.dumps({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "up", "choices": [
    {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}).encode() + b"\n\n"
OPEN = [event("message_start", message=START), event("content_block_start", index=0, content_block={"type": "text", "text": ""})]
CALL = [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\""}}]
WHOLE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "up", "status": "completed", "error": None, "tools": [], "output": [
    {"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "Hello there", "annotations": []}]}],
    "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}}


def end(reason):
    return [event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 5}), event("message_stop")]


SCRIPTS = {
    "normal": stream(ROLE, chat("Hello "), chat("there"), chat(end="stop"), DONE),
    "tool": stream(ROLE, chat(tool=CALL), chat(tool=[{"index": 0, "function": {"arguments": ": 7}"}}]), chat(end="tool_calls"), DONE),
    "loop": looping([ROLE, chat(words(50))], chat), "late_error": late_error, "endless": endless("endless", [ROLE], chat),
    "respond": stream(event("response.created", response={**WHOLE, "status": "in_progress", "output": []}, sequence_number=0),
                      event("response.output_item.added", output_index=0, item={"type": "message", "id": "m", "content": []}, sequence_number=1),
                      event("response.output_text.delta", output_index=0, item_id="m", content_index=0, delta="Hello there", sequence_number=2),
                      event("response.completed", response=WHOLE, sequence_number=3)),
    "hello": stream(*OPEN, block("Hello "), block("there"), event("content_block_stop", index=0), *end("end_turn")),
    "use": stream(OPEN[0], event("content_block_start", index=0, content_block={"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}),
                  event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "{\"a\": 7}"}),
                  event("content_block_stop", index=0), *end("tool_use")),
    "message_loop": looping([*OPEN, block(words(50))], block), "message_endless": endless("message_endless", OPEN, block),
}
ANTHROPIC = ["hello", "use", "message_loop", "message_endless"]
WANTED = {
    "chat": "Hello there", "chat_stream": "Hello there", "chat_tool": {"name": "f", "arguments": "{\"a\": 7}"}, "chat_loop": ["early_abort"],
    "chat_cancelled": 3, "response": "Hello there", "response_stream": "Hello there", "message": "Hello there", "message_stream": "Hello there",
    "message_tool": {"a": 7}, "message_loop": "early_abort"}


def main():
    upstream = proxytest.Upstream(SCRIPTS)
    rows = [("a", "openai", "worker", [n for n in SCRIPTS if n not in ANTHROPIC]), ("b", "anthropic", "worker", ANTHROPIC)]
    with proxytest.Gateway(programs, proxytest.policy(upstream.port, rows), env={"MODEL_KEY": KEY}) as g:
        r = subprocess.run([str(node), str(source / "tests/official-models/drive.mjs"), str(home), f"http://127.0.0.1:{g.port}", g.token],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=proxytest.PATIENCE, env=tapsys.clean_env())
        try:
            seen = json.loads(r.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            seen = {}
        for name, want in WANTED.items():
            tap.eq(seen.get(name), want, f"official library: {name.replace('_', ', ')}", *([r.stdout[-1500:]] if not seen else []))
        tap.ok(set(SCRIPTS) == set(seen.get("models", [])) == set(seen.get("models_anthropic", [])), "official libraries list the models", seen)
        for name, kind, status in (("chat_unknown", "NotFoundError", 404), ("chat_key", "AuthenticationError", 401), ("message_unknown", "NotFoundError", 404)):
            tap.ok((seen.get(name) or [0, 0])[:2] == [kind, status], f"official library: {name.replace('_', ', ')} is its {kind}", seen.get(name))
        tap.ok("middle" in (seen.get("chat_error") or ["", 0, ""])[2], "official library: an error behind a part of a stream is thrown with its words", seen.get("chat_error"))
        for name, gone in closed.items():
            tap.ok(gone.wait(proxytest.PATIENCE), f"official library: cancelling {name} ends the upstream's connection")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
