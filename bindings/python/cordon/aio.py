# SPDX-License-Identifier: Apache-2.0
"""The same client for asyncio: `async with cordon.aio.Client() as c: await c.run(...)`. A task that is cancelled cancels its
run. Callbacks run in the event loop and are not awaited.

Waits: for a place in a server's queue and for an answer PATIENCE seconds at most, for the end of a server that we started END seconds."""
import asyncio
import contextlib
import socket as sockets
import tempfile
from typing import Any, Dict, IO, List, Optional, Sequence, Tuple, Type, Union
from types import TracebackType

from . import _protocol as protocol
from ._client import END, command
from ._protocol import Ask, OnOutput, OnProgress, Steps
from ._results import Evaluation, FileInfo, FileList, FileMatches, ProtocolError, Report, Result, ServerGone, SessionInfo, SnapshotInfo

__all__ = ["Client", "Session"]


class Client:
    """A connection to `cordon serve`: to the socket of one that runs, or to one that is started for it."""

    def __init__(self, socket: Optional[str] = None, *, program: str = "cordon", options: Sequence[str] = (), patience: float = protocol.PATIENCE):
        self._path, self._words, self._patience = socket, command(program, options), patience
        self._number, self._gone = 0, ""
        self._calls: Dict[int, Tuple["asyncio.Future[Dict[str, Any]]", Optional[OnProgress]]] = {}
        self._process: Optional[asyncio.subprocess.Process] = None
        self._reader: Optional["asyncio.Task[None]"] = None
        self._errors: Optional[IO[bytes]] = None

    async def __aenter__(self) -> "Client":
        limit = protocol.REPLY_MAX
        try:
            if self._path is not None:
                source, self._out = await self._connect(self._path, limit)
            else:
                source, self._out = await self._start(limit)
        except OSError as e:
            if self._errors:
                self._errors.close()
            hint = "is Cordon installed?" if self._path is None else f"start it: cordon serve --socket {self._path}"
            raise ServerGone(f"{self._words[0] if self._path is None else self._path}: {e.strerror or e}; {hint}") from None
        self._reader = asyncio.get_running_loop().create_task(self._read(source))
        return self

    async def _connect(self, path: str, limit: int) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The loop's own connect takes a server whose queue is full for one that has answered."""
        end = asyncio.get_running_loop().time() + self._patience
        connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        try:
            connection.setblocking(False)
            while True:
                try:
                    connection.connect(path)
                    return await asyncio.open_unix_connection(sock=connection, limit=limit)
                except BlockingIOError:
                    if asyncio.get_running_loop().time() >= end:
                        raise
                await asyncio.sleep(protocol.AGAIN)
        except BaseException:
            connection.close()
            raise

    async def _start(self, limit: int) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """One socket, as _client has it."""
        self._errors = tempfile.TemporaryFile()
        ours, theirs = sockets.socketpair()
        try:
            with theirs:
                self._process = await asyncio.create_subprocess_exec(*self._words, stdin=theirs, stdout=theirs, stderr=self._errors,
                                                                     start_new_session=True)
            return await asyncio.open_unix_connection(sock=ours, limit=limit)
        except BaseException:  # a task that is cancelled, too: the server ends with its connection
            ours.close()
            raise

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection, and with it this client's runs and sessions."""
        self._end("the client is closed")
        if self._reader:
            with contextlib.suppress(OSError):  # a forked copy does not keep it open
                self._out.get_extra_info("socket").shutdown(sockets.SHUT_RDWR)
            self._out.transport.abort()
            self._reader.cancel()
            await asyncio.wait([self._reader])
        if self._process:
            try:
                await asyncio.wait_for(self._process.wait(), END)
            except asyncio.TimeoutError:
                self._process.kill()
                await self._process.wait()
        if self._errors:
            self._errors.close()

    # --- calls ---

    def _end(self, why: str) -> None:
        self._gone = self._gone or why
        for future, _ in self._calls.values():
            if not future.done():
                future.set_exception(ServerGone(self._gone))

    async def _read(self, source: asyncio.StreamReader) -> None:
        try:
            while True:
                line = await source.readline()
                if not line:
                    break
                self._dispatch(protocol.message_of(line))
            why = "the server ended"
        except ValueError as e:
            why = f"what the server said is no message ({e})"
        except OSError as e:
            why = f"the server is gone ({e})"
        except Exception as e:  # nobody else would be told that nothing is read any more
            why = f"the client failed ({e!r})"
        if self._errors:
            if self._process:  # its last words come with its end
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._process.wait(), 1)
            why = protocol.with_words(why, self._errors)
        self._end(why)

    def _dispatch(self, message: Dict[str, Any]) -> None:
        told = protocol.progress_of(message)
        number = told[0] if told else protocol.reply_number(message)
        future, on_progress = self._calls.get(number, (None, None)) if number is not None else (None, None)
        if told and future and on_progress and not future.done():
            try:
                on_progress(told[1], told[2])
            except StopIteration as e:  # no future takes it: what a coroutine makes of one
                error = RuntimeError("a callback raised StopIteration")
                error.__cause__ = e
                future.set_exception(error)
            except BaseException as e:  # the caller's own: it ends the call, not the connection
                future.set_exception(e)
        elif future and not told and not future.done():
            future.set_result(message)
        elif message.get("id", 0) is None:  # it could not read what we wrote
            self._end(f"the server: {protocol.refusal(message)}")

    async def _within(self, what: "asyncio.Future[Any]", why: str) -> Any:
        """asyncio.wait_for of Python 3.11 and older can lose a cancellation; wait() cannot."""
        await asyncio.wait([what], timeout=self._patience)
        if not what.done():
            raise ServerGone(why)
        return what.result()

    async def _write(self, data: bytes) -> None:
        try:
            self._out.write(data)
            await self._within(asyncio.ensure_future(self._out.drain()), "the server does not read")
        except OSError:
            if self._reader:  # it knows why, a moment later
                await asyncio.wait([self._reader], timeout=2)
            raise ServerGone(self._gone or "the server is gone") from None

    async def _ask(self, ask: Ask, on_progress: Optional[OnProgress]) -> Dict[str, Any]:
        if self._gone or not self._reader:
            raise ServerGone(self._gone or "async with is missing: the client is not open")
        if self._reader.get_loop() is not asyncio.get_running_loop():  # nobody reads there any more
            raise RuntimeError("the client is of the event loop that opened it: another one opens its own")
        self._number += 1
        number = self._number
        future: "asyncio.Future[Dict[str, Any]]" = asyncio.get_running_loop().create_future()
        data = protocol.request(number, ask, on_progress is not None)
        self._calls[number] = future, on_progress
        try:
            await self._write(data)
            reply: Dict[str, Any] = await self._within(future, f"no answer for {self._patience:g} s")
            return reply
        except ServerGone:
            if not self._gone:  # it does not answer this call, and may answer others
                self._out.write(protocol.cancel(number))
            raise
        except BaseException:  # the task was cancelled, or a callback raised: nobody wants the answer any more
            self._out.write(protocol.cancel(number))
            raise
        finally:
            del self._calls[number]
            if not future.cancel() and not future.cancelled():
                future.exception()  # it was told by another way: nobody else asks for it

    async def _do(self, steps: Steps) -> Any:
        ask: Optional[Ask] = steps.first
        try:
            while ask:
                ask = steps.take(await self._ask(ask, steps.on_progress))
        except (ServerGone, ProtocolError):
            raise
        except BaseException:
            left = steps.abandoned()
            if left:
                self._number += 1
                self._out.write(protocol.request(self._number, left, False))
            raise
        return steps.result

    # --- methods ---

    async def run(self, code: str, *, language: Optional[str] = None, session_id: Optional[str] = None, timeout_ms: Optional[int] = None,
                  memory_mb: Optional[int] = None, max_output_chars: Optional[int] = None, wait: bool = True, check: bool = False,
                  on_output: Optional[OnOutput] = None, on_progress: Optional[OnProgress] = None) -> Result:
        """Runs a program. A refusal is a result, too; with CHECK what is not ok raises Failed."""
        result: Result = await self._do(protocol.run(code, language, session_id, timeout_ms, memory_mb, max_output_chars, wait, check,
                                                     on_output, on_progress))
        return result

    async def wait(self, job_id: str, *, cancel: bool = False, check: bool = False, on_output: Optional[OnOutput] = None,
                   on_progress: Optional[OnProgress] = None) -> Result:
        """The result of a run that was answered with a job; with CANCEL it is ended."""
        result: Result = await self._do(protocol.wait(job_id, cancel, check, on_output, on_progress))
        return result

    async def check(self, code: str, *, language: Optional[str] = None) -> Report:
        """Judges a program without running it."""
        report: Report = await self._do(protocol.check(code, language))
        return report

    async def eval(self, expression: str, context: Any = None) -> Evaluation:
        """Evaluates a condition over a context: a dict, or JSON as a text."""
        evaluation: Evaluation = await self._do(protocol.evaluate(expression, context))
        return evaluation

    async def session(self, workspace: Optional[str] = None, language: Optional[str] = None) -> "Session":
        """A new interpreter that stays between calls; in a workspace that the server gives, its files outlive it."""
        return Session(self, await self._do(protocol.session("new", workspace=workspace, language=language)))

    async def sessions(self) -> List[Dict[str, Any]]:
        """The sessions of this client."""
        info: SessionInfo = await self._do(protocol.session("list"))
        return info.sessions


