# SPDX-License-Identifier: Apache-2.0
"""The client that blocks. Any number of threads may call it: whoever waits for an answer reads, for the others too; the
callbacks of a call run in the thread that made it. No thread is started here.

A connection is one socket, also to a server that we start: its end reaches whoever waits at it, in a forked copy too, and no
write raises SIGPIPE in a program that has taken that signal back.

Waits: for a place in a server's queue, for an answer and for room to write PATIENCE seconds at most, for room to say that a call is given up GIVE_UP seconds,
for the end of a server that we started END seconds."""
import contextlib
import os
import queue
import socket as sockets
import subprocess
import tempfile
import threading
import time
from typing import Any, Dict, IO, List, Optional, Sequence, Type, Union
from types import TracebackType

from . import _protocol as protocol
from ._lines import Lines
from ._protocol import Ask, OnOutput, OnProgress, Steps
from ._results import Evaluation, FileInfo, FileList, FileMatches, ProtocolError, Report, Result, ServerGone, SessionInfo, SnapshotInfo

END = 15.0  # cordond takes at most 10 s to leave
LOOK = 1.0  # between two looks of who waits at whether anybody reads
GIVE_UP = 2.0  # a server that does not take within it that a call is given up loses its client


class _Call:
    """NOTES: by their milliseconds, so that one that is told again is no other. WAITS: whether its thread can take over to read."""
    def __init__(self) -> None:
        self.notes: Dict[float, Dict[str, Any]] = {}
        self.reply: Optional[Dict[str, Any]] = None
        self.woken: "queue.SimpleQueue[None]" = queue.SimpleQueue()  # it is C: an exception of a signal handler leaves it whole
        self.waits = False


def command(program: str, options: Sequence[str]) -> List[str]:
    own = [] if "--answer" in options else ["--answer", protocol.ANSWER]
    return [program, "serve", "--stdio", *own, *options]


