# SPDX-License-Identifier: Apache-2.0
"""What a program of a profile without threads gets as `threading`: one thread, in which all work is done in order.

Thread.start() runs the target to its end before it returns. A wait that nobody else could end is an error, not a
wait: there is nobody else. What cannot be kept in order is not here: Timer, local, settrace.
`_note` is put here by the worker: it says once in the result that there is one thread."""
import sys as _sys
import time as _time
import traceback as _traceback

__all__ = ["Barrier", "BoundedSemaphore", "BrokenBarrierError", "Condition", "Event", "Lock", "RLock", "Semaphore",
           "TIMEOUT_MAX", "Thread", "ThreadError", "active_count", "current_thread", "enumerate", "get_ident",
           "main_thread"]

TIMEOUT_MAX = 9223372036.0
ThreadError = RuntimeError


class BrokenBarrierError(RuntimeError):
    pass


def _wait(timeout, what):
    """Nobody can end this wait but the clock."""
    if timeout is None or timeout < 0:
        raise RuntimeError(f"{what} would wait forever: there is one thread, and start() runs its work to its end; "
                           "start first what this waits for")
    _time.sleep(timeout)
    return False


class Lock:
    _held = False

    def acquire(self, blocking=True, timeout=-1):
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if self._held:
            return _wait(timeout, "Lock.acquire()") if blocking else False
        self._held = True
        return True

    def release(self):
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    def locked(self):
        return self._held

    def __enter__(self):
        return self.acquire()

    def __exit__(self, kind, value, traceback):
        self.release()


class RLock:
    """Whoever holds it is this thread: it is never waited for."""
    _times = 0

    def acquire(self, blocking=True, timeout=-1):
        self._times += 1
        return True

    def release(self):
        if not self._times:
            raise RuntimeError("cannot release un-acquired lock")
        self._times -= 1

    def locked(self):
        return self._times > 0

    def __enter__(self):
        return self.acquire()

    def __exit__(self, kind, value, traceback):
        self.release()


class Condition:
    def __init__(self, lock=None):
        self._lock = RLock() if lock is None else lock

    def acquire(self, blocking=True, timeout=-1):
        return self._lock.acquire(blocking, timeout)

    def release(self):
        self._lock.release()

    def __enter__(self):
        return self._lock.acquire()

    def __exit__(self, kind, value, traceback):
        self._lock.release()

    def wait(self, timeout=None):
        if not self._lock.locked():
            raise RuntimeError("cannot wait on un-acquired lock")
        return _wait(timeout, "Condition.wait()")

    def wait_for(self, predicate, timeout=None):
        found = predicate()
        if not found:
            self.wait(timeout)
            found = predicate()
        return found

    def notify(self, n=1):
        if not self._lock.locked():
            raise RuntimeError("cannot notify on un-acquired lock")

    def notify_all(self):
        self.notify()


class Semaphore:
    def __init__(self, value=1):
        if value < 0:
            raise ValueError("semaphore initial value must be >= 0")
        self._value = value

    def acquire(self, blocking=True, timeout=None):
        if not blocking and timeout is not None:
            raise ValueError("can't specify timeout for non-blocking acquire")
        if self._value <= 0:
            return _wait(timeout, "Semaphore.acquire()") if blocking else False
        self._value -= 1
        return True

    def release(self, n=1):
        if n < 1:
            raise ValueError("n must be one or more")
        self._value += n

    def __enter__(self):
        return self.acquire()

    def __exit__(self, kind, value, traceback):
        self.release()


class BoundedSemaphore(Semaphore):
    def __init__(self, value=1):
        super().__init__(value)
        self._first = value

    def release(self, n=1):
        if self._value + n > self._first:
            raise ValueError("Semaphore released too many times")
        super().release(n)


class Event:
    _flag = False

    def is_set(self):
        return self._flag

    isSet = is_set

    def set(self):
        self._flag = True

    def clear(self):
        self._flag = False

    def wait(self, timeout=None):
        return True if self._flag else _wait(timeout, "Event.wait()")


class Barrier:
    def __init__(self, parties, action=None, timeout=None):
        if parties < 1:
            raise ValueError("parties must be > 0")
        self._parties, self._action, self._timeout, self._broken = parties, action, timeout, False

    @property
    def parties(self):
        return self._parties

    @property
    def n_waiting(self):
        return 0

    @property
    def broken(self):
        return self._broken

    def wait(self, timeout=None):
        if self._broken:
            raise BrokenBarrierError
        if self._parties > 1:
            _wait(self._timeout if timeout is None else timeout, "Barrier.wait()")
            self._broken = True
            raise BrokenBarrierError
        if self._action:
            self._action()
        return 0

    def reset(self):
        self._broken = False

    def abort(self):
        self._broken = True


class Thread:
    def __init__(self, group=None, target=None, name=None, args=(), kwargs=None, *, daemon=None):
        if group is not None:
            raise ValueError("group argument must be None for now")
        _made[0] += 1
        self._target, self._args, self._kwargs = target, args, {} if kwargs is None else kwargs
        if name is None:
            name = f"Thread-{_made[0]}" + (f" ({target.__name__})" if hasattr(target, "__name__") else "")
        self._name, self._daemon, self._thread_state, self._ident = str(name), bool(daemon), "initial", None

    def start(self):
        if not hasattr(self, "_thread_state"):
            raise RuntimeError("thread.__init__() not called")
        if self._thread_state != "initial":
            raise RuntimeError("threads can only be started once")
        _note()
        _last[0] += 1
        self._thread_state, self._ident = "started", _last[0]
        _running.append(self)
        try:
            self.run()
        except SystemExit:
            pass  # as of every thread: it ends this one alone
        except Exception as e:
            print(f"Exception in thread {self._name}:", file=_sys.stderr)
            _traceback.print_exception(type(e), e, e.__traceback__)
        finally:
            _running.pop()
            self._thread_state = "stopped"

    def run(self):
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def join(self, timeout=None):
        if self._thread_state == "initial":
            raise RuntimeError("cannot join thread before it is started")
        if self._thread_state == "started":
            raise RuntimeError("cannot join current thread")

    def is_alive(self):
        return self._thread_state == "started"

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, name):
        self._name = str(name)

    @property
    def daemon(self):
        return self._daemon

    @daemon.setter
    def daemon(self, daemon):
        if self._thread_state != "initial":
            raise RuntimeError("cannot set daemon status of active thread")
        self._daemon = bool(daemon)

    @property
    def ident(self):
        return self._ident

    def getName(self):
        return self._name

    def setName(self, name):
        self.name = name

    def isDaemon(self):
        return self._daemon

    def setDaemon(self, daemon):
        self.daemon = daemon

    def __repr__(self):
        return f"<{type(self).__name__}({self._name}, {self._thread_state}{' daemon' if self._daemon else ''})>"


class _MainThread(Thread):
    def __init__(self):
        super().__init__(name="MainThread")
        self._thread_state, self._ident = "started", 1


_running, _last, _made = [], [1], [-1]  # now, innermost last; the last ident; how many, but for the main one
_running.append(_MainThread())


def current_thread():
    return _running[-1]


def main_thread():
    return _running[0]


def active_count():
    return len(_running)


def enumerate():
    return list(_running)


def get_ident():
    return _running[-1]._ident


currentThread, activeCount = current_thread, active_count
