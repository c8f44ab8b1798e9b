"""Every error a person or a program meets comes from here.

A message says *what* went wrong, *where*, and what to do about it (the *remedy*); `code` is stable for
programs, and `exit_code` is what the command line returns. Packages subclass `LearnGraphError` beside the
code that raises; nothing matches on message text.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar


class ExitCode(IntEnum):
    """What the `learngraph` command returns; documented in the README and relied upon by scripts."""

    COMPLETED = 0
    FAILED = 1
    USAGE = 2
    WITHHELD = 3
    WAITING = 4
    MISMATCH = 5


class LearnGraphError(Exception):
    """Base of every error raised on purpose.

    Args:
        what: one sentence, without a trailing remedy.
        where: file, cell, line, citation or column it is about.
        remedy: what the reader can do next.
        details: JSON-able facts for programs.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy
        self.details = details or {}

    def __str__(self) -> str:
        text = self.what if self.where is None else f"{self.where}: {self.what}"
        return text if self.remedy is None else f"{text} — {self.remedy}"

    def as_json(self) -> dict[str, Any]:
        """The error as the command line and the broker print it."""
        body: dict[str, Any] = {"code": self.code, "reason": self.what, "place": self.where, "remedy": self.remedy}
        if self.details:
            body["details"] = self.details
        return body


class BadInput(LearnGraphError):
    """Something the caller handed in cannot be used as it is."""

    code = "bad_input"
    exit_code = ExitCode.USAGE


class Unavailable(LearnGraphError):
    """A capability is missing here; the reason and the remedy are in the message."""

    code = "unavailable"