class Client:
    """A connection to `cordon serve`: to the socket of one that runs, or to one that is started for it.

    OPTIONS are those of `cordon serve`, such as ["--profile", "standard"]; a server at a socket has its own."""

    def __init__(self, socket: Optional[str] = None, *, program: str = "cordon", options: Sequence[str] = (), patience: float = protocol.PATIENCE):
        self._patience, self._number, self._gone = patience, 0, ""
        self._calls: Dict[int, _Call] = {}
        self._state = threading.RLock()  # also of a signal handler in its middle
        self._reader: Optional[_Call] = None
        self._reading, self._reader_thread = threading.Lock(), 0
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._socket: Optional[sockets.socket] = None
        self._errors: Optional[IO[bytes]] = None
        self._pid, self._closed = os.getpid(), False
        self._lines = Lines(self._connect(socket) if socket is not None else self._start(command(program, options)))

    # --- the connection ---

    def _connect(self, path: str) -> sockets.socket:
        end = time.monotonic() + self._patience
        self._socket = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        self._socket.setblocking(False)
        while True:
            try:
                self._socket.connect(path)
                return self._socket
            except OSError as e:
                if not isinstance(e, BlockingIOError) or time.monotonic() >= end:
                    self._socket.close()
                    raise ServerGone(f"{path}: {e.strerror or e}; start it: cordon serve --socket {path}") from None
            time.sleep(protocol.AGAIN)  # its queue is full, which no poll waits for

    def _start(self, words: List[str]) -> sockets.socket:
        self._errors = tempfile.TemporaryFile()
        self._socket, theirs = sockets.socketpair()
        self._socket.setblocking(False)
        try:  # a session of its own: Control-C is for our program, which then cancels
            with theirs:
                self._process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=self._errors, start_new_session=True)
        except OSError as e:
            self._errors.close()
            self._socket.close()
            raise ServerGone(f"{words[0]}: {e.strerror or e}; is Cordon installed?") from None
        return self._socket

    def close(self) -> None:
        """Ends the connection, and with it this client's runs and sessions."""
        if os.getpid() != self._pid:  # a forked copy: connection and server are our parent's, and its lock may never be free
            self._gone = self._gone or "the client is closed"
            if self._socket:
                self._socket.close()
            return
        self._closed = True
        self._drop("the client is closed")
        if self._socket:
            self._socket.close()
        if self._process:
            try:
                self._process.wait(END)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._errors:
            self._errors.close()

    def _drop(self, why: str) -> None:
        """The connection is of no more use: who waits at it is told, and what runs ends."""
        with self._state:
            self._gone = self._gone or why
        self._tell_all()
        if self._socket:
            with contextlib.suppress(OSError):
                self._socket.shutdown(sockets.SHUT_RDWR)

    def __del__(self) -> None:
        """Of a client that was forgotten the server ends, too."""
        if getattr(self, "_socket", None):
            self._socket.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def _lost(self, why: str) -> ServerGone:
        if self._errors and self._process and not self._closed:
            with contextlib.suppress(subprocess.TimeoutExpired):  # its last words come with its end
                self._process.wait(1)
            with contextlib.suppress(ValueError, OSError):  # another thread has closed it meanwhile
                why = protocol.with_words(why, self._errors)
        return ServerGone(why)

    def _give_up(self, data: bytes) -> None:
        """Tells the server that nobody wants an answer. Where it does not take that, the connection ends, and with it what runs."""
        why = self._lines.send(data, time.monotonic() + min(GIVE_UP, self._patience))
        if why:
            self._drop(why)

    # --- calls ---

    def _read(self, end: float) -> None:
        """One look at what the server wrote; who waits is told. A line is kept until it was told."""
        why = "" if self._lines.lines else self._lines.take(end)
        with self._state:
            self._gone = self._gone or why
            lines = self._lines.lines
            try:
                while lines:
                    self._dispatch(protocol.message_of(lines[0]))
                    lines.popleft()
                if self._lines.unended() > protocol.REPLY_MAX:
                    raise ValueError("it is longer than 64 MiB")
            except ValueError as e:
                lines.clear()
                self._gone = self._gone or f"what the server said is no message ({e})"
        if self._gone:
            self._tell_all()

    def _dispatch(self, message: Dict[str, Any]) -> None:
        told, number = protocol.progress_of(message), protocol.reply_number(message)
        call = self._calls.get(told[0] if told else number or 0)
        if call and told:
            call.notes[told[1]] = message
        elif call:
            call.reply = call.reply or message
        elif message.get("id", 0) is None:  # it could not read what we wrote
            self._gone = self._gone or f"the server: {protocol.refusal(message)}"
        if call:
            call.woken.put(None)

    def _tell_all(self) -> None:
        with self._state:
            calls = [*self._calls.values()]
        for call in calls:
            call.woken.put(None)

    def _reads(self) -> bool:
        """Whether this thread is the one that reads."""
        return self._reading.locked() and self._reader_thread == threading.get_ident()

    def _becomes_reader(self, call: _Call, lost: Optional[_Call]) -> bool:
        """One call at a time reads, for all. LOST: who did, did not for LOOK seconds: its thread was interrupted before it could pass that on."""
        with self._state:
            if self._reader and self._reader is lost and not self._reading.locked():
                self._reader.waits, self._reader = False, None
            self._reader = self._reader or call
            return self._reader is call

    def _stop_reading(self, call: _Call) -> None:
        with self._state:
            call.waits = False
            if self._reader is call:
                self._reader = next((c for c in self._calls.values() if c.waits and not c.reply), None)
                if self._reader:
                    self._reader.woken.put(None)

    def _wait(self, call: _Call, end: float) -> bool:
        """Until something came for this call: True. False: nothing did until END."""
        reader, lost, me = None, None, threading.get_ident()  # before the lock: behind a call a signal handler may run
        try:
            while not (call.notes or call.reply or self._gone):
                if time.monotonic() >= end:
                    return False
                if self._becomes_reader(call, lost):
                    with self._reading:
                        self._reader_thread = me
                        if not (call.notes or call.reply or self._gone):
                            self._read(end)
                    continue
                reader, lost, call.waits = self._reader, None, True
                try:
                    call.woken.get(timeout=max(0.0, min(LOOK, end - time.monotonic())))
                except queue.Empty:
                    lost = reader
            return True
        finally:
            self._stop_reading(call)

    def _ask(self, ask: Ask, on_progress: Optional[OnProgress]) -> Dict[str, Any]:
        if os.getpid() != self._pid:  # it would take its parent's answers
            raise ServerGone("the client is of the process that made it: a forked one makes its own")
        if self._reads() or self._lines.writes():  # it would wait for itself
            raise RuntimeError("a signal handler cannot make a call in the middle of one: raise an exception in it, or call from a thread that it starts")
        call = _Call()
        with self._state:
            if self._gone:
                raise self._lost(self._gone)
            self._number += 1
            number = self._number
            data = protocol.request(number, ask, on_progress is not None)
            self._calls[number] = call
        try:
            why = self._lines.send(data, time.monotonic() + self._patience)
            if why:
                self._drop(why)
                raise self._lost(self._gone)
            while True:
                if not self._wait(call, time.monotonic() + self._patience):
                    self._give_up(protocol.cancel(number))  # other calls may still be answered
                    raise self._lost(f"no answer for {self._patience:g} s")
                with self._state:
                    notes, call.notes = call.notes, {}
                for note in notes.values():
                    told = protocol.progress_of(note)
                    if on_progress and told:
                        on_progress(told[1], told[2])
                if call.reply:
                    return call.reply
                if self._gone and not notes:
                    raise self._lost(self._gone)
        except ServerGone:
            raise
        except BaseException:  # Control-C, or a callback that raised: nobody wants the answer any more
            self._give_up(protocol.cancel(number))
            raise
        finally:
            with self._state:
                self._calls.pop(number, None)

    def _do(self, steps: Steps) -> Any:
        ask: Optional[Ask] = steps.first
        try:
            while ask:
                ask = steps.take(self._ask(ask, steps.on_progress))
        except (ServerGone, ProtocolError):
            raise
        except BaseException:
            left = steps.abandoned()
            if left:
                with self._state:
                    self._number += 1
                    number = self._number
                self._give_up(protocol.request(number, left, False))
            raise
        return steps.result

    # --- methods ---

    def run(self, code: str, *, language: Optional[str] = None, session_id: Optional[str] = None, timeout_ms: Optional[int] = None,
            memory_mb: Optional[int] = None, max_output_chars: Optional[int] = None, wait: bool = True, check: bool = False,
            on_output: Optional[OnOutput] = None, on_progress: Optional[OnProgress] = None) -> Result:
        """Runs a program. A refusal is a result, too; with CHECK what is not ok raises Failed. Without WAIT a run that takes
        long gives a result whose status is running, and a job_id for wait()."""
        result: Result = self._do(protocol.run(code, language, session_id, timeout_ms, memory_mb, max_output_chars, wait, check, on_output, on_progress))
        return result

    def wait(self, job_id: str, *, cancel: bool = False, check: bool = False, on_output: Optional[OnOutput] = None,
             on_progress: Optional[OnProgress] = None) -> Result:
        """The result of a run that was answered with a job; with CANCEL it is ended."""
        result: Result = self._do(protocol.wait(job_id, cancel, check, on_output, on_progress))
        return result

    def check(self, code: str, *, language: Optional[str] = None) -> Report:
        """Judges a program without running it."""
        report: Report = self._do(protocol.check(code, language))
        return report

    def eval(self, expression: str, context: Any = None) -> Evaluation:
        """Evaluates a condition over a context: a dict, or JSON as a text."""
        evaluation: Evaluation = self._do(protocol.evaluate(expression, context))
        return evaluation

    def session(self, workspace: Optional[str] = None, language: Optional[str] = None) -> "Session":
        """A new interpreter that stays between calls; in a workspace that the server gives, its files outlive it."""
        return Session(self, workspace, language)

    def sessions(self) -> List[Dict[str, Any]]:
        """The sessions of this client."""
        info: SessionInfo = self._do(protocol.session("list"))
        return info.sessions


