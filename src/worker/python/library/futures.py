# SPDX-License-Identifier: Apache-2.0
"""What a program of a profile without threads gets as `concurrent.futures`: submit() does the work before it returns.

`_note` is put here by the worker: it says once in the result that there is one thread."""
import collections as _collections
import time as _time

__all__ = ["ALL_COMPLETED", "BrokenExecutor", "CancelledError", "Executor", "FIRST_COMPLETED", "FIRST_EXCEPTION", "Future",
           "InvalidStateError", "ProcessPoolExecutor", "ThreadPoolExecutor", "TimeoutError", "as_completed", "wait"]

FIRST_COMPLETED, FIRST_EXCEPTION, ALL_COMPLETED = "FIRST_COMPLETED", "FIRST_EXCEPTION", "ALL_COMPLETED"
TimeoutError = TimeoutError
DoneAndNotDoneFutures = _collections.namedtuple("DoneAndNotDoneFutures", "done not_done")


class Error(Exception):
    pass


class CancelledError(Error):
    pass


class InvalidStateError(Error):
    pass


class BrokenExecutor(RuntimeError):
    pass


class Future:
    def __init__(self):
        self._state, self._result, self._exception, self._callbacks = "pending", None, None, []

    def cancel(self):
        if self._state in ("running", "finished"):
            return False
        if self._state == "pending":
            self._end("cancelled")
        return True

    def cancelled(self):
        return self._state == "cancelled"

    def running(self):
        return self._state == "running"

    def done(self):
        return self._state in ("cancelled", "finished")

    def add_done_callback(self, fn):
        if self.done():
            fn(self)
        else:
            self._callbacks.append(fn)

    def _settle(self, timeout):
        if self._state == "cancelled":
            raise CancelledError
        if self._state != "finished":
            if timeout is None:
                raise RuntimeError("the result would be waited for forever: there is one thread, and nobody sets it meanwhile")
            _time.sleep(timeout)
            raise TimeoutError

    def result(self, timeout=None):
        self._settle(timeout)
        if self._exception is not None:
            raise self._exception
        return self._result

    def exception(self, timeout=None):
        self._settle(timeout)
        return self._exception

    def set_running_or_notify_cancel(self):
        if self._state == "cancelled":
            return False
        if self._state != "pending":
            raise InvalidStateError("Future in unexpected state")
        self._state = "running"
        return True

    def set_result(self, result):
        self._result = self._unsettled(result)
        self._end("finished")

    def set_exception(self, exception):
        self._exception = self._unsettled(exception)
        self._end("finished")

    def _unsettled(self, value):
        if self.done():
            raise InvalidStateError(f"{self._state}: {self!r}")
        return value

    def _end(self, state):
        self._state = state
        for fn in self._callbacks:
            fn(self)

    def __repr__(self):
        return f"<Future state={self._state}>"


class Executor:
    _closed = False

    def submit(self, fn, /, *args, **kwargs):
        raise NotImplementedError

    def map(self, fn, *iterables, timeout=None, chunksize=1):
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        futures = [self.submit(fn, *args) for args in zip(*iterables)]

        def results():
            for future in futures:
                yield future.result()
        return results()

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._closed = True

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.shutdown()
        return False


class ThreadPoolExecutor(Executor):
    def __init__(self, max_workers=None, thread_name_prefix="", initializer=None, initargs=()):
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._initializer, self._initargs = initializer, initargs

    def submit(self, fn, /, *args, **kwargs):
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        _note()
        if self._initializer is not None:
            self._initializer, first = None, self._initializer
            first(*self._initargs)
        future = Future()
        future.set_running_or_notify_cancel()
        try:
            result = fn(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            future.set_exception(e)
        else:
            future.set_result(result)
        return future


class ProcessPoolExecutor(ThreadPoolExecutor):
    def __init__(self, max_workers=None, mp_context=None, initializer=None, initargs=(), *, max_tasks_per_child=None):
        super().__init__(max_workers, "", initializer, initargs)


def as_completed(fs, timeout=None):
    waiting = []
    for future in dict.fromkeys(fs):
        if future.done():
            yield future
        else:
            waiting.append(future)
    for future in waiting:
        if not future.done():
            future.exception(timeout)
        yield future


def wait(fs, timeout=None, return_when=ALL_COMPLETED):
    if return_when not in (ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION):
        raise ValueError(f"Invalid return condition: {return_when!r}")
    fs = set(fs)
    done = {future for future in fs if future.done()}
    if fs - done and not (done and return_when != ALL_COMPLETED):
        if timeout is None:
            raise RuntimeError("wait() would wait forever: there is one thread, and nobody sets these results meanwhile")
        _time.sleep(timeout)
    return DoneAndNotDoneFutures(done, fs - done)
