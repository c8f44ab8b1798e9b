from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.tools.policy import Ruling, authorisation_hash, is_third_party, mode_of, rule
from learngraph_kernel.tools.settings import DEFAULTS, HOST_CODE, SETTINGS, Setting
from learngraph_kernel.tools.values import Effect, Mode
from tests.tools.world import TEXT, closed, spec

HERE = Path("/a/workspace")


def mode(
    *effects: Effect, third_party: bool = False, own: Mode | None = None, isolated: bool = True, **modes: Any
) -> Setting:
    changed = {key.replace("_", "-"): value for key, value in modes.items()}
    return mode_of(
        frozenset(effects), third_party=third_party, mode=own, modes={**DEFAULTS, **changed}, isolated=isolated
    )


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE_NOTEBOOK, Effect.RUN_CODE, Effect.WRITE_WORKSPACE])
def test_what_stays_in_the_box_and_the_workspace_is_allowed(effect: Effect) -> None:
    assert mode(effect) == "always"


@pytest.mark.parametrize("effect", [Effect.DELETE, Effect.NETWORK, Effect.OUTSIDE_WRITE])
def test_what_deletes_or_reaches_out_asks(effect: Effect) -> None:
    assert mode(effect) == mode(effect, Effect.READ) == "gated"


def test_code_outside_of_the_box_asks() -> None:
    assert mode(Effect.RUN_CODE, isolated=False) == "gated"
    assert mode(Effect.RUN_CODE, isolated=False, run_code_on_host="always") == "always"
    assert mode(Effect.RUN_CODE, isolated=True, run_code_on_host="never") == "always"


def test_the_strictest_of_all_effects_counts() -> None:
    for one, other in itertools.product(SETTINGS, repeat=2):
        expected = max(one, other, key=SETTINGS.index)
        assert mode(Effect.READ, Effect.DELETE, read=one, delete=other) == expected


def test_a_third_party_s_claim_to_be_harmless_does_not_count() -> None:
    assert mode(Effect.READ, third_party=True) == "gated"
    assert mode(third_party=True) == "gated"
    assert mode(Effect.READ, third_party=True, own="always") == "always"
    assert mode(Effect.OUTSIDE_WRITE, third_party=True, own="ask") == "ask"


def test_never_holds_against_a_tool_s_own_setting() -> None:
    assert mode(Effect.DELETE, third_party=True, own="always", delete="never") == "never"
    assert mode(Effect.DELETE, own="always", delete="never") == "never"


def test_our_own_tool_s_setting_is_only_ever_stricter() -> None:
    assert mode(Effect.READ, own="ask") == "ask"
    assert mode(Effect.DELETE, own="always") == "gated"


@pytest.mark.parametrize(
    ("setting", "granted", "unattended", "expected"),
    [
        ("always", False, True, Ruling("allow", "allowed")),
        ("gated", False, False, Ruling("ask", "needs_approval", may_always=True)),
        ("gated", True, False, Ruling("allow", "granted")),
        ("gated", True, True, Ruling("allow", "granted")),
        ("gated", False, True, Ruling("refuse", "unattended")),
        ("ask", True, False, Ruling("ask", "needs_approval")),
        ("ask", True, True, Ruling("refuse", "unattended")),
        ("never", True, False, Ruling("refuse", "not_allowed")),
    ],
)
def test_a_ruling_follows_from_setting_grant_and_attendance(
    setting: Setting, granted: bool, unattended: bool, expected: Ruling
) -> None:
    assert rule(setting, granted=granted, unattended=unattended) == expected


CHANGES: list[dict[str, Any]] = [
    {"name": "other"},
    {"version": "2"},
    {"description": "Does something else."},
    {"title": {"en": "Other"}},
    {"effects": frozenset({Effect.NETWORK, Effect.DELETE})},
    {"parameters": closed(what={**TEXT, "maxLength": 201})},
    {"origin": "untrusted"},
    {"redact": frozenset({"what"})},
    {"authorisation": {"endpoint": "https://other.example/mcp"}},
    {"mode": "ask"},
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: next(iter(changes)))
def test_an_authorisation_changes_with_anything_a_tool_is_or_says(changes: dict[str, Any]) -> None:
    before = spec("mcp__a__b", {Effect.NETWORK}, authorisation={"endpoint": "https://a.example/mcp"})
    facts: dict[str, Any] = {"owner": "user:ana", "workspace": HERE, "isolated": True}
    original = authorisation_hash(before, **facts)
    assert authorisation_hash(dataclasses.replace(before), **facts) == original
    assert authorisation_hash(dataclasses.replace(before, **changes), **facts) != original


def test_an_authorisation_is_one_person_s_in_one_workspace_and_one_kind_of_box() -> None:
    tool = spec("run", {Effect.RUN_CODE})
    combinations = itertools.product(("user:ana", "user:bob"), (HERE, HERE / "b"), (True, False))
    hashes = {authorisation_hash(tool, owner=o, workspace=w, isolated=i) for o, w, i in combinations}
    assert len(hashes) == 8


def test_a_tool_with_authorisation_facts_is_a_third_party_s() -> None:
    assert is_third_party(spec("mcp__a__b", {Effect.READ}, authorisation={"endpoint": "x"}))
    assert not is_third_party(spec("read", {Effect.READ}, origin="untrusted"))


def test_every_effect_has_a_default() -> None:
    assert {*map(str, Effect), HOST_CODE} == set(map(str, DEFAULTS))
