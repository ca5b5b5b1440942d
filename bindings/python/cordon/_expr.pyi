# SPDX-License-Identifier: Apache-2.0
from typing import Any, Callable, Iterable, Mapping, Optional, Tuple, Union

ALLOWED_CTX_KEYS: Tuple[str, ...]

class LimitError(RuntimeError): ...

class UnsafeExpressionError(ValueError):
    line: int
    column: int
    hint: Optional[str]

class Schema:
    def __init__(self, keys: Union[str, Mapping[str, Any], Iterable[str]]) -> None: ...

Keys = Union[None, Schema, str, Mapping[str, Any], Iterable[str]]

def compile_condition(expression: str, schema: Keys = None, *, require_keys: bool = False, strict: bool = False) -> Callable[[Mapping[str, Any]], Any]: ...
def validate_condition(expression: str, schema: Keys = None) -> Tuple[bool, Optional[str]]: ...