class Session:
    """Made by `await client.session()`; an interpreter whose variables and files live on between calls."""

    def __init__(self, client: Client, info: SessionInfo):
        if not info.session_id:
            raise ProtocolError("the server's reply has no session", 0)
        self.client, self.id, self.expires_in_s = client, info.session_id, info.expires_in_s

    async def run(self, code: str, *, language: Optional[str] = None, timeout_ms: Optional[int] = None, max_output_chars: Optional[int] = None,
                  wait: bool = True, check: bool = False, on_output: Optional[OnOutput] = None, on_progress: Optional[OnProgress] = None) -> Result:
        """As Client.run, with this session's variables and files."""
        return await self.client.run(code, language=language, session_id=self.id, timeout_ms=timeout_ms, max_output_chars=max_output_chars,
                                     wait=wait, check=check, on_output=on_output, on_progress=on_progress)

    async def put(self, path: str, data: Union[bytes, str]) -> FileInfo:
        """Writes a file below /workspace, whole. What is refused raises Failed."""
        info: FileInfo = await self.client._do(protocol.put(self.id, path, data))
        return info

    async def get(self, path: str) -> bytes:
        """The bytes of a file below /workspace. What is refused raises Failed."""
        data: bytes = await self.client._do(protocol.Getting(self.id, path))
        return data

    async def list(self, path: Optional[str] = None) -> FileList:
        """What is in a folder below /workspace. A refusal is a result, too."""
        listed: FileList = await self.client._do(protocol.list_files(self.id, path))
        return listed

    async def search(self, pattern: str, *, path: Optional[str] = None, what: Optional[str] = None, ignore_case: bool = False) -> FileMatches:
        """Lines that match a regular expression; with what="names" files whose name matches a pattern of the shell."""
        matches: FileMatches = await self.client._do(protocol.search(self.id, pattern, path, what, ignore_case))
        return matches

    async def snapshot(self, *, name: Optional[str] = None, message: Optional[str] = None) -> SnapshotInfo:
        """Names the present state of the session's workspace."""
        info: SnapshotInfo = await self.client._do(protocol.snapshot("create", self.id, name=name, message=message))
        return info

    async def snapshots(self) -> SnapshotInfo:
        """The states of the session's workspace, the newest first."""
        info: SnapshotInfo = await self.client._do(protocol.snapshot("list", self.id))
        return info

    async def diff(self, snapshot: Optional[str] = None, to: Optional[str] = None) -> SnapshotInfo:
        """What differs between two states: head~1 and head unless given."""
        info: SnapshotInfo = await self.client._do(protocol.snapshot("diff", self.id, snapshot=snapshot, to=to))
        return info

    async def restore(self, snapshot: str) -> SnapshotInfo:
        """Makes the files those of an earlier state."""
        info: SnapshotInfo = await self.client._do(protocol.snapshot("restore", self.id, snapshot=snapshot))
        return info

    async def fork(self) -> "Session":
        """A second session with the same variables and files."""
        return Session(self.client, await self.client._do(protocol.session("fork", self.id)))

    async def interrupt(self) -> None:
        """Raises KeyboardInterrupt, in other languages than Python Interrupt, in the call that runs."""
        await self.client._do(protocol.session("interrupt", self.id))

    async def close(self) -> None:
        await self.client._do(protocol.session("close", self.id))

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()
