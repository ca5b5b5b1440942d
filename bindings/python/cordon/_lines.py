# SPDX-License-Identifier: Apache-2.0
"""Lines over a socket that does not block. Any number of threads may write, one at a time reads.

An exception of a signal handler may end a thread between any two steps of Python, and the next thread has to find everything
in its place. So what the kernel took or gave is put down in the same step, inside of C, which list.extend(map(...)) is; the
rest changes by one store; and a lock is held by `with` alone, which Python does not interrupt between the lock and its block."""
import collections
import select
import socket as sockets
import threading
import time
from typing import Deque, List, NamedTuple, Tuple

PART = 1 << 16
BUSY = 0.001  # between two looks at whether another thread still writes


class _Came(NamedTuple):
    """What the server wrote: whole lines, and the parts of one that has not ended. LOOKED of these are known to have no newline."""
    lines: Deque[bytes]
    parts: List[bytes]
    looked: int


class Lines:
    def __init__(self, socket: sockets.socket) -> None:
        self._socket = socket
        self._writing, self._writer = threading.Lock(), 0
        self._message: Tuple[bytes, List[int]] = (b"", [])  # the last one, and how much of it was sent in each step
        self._came = _Came(collections.deque(), [], 0)

    # --- writing ---

    def writes(self) -> bool:
        """Whether this thread is in the middle of a message."""
        return self._writing.locked() and self._writer == threading.get_ident()

    def send(self, data: bytes, end: float) -> str:
        """Why it could not be sent until END; "": it was. What another thread left in its middle goes before it. Where it could
        not be sent nothing can follow, and the connection is to end."""
        while self._writing.locked() and time.monotonic() < end:
            time.sleep(BUSY)
        if self._writing.locked():
            return "the server does not read"
        me = threading.get_ident()  # before the lock: behind a call a signal handler may run
        with self._writing:
            self._writer = me
            begun, sent = self._message
            why = self._put(begun, sent, end) if sent else ""
            if why:
                return why
            self._message = (data, [])
            return self._put(*self._message, end)

    def _put(self, data: bytes, sent: List[int], end: float) -> str:
        view = memoryview(data)
        while sum(sent) < len(data):
            try:
                sent.extend(map(self._socket.send, (view[sum(sent):],), (sockets.MSG_NOSIGNAL,)))
            except BlockingIOError:
                sent[:] = [sum(sent)] if sent else []
                if not self._ready(select.POLLOUT, end):
                    return "the server does not read"
            except OSError as e:
                return f"the server is gone ({e.strerror})"
        return ""

    # --- reading ---

    @property
    def lines(self) -> Deque[bytes]:
        """Those that came, for the reader to take."""
        return self._came.lines

    def take(self, end: float) -> str:
        """Waits until END for more of the server; why none can come any more."""
        came = self._came
        if came.looked == len(came.parts):
            try:
                if not self._ready(select.POLLIN, end):
                    return ""
                came.parts.extend(map(self._socket.recv, (PART,)))
            except BlockingIOError:
                return ""
            except OSError as e:
                return f"the server is gone ({e.strerror})"
        if not came.parts[-1]:
            return "the server ended"
        if b"\n" in came.parts[-1]:
            *lines, rest = b"".join(came.parts).split(b"\n")
            self._came = _Came(collections.deque([*came.lines, *lines]), [rest], 1)
        else:
            parts = _joined(came.parts)
            self._came = _Came(came.lines, parts, len(parts))
        return ""

    def unended(self) -> int:
        """How long the line is that has not ended."""
        return sum(map(len, self._came.parts))

    def _ready(self, event: int, end: float) -> bool:
        poll, number = select.poll(), self._socket.fileno()
        if number < 0:  # closed by another thread, which tells why
            return True
        poll.register(number, event)
        return bool(poll.poll(max(0, int((end - time.monotonic()) * 1000))))


def _joined(parts: List[bytes]) -> List[bytes]:
    """As few parts as there are doublings in them: a line that comes by single bytes does not take the square of its length."""
    parts = [*parts]
    while len(parts) > 1 and len(parts[-2]) <= len(parts[-1]):
        parts[-2:] = [parts[-2] + parts[-1]]
    return parts
