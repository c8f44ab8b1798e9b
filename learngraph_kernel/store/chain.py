"""The chain of a run's events: pure values and the rule that ties each event to the one before it.

`hash = sha256(JCS(event without "hash"))`, and an event names its predecessor's hash as `prev`. Whoever holds the last
hash can therefore check every event before it. `check_chain` says what is wrong in terms of what was done to the
ledger: an event was altered, is missing, stands in another order, or was added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from learngraph_kernel.canonical import canonical_json, digest, sha256_hex
from learngraph_kernel.errors import BadInput, ExitCode, LearnGraphError

FIRST_PREVIOUS = "0" * 64
_KEYS: Mapping[str, type] = {
    "run": str,
    "seq": int,
    "type": str,
    "at": str,
    "actor": str,
    "after_seal": bool,
    "data": dict,
    "prev": str,
    "hash": str,
}
Damage = Literal["altered", "missing", "reordered", "added"]


class NotAnEvent(BadInput):
    """A JSON value does not have the form of a ledger event."""

    code = "not_an_event"


class ChainBroken(LearnGraphError):
    """The events of a run are not the ones that were recorded.

    Attributes:
        seq: the event it is about.
        kind: `altered`, `missing`, `reordered` or `added`.
    """

    code = "chain_broken"
    exit_code = ExitCode.MISMATCH

    def __init__(self, run: str, seq: int, kind: Damage, explanation: str) -> None:
        super().__init__(
            f"event {seq} is {kind}: {explanation}",
            where=f"ledger of run {run}",
            remedy="restore the database or the exported folder from a backup",
            details={"run": run, "seq": seq, "kind": kind},
        )
        self.seq = seq
        self.kind: Damage = kind


@dataclass(frozen=True, slots=True)
class Event:
    """One recorded event.

    Attributes:
        run: run id.
        seq: position in the run, from 1.
        type: e.g. `call.completed`.
        at: UTC, `2026-12-01T03:00:00.000000Z`.
        actor: who, e.g. `user:ana`.
        after_seal: added later, outside the sealed part.
        data: JSON object; its keys depend on the type.
        prev: hash of the event before, 64 zeros for the first.
        hash: hash of this event.
    """

    run: str
    seq: int
    type: str
    at: str
    actor: str
    after_seal: bool
    data: Mapping[str, Any]
    prev: str
    hash: str

    def as_json(self) -> dict[str, Any]:
        """The event as it is exported, with its hash."""
        return {key: getattr(self, key) for key in _KEYS}

    @classmethod
    def from_json(cls, body: Any) -> Event:
        """The inverse of `as_json`. Raises NotAnEvent: keys are missing, unknown or of another type."""
        if not isinstance(body, dict):
            raise NotAnEvent("a ledger event must be a JSON object")
        odd = sorted(_KEYS.keys() ^ body.keys())
        if odd:
            raise NotAnEvent(f"missing or unknown key: {', '.join(odd)}", where=_place(body))
        wrong = [key for key, kind in _KEYS.items() if type(body[key]) is not kind]
        if wrong:
            raise NotAnEvent(f"{wrong[0]} must be of type {_KEYS[wrong[0]].__name__}", where=_place(body))
        return cls(**body)


@dataclass(frozen=True, slots=True)
class Head:
    """The last event of a chain: its position and its hash."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that has no place in its chain yet. `data` is canonical already."""

    run: str
    type: str
    actor: str
    after_seal: bool
    data: Mapping[str, Any]
    canonical_data: bytes


def draft(run: str, type: str, data: Mapping[str, Any], *, actor: str, after_seal: bool = False) -> Draft:
    """Prepares an event. Raises NotCanonical: `data` holds something JSON has no canonical form for."""
    return Draft(run, type, actor, after_seal, data, canonical_json(data))


def chain(previous_hash: str, body: Mapping[str, Any]) -> str:
    """The hash of an event.

    Args:
        previous_hash: hash of the event before it; 64 zeros for the first.
        body: the event's JSON object; `prev` and `hash` in it are not looked at.

    Returns:
        64 lower-case hex digits.
    """
    plain = {key: value for key, value in body.items() if key != "hash"}
    return digest({**plain, "prev": previous_hash})


