"""What sandboxd says no with: one class a status, so that both ends of the socket raise the same thing.

The daemon raises these and answers with `status` and `as_json()`; the client reads the answer and raises the same class
again. Every refusal has a stable `code`, and its Chinese text travels in `details["zh"]`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from learngraph_kernel.errors import ExitCode, LearnGraphError


class Refusal(LearnGraphError):
    """The call was understood and is not carried out.

    Args:
        what: the reason, one sentence.
        code: stable name for programs.
        remedy: what the caller can do.
        zh: reason and remedy in Chinese.
    """

    status: ClassVar[int] = 400
    exit_code = ExitCode.USAGE

    def __init__(
        self,
        what: str,
        *,
        code: str,
        remedy: str | None = None,
        zh: tuple[str, str] | None = None,
        where: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        facts = dict(details or {})
        if zh is not None:
            facts["zh"] = {"reason": zh[0], "remedy": zh[1]}
        super().__init__(what, where=where, remedy=remedy, details=facts)
        self.code = code  # type: ignore[misc]


class BadRequest(Refusal):
    """400: a field is missing, unknown or out of range."""


class Unauthenticated(Refusal):
    """401: who is calling is not known."""

    status = 401
    exit_code = ExitCode.FAILED


class Forbidden(Refusal):
    """403: the caller is known, and the ticket or policy does not allow this."""

    status = 403
    exit_code = ExitCode.FAILED


class NotFound(Refusal):
    """404: there is no such thing, or it is somebody else's."""

    status = 404


class Conflict(Refusal):
    """409: it contradicts what is there."""

    status = 409
    exit_code = ExitCode.FAILED


class TooLarge(Refusal):
    """413: more bytes than this takes."""

    status = 413


class OverCapacity(Refusal):
    """429: a guard rail; later it may work."""

    status = 429
    exit_code = ExitCode.FAILED


class NotReady(Refusal):
    """503: sandboxd, the engine or the image is missing or failing."""

    status = 503
    exit_code = ExitCode.FAILED


_BY_STATUS: dict[int, type[Refusal]] = {
    kind.status: kind
    for kind in (BadRequest, Unauthenticated, Forbidden, NotFound, Conflict, TooLarge, OverCapacity, NotReady)
}


def from_answer(status: int, error: dict[str, Any]) -> Refusal:
    """The refusal an answer's `error` object stands for."""
    kind = _BY_STATUS.get(status, NotReady if status >= 500 else BadRequest)
    return kind(
        str(error.get("reason", f"sandboxd answered {status}")),
        code=str(error.get("code", "sandboxd_fault")),
        where=error.get("place"),
        remedy=error.get("remedy"),
        details=error.get("details"),
    )
