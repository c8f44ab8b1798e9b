from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learngraph_kernel.canonical import digest
from learngraph_kernel.store.chain import (
    FIRST_PREVIOUS,
    ChainBroken,
    Event,
    Head,
    NotAnEvent,
    chain,
    check_chain,
    draft,
    place_in_chain,
    possible_names,
)

NAME = "a1" * 32
AT = "2026-12-01T03:00:00.000000Z"


def make(count: int, run: str = "r_1") -> list[Event]:
    events: list[Event] = []
    head: Head | None = None
    for number in range(count):
        event = place_in_chain(draft(run, "cell.started", {"index": number}, actor="user:ana"), head, AT)
        events.append(event)
        head = Head(event.seq, event.hash)
    return events


def rehashed(event: Event, **changes: object) -> Event:
    changed = dataclasses.replace(event, **changes)  # type: ignore[arg-type]
    return dataclasses.replace(changed, hash=chain(changed.prev, changed.as_json()))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.text(), json_values, max_size=4), st.text(), st.text(), st.booleans())
def test_the_hash_is_that_of_the_canonical_event_without_its_hash(
    data: dict[str, object], actor: str, type_: str, after_seal: bool
) -> None:
    event = place_in_chain(draft("r_1", type_, data, actor=actor, after_seal=after_seal), Head(6, "b" * 64), AT)
    body = event.as_json()
    assert body.pop("hash") == digest(body) == chain("b" * 64, body)
    assert (event.seq, event.prev) == (7, "b" * 64)


def test_the_first_event_follows_zeros() -> None:
    assert make(1)[0].prev == FIRST_PREVIOUS == "0" * 64


def test_a_whole_chain_gives_its_head() -> None:
    events = make(5)
    assert check_chain(events) == check_chain(events, expected=Head(5, events[-1].hash)) == Head(5, events[-1].hash)
    assert check_chain([]) is None


Tampering = Callable[[list[Event]], list[Event]]
TAMPERINGS: dict[str, tuple[Tampering, int, str]] = {
    "data changed": (lambda e: [*e[:2], dataclasses.replace(e[2], data={"index": 9}), *e[3:]], 3, "altered"),
    "actor changed": (lambda e: [*e[:2], dataclasses.replace(e[2], actor="user:eve"), *e[3:]], 3, "altered"),
    "hash changed": (lambda e: [*e[:2], dataclasses.replace(e[2], hash="c" * 64), *e[3:]], 3, "altered"),
    "changed and hashed again": (lambda e: [*e[:2], rehashed(e[2], data={}), *e[3:]], 3, "altered"),
    "first changed and hashed again": (lambda e: [rehashed(e[0], data={}), *e[1:]], 1, "altered"),
    "first names a predecessor": (lambda e: [rehashed(e[0], prev="d" * 64), *e[1:]], 1, "altered"),
    "dropped": (lambda e: [*e[:2], *e[3:]], 3, "missing"),
    "first dropped": (lambda e: e[1:], 1, "missing"),
    "swapped": (lambda e: [e[0], e[2], e[1], *e[3:]], 2, "reordered"),
    "last moved to the front": (lambda e: [e[-1], *e[:-1]], 1, "reordered"),
    "repeated": (lambda e: [*e[:3], e[2], *e[3:]], 3, "added"),
    "from another run": (lambda e: [*e[:3], make(4, "r_2")[3], *e[4:]], 4, "added"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_what_was_done_to_the_ledger_is_named(name: str) -> None:
    tamper, seq, kind = TAMPERINGS[name]
    with pytest.raises(ChainBroken) as caught:
        check_chain(tamper(make(5)))
    assert (caught.value.seq, caught.value.kind) == (seq, kind)
    assert "r_1" in str(caught.value) or "r_2" in str(caught.value)


def test_a_cut_off_an_appended_and_a_rebuilt_chain_differ_from_the_expected_head() -> None:
    events = make(5)
    expected = Head(4, events[3].hash)
    for given_events, seq, kind in (
        (events[:3], 4, "missing"),
        (events, 5, "added"),
        ([], 1, "missing"),
        ([*events[:3], rehashed(events[3], data={})], 4, "altered"),
    ):
        with pytest.raises(ChainBroken) as caught:
            check_chain(given_events, expected=expected)
        assert (caught.value.seq, caught.value.kind) == (seq, kind)


def test_an_event_survives_json() -> None:
    event = make(2)[1]
    assert Event.from_json(json.loads(json.dumps(event.as_json()))) == event


@pytest.mark.parametrize(
    ("change", "named"),
    [({"seq": "2"}, "seq"), ({"seq": True}, "seq"), ({"extra": 1}, "extra"), ({"data": []}, "data")],
)
def test_what_is_no_event_is_refused(change: dict[str, object], named: str) -> None:
    with pytest.raises(NotAnEvent, match=named):
        Event.from_json(make(1)[0].as_json() | change)


def test_a_missing_key_and_a_list_are_no_event() -> None:
    with pytest.raises(NotAnEvent, match="prev"):
        Event.from_json({key: value for key, value in make(1)[0].as_json().items() if key != "prev"})
    with pytest.raises(NotAnEvent, match="object"):
        Event.from_json([])


@pytest.mark.parametrize(
    "value",
    [NAME, [NAME], {"$artifact": NAME}, {NAME: 1}, f"urn:sha256:{NAME}", f"\b{NAME}", f"\x1f{NAME}\x0c", f"é{NAME}é"],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_name_is_found_wherever_it_stands(value: object, ascii_only: bool) -> None:
    assert possible_names(json.dumps(value, ensure_ascii=ascii_only).encode()) == [NAME]


def test_longer_shorter_and_upper_case_hex_is_no_name() -> None:
    assert possible_names(json.dumps([NAME + "0", NAME[1:], NAME.upper()]).encode()) == []
