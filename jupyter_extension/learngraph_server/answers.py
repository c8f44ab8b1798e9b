"""What a refusal looks like: one form, a stable code, and the HTTP status that fits it."""

from __future__ import annotations

from typing import Any

from learngraph_kernel.errors import BadInput, LearnGraphError, Unavailable

CONFLICTS = frozenset(
    {"turn_running", "approval_replayed", "approval_stale", "approval_expired", "approval_edited", "revision_changed"}
)
TOO_LARGE = frozenset({"session_too_large", "body_too_large"})


class BadCall(BadInput):
    """A call that is not as the API has it; `details["problems"]` lists what is wrong where."""

    code = "bad_request"


class BodyTooLarge(BadInput):
    """The body of a call is larger than the server takes."""

    code = "body_too_large"


class NoSuchPath(BadInput):
    """The API has no such path."""

    code = "unknown_path"


class NoSuchMethod(BadInput):
    """The path does not take this method."""

    code = "unknown_method"


class NotAllowed(BadInput):
    """Jupyter does not let the caller in: no token, or no XSRF token beside a cookie."""

    code = "not_allowed"


class TooManyCalls(BadInput):
    """The user calls too often."""

    code = "too_many_calls"


def status_of(error: LearnGraphError) -> int:
    """The HTTP status of an error. What belongs to somebody else is as unknown as what does not exist."""
    if error.code in CONFLICTS:
        return 409
    if error.code == "unknown_method":
        return 405
    if error.code in TOO_LARGE:
        return 413
    if error.code == "too_many_calls":
        return 429
    if error.code.startswith("unknown_") or error.code in ("approval_unknown", "approval_foreign"):
        return 404
    if isinstance(error, Unavailable):
        return 503
    return 400 if isinstance(error, BadInput) or error.code.startswith("approval") else 422


def audited(error: LearnGraphError) -> bool:
    """Whether a refusal goes into the audit: too often, too large, or unknown. What the desk refuses it records."""
    outside = error.code.startswith("unknown_") and not isinstance(error, NoSuchPath | NoSuchMethod)
    return outside or error.code == "too_many_calls" or error.code in TOO_LARGE


def body_of(error: LearnGraphError) -> dict[str, Any]:
    """`{"error": {"code", "reason", "place", "remedy", "details"?}}`."""
    return {"error": error.as_json()}
