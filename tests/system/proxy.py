# SPDX-License-Identifier: Apache-2.0
"""`cordon proxy` before a scripted model: every way in which a model goes wrong, in the three protocols.

usage: proxy.py BUILD"""
import atexit
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import httptest
import proxytest
import tapsys
from proxytest import DONE, KEY, LOOP, chat, event, usage, words

tap = tapsys.Tap()
programs = tapsys.Programs(sys.argv[1])
proxytest.own_network()
EURO = "\u20ac \U0001f600 "
CALL = [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}]


def part(text):
    return [{"index": 0, "function": {"arguments": text}}]


# --- scripts: what the model does ------------------------------------------------------------------

def normal(line):
    text = words(300)
    line.send(chat(""))
    for i in range(0, len(text), 7):
        line.send(chat(text[i:i + 7]))
    line.send(chat(end="stop"))
    line.send(usage(5, 300))
    line.send(DONE)
    line.end()


def slow(line):
    for i in range(4):
        line.send(chat(words(3, 3 * i)))
        time.sleep(0.05)
    line.send(chat(end="stop"))
    line.send(DONE)
    line.end()


def stalled(line):
    line.send(chat("Once upon a time"))
    line.closed(proxytest.PATIENCE)
    return "close"


def loop(line, before=words(200)):
    """One chunk at a time; the moment of the last one and of the end of the connection are kept."""
    line.send(chat(before))
    line.copies = line.cut = 0
    while line.copies < 3000:
        line.last = time.monotonic()
        line.send(chat(LOOP))
        line.copies += 1
        if line.closed(0.01):
            line.cut = time.monotonic()
            break
    line.over.set()
    return "close"


def long_loop(line):
    """A thousand words that the client has, then a loop."""
    for i in range(100):
        line.send(chat(words(10, 10 * i)))
    while not line.closed():
        line.send(chat(LOOP))
    return "close"


def drifting(line, period=60):
    """Four hundred words, then a cycle of which a tenth is another word each time, in chunks of five words, until the gateway closes."""
    chance = random.Random(period)
    line.send(chat(words(400)))
    cycle, copies = words(period, 450).split(), 0
    while not line.closed() and copies < 20:
        copy = [w if chance.random() > 0.1 else "".join(chance.choices("bcdfghjklm", k=6)) for w in cycle]
        for i in range(0, period, 5):
            line.send(chat(" ".join(copy[i:i + 5]) + " "))
            if line.closed(0.002):
                break
        copies += 1
    return "close"


def moved(line):
    """A redirect to a path that would be answered."""
    line.sock.sendall(f"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:{upstream.port}/v1/elsewhere\r\nContent-Length: 0\r\n\r\n".encode())


def malformed(line):
    line.send(b"data: {\"choices\": [\n\n")
    line.end()


def no_event(line):
    line.plain("200 OK", b"<html>" + b"x" * 1500000)


def disconnects(line):
    line.send(chat("Once upon a"))
    return "close"


def late_disconnect(line):
    for i in range(100):
        line.send(chat(words(10, 10 * i)))
    return "close"


def halves(line):
    data = b"".join(chat(EURO) for _ in range(40)) + chat(end="stop") + DONE
    raw = json.dumps({"choices": [{"index": 0, "delta": {"content": EURO}, "finish_reason": None}]}, ensure_ascii=False).encode()
    data = b"data: " + raw + b"\r\n\r\n" + data
    line.start()
    for i in range(0, len(data)):
        line.send(data[i:i + 1])
    line.end()


def error_after_200(line):
    line.send(chat("Once"))
    line.send(b"data: " + json.dumps({"error": {"message": "overloaded", "type": "server_error"}}).encode() + b"\n\n")
    line.end()


def bad_request(line):
    line.plain("400 Bad Request", {"error": {"message": "temperature is too high", "type": "invalid_request_error"}})


def wrong_key(line):
    line.plain("401 Unauthorized", {"error": {"message": f"wrong key: {KEY}"}})


def says_key(line):
    """The key in the middle of an answer, and cut in two."""
    data = chat(f"the key is {KEY}.") + chat(end="stop") + DONE
    at = data.index(KEY.encode()) + 9
    line.send(data[:at])
    line.send(data[at:])
    line.end()


def says_key_escaped(line):
    """The same as other writers of JSON put it."""
    line.plain("400 Bad Request", json.dumps({"error": {"message": f"wrong key: {KEY}, or {KEY}"}}).replace("/", "\\/").replace("+", "\\u002B", 1).encode())


def tool(line):
    line.send(chat(tool=CALL))
    for piece in ("{\"a\"", ": [1, ", "2]}"):
        line.send(chat(tool=part(piece)))
    line.send(chat(end="tool_calls"))
    line.send(DONE)
    line.end()


def cut_tool(line):
    line.send(chat("I will call it."))
    line.send(chat(tool=CALL))
    line.send(chat(tool=part("{\"a\": [1, ")))
    line.send(chat(end="length"))
    line.send(DONE)
    line.end()


def broken_tool(line):
    line.send(chat(tool=CALL))
    line.send(chat(tool=part("{\"path\": \"/tmp\"")))
    return "close"


def looping_tool(line):
    line.send(chat(tool=CALL))
    line.send(chat(tool=part("{\"a\": \"")))
    while not line.closed():
        line.send(chat(tool=part(LOOP)))
    return "close"


