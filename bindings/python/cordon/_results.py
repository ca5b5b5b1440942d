# SPDX-License-Identifier: Apache-2.0
"""What the server gives, as it is written there; clients/methods.json lists every field. A field that a newer server has
and this library does not is in `raw`."""
import dataclasses
from typing import Any, Dict, List, Optional, Type, TypeVar

Results = Any  # one of the classes below: they are made by their `of`
T = TypeVar("T", bound="_Answer")


class Error(Exception):
    """Whatever this library raises, but for wrong arguments."""


class ServerGone(Error):
    """The server cannot be started or reached, has ended, or does not answer."""


class ProtocolError(Error):
    """The server does not know what it was asked, as JSON-RPC tells it: `code` is its number. 0: its reply has no result."""

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


class Failed(Error):
    """With `check=True`: the result, which is not ok, is in `result`."""

    def __init__(self, result: Any):
        reason = getattr(result, "reason", None)
        super().__init__(f"{getattr(result, 'status', 'refused')}: {reason or result.text.strip()}")
        self.result = result


@dataclasses.dataclass(frozen=True)
class _Answer:
    text: str = ""  # the whole result for a model to read
    is_error: bool = False
    raw: Dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @classmethod
    def of(cls: Type[T], result: Dict[str, Any]) -> T:
        text = "".join(block.get("text", "") for block in result.get("content", ()))
        raw = result.get("structuredContent")
        if raw is None:
            raw = cls._words(text)
        names = {f.name for f in dataclasses.fields(cls)} - {"text", "is_error", "raw"}
        return cls(text=text, is_error=bool(result.get("isError")), raw=raw, **{k: v for k, v in raw.items() if k in names})

    @classmethod
    def _words(cls, text: str) -> Dict[str, Any]:
        """What was refused before there was a result has only words."""
        return {}


@dataclasses.dataclass(frozen=True)
class Result(_Answer):
    """What came of a run: docs/run.md."""
    id: Optional[str] = None
    status: str = "refused"
    layer: Optional[str] = None
    reason: Optional[str] = None
    intake: Optional[Dict[str, Any]] = None
    notes: List[str] = dataclasses.field(default_factory=list)
    violations: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    violations_total: int = 0
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated: bool = False
    value: Optional[str] = None
    is_final: bool = False
    final: Optional[str] = None
    error: Optional[Dict[str, Any]] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    usage: Dict[str, Any] = dataclasses.field(default_factory=dict)
    layers: Dict[str, str] = dataclasses.field(default_factory=dict)
    files: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    files_truncated: bool = False
    snapshot: Optional[Dict[str, Any]] = None
    session: Optional[str] = None
    job_id: Optional[str] = None
    elapsed_ms: Optional[int] = None

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @classmethod
    def _words(cls, text: str) -> Dict[str, Any]:
        head, _, rest = text.partition("\n")
        if head.startswith("status: "):
            return {"status": head[8:], "reason": rest.strip()}
        return {"status": "refused", "reason": text.strip()}


@dataclasses.dataclass(frozen=True)
class Report(_Answer):
    """What a judge found: docs/run.md."""
    status: str = "refused"
    layer: Optional[str] = None
    is_safe: bool = False
    risk_level: Optional[str] = None
    blocked_operations: List[str] = dataclasses.field(default_factory=list)
    message: str = ""
    violations: List[Dict[str, Any]] = dataclasses.field(default_factory=list)

    @classmethod
    def _words(cls, text: str) -> Dict[str, Any]:
        return {"status": "refused", "message": text.strip()}


@dataclasses.dataclass(frozen=True)
class Evaluation(_Answer):
    """The value of a condition: docs/expr.md."""
    value: Any = None
    type: Optional[str] = None
    error: Optional[Dict[str, Any]] = None

    @classmethod
    def _words(cls, text: str) -> Dict[str, Any]:
        return {"error": {"type": "refused", "message": text.strip()}}


@dataclasses.dataclass(frozen=True)
class FileInfo(_Answer):
    """What became of a file: docs/serve.md."""
    status: str = "refused"
    reason: Optional[str] = None
    source: Optional[str] = None
    bytes: int = 0
    data: Optional[str] = None
    next_offset: Optional[int] = None

    @classmethod
    def _words(cls, text: str) -> Dict[str, Any]:
        return {"status": "refused", "reason": text.strip()}


@dataclasses.dataclass(frozen=True)
class _Files(_Answer):
    status: str = "refused"
    reason: Optional[str] = None

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @classmethod
    def _words(cls, text: str) -> Dict[str, Any]:
        return {"status": "refused", "reason": text.strip()}


@dataclasses.dataclass(frozen=True)
class FileList(_Files):
    """What is in a folder: docs/serve.md."""
    source: Optional[str] = None
    names: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    cut: bool = False


@dataclasses.dataclass(frozen=True)
class FileMatches(_Files):
    """What a search found: docs/serve.md."""
    source: Optional[str] = None
    matches: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    found: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    cut: bool = False


@dataclasses.dataclass(frozen=True)
class SnapshotInfo(_Files):
    """What was done with the states of a workspace: docs/serve.md."""
    workspace: Optional[str] = None
    id: Optional[str] = None
    snapshots: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    changes: Optional[Dict[str, Any]] = None
    patch: Optional[str] = None
    cut: bool = False


@dataclasses.dataclass(frozen=True)
class SessionInfo(_Answer):
    """What was done with a session, or the sessions that there are."""
    action: str = ""
    session_id: Optional[str] = None
    expires_in_s: Optional[int] = None
    sessions: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
