"""Permission to delete: exact paths, a time, one use."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from sqlalchemy import Engine

from learngraph_kernel.sandbox.paths import PathRefused
from learngraph_kernel.sandboxd.grants import DeletionNotGranted, GrantRefused, Grants

START = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> dt.datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += dt.timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def grants(database: Engine, clock: Clock) -> Grants:
    return Grants(database, clock=clock)


def test_a_grant_covers_exactly_its_paths_once(grants: Grants) -> None:
    grants.give("w", ["work/a", "work/d/"], ttl=60, by="ana")
    deleted = ["work/a", "work/ab", "work/d", "work/d/x/y", "work/dd"]
    assert grants.claim("w", deleted, by="e1") == {"work/a", "work/d", "work/d/x/y"}
    assert grants.claim("w", deleted, by="e2") == frozenset()


def test_a_plain_path_does_not_cover_what_lies_below_it(grants: Grants) -> None:
    grants.give("w", ["work/d"], ttl=60, by="ana")
    assert grants.claim("w", ["work/d/x"], by="e1") == frozenset()
    assert grants.claim("w", ["work/d"], by="e1") == {"work/d"}


def test_a_grant_that_covers_nothing_stays_good(grants: Grants) -> None:
    grants.give("w", ["work/a"], ttl=60, by="ana")
    assert grants.claim("w", ["work/b"], by="e1") == frozenset()
    assert grants.claim("other", ["work/a"], by="e1") == frozenset()
    assert grants.claim("w", ["work/a"], by="e2") == {"work/a"}


def test_a_grant_ends(grants: Grants, clock: Clock) -> None:
    grants.give("w", ["work/a"], ttl=60, by="ana")
    clock.forward(60)
    assert grants.claim("w", ["work/a"], by="e1") == frozenset()


@pytest.mark.parametrize("ttl", [0, 59.9, 86_401, -1, float("nan"), float("inf")])
def test_a_grant_lasts_between_a_minute_and_a_day(grants: Grants, ttl: float) -> None:
    with pytest.raises(GrantRefused):
        grants.give("w", ["work/a"], ttl=ttl, by="ana")


@pytest.mark.parametrize("path", ["inputs/a", "work", "work/", "/work/a", "work/../inputs/a", "", "C:/x", "work/a//"])
def test_only_paths_below_work_are_granted(grants: Grants, path: str) -> None:
    with pytest.raises(PathRefused):
        grants.give("w", [path], ttl=60, by="ana")


def test_a_grant_names_some_paths_and_not_too_many(grants: Grants) -> None:
    for paths in ([], ["work/a"] * 1001):
        with pytest.raises(GrantRefused):
            grants.give("w", paths, ttl=60, by="ana")


def test_a_removal_is_granted_as_a_whole_or_challenged(grants: Grants) -> None:
    grants.give("w", ["work/a"], ttl=60, by="ana")
    with pytest.raises(DeletionNotGranted) as challenge:
        grants.claim_all("w", ["work/a", "work/b"], recursive=False, by="e1")
    assert challenge.value.details["paths"] == ["work/b"]
    grants.give("w", ["work/b"], ttl=60, by="ana")
    grants.claim_all("w", ["work/a", "work/b"], recursive=False, by="e2")
    with pytest.raises(DeletionNotGranted):
        grants.claim_all("w", ["work/a"], recursive=False, by="e3")


def test_a_recursive_removal_needs_a_grant_for_the_folder(grants: Grants) -> None:
    grants.give("w", ["work/d"], ttl=60, by="ana")
    with pytest.raises(DeletionNotGranted) as challenge:
        grants.claim_all("w", ["work/d"], recursive=True, by="e1")
    assert challenge.value.details["paths"] == ["work/d/"]
    grants.give("w", challenge.value.details["paths"], ttl=60, by="ana")
    grants.claim_all("w", ["work/d"], recursive=True, by="e2")


@pytest.mark.parametrize("attempt", range(10))
def test_two_commands_cannot_share_a_grant(grants: Grants, attempt: int) -> None:
    grants.give("w", ["work/a"], ttl=60, by="ana")
    won: list[frozenset[str]] = []
    threads = [
        threading.Thread(target=lambda by=f"e{each}": won.append(grants.claim("w", ["work/a"], by=by)))
        for each in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, won)) == [0, 0, 0, 1]