def message(line, text=None, end="end_turn", blocks=None):
    line.send(event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "up-a", "content": [],
                                              "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1}}))
    line.send(event("ping"))
    if text is not None:
        line.send(event("content_block_start", index=0, content_block={"type": "text", "text": ""}))
        for i in range(0, len(text), 11):
            line.send(event("content_block_delta", index=0, delta={"type": "text_delta", "text": text[i:i + 11]}))
        line.send(event("content_block_stop", index=0))
    for index, pieces in enumerate(blocks or [], 0 if text is None else 1):
        line.send(event("content_block_start", index=index, content_block={"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}))
        for piece in pieces:
            line.send(event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece}))
        line.send(event("content_block_stop", index=index))
    line.send(event("message_delta", delta={"stop_reason": end, "stop_sequence": None}, usage={"output_tokens": 42}))
    line.send(event("message_stop"))
    line.end()


def message_loop(line):
    line.send(event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "up-a", "content": [],
                                              "usage": {"input_tokens": 9, "output_tokens": 1}}))
    line.send(event("content_block_start", index=0, content_block={"type": "text", "text": ""}))
    for i in range(100):
        line.send(event("content_block_delta", index=0, delta={"type": "text_delta", "text": words(10, 10 * i)}))
    while not line.closed():
        line.send(event("content_block_delta", index=0, delta={"type": "text_delta", "text": LOOP}))
    return "close"


def response(line, text, loops=False):
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "up-1", "status": "completed", "output": [
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}],
        "usage": {"input_tokens": 3, "output_tokens": 4}}
    line.send(event("response.created", response={**whole, "status": "in_progress", "output": []}, sequence_number=0))
    line.send(event("response.output_item.added", output_index=0, item={"type": "message", "id": "m"}, sequence_number=1))
    for i in range(0, len(text), 9):
        line.send(event("response.output_text.delta", output_index=0, item_id="m", content_index=0, delta=text[i:i + 9], sequence_number=2 + i))
    while loops and not line.closed():
        line.send(event("response.output_text.delta", output_index=0, item_id="m", content_index=0, delta=LOOP, sequence_number=99))
    if loops:
        return "close"
    line.send(event("response.output_text.done", output_index=0, item_id="m", content_index=0, text=text, sequence_number=9999))
    line.send(event("response.completed", response=whole, sequence_number=10000))
    line.end()
    return None


def fails(kind, error):
    """An answer of another protocol that reports an error after its 200."""
    def script(line):
        line.send(event(kind[0], **kind[1]))
        line.send(event(error[0], **error[1]))
        line.end()
    return script


def response_tool(line, arguments, status="completed", pieces=3):
    """A call of a tool, its arguments in pieces; the last event repeats it."""
    item = {"type": "function_call", "id": "fc", "call_id": "call_1", "name": "f", "arguments": arguments, "status": status}
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "up-1", "status": status, "output": [item], "usage": {"input_tokens": 3, "output_tokens": 4}}
    line.send(event("response.created", response={**whole, "status": "in_progress", "output": []}, sequence_number=0))
    line.send(event("response.output_item.added", output_index=0, item={**item, "arguments": "", "status": "in_progress"}, sequence_number=1))
    for i in range(0, len(arguments), pieces):
        line.send(event("response.function_call_arguments.delta", output_index=0, item_id="fc", delta=arguments[i:i + pieces], sequence_number=2 + i))
    line.send(event("response.output_item.done", output_index=0, item=item, sequence_number=99))
    line.send(event(f"response.{status}", response=whole, sequence_number=100))
    line.end()


def response_unstreamed(line):
    """Nothing but a last event, with a loop in it."""
    text = LOOP * 50
    line.send(event("response.completed", sequence_number=0, response={
        "id": "resp_1", "object": "response", "created_at": 1, "model": "up-1", "status": "completed", "usage": {"input_tokens": 3, "output_tokens": 4},
        "output": [{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}]}))
    line.end()


def message_tool_loop(line):
    line.send(event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "up-a", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}))
    line.send(event("content_block_start", index=0, content_block={"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}))
    line.send(event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "{\"a\": \""}))
    while not line.closed():
        line.send(event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": LOOP}))
    return "close"


def message_used_loop(line):
    """A tool call that is whole, then a loop of text."""
    line.send(event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "up-a", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}))
    line.send(event("content_block_start", index=0, content_block={"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}))
    line.send(event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "{\"a\": 1}"}))
    line.send(event("content_block_stop", index=0))
    line.send(event("content_block_start", index=1, content_block={"type": "text", "text": ""}))
    for i in range(50):
        line.send(event("content_block_delta", index=1, delta={"type": "text_delta", "text": words(10, 10 * i)}))
    while not line.closed():
        line.send(event("content_block_delta", index=1, delta={"type": "text_delta", "text": LOOP}))
    return "close"


def message_start_loops(line):
    """All of the loop in the events that begin a block."""
    line.send(event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "up-a", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}))
    for i in range(60):
        line.send(event("content_block_start", index=i, content_block={"type": "text", "text": LOOP}))
        line.send(event("content_block_stop", index=i))
    line.send(event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 42}))
    line.send(event("message_stop"))
    line.end()


def loop_in_one(line):
    """Text, loop and end in one chunk."""
    line.send(chat(words(200) + LOOP * 400, end="stop"))
    line.send(DONE)
    line.end()


def counting(line):
    line.send(chat(words(200)))
    for i in range(200):
        line.send(chat(f"Step {i} is to try the same thing once more and to see what comes of it. "))
        if line.closed(0.002):
            break
    return "close"


flaky = {"tries": 0}


def first_fails(line):
    flaky["tries"] += 1
    return disconnects(line) if flaky["tries"] == 1 else normal(line)


SCRIPTS = {f.__name__: f for f in (normal, slow, stalled, loop, long_loop, malformed, no_event, disconnects, late_disconnect, halves,
                                   error_after_200, bad_request, wrong_key, says_key, says_key_escaped, tool, cut_tool, broken_tool, looping_tool,
                                   message_loop, first_fails, drifting, moved, loop_in_one, counting, message_tool_loop, message_used_loop, message_start_loops,
                                   response_unstreamed)}
