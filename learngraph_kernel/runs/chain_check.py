"""Reading a ledger file with suspicion: every event that was altered, dropped, added or moved is named by its number.

Works on the bytes as they stand. An event's hash covers its canonical bytes without the `hash` member, and canonical
JSON sorts members, so those bytes are the line with `,"hash":"…"` cut out: nothing has to be canonicalised again, and a
changed blank is as wrong as a changed value.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from learngraph_kernel.canonical import sha256_hex

Kind = Literal["altered", "missing", "added", "reordered", "replaced", "foreign"]

# The end of every canonical event: "data" sorts before "hash", and after it come these and nothing else.
_TAIL = re.compile(
    rb',"hash":"([0-9a-f]{64})","prev":"([0-9a-f]{64})","run":"[^"\\]*","seq":([1-9][0-9]{0,15}),"type":"[^"\\]*"\}\n\Z'
)
_HASH_LENGTH = len(b',"hash":""') + 64


@dataclass(frozen=True, slots=True)
class ChainFault:
    """What is wrong with one event.

    Attributes:
        kind: altered (its own hash fails), missing, added (twice, or beyond the sealed head), reordered, replaced
            (whole in itself but not what the next one follows), foreign (of another run, or on the wrong side of the
            seal).
        seq: the event's number; for an altered event the number its place gives.
        what: one sentence.
    """

    kind: Kind
    seq: int
    what: str


@dataclass(slots=True)
class ChainReader:
    """Reads events in the order of the file, gathering faults.

    Attributes:
        run: id that every event must carry; None takes the first event's.
        first: number the first event must have.
        previous: hash the first event must follow.
        after_seal: which side of the seal these events are on.
        count: number of events there should be, when that is known (from the seal).
    """

    run: str | None
    first: int = 1
    previous: str = "0" * 64
    after_seal: bool = False
    count: int | None = None
    faults: list[ChainFault] = field(default_factory=list)
    _numbers: array[int] = field(default_factory=lambda: array("q"))
    _last: int = 0
    _last_whole: bool = True
    _disorder: bool = False

    def read(self, lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
        """The events that are whole in themselves; `faults` is complete once this is exhausted."""
        self._last = self.first - 1
        for line in lines:
            event = self._whole(line)
            if event is None:
                self._altered()
                continue
            self._placed(event)
            yield event
        self._order()

    def _whole(self, line: bytes) -> Mapping[str, Any] | None:
        tail = _TAIL.search(line)
        if tail is None:
            return None
        at = tail.start()
        if sha256_hex(line[:at] + line[at + _HASH_LENGTH : -1]) != tail.group(1).decode():
            return None
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return event if isinstance(event, dict) and isinstance(event.get("data"), dict) else None

    def _altered(self) -> None:
        number = self._last + 1
        self.faults.append(ChainFault("altered", number, f"event {number} was altered: its own hash does not fit"))
        self._numbers.append(number)
        self._last, self._last_whole = number, False

    def _placed(self, event: Mapping[str, Any]) -> None:
        number = event["seq"]
        if self.run is None:
            self.run = event["run"]
        if event["run"] != self.run:
            self.faults.append(ChainFault("foreign", number, f"event {number} is of run {event['run']}"))
        elif event["after_seal"] is not self.after_seal:
            side = "after" if self.after_seal else "before"
            self.faults.append(ChainFault("foreign", number, f"event {number} is not marked as {side} the seal"))
        if number != self._last + 1:
            self._disorder = True
        elif self._last_whole and event["prev"] != self.previous:
            what = f"event {number} follows another event than the one before it"
            self.faults.append(ChainFault("replaced", max(number - 1, self.first), what))
        self._numbers.append(number)
        self.previous, self._last, self._last_whole = event["hash"], number, True

    def _order(self) -> None:
        """Missing, added and reordered events, from the numbers alone."""
        end = self.first - 1 + (self.count if self.count is not None else len(self._numbers))
        if not self._disorder and self._last == end:
            return
        if self.count is None:
            end = max(self._numbers, default=end)
        seen: set[int] = set()
        highest = self.first - 1
        for number in self._numbers:
            if number in seen:
                self.faults.append(ChainFault("added", number, f"event {number} is there twice"))
            elif not self.first <= number <= end:
                self.faults.append(ChainFault("added", number, f"event {number} lies beyond the sealed head ({end})"))
            elif number < highest:
                self.faults.append(ChainFault("reordered", number, f"event {number} comes after event {highest}"))
            seen.add(number)
            highest = max(highest, number) if number <= end else highest
        self.faults += [
            ChainFault("missing", start, f"event {start} is missing" if start == stop else _span(start, stop))
            for start, stop in _gaps(seen, self.first, end)
        ]


def _span(start: int, stop: int) -> str:
    return f"events {start} to {stop} are missing"


def _gaps(seen: set[int], first: int, end: int) -> Iterator[tuple[int, int]]:
    """Runs of numbers that are not in `seen`, inclusive; `end` may be anything a stranger wrote."""
    due = first
    for number in sorted(number for number in seen if first <= number <= end):
        if number > due:
            yield due, number - 1
        due = number + 1
    if due <= end:
        yield due, end
