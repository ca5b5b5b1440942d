# SPDX-License-Identifier: Apache-2.0
"""What is said to `cordon serve`, without the saying: messages, and the steps of a method. Both clients drive these."""
import base64
import binascii
import json
import math
import os
from typing import Any, Callable, Dict, IO, List, Optional, Tuple, Union

from ._results import Evaluation, Failed, FileInfo, FileList, FileMatches, ProtocolError, Report, Result, Results, SessionInfo, SnapshotInfo

META = "io.modelcontextprotocol/"
REVISION = "2026-07-28"
MESSAGE_MAX = 4 << 20  # bytes of one message; the server reads no longer one
REPLY_MAX = 64 << 20  # bytes of a line of the server that we read
TEXTS = ("stdout", "stderr", "job_id", "session_id", "data")  # fields that are worked on here: nothing else may be in them
ANSWER = "1s"  # a server that we start answers so often how a run stands
NUMBER_MAX = (1 << 63) - 1  # the server reads no larger one, and cuts a limit to its own
DIGITS = 4000  # of an integer that Python reads at once: 3.11 has a limit of 4300
DIGITS_MAX = 100000  # of one that we read; a condition computes with less
AGAIN = 0.01  # seconds between two looks at a queue of connections that is full
PATIENCE = 120.0  # seconds without an answer, after which the server counts as gone

OnOutput = Callable[[str, str], Any]
OnProgress = Callable[[int, str], Any]
Ask = Tuple[str, Dict[str, Any]]  # a tool and its arguments


def _line(message: Dict[str, Any]) -> bytes:
    data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"  # a lone surrogate: UnicodeEncodeError
    if len(data) > MESSAGE_MAX:
        raise ValueError(f"a message has at most 4 MiB, and this one has {len(data)} bytes")
    return data


