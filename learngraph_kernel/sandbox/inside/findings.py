"""What an inspection says, and how much it may say: every list and every text in it is bounded."""

from __future__ import annotations

from typing import Any, TypeAlias

Details: TypeAlias = dict[str, Any]

MAX_ITEMS = 200
MAX_TEXT = 120


class Unreadable(Exception):
    """The file is not what it claims to be, or too large to look at; the message says which."""


class Warnings:
    """Codes with a message each; a code is given once, with the first place it was met and how often."""

    def __init__(self) -> None:
        self._found: dict[str, Details] = {}

    def add(self, code: str, message: str, place: str | None = None) -> None:
        """Notes a finding. Takes a stable code, a sentence, and a name inside the file."""
        known = self._found.setdefault(code, {"code": code, "message": message, "place": clean(place), "count": 0})
        known["count"] += 1

    def __contains__(self, code: str) -> bool:
        return code in self._found

    def as_json(self) -> list[Details]:
        """All findings, in the order they were met."""
        return list(self._found.values())


def clean(text: str | None, limit: int = MAX_TEXT) -> str | None:
    """Text from the file as one short printable line: control and format characters are escaped."""
    if text is None:
        return None
    cut = text[: limit * 2]
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in cut)
    return safe if len(safe) <= limit and len(cut) == len(text) else safe[: limit - 1] + "…"