class Session:
    """An interpreter whose variables and files live on between calls, until close(), 30 minutes without a call, or the end of
    its client."""

    def __init__(self, client: Optional[Client] = None, workspace: Optional[str] = None, language: Optional[str] = None, *,
                 _info: Optional[SessionInfo] = None):
        if client is None:
            from . import default
            client = default()
        info: SessionInfo = _info or client._do(protocol.session("new", workspace=workspace, language=language))
        if not info.session_id:
            raise ProtocolError("the server's reply has no session", 0)
        self.client, self.id, self.expires_in_s = client, info.session_id, info.expires_in_s

    def run(self, code: str, *, language: Optional[str] = None, timeout_ms: Optional[int] = None, max_output_chars: Optional[int] = None,
            wait: bool = True, check: bool = False, on_output: Optional[OnOutput] = None, on_progress: Optional[OnProgress] = None) -> Result:
        """As Client.run, with this session's variables and files."""
        return self.client.run(code, language=language, session_id=self.id, timeout_ms=timeout_ms, max_output_chars=max_output_chars, wait=wait,
                               check=check, on_output=on_output, on_progress=on_progress)

    def put(self, path: str, data: Union[bytes, str]) -> FileInfo:
        """Writes a file below /workspace, whole. What is refused raises Failed."""
        info: FileInfo = self.client._do(protocol.put(self.id, path, data))
        return info

    def get(self, path: str) -> bytes:
        """The bytes of a file below /workspace. What is refused raises Failed."""
        data: bytes = self.client._do(protocol.Getting(self.id, path))
        return data

    def list(self, path: Optional[str] = None) -> FileList:
        """What is in a folder below /workspace. A refusal is a result, too."""
        listed: FileList = self.client._do(protocol.list_files(self.id, path))
        return listed

    def search(self, pattern: str, *, path: Optional[str] = None, what: Optional[str] = None, ignore_case: bool = False) -> FileMatches:
        """Lines that match a regular expression; with what="names" files whose name matches a pattern of the shell."""
        matches: FileMatches = self.client._do(protocol.search(self.id, pattern, path, what, ignore_case))
        return matches

    def snapshot(self, *, name: Optional[str] = None, message: Optional[str] = None) -> SnapshotInfo:
        """Names the present state of the session's workspace."""
        info: SnapshotInfo = self.client._do(protocol.snapshot("create", self.id, name=name, message=message))
        return info

    def snapshots(self) -> SnapshotInfo:
        """The states of the session's workspace, the newest first."""
        info: SnapshotInfo = self.client._do(protocol.snapshot("list", self.id))
        return info

    def diff(self, snapshot: Optional[str] = None, to: Optional[str] = None) -> SnapshotInfo:
        """What differs between two states: head~1 and head unless given."""
        info: SnapshotInfo = self.client._do(protocol.snapshot("diff", self.id, snapshot=snapshot, to=to))
        return info

    def restore(self, snapshot: str) -> SnapshotInfo:
        """Makes the files those of an earlier state."""
        info: SnapshotInfo = self.client._do(protocol.snapshot("restore", self.id, snapshot=snapshot))
        return info

    def fork(self) -> "Session":
        """A second session with the same variables and files."""
        return Session(self.client, _info=self.client._do(protocol.session("fork", self.id)))

    def interrupt(self) -> None:
        """Raises KeyboardInterrupt, in other languages than Python Interrupt, in the call that runs: from another thread, or from a callback of it."""
        self.client._do(protocol.session("interrupt", self.id))

    def close(self) -> None:
        self.client._do(protocol.session("close", self.id))

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