def request(number: int, ask: Ask, progress: bool) -> bytes:
    meta: Dict[str, Any] = {META + "protocolVersion": REVISION, META + "clientCapabilities": {}}
    if progress:
        meta["progressToken"] = number
    tool, arguments = ask
    given = {name: _sent(name, value) for name, value in arguments.items() if value is not None}
    return _line({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": given, "_meta": meta}})


def _sent(name: str, value: Any) -> Any:
    """An argument as it is sent; what cannot be is named."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}, and JSON has no number for that")
    if isinstance(value, int) and abs(value) > NUMBER_MAX:
        return NUMBER_MAX if value > 0 else -NUMBER_MAX
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as e:
            raise UnicodeEncodeError(e.encoding, e.object, e.start, e.end, f"{name} is not Unicode: {e.reason}") from None
    if not isinstance(value, (str, int, float, list, tuple, dict)):  # of these the server says what is wrong
        raise TypeError(f"{name} is a {type(value).__name__}; give a text, a number or a truth value")
    return value


def cancel(number: int) -> bytes:
    return _line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})


def with_words(why: str, errors: IO[bytes]) -> str:
    """WHY, and the last of what a server that we started wrote as errors: through the same position, which is not moved here."""
    size = os.fstat(errors.fileno()).st_size
    said = os.pread(errors.fileno(), 4000, max(0, size - 4000)).decode(errors="replace").strip()[-1000:]
    return f"{why}: {said}" if said else why


def message_of(line: Union[bytes, bytearray]) -> Dict[str, Any]:
    """A line of the server, which may say anything. What is no message raises ValueError."""
    text = line.decode()
    try:
        try:
            message = json.loads(text)
        except json.JSONDecodeError:
            raise
        except ValueError:  # an integer of more digits than Python reads at once
            message = json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("it is too deep") from None
    if not isinstance(message, dict):
        raise ValueError("it is no object")
    return message


def _integer(digits: str) -> int:
    if len(digits) <= DIGITS:
        return int(digits)
    if len(digits) > DIGITS_MAX:
        raise ValueError(f"a number of {len(digits)} digits")
    value, rest = 0, digits.lstrip("-")
    for at in range(0, len(rest), DIGITS):
        part = rest[at:at + DIGITS]
        value = value * 10 ** len(part) + int(part)
    return -value if digits.startswith("-") else value


def progress_of(message: Dict[str, Any]) -> Optional[Tuple[int, int, str]]:
    """The number of the request, the milliseconds and the words of a progress notification."""
    params = message.get("params")
    if message.get("method") != "notifications/progress" or not isinstance(params, dict):
        return None
    number, ms, words = params.get("progressToken"), params.get("progress"), params.get("message", "")
    return (number, ms, words) if type(number) is int and isinstance(ms, (int, float)) and isinstance(words, str) else None


def reply_number(message: Dict[str, Any]) -> Optional[int]:
    """The number of the request that a message answers; None: it is no reply to one of ours."""
    number = message.get("id")
    return number if type(number) is int and "method" not in message else None


def refusal(message: Dict[str, Any]) -> ProtocolError:
    error = message.get("error")
    words, code = (error.get("message"), error.get("code")) if isinstance(error, dict) else (error, 0)
    return ProtocolError(str(words or "an error without words"), code if type(code) is int else 0)


def result_of(reply: Dict[str, Any]) -> Dict[str, Any]:
    if reply.get("error") is not None:
        raise refusal(reply)
    result = reply.get("result")
    if not isinstance(result, dict):
        raise ProtocolError("the server's reply has no result", 0)
    blocks, fields = result.get("content", []), result.get("structuredContent")
    good = isinstance(blocks, list) and all(isinstance(b, dict) and isinstance(b.get("text", ""), str) for b in blocks)
    if not good or not isinstance(fields, (dict, type(None))) or any(not isinstance((fields or {}).get(t), (str, type(None))) for t in TEXTS):
        raise ProtocolError("the server's result has not the form of one", 0)
    return result


class Steps:
    """One method: what to ask first, what after each answer, and what comes of it. What takes long is answered with a job,
    which is waited for."""

    def __init__(self, ask: Ask, kind: Results, check: bool = False, *, wait: bool = True, on_progress: Optional[OnProgress] = None):
        self.first, self.kind, self.check, self.wait, self.on_progress = ask, kind, check, wait, on_progress
        self.job: Optional[str] = None
        self.result: Any = None

    def take(self, reply: Dict[str, Any]) -> Optional[Ask]:
        """The next thing to ask; None: RESULT is there."""
        result = result_of(reply)
        content = result.get("structuredContent") or {}
        self.job = content.get("job_id") if content.get("status") == "running" else None
        self.look(content)
        if self.job and self.wait:
            return "wait_job", {"job_id": self.job}
        self.result = self.kind.of(result)
        if self.check and self.result.is_error:
            raise Failed(self.result)
        return None

    def look(self, content: Dict[str, Any]) -> None:
        """At each answer, the last one too."""

    def abandoned(self) -> Optional[Ask]:
        """What to ask, without waiting for the answer, where nobody wants the result any more."""
        return ("wait_job", {"job_id": self.job, "cancel": True}) if self.job else None


class Running(Steps):
    """A run, whose output is told as it grows."""

    def __init__(self, ask: Ask, wait: bool, check: bool, on_output: Optional[OnOutput], on_progress: Optional[OnProgress]):
        super().__init__(ask, Result, check, wait=wait, on_progress=on_progress)
        self.on_output = on_output
        self.told = {"stdout": "", "stderr": ""}

    def look(self, content: Dict[str, Any]) -> None:
        for stream, told in self.told.items() if self.on_output else ():
            text = content.get(stream) or ""
            if self.on_output and len(text) > len(told) and text.startswith(told):  # else it was cut or redacted since: the result has it
                self.told[stream] = text
                self.on_output(stream, text[len(told):])


def run(code: str, language: Optional[str], session_id: Optional[str], timeout_ms: Optional[int], memory_mb: Optional[int],
        max_output_chars: Optional[int], wait: bool, check: bool, on_output: Optional[OnOutput], on_progress: Optional[OnProgress]) -> Running:
    arguments = {"code": code, "language": language, "session_id": session_id, "timeout_ms": timeout_ms, "memory_mb": memory_mb,
                 "max_output_chars": max_output_chars}
    return Running(("execute_code", arguments), wait, check, on_output, on_progress)


def wait(job_id: str, cancel: bool, check: bool, on_output: Optional[OnOutput], on_progress: Optional[OnProgress]) -> Running:
    return Running(("wait_job", {"job_id": job_id, "cancel": True if cancel else None}), True, check, on_output, on_progress)


def check(code: str, language: Optional[str]) -> Steps:
    return Steps(("check_code", {"code": code, "language": language}), Report)


def evaluate(expression: str, context: Any) -> Steps:
    # as a text: integers of any size are exact
    text = context if context is None or isinstance(context, str) else json.dumps(context, ensure_ascii=False)
    return Steps(("eval_expression", {"expression": expression, "context": text}), Evaluation)


def session(action: str, session_id: Optional[str] = None, workspace: Optional[str] = None, language: Optional[str] = None) -> Steps:
    """What cannot be done has no result that could be given, so it raises."""
    return Steps(("session", {"action": action, "session_id": session_id, "workspace": workspace, "language": language}), SessionInfo, check=True)


class Getting(Steps):
    """A file, a part at a time."""

    def __init__(self, session_id: str, path: str):
        self.arguments = {"session_id": session_id, "path": path, "encoding": "base64"}
        self.parts: List[bytes] = []
        self.offset = 0
        super().__init__(("read_file", self.arguments), FileInfo, check=True)

    def take(self, reply: Dict[str, Any]) -> Optional[Ask]:
        ask = super().take(reply)
        if ask:
            return ask
        part: FileInfo = self.result
        try:
            self.parts.append(base64.b64decode(part.data or "", validate=True))
        except binascii.Error as e:
            raise ProtocolError(f"the server's part of a file: {e}", 0) from None
        if part.next_offset is not None:
            if type(part.next_offset) is not int or part.next_offset <= self.offset:  # or it would never end
                raise ProtocolError("the server's part of a file does not lead on", 0)
            self.offset = part.next_offset
            return "read_file", {**self.arguments, "offset": part.next_offset}
        self.result = b"".join(self.parts)
        return None


def put(session_id: str, path: str, data: Union[bytes, str]) -> Steps:
    text = base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
    return Steps(("write_file", {"session_id": session_id, "path": path, "text": text, "encoding": "base64"}), FileInfo, check=True)


def list_files(session_id: str, path: Optional[str]) -> Steps:
    return Steps(("list_files", {"session_id": session_id, "path": path}), FileList)


def search(session_id: str, pattern: str, path: Optional[str], what: Optional[str], ignore_case: bool) -> Steps:
    return Steps(("search_files", {"session_id": session_id, "pattern": pattern, "path": path, "what": what,
                                   "ignore_case": True if ignore_case else None}), FileMatches)


def snapshot(action: str, session_id: str, **arguments: Optional[str]) -> Steps:
    return Steps(("snapshot", {"session_id": session_id, "action": action, **arguments}), SnapshotInfo)
