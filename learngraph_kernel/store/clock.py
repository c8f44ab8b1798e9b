"""Time as the store writes it, and what a clock is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], dt.datetime]
"""Returns the current time, aware, in UTC."""


def utcnow() -> dt.datetime:
    """The system's clock."""
    return dt.datetime.now(dt.UTC)


def to_text(moment: dt.datetime) -> str:
    """An aware time as `2026-12-01T03:00:00.000000Z`; sorts as it reads."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> dt.datetime:
    """The inverse of `to_text`. Raises ValueError."""
    return dt.datetime.fromisoformat(text)
