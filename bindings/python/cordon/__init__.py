# SPDX-License-Identifier: Apache-2.0
"""Code that a model wrote, run and judged by Cordon: docs/agents.md. Conditions that a model wrote: docs/expr.md.
A generation watched while it is written: docs/monitor.md.

run(), check(), eval() and Session() use one connection of this process: to the socket that CORDON_SOCKET names, else to a
`cordon serve --stdio` that is started at the first call. Client() makes another, with options of its own."""
import atexit
import os
import threading
from typing import TYPE_CHECKING, Any, List, Optional

if TYPE_CHECKING:
    from ._client import Client, Session
    from ._expr import ALLOWED_CTX_KEYS, LimitError, Schema, UnsafeExpressionError, compile_condition, validate_condition
    from ._protocol import OnOutput, OnProgress
    from .monitor import LogitsProcessor, Monitor, Repeat, Verdict
    from ._results import Error, Evaluation, Failed, FileInfo, FileList, FileMatches, ProtocolError, Report, Result, ServerGone, SessionInfo, SnapshotInfo

# Where a name comes from. Each is imported when it is used: conditions need nothing of the client, and the client works where
# the conditions, a C module for one version of Python, are not built.
_FROM = {"_client": ("Client", "Session"),
         "_expr": ("ALLOWED_CTX_KEYS", "LimitError", "Schema", "UnsafeExpressionError", "compile_condition", "validate_condition"),
         "monitor": ("LogitsProcessor", "Monitor", "Repeat", "Verdict"),
         "_results": ("Error", "Evaluation", "Failed", "FileInfo", "FileList", "FileMatches", "ProtocolError", "Report", "Result",
                      "ServerGone", "SessionInfo", "SnapshotInfo")}
_HOMES = {name: home for home, names in _FROM.items() for name in names}
__all__ = [*_HOMES, "check", "default", "eval", "run", "wait"]

_default: "Optional[Client]" = None
_default_lock = threading.Lock()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cordon' has no attribute {name!r}")
    import importlib
    value = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *_HOMES})


def default() -> "Client":
    """The connection of this process. A process that was forked makes its own."""
    global _default
    from ._client import Client
    with _default_lock:
        if _default is None or _default._pid != os.getpid() or _default._gone:
            _default = Client(os.environ.get("CORDON_SOCKET"))  # one that was lost is let go, and its descriptors with it
        return _default


def _close() -> None:
    if _default is not None:
        _default.close()


def _forked() -> None:
    """Another thread of the parent may have been in default()."""
    global _default_lock
    _default_lock = threading.Lock()


atexit.register(_close)
os.register_at_fork(after_in_child=_forked)


def run(code: str, *, language: Optional[str] = None, session_id: Optional[str] = None, timeout_ms: Optional[int] = None,
        memory_mb: Optional[int] = None, max_output_chars: Optional[int] = None, wait: bool = True, check: bool = False,
        on_output: "Optional[OnOutput]" = None, on_progress: "Optional[OnProgress]" = None) -> "Result":
    """Client.run of the default client."""
    return default().run(code, language=language, session_id=session_id, timeout_ms=timeout_ms, memory_mb=memory_mb,
                         max_output_chars=max_output_chars, wait=wait, check=check, on_output=on_output, on_progress=on_progress)


def wait(job_id: str, *, cancel: bool = False, check: bool = False, on_output: "Optional[OnOutput]" = None,
         on_progress: "Optional[OnProgress]" = None) -> "Result":
    """Client.wait of the default client."""
    return default().wait(job_id, cancel=cancel, check=check, on_output=on_output, on_progress=on_progress)


def check(code: str, *, language: Optional[str] = None) -> "Report":
    """Client.check of the default client."""
    return default().check(code, language=language)


def eval(expression: str, context: Any = None) -> "Evaluation":
    """Client.eval of the default client."""
    return default().eval(expression, context)
