"""What a policy says when it refuses: a stable code, a reason, the place, and a remedy in English and Chinese."""

from __future__ import annotations

from typing import Any, ClassVar

from learngraph_kernel.errors import BadInput


class PolicyRefused(BadInput):
    """A sandbox policy refuses the request; nothing was run and nothing was changed.

    `rule` names the rule that refused, for programs; the remedy in Chinese is in `details["remedy_zh"]`.
    """

    code: ClassVar[str] = "policy_refused"

    def __init__(self, rule: str, reason: str, *, place: str, remedy: str, remedy_zh: str, **details: Any) -> None:
        super().__init__(reason, where=place, remedy=remedy, details={"rule": rule, "remedy_zh": remedy_zh, **details})
        self.rule = rule
        self.remedy_zh = remedy_zh


def printable(text: str, limit: int = 80) -> str:
    """Text from a stranger, made safe for a message: control, bidi and undecodable characters are escaped."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"
