"""What one query may cost (rows and bytes stored, seconds spent), and what one run may ask.

Rows and bytes cut the result and say so (a truncated snapshot cannot feed a metric); seconds end the query with an
error, because half a computation is not a result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.naming import suggestion


class QueryTimeout(LearnGraphError):
    """The query ran longer than its source allows; the engine was interrupted."""

    code = "query_timeout"


class BadLimits(BadInput):
    """A `limits` table that cannot be used."""

    code = "bad_limits"


@dataclass(frozen=True, slots=True)
class Limits:
    """The most one query may take.

    Attributes:
        rows: rows stored before the result is cut.
        bytes: Arrow bytes stored before the result is cut.
        seconds: wall time from the start of execution to the last row.
    """

    rows: int = 5_000_000
    bytes: int = 1 << 30
    seconds: float = 60.0

    @classmethod
    def from_config(cls, table: Mapping[str, Any], where: str) -> Limits:
        """A `limits = {rows = …}` table. Raises BadLimits naming the wrong key or value."""
        return cls(**_checked(table, cls.__slots__, where))


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The most one run may ask: the `[runs]` table of learngraph.toml.

    Attributes:
        calls: calls its kernel may make in all.
        seconds: how long its kernel's ticket is good for.
    """

    calls: int = 10_000
    seconds: float = 24 * 3600.0

    @classmethod
    def from_config(cls, table: Mapping[str, Any], where: str) -> RunLimits:
        """The table as written. Raises BadLimits naming the wrong key or value."""
        return cls(**_checked(table, cls.__slots__, where))


def _checked(table: Mapping[str, Any], known: Collection[str], where: str) -> Mapping[str, Any]:
    for key, value in table.items():
        if key not in known:
            raise BadLimits(f"unknown limit {key!r}", where=where, remedy=suggestion(key, known, kind="limits"))
        number = (int, float) if key == "seconds" else (int,)
        if isinstance(value, bool) or not isinstance(value, number) or value <= 0:
            raise BadLimits(f"limit {key!r} must be a positive number, not {value!r}", where=where)
    return table


class Deadline:
    """A clock that interrupts an engine from its own thread and remembers that it did."""

    def __init__(self, seconds: float, interrupt: Callable[[], None]) -> None:
        self.seconds = seconds
        self.passed = False
        self._interrupt = interrupt
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="learngraph-query-deadline", daemon=True)

    def start(self) -> None:
        """Start the clock."""
        self._thread.start()

    def _watch(self) -> None:
        if self._done.wait(self.seconds):
            return
        self.passed = True
        # Again and again: an engine forgets an interrupt that arrives between two of its steps.
        while not self._done.is_set():
            self._interrupt()
            self._done.wait(0.05)

    def stop(self) -> None:
        """Stop the clock; afterwards the engine is never interrupted by it."""
        self._done.set()
        self._thread.join()

    def error(self, source: str) -> QueryTimeout:
        """The error to raise once the clock has run out."""
        return QueryTimeout(
            f"the query was stopped after {self.seconds:g} s",
            where=source,
            remedy="ask for less, aggregate in SQL, or raise limits.seconds of this source in learngraph.toml",
        )


@contextmanager
def deadline(seconds: float, interrupt: Callable[[], None]) -> Iterator[Deadline]:
    """A running `Deadline`, stopped on the way out."""
    clock = Deadline(seconds, interrupt)
    clock.start()
    try:
        yield clock
    finally:
        clock.stop()