STARTED = ("message_start", {"message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "up-a", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}})
CREATED = ("response.created", {"response": {"id": "resp_1", "output": []}, "sequence_number": 0})
SCRIPTS |= {"drifting_long": lambda line: drifting(line, 120),
            "message_fails": fails(STARTED, ("error", {"error": {"type": "overloaded_error", "message": "overloaded"}})),
            "respond_error": fails(CREATED, ("error", {"code": "server_error", "message": "overloaded", "sequence_number": 1})),
            "respond_failed": fails(CREATED, ("response.failed", {"response": {"id": "resp_1", "status": "failed", "error": {"code": "server_error", "message": "overloaded"}}})),
            "respond_tool": lambda line: response_tool(line, "{\"a\": [1, 2]}"),
            "respond_cut_tool": lambda line: response_tool(line, "{\"a\": [1, ", "incomplete"),
            "respond_tool_loop": lambda line: response_tool(line, "{\"a\": \"" + LOOP * 60, pieces=20)}
ANTHROPIC = ["message_fails", "message_tool_loop", "message_used_loop", "message_start_loops"]
SCRIPTS |= {"hello": lambda line: message(line, words(300)), "use": lambda line: message(line, "Now.", "tool_use", [("{\"a\"", ": 1}")]),
            "cut_use": lambda line: message(line, "Now.", "max_tokens", [("{\"a\"", ": ")]),
            "respond": lambda line: response(line, words(300)), "respond_loop": lambda line: response(line, words(20), True),
            "respond_late": lambda line: response(line, words(1000), True)}
OPENAI = [n for n in SCRIPTS if n not in ("message_loop", "hello", "use", "cut_use", *ANTHROPIC)]
upstream = proxytest.Upstream(SCRIPTS)
ROWS = [("small", "openai", "worker", OPENAI + ["up=loop", "up_late=long_loop", "up_tool=looping_tool", "up_respond=respond_loop"]),
        ("large", "openai", "coder", ["up=normal", "up_late=normal", "up_tool=tool", "up_respond=respond"]),
        ("little", "anthropic", "worker", ["hello", "use", "cut_use", "message_loop", "up=message_loop", "up_used=message_used_loop", *ANTHROPIC]),
        ("big", "anthropic", "architect", ["up=hello", "up_used=hello"])]
PER_STREAM = 256  # kB of the front; docs/proxy.md
MORE = "proxy: {silence: 10m}\nescalation: {retries: 1}\n"  # a busy machine lets a scripted model be silent for a while


def stream(gateway, model, path="/v1/chat/completions", **more):
    return gateway.ask({"model": model, "messages": [{"role": "user", "content": "My secret question"}], "stream": True, **more}, path)


def plain(gateway, model, path="/v1/chat/completions", **more):
    return gateway.ask({"model": model, "messages": [{"role": "user", "content": "My secret question"}], **more}, path)


# --- what a client sees ----------------------------------------------------------------------------

def normal_answers(g):
    a = stream(g, "normal")
    tap.ok(a.status == 200 and a.text == words(300) and a.ends == ["stop"] and a.events[-1] == "[DONE]",
           "a normal stream arrives whole, with its end", a.raw[-300:])
    tap.ok(not any(isinstance(e, dict) and e.get("usage") for e in a.events), "figures of usage come only to who asked for them")
    a = stream(g, "normal", stream_options={"include_usage": True})
    tap.ok(a.events[-2]["usage"]["completion_tokens"] == 300, "who asked for figures of usage gets them", a.raw[-300:])
    a = plain(g, "normal")
    tap.ok(a.text == words(300) and a.json["object"] == "chat.completion" and a.json["choices"][0]["finish_reason"] == "stop"
           and a.json["usage"]["prompt_tokens"] == 5, "who asked for no stream gets the same answer as one object", a.raw[:300])
    tap.ok(stream(g, "slow").text == words(12), "a slow model's answer arrives whole")
    a = stream(g, "halves")
    tap.ok(a.text == EURO * 41 and a.ends == ["stop"], "characters that arrive in halves are whole for the client", a.raw[:300])
    names = [m["id"] for m in g.ask(None, "/v1/models", method="GET").json["data"]]
    tap.ok("normal" in names and "hello" in names and "m" not in names, "the list of models has the names that clients use")


def loops(g):
    a = stream(g, "loop")
    tap.ok(a.text == words(200).rstrip() and a.ends == ["early_abort"] and a.events[-1] == "[DONE]",
           "of a looping answer the client has what came before the loop, and a reason of its own", a.raw[-400:])
    tap.ok(a.events[-2]["cordon"]["reason"] == "high_repetition" and a.events[-2]["cordon"]["detector"] == "loop",
           "the last chunk of a cut answer says what was found")
    a = plain(g, "loop")
    tap.ok(a.json["choices"][0]["finish_reason"] == "early_abort" and LOOP.strip() not in a.text,
           "without a stream, the answer of a looping model is cut before the loop, too")
    delays = [1e9]
    for _ in range(50):  # others can make it late, never early
        if min(delays) < 5 * tapsys.SLOW:
            break
        stream(g, "loop")
        line = upstream.asked("loop")[-1]
        line.over.wait(proxytest.PATIENCE)
        if line.cut:
            delays.append((line.cut - line.last) * 1000)
    print(f"#= proxy: a looping upstream is closed {min(delays):.2f} ms after the chunk that showed the loop (best of {len(delays) - 1})")
    tap.ok(min(delays) < 5 * tapsys.SLOW, "the upstream's connection is closed within 5 ms of the chunk that showed the loop", delays)
    for way in (stream, plain):
        a = way(g, "loop_in_one")
        tap.ok(a.text == words(200).rstrip() and "early_abort" in a.raw.decode(), f"{way.__name__}: text, a loop and its end in one chunk: the client has the text before the loop", a.text[-200:])
    a = stream(g, "counting")
    tap.ok(a.text == words(200).rstrip() and a.events[-2]["cordon"]["detector"] == "counter", "of a loop that counts the client has what came before it", a.text[-200:])
    a = stream(g, "long_loop")
    tap.ok(a.text == words(1000).rstrip() and a.ends == ["early_abort"], "a loop after a long text is cut at its beginning", a.text[-200:])


def drifting_loops(g):
    for model, period, most in (("drifting", 60, 0.5), ("drifting_long", 120, 1.0)):
        a = stream(g, model)
        has = len(a.text.split()) - 400
        tap.ok(a.ends == ["early_abort"] and a.events[-2]["cordon"]["detector"] == "drift" and a.text.startswith(words(380)) and has <= most * period,
               f"of a loop of {period} words that drifts the client has {'less than half a' if most < 1 else 'at most its first'} copy", has, a.ends, a.events[-2:])


def escalation(g):
    before = len(upstream.asked("loop")), len(upstream.asked("normal"))
    a = stream(g, "up")
    tap.ok(a.text == words(300) and a.ends == ["stop"], "a looping answer that nobody has seen yet is asked for again, of the next tier")
    tap.ok((len(upstream.asked("loop")), len(upstream.asked("normal"))) == (before[0] + 1, before[1] + 1),
           "after a loop the same tier is not asked a second time")
    tap.eq(upstream.asked("normal")[-1].body["messages"], [{"role": "user", "content": "My secret question"}],
           "the next tier sees nothing of the degenerate text")
    a = stream(g, "up_late")
    sent = upstream.asked("normal")[-1].body["messages"][-1]
    tap.ok(sent["role"] == "assistant" and sent["content"] == words(1000).rstrip() and LOOP[:10] not in json.dumps(sent),
           "a text that the client has goes to the next tier as the beginning of its answer, without the loop", sent["content"][-100:])
    tap.ok(a.text == words(1000).rstrip() + words(300) and a.ends == ["stop"], "... and the stream goes on with that tier's", a.text[-100:])
    a = stream(g, "up_tool")
    calls = [e["choices"][0]["delta"]["tool_calls"] for e in a.events if isinstance(e, dict) and e["choices"][0]["delta"].get("tool_calls")]
    got = "".join(c[0]["function"]["arguments"] for c in calls)
    tap.ok(got == "{\"a\": [1, 2]}" and a.ends == ["tool_calls"], "a tool call whose arguments loop is dropped, and the next tier's is taken", got)
    flaky["tries"] = 0
    a = stream(g, "first_fails")
    tap.ok(a.text == words(300) and flaky["tries"] == 2, "an upstream that broke off before the client had anything is asked again")


def tools(g):
    a = stream(g, "tool")
    got = "".join(c["function"]["arguments"] for e in a.events if isinstance(e, dict) for c in e["choices"][0]["delta"].get("tool_calls", []))
    tap.ok(got == "{\"a\": [1, 2]}" and a.ends == ["tool_calls"], "a whole tool call arrives")
    tap.ok(plain(g, "tool").json["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{\"a\": [1, 2]}"},
           "a whole tool call arrives without a stream, too")
    a = stream(g, "cut_tool")
    tap.ok(b"tool_calls" not in a.raw and a.text == "I will call it." and a.ends == ["length"],
           "a tool call that the model's length limit cut is not handed on", a.raw)
    a = stream(g, "broken_tool")
    tap.ok(a.status == 502 and b"/tmp" not in a.raw, "a tool call that the end of a connection cut is not handed on", a.raw)
    a = stream(g, "looping_tool")
    tap.ok(b"tool_calls" not in a.raw and a.ends == ["early_abort"], "a tool call whose arguments loop is not handed on", a.raw)


def failures(g):
    for model, status, word in (("malformed", 502, "JSON"), ("no_event", 502, "event"), ("disconnects", 502, "middle"),
                                ("error_after_200", 502, "overloaded"), ("bad_request", 400, "temperature"),
                                ("wrong_key", 502, "refused the key"), ("moved", 502, "status 307")):
        a = stream(g, model)
        tap.ok(a.status == status and word in (a.json or {}).get("error", {}).get("message", ""),
               f"{model}: the client gets status {status} and a sentence", a.status, a.raw)
    tap.eq(len(upstream.asked("bad_request")), 1, "a request that an upstream refused is not sent again")
    tap.eq(len(upstream.asked("malformed")), 2, "an upstream that sent no JSON is asked as often as escalation.retries says")
    tap.ok(not any("elsewhere" in line.head for line in upstream.seen), "a redirect of an upstream is not followed")
    a = stream(g, "late_disconnect")
    tap.ok(a.status == 200 and a.text and words(1000).startswith(a.text) and "error" in a.events[-1],
           "a break in the middle of a stream is an error event behind what was good", a.raw[-300:])
    for body, status in ((b"{", 400), (b"[]", 400), ({"messages": []}, 400), ({"model": "normal"}, 400), ({"model": "none", "messages": []}, 404),
                         ({"model": "normal", "messages": [], "n": 2}, 400), ({"model": "hello", "messages": []}, 404)):
        tap.eq(g.ask(body).status, status, f"the request {str(body)[:40]} is refused with {status}")
    tap.eq(g.ask({"model": "normal", "messages": []}, token="x" * 40).status, 401, "without the token nobody is served")
    tap.eq(g.ask({"model": "normal", "messages": []}, headers={"Host": "evil.example"}).status, 403, "a page that calls loopback by a name is refused")
    head = f"/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {g.token}\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with httptest.Wire(g.port) as c:
        c.send(f"HEAD {head % 0}POST {head % 1}{{".encode())
        got = c.reply_head().status, (c.until(b"\r\n") or b"")[:12]
    tap.eq(got, (405, b"HTTP/1.1 400"), "the answer to HEAD has no body, and the next request gets its own answer")


def silence():
    with proxytest.Gateway(programs, proxytest.policy(upstream.port, ROWS, "proxy: {silence: 500ms}\nescalation: {retries: 1}\n"), env={"MODEL_KEY": KEY}) as g:
        a = stream(g, "stalled")
        tap.ok(a.status == 504 and "nothing" in (a.json or {}).get("error", {}).get("message", ""), "stalled: the client gets status 504 and a sentence", a.status, a.raw)


def cancellation(g):
    gone = threading.Event()

    def endless(line):
        line.send(b"".join(chat(words(10, i)) for i in range(0, 500, 10)))  # at once: the client leaves at the first of them
        if line.closed(proxytest.PATIENCE):
            gone.set()
        return "close"
    SCRIPTS["slow"], kept = endless, SCRIPTS["slow"]
    c = g.open({"model": "slow", "messages": [], "stream": True})
    sock = c.sock
    with c.getresponse() as answer:
        while (row := answer.readline()) and not row.startswith(b"data: "):  # the gateway has read what the upstream wrote
            pass
        sock.shutdown(socket.SHUT_RDWR)
    c.close()
    tap.ok(gone.wait(proxytest.PATIENCE), "a client that leaves ends its upstream's connection")
    until = time.monotonic() + proxytest.PATIENCE
    while not (left := [r for r in g.records() if r["status"] == "cancelled"]) and time.monotonic() < until:
        time.sleep(0.01)
    tap.ok(left and left[-1]["args"]["tokens_in"] > 0 and left[-1]["args"]["tokens_cut"] > 0, "a client that leaves pays for its prompt and for what was written until then", left[-1:])
    SCRIPTS["slow"] = kept


def anthropic(g):
    path = "/v1/messages"
    a = stream(g, "hello", path, max_tokens=99)
    kinds = [e["type"] for e in a.events]
    tap.ok(a.text == words(300) and a.ends == ["end_turn"] and kinds[0] == "message_start" and kinds[-1] == "message_stop"
           and b"event: content_block_delta\n" in a.raw, "Anthropic: a normal stream arrives whole", kinds)
    line = upstream.asked("hello")[-1]
    tap.ok(f"x-api-key: {KEY}" in line.head and "anthropic-version: 2023-06-01" in line.head and "POST /v1/messages " in line.head,
           "Anthropic: the upstream gets the gateway's key and a version", line.head)
    a = plain(g, "hello", path, max_tokens=99)
    tap.ok(a.text == words(300) and a.json["stop_reason"] == "end_turn" and a.json["usage"] == {"input_tokens": 9, "output_tokens": 42},
           "Anthropic: who asked for no stream gets one object", a.raw[:300])
    a = plain(g, "use", path, max_tokens=99)
    tap.ok(a.json["content"][1]["input"] == {"a": 1} and a.json["stop_reason"] == "tool_use", "Anthropic: a whole tool call arrives", a.raw)
    a = stream(g, "cut_use", path, max_tokens=99)
    tap.ok(b"tool_use" not in a.raw and a.text == "Now." and a.ends == ["max_tokens"], "Anthropic: a cut tool call is not handed on", a.raw)
    a = stream(g, "message_loop", path, max_tokens=99)
    kinds = [e["type"] for e in a.events]
    tap.ok(a.text == words(1000).rstrip() and a.ends == ["early_abort"] and kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"],
           "Anthropic: a loop is cut at its beginning, its block is closed, and the reason is its own", kinds[-5:], a.text[-100:])
    a = stream(g, "up", path, max_tokens=99)
    kinds = [e["type"] for e in a.events]
    starts = [e["index"] for e in a.events if e["type"] == "content_block_start"]
    tap.ok(a.text == words(1000).rstrip() + words(300) and a.ends == ["end_turn"] and starts == [0, 1] and kinds.count("message_start") == 1,
           "Anthropic: the tier above goes on in a block of its own, within the same message", starts, a.text[-100:])
    tap.eq(upstream.asked("hello")[-1].body["messages"][-1], {"role": "assistant", "content": words(1000).rstrip()},
           "Anthropic: the tier above gets the good text as the beginning of its answer")
    before = len(upstream.asked("hello"))
    a = stream(g, "up_used", path, max_tokens=99)
    tap.ok(b"tool_use" in a.raw and a.text == words(500).rstrip() and a.ends == ["early_abort"] and len(upstream.asked("hello")) == before,
           "Anthropic: after a tool call that the client has, a loop ends the answer: another tier would call twice", a.ends, a.text[-100:])
    a = stream(g, "message_fails", path, max_tokens=99)
    tap.ok(a.status == 502 and a.json["error"] == {"type": "api_error", "message": "overloaded"}, "Anthropic: an error after the 200 is an error for the client", a.raw)
    tap.eq(len(upstream.asked("message_fails")), 2, "Anthropic: an upstream that reported an error is asked again")
    a = stream(g, "message_tool_loop", path, max_tokens=99)
    tap.ok(b"tool_use" not in a.raw and b"partial_json" not in a.raw and a.ends == ["early_abort"], "Anthropic: a tool call whose arguments loop is not handed on", a.raw)
    a = stream(g, "message_start_loops", path, max_tokens=99)
    tap.ok(a.ends == ["early_abort"] and LOOP.strip().encode() not in a.raw, "Anthropic: text in the events that begin blocks is watched, too", a.raw[-400:])
    a = g.ask({"model": "none", "messages": []}, path)
    tap.ok(a.status == 404 and a.json["type"] == "error" and a.json["error"]["type"] == "not_found_error", "Anthropic: errors have its form")
    a = g.ask({"model": "hello", "messages": []}, path, token="", headers={"x-api-key": g.token})
    tap.eq(a.status, 200, "Anthropic: the token may come as x-api-key")


def responses(g):
    path = "/v1/responses"
    a = stream(g, "respond", path, input="x")
    tap.ok(a.text == words(300) and a.ends == ["completed"], "responses: a normal stream arrives whole", a.raw[-300:])
    a = plain(g, "respond", path, input="x")
    tap.ok(a.json["output"][0]["content"][0]["text"] == words(300), "responses: who asked for no stream gets one object", a.raw[:300])
    a = stream(g, "respond_loop", path, input="x")
    tap.ok(LOOP.strip() not in a.text and a.ends == ["early_abort"], "responses: a loop is cut, and the answer is incomplete", a.raw[-400:])
    a = stream(g, "respond_late", path, input="x")
    tap.ok(a.text == words(1000).rstrip() and a.ends == ["early_abort"], "responses: an answer that the client has a part of ends there")
    a = stream(g, "up_respond", path, input="x")
    tap.ok(a.text == words(300) and a.ends == ["completed"], "responses: a looping answer that nobody has seen is asked of the next tier")


    for model in ("respond_error", "respond_failed"):
        a = stream(g, model, path, input="x")
        tap.ok(a.status == 502 and "overloaded" in a.json["error"]["message"] and len(upstream.asked(model)) == 2, f"responses: {model}: an upstream that reports an error is asked again, and then it is one for the client", a.raw)
    a = plain(g, "respond_tool", path, input="x")
    tap.ok(a.json["output"][0]["arguments"] == "{\"a\": [1, 2]}", "responses: a whole tool call arrives", a.raw)
    for way in (stream, plain):
        for model in ("respond_cut_tool", "respond_tool_loop"):
            a = way(g, model, path, input="x")
            tap.ok(a.status == 200 and b"function_call" not in a.raw, f"responses: {model}, {way.__name__}: a tool call that is cut is in no event, and not in the answer that the last one repeats", a.raw[-400:])
        a = way(g, "response_unstreamed", path, input="x")
        tap.ok(a.status == 502 and b"did not stream" in a.raw and LOOP.strip().encode() not in a.raw, f"responses: {way.__name__}: text that is only in the last event is not handed on", a.raw[-400:])


# --- what nobody sees ------------------------------------------------------------------------------

def key_is_secret(g):
    a = stream(g, "says_key")
    tap.ok(KEY not in a.raw.decode() and a.text == "the key is [key].", "a key that the upstream says itself does not reach the client", a.text)
    a = stream(g, "says_key_escaped")
    tap.eq((a.status, a.json["error"]["message"]), (400, "wrong key: [key], or [key]"), "a key that the upstream says with characters escaped as JSON may have them does not reach the client", a.raw)
    tap.ok(f"authorization: bearer {KEY}".lower() in upstream.asked("normal")[0].head.lower(), "the upstream gets the key")
    raw = b"".join(stream(g, m).raw for m in ("wrong_key", "bad_request", "disconnects"))
    tap.ok(KEY.encode() not in raw, "no answer about an error has the key in it")
    for pid, name in ((g.process.pid, "the process with the keys"), (g.front(), "the front")):
        limits = open(f"/proc/{pid}/limits").read()
        tap.ok(re.search(r"Max core file size +0 +0 ", limits), f"{name} leaves no core")
        env = open(f"/proc/{pid}/environ", "rb").read()
        tap.ok(KEY.encode() not in env, f"the environment of {name} shows no key")
        line = open(f"/proc/{pid}/cmdline", "rb").read()
        tap.ok(KEY.encode() not in line, f"the command line of {name} shows no key")
    memory = b""
    for row in open(f"/proc/{g.front()}/maps"):
        if " rw" in row:
            low, high = (int(n, 16) for n in row.split()[0].split("-"))
            with open(f"/proc/{g.front()}/mem", "rb") as f:
                try:
                    f.seek(low)
                    memory += f.read(high - low)
                except (OSError, ValueError):
                    pass
    tap.ok(g.token.encode() in memory and KEY.encode() not in memory, "the memory of the front holds the client's token and no key")
    status = open(f"/proc/{g.front()}/status").read()
    tap.ok("Seccomp:\t2" in status and "NoNewPrivs:\t1" in status, "the front is behind its table of system calls")


def records(g):
    rows = g.wait_records(60)
    text = open(g.log).read() + json.dumps(rows)
    tap.ok(KEY not in text and "secret question" not in text and g.token not in text, "no record and no log has a key, a token or a question")
    kept = [path for where, _, names in os.walk(g.folder) for name in names if os.path.isfile(path := os.path.join(where, name))]
    tap.ok(len(kept) > 3 and not [f for f in kept if KEY.encode() in open(f, "rb").read()], "no file of the gateway, its state folder's included, has the key", kept)
    found = [r for r in rows if r["args"]["model"] == "up" and r["args"]["attempts"] == 2]
    tap.ok(found and found[0]["args"]["upstreams"] in ("small large", "little big") and found[0]["client_id"] == "proxy:default"
           and found[0]["args"]["tokens_cut"] > 0, "the record of a call says who asked, which upstreams were, and what was cut", rows[:3])
    tap.ok(any(r["status"] == "early_abort" and "high_repetition" in r["reason"] and r["args"]["onset"] > 0 for r in rows), "the record of a cut call has the reason and where the loop begins",
           [r for r in rows if r["status"] == "early_abort"][:2])
    r = subprocess.run([programs.cordon, "audit", "verify"], env=tapsys.clean_env({"CORDON_STATE": g.state}, "root"), capture_output=True)
    tap.ok(r.returncode == 0, "the log with such records is as it was written", r.stderr)


def front_falls(g):
    before = g.front()
    os.kill(before, 9)
    until = time.monotonic() + proxytest.PATIENCE
    while time.monotonic() < until:
        try:
            if g.front() != before and stream(g, "normal").text == words(300):
                break
        except (OSError, IndexError):
            time.sleep(0.01)
    tap.ok(g.front() != before, "a front that falls over is replaced, and serves")


def own_folder():
    """One that goes away with the test."""
    folder = tapsys.tempfile.mkdtemp(prefix="proxytest.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# --- limits ----------------------------------------------------------------------------------------

def limits():
    folder = own_folder()
    tokens = {}
    for name in ("rich", "poor"):
        tokens[name] = name * 10
        with open(os.open(f"{folder}/{name}", os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(tokens[name] + "\n")
    text = (proxytest.policy(upstream.port, ROWS).replace("rates: {model_calls: 100000, model_burst: 100000}",
                                                          "rates: {model_calls: 1, model_window: 1h, model_burst: 3}")
            + f"proxy: {{prompts: true, clients: [{{name: rich, token_file: {folder}/rich}}, {{name: poor, token_file: {folder}/poor, budget: 100}}]}}\n")
    with proxytest.Gateway(programs, text, env={"MODEL_KEY": KEY}) as g:
        def ask(who):
            return g.ask({"model": "normal", "messages": [{"role": "user", "content": "a question to keep"}]}, token=tokens[who])
        codes = [ask("rich").status for _ in range(4)]
        tap.eq(codes, [200, 200, 200, 429], "a client has as many calls at once as rates.model_burst says")
        a = ask("rich")
        tap.ok(int(a.headers["Retry-After"]) > 1 and a.json["error"]["type"] == "rate_limit_error", "a refused client is told when to come again", a.raw)
        first, second = ask("poor"), ask("poor")
        tap.ok(first.status == 200 and second.status == 429 and "budget" in second.json["error"]["message"],
               "another client has a bucket of its own, and its budget ends it", second.raw)
        rows = g.wait_records(4)
        tap.ok(all("a question to keep" in r["args"]["prompt"] for r in rows), "with proxy.prompts records have what was asked", rows[:1])
        tap.ok({r["client_id"] for r in rows} == {"proxy:rich", "proxy:poor"}, "records name the client")
        state = g.state
    again = proxytest.Gateway(programs, text, env={"MODEL_KEY": KEY, "CORDON_STATE": state})
    with again as g:
        tap.eq(g.ask({"model": "normal", "messages": []}, token=tokens["poor"]).status, 429, "what was spent outlives the gateway")


def refusals():
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
        r = subprocess.run([programs.cordon, "proxy", "--http", address], env=tapsys.clean_env({}, "root"), capture_output=True, text=True, timeout=proxytest.PATIENCE)
        tap.ok(r.returncode == 2 and "loopback" in r.stderr and r.stderr.count("\n") == 1, f"an address beyond loopback is refused: {address}", r.returncode, r.stderr)

    def said(text, **env):
        with proxytest.Gateway(programs, text, env=env) as g:
            code = g.process.wait(proxytest.PATIENCE)
            return code, g.said()
    code, text = said(proxytest.policy(upstream.port, ROWS))
    tap.ok(code == 2 and "MODEL_KEY of key_env is not set" in text, "a key that is not there is named by its variable", code, text)
    code, text = said("proxy: {holdback: 9}\n")
    tap.ok(code == 2 and "names no upstreams" in text, "without upstreams it says so", code, text)
    with tapsys.tempfile.NamedTemporaryFile("w") as f:
        f.write(KEY)
        f.flush()
        os.chmod(f.name, 0o644)
        code, text = said(proxytest.policy(1, ROWS).replace("key_env: MODEL_KEY", f"key_file: {f.name}"))
        tap.ok(code == 2 and "closed to others" in text and KEY not in text, "a key file that others can read is refused", code, text)


def no_core():
    """The process with the keys, its limit of core files lifted where that is allowed, and then killed."""
    with proxytest.Gateway(programs, proxytest.policy(upstream.port, ROWS), env={"MODEL_KEY": KEY}) as g:
        tap.eq(plain(g, "normal").text, words(300), "a gateway whose end is looked at serves")
        try:
            resource.prlimit(g.process.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            lifted = "although its limit of core files was lifted"
        except PermissionError:  # who may not lift it is held by it
            lifted = "whose limit of core files nobody here may lift"
        os.kill(g.process.pid, signal.SIGABRT)
        _, status = os.waitpid(g.process.pid, 0)
        tap.ok(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT and not os.WCOREDUMP(status),
               f"the process with the keys leaves no core, {lifted}", status)
        g.process.returncode = -signal.SIGABRT


def key_of_a_file():
    """A key out of a file, and a proxy of the environment that nobody may be sent to."""
    with tapsys.tempfile.NamedTemporaryFile("w") as f:
        f.write(KEY + "\n")
        f.flush()
        text = proxytest.policy(upstream.port, ROWS).replace("key_env: MODEL_KEY", f"key_file: {f.name}")
        nowhere = "http://127.0.0.1:9"
        with proxytest.Gateway(programs, text, env={"http_proxy": nowhere, "HTTP_PROXY": nowhere, "ALL_PROXY": nowhere, "all_proxy": nowhere}) as g:
            tap.eq(plain(g, "normal").text, words(300), "a key out of a file serves, and a proxy of the environment is not asked")
            tap.ok(f"authorization: bearer {KEY}".lower() in upstream.asked("normal")[-1].head.lower(), "the upstream gets the key of the file, without its last newline",
                   upstream.asked("normal")[-1].head)
            tap.ok(KEY not in g.said(), "the log has no key of a file")


def tls():
    """A certificate that nobody vouches for is refused; one of the policy's own authority is taken."""
    folder = own_folder()
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{folder}/key", "-out", f"{folder}/cert", "-days", "2",
                           "-subj", "/CN=upstream", "-addext", "subjectAltName=IP:127.0.0.1"], capture_output=True)
    if made.returncode:
        return tap.ok(False, "a certificate for the test can be made", made.stderr)
    import ssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert", f"{folder}/key")
    open(f"{folder}/empty", "w").close()
    secure = proxytest.Upstream(SCRIPTS)
    plain_one = secure.one

    def one(sock):
        try:
            plain_one(context.wrap_socket(sock, server_side=True))
        except OSError:
            sock.close()
    secure.one = one
    rows = "upstreams:\n" + "".join(
        f"  {name}: {{url: \"https://{host}:{secure.port}/v1\", shape: openai, tier: worker, key_env: MODEL_KEY, models: [{name}=normal]{more}}}\n"
        for name, host, more in (("unknown", "127.0.0.1", ""), ("empty", "127.0.0.1", f", ca_file: {folder}/empty"), ("other", "localhost", f", ca_file: {folder}/cert"), ("known", "127.0.0.1", f", ca_file: {folder}/cert")))
    with proxytest.Gateway(programs, rows + "escalation: {retries: 0}\n", env={"MODEL_KEY": KEY}) as g:
        a = plain(g, "unknown")
        tap.ok(a.status == 502 and "cannot be reached" in a.json["error"]["message"] and not secure.seen,
               "an upstream whose certificate cannot be verified gets no byte", a.raw)
        a = plain(g, "empty")
        tap.ok(a.status == 502 and "cannot be reached" in a.json["error"]["message"] and not secure.seen,
               "an upstream for which there are no certificates to verify by gets no byte", a.raw)
        a = plain(g, "other")
        tap.ok(a.status == 502 and not secure.seen, "an upstream whose certificate is for another name gets no byte", a.raw)
        tap.eq(plain(g, "known").text, words(300), "an upstream whose certificate the policy's ca_file vouches for is used")
    return None


def many(g, count):
    """Streams at once, each with a text of its own. Returns the kB of the front while all of them are open."""
    go = threading.Event()
    ready = threading.Semaphore(0)

    def waits(line):
        line.send(chat(words(150)))
        ready.release()
        go.wait(proxytest.PATIENCE)
        line.send(chat(words(50, 150) + line.body["messages"][0]["content"]))
        line.send(chat(end="stop"))
        line.send(DONE)
        line.end()
    SCRIPTS["slow"], kept = waits, SCRIPTS["slow"]
    connections = [g.open({"model": "slow", "messages": [{"role": "user", "content": f"number {i}."}], "stream": True}) for i in range(count)]
    for _ in range(count):
        ready.acquire(timeout=proxytest.PATIENCE)
    held = resident(g.front())
    go.set()
    good = 0
    for i, c in enumerate(connections):
        good += proxytest.Answer(c.getresponse()).text == words(200) + f"number {i}."
        c.close()
    tap.eq(good, count, f"{count} streams at once: each client has its own answer, whole")
    SCRIPTS["slow"] = kept
    return held


def main():
    if len(sys.argv) > 2:
        return load(int(sys.argv[2]))
    with proxytest.Gateway(programs, proxytest.policy(upstream.port, ROWS, MORE), env={"MODEL_KEY": KEY}) as g:
        for group in (normal_answers, loops, drifting_loops, escalation, tools, anthropic, responses, failures, cancellation, key_is_secret, records):
            group(g)
        many(g, 60)
        front_falls(g)
        tap.eq(g.end(), 0, "SIGTERM ends the gateway")
    silence()
    limits()
    refusals()
    key_of_a_file()
    no_core()
    tls()
    return tap.done()


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(next(row for row in f if row.startswith("VmRSS")).split()[1])


def load(count):
    """COUNT streams at once, round after round: the memory of both processes stays where the second round left it."""
    with proxytest.Gateway(programs, proxytest.policy(upstream.port, ROWS, "proxy: {silence: 10m}\n"), env={"MODEL_KEY": KEY}) as g:
        seen, most, idle = [], 0, resident(g.front())
        for _ in range(5):
            most = max(most, many(g, count))
            least = [resident(g.process.pid), resident(g.front())]
            until = time.monotonic() + 5  # what the last call left is given back in the next turn of the loop
            while seen[1:] and least[1] > seen[1][1] and time.monotonic() < until:
                time.sleep(0.05)
                least[1] = resident(g.front())
            seen.append(tuple(least))
        print(f"#= proxy-load: {count} streams at once, kB of memory after each round (keys, front): {seen}")
        each = (most - idle) / count
        print(f"#= proxy-load: {each:.0f} kB of the front for each of {count} streams of 150 tokens, while they are open")
        tap.ok(each <= PER_STREAM, f"an open stream of 150 tokens takes at most {PER_STREAM} kB of the front", most, idle)
        tap.ok(all(seen[-1][i] <= 1.1 * seen[1][i] + 16384 for i in (0, 1)), "memory does not grow from round to round", seen)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
