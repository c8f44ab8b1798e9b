from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings

from learngraph_kernel.schemas import violations
from learngraph_kernel.tools.errors import ToolRefused
from learngraph_kernel.tools.schema_guard import guard_schema
from learngraph_kernel.tools.schema_tightening import STRING, tightened
from tests.tools.test_schema_guard import schemas, values


def test_what_a_server_leaves_open_is_closed_and_bounded() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "query": {"type": "string", "pattern": "^a", "description": "what to look for"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 10}},
            "anything": {},
            "filter": {"properties": {"a": {"$ref": "#/definitions/a"}}, "additionalProperties": True},
        },
        "required": ["query", "missing"],
        "anyOf": [{"required": ["tags"]}, {"required": ["filter"]}],
        "definitions": {"a": {"type": ["string", "null"]}},
    }
    tight = tightened(schema)
    guard_schema(tight, where="mcp__a__b")
    assert tight["properties"]["query"] == {"type": "string", "description": "what to look for", "maxLength": STRING}
    fine = {"query": "x", "missing": 1, "tags": ["a"], "anything": 3, "filter": {"a": None}}
    assert violations(fine, tight) == []
    for wrong in ({**fine, "more": 1}, {**fine, "filter": {"b": 1}}, {**fine, "anything": {}}, {"query": "x"}):
        assert violations(wrong, tight) != []


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}}}}},
        {"properties": {"a": {"$ref": "https://evil.example/a.json"}}},
        {"properties": {"a": {"type": "text"}}},
    ],
)
def test_what_cannot_be_bounded_is_still_refused_by_the_guard(schema: dict[str, Any]) -> None:
    with pytest.raises(ToolRefused):
        guard_schema(tightened(schema), where="mcp__a__b")


@settings(max_examples=100, deadline=None)
@given(schema=schemas)
def test_a_tight_schema_still_means_the_same(schema: dict[str, Any]) -> None:
    tight = tightened(schema)
    guard_schema(tight, where="a_tool")
    assert tightened(tight) == tight


@settings(max_examples=100, deadline=None)
@given(schema=values)
def test_any_nonsense_is_tightened_or_refused(schema: Any) -> None:
    with contextlib.suppress(ToolRefused):
        guard_schema(tightened(schema if isinstance(schema, dict) else {"properties": schema}), where="a_tool")