def place_in_chain(event: Draft, previous: Head | None, at: str) -> Event:
    """Gives a draft its place after `previous`.

    The canonical bytes are put together round the canonical `data`, so that a large `data` is canonicalised once;
    the key order below is that of RFC 8785 for these names.
    """
    seq = 1 if previous is None else previous.seq + 1
    prev = FIRST_PREVIOUS if previous is None else previous.hash
    start = canonical_json({"actor": event.actor, "after_seal": event.after_seal, "at": at})
    end = canonical_json({"prev": prev, "run": event.run, "seq": seq, "type": event.type})
    hash_ = sha256_hex(b"".join((start[:-1], b',"data":', event.canonical_data, b",", end[1:])))
    return Event(event.run, seq, event.type, at, event.actor, event.after_seal, event.data, prev, hash_)


def check_chain(events: Iterable[Event], *, expected: Head | None = None) -> Head | None:
    """Checks a run's events, in the order in which they are handed in; streams.

    Args:
        events: from the first on.
        expected: the last event as known from elsewhere (the seal); with it, cut-off, appended and re-hashed events
            are found as well.

    Returns:
        The last event's place and hash; None when there are no events.

    Raises:
        ChainBroken: the first event that is wrong.
    """
    head: Head | None = None
    run: str | None = None
    iterator = iter(events)
    for event in iterator:
        run = run or event.run
        _check_next(event, head, run, iterator)
        head = Head(event.seq, event.hash)
    if expected is not None:
        _check_end(run or "?", head or Head(0, FIRST_PREVIOUS), expected)
    return head


def _check_next(event: Event, head: Head | None, run: str, rest: Iterator[Event]) -> None:
    due = 1 if head is None else head.seq + 1
    if event.run != run:
        raise ChainBroken(run, due, "added", f"an event of run {event.run} stands in its place")
    if event.seq > due:
        if any(later.seq == due for later in rest):
            raise ChainBroken(run, due, "reordered", f"event {event.seq} stands before it")
        raise ChainBroken(run, due, "missing", f"event {event.seq} follows event {due - 1}")
    if event.seq < due:
        raise ChainBroken(run, event.seq, "added", "a second event has this number")
    if chain(event.prev, event.as_json()) != event.hash:
        raise ChainBroken(run, event.seq, "altered", "its hash is not the hash of its content")
    previous = FIRST_PREVIOUS if head is None else head.hash
    if event.prev != previous:
        changed = max(due - 1, 1)
        raise ChainBroken(run, changed, "altered", f"event {event.seq} names another hash for the event before it")


def _check_end(run: str, head: Head, expected: Head) -> None:
    if head.seq < expected.seq:
        raise ChainBroken(run, head.seq + 1, "missing", f"the ledger ends at event {head.seq} of {expected.seq}")
    if head.seq > expected.seq:
        raise ChainBroken(run, expected.seq + 1, "added", f"the ledger should end at event {expected.seq}")
    if head.hash != expected.hash:
        raise ChainBroken(run, expected.seq, "altered", "the chain is whole but ends in another hash than expected")


# Where an artifact may be named: 64 lower-case hex digits that no other hex digit adjoins. A JSON escape that ends in
# a hex digit (\b, \f, \u001f) is no neighbour. Anything that looks like a name counts as one: too many is harmless.
_NAMES = re.compile(rb"(?:(?<![0-9a-f])|(?<=\\[bf])|(?<=\\u[0-9a-fA-F]{4}))[0-9a-f]{64}(?![0-9a-f])")


def possible_names(json_bytes: bytes) -> list[str]:
    """Everything in JSON bytes that may be the name of an artifact, each once, in order of appearance."""
    return list(dict.fromkeys(match.decode() for match in _NAMES.findall(json_bytes)))


def _place(body: Mapping[str, Any]) -> str | None:
    return f"event {body['seq']}" if isinstance(body.get("seq"), int) else None
