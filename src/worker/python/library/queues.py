# SPDX-License-Identifier: Apache-2.0
"""queue, where there is one thread: whoever puts into a full queue goes on, since who takes out comes later."""
import queue
import time


def put(self, item, block=True, timeout=None):
    with self.mutex:
        if 0 < self.maxsize <= self._qsize() and not (block and timeout is None):
            if block and timeout < 0:
                raise ValueError("'timeout' must be a non-negative number")
            if block:
                time.sleep(timeout)
            raise queue.Full
        self._put(item)
        self.unfinished_tasks += 1
        self.not_empty.notify()


queue.Queue.put = put
queue.SimpleQueue = getattr(queue, "_PySimpleQueue", queue.SimpleQueue)  # the one in C waits by itself
