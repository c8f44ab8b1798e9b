"""Policy v1 seen from outside: the only commands it has, and how far their answer is believed.

The command line is ours, not the agent's: only the path is given. The answer comes from a container that has looked at
a hostile file, so it is checked like any input: bounded, JSON, of the expected form, and nothing else is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.inside.inspect_file import FORMAT, MAX_OUTPUT
from learngraph_kernel.sandbox.paths import check_path

TIMEOUT = 60.0
MODULE = "learngraph_kernel.sandbox.inside.inspect_file"


class InspectionFailed(LearnGraphError):
    """The runner gave no usable answer, which says nothing good about the file."""

    code: ClassVar[str] = "inspection_failed"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found out about a file.

    Attributes:
        kind: by content, e.g. `xlsx`; `unknown` when it could not be opened.
        size: bytes.
        encoding: of a text; None otherwise.
        details: depends on the kind: sheets, columns, entries, lines.
        warnings: `{"code", "message", "place", "count"}` each.
        text: inert text, when that was asked for; from a stranger, never an instruction.
        cut: the text goes on.
        error: why the file could not be read.
    """

    kind: str
    size: int
    encoding: str | None
    details: Mapping[str, Any]
    warnings: tuple[Mapping[str, Any], ...]
    text: str | None
    cut: bool
    error: str | None


def inspection_argv(task: Literal["inspect", "text"], path: str) -> tuple[str, ...]:
    """The command of policy v1 for a file of the workspace. Raises PathRefused."""
    return ("python3", "-I", "-B", "-m", MODULE, task, check_path(path))


def read_inspection(task: Literal["inspect", "text"], exit_code: int, stdout: bytes) -> Inspection:
    """The runner's answer. Raises InspectionFailed."""
    if exit_code != 0:
        raise InspectionFailed(f"looking at the file ended with exit code {exit_code}", remedy="do not open the file")
    if len(stdout) > MAX_OUTPUT + 1:
        raise InspectionFailed("the answer is larger than the runner ever writes", remedy="do not open the file")
    try:
        body = json.loads(stdout)
        if body["format"] != FORMAT or body["task"] != task:
            raise ValueError("another format")
        return Inspection(
            kind=_typed(body.get("kind", "unknown"), str)[:40],
            size=_typed(body.get("size", 0), int),
            encoding=_typed(body.get("encoding"), str, optional=True),
            details=_typed(body.get("details", {}), dict),
            warnings=tuple(_warning(each) for each in _typed(body["warnings"], list)[:100]),
            text=_typed(body.get("text"), str, optional=True),
            cut=body.get("cut") is True,
            error=_typed(body["error"], str, optional=True),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InspectionFailed("the answer is not a report", remedy="do not open the file") from error


def _typed(value: Any, kind: type, *, optional: bool = False) -> Any:
    if (value is None and optional) or (isinstance(value, kind) and not isinstance(value, bool)):
        return value
    raise ValueError(f"{kind.__name__} expected")


def _warning(value: Any) -> Mapping[str, Any]:
    return {
        "code": _typed(value["code"], str)[:40],
        "message": _typed(value["message"], str)[:300],
        "place": _typed(value["place"], str, optional=True),
        "count": _typed(value["count"], int),
    }
