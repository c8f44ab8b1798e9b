from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learngraph_kernel.schemas import violations
from learngraph_kernel.tools.errors import ToolRefused
from learngraph_kernel.tools.schema_guard import guard_schema, property_names, without

STRING = {"type": "string", "maxLength": 5}


def of(*, top: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **(top or {})}


def accepted(schema: Any) -> bool:
    try:
        guard_schema(schema, where="a_tool")
    except ToolRefused:
        return False
    return True


@pytest.mark.parametrize(
    "schema",
    [
        of(),
        of(a=STRING, b={"enum": ["x", 1, None]}, c={"const": 3}, d={"type": "integer", "minimum": 1}),
        of(a={"type": "array", "maxItems": 3, "items": STRING}, top={"required": ["a"]}),
        of(a={"type": ["string", "null"], "maxLength": 5, "format": "date"}),
        of(a={"anyOf": [STRING, {"type": "null"}]}),
        of(a={"$ref": "#/$defs/name"}, top={"$defs": {"name": STRING}}),
        of(top={"$schema": "https://json-schema.org/draft/2020-12/schema"}, a=of(b=STRING)),
    ],
)
def test_closed_and_bounded_schemas_are_accepted(schema: dict[str, Any]) -> None:
    guard_schema(schema, where="a_tool")


@pytest.mark.parametrize(
    ("schema", "path", "why"),
    [
        ({"type": "object", "properties": {}}, "$", "closed"),
        (of(top={"additionalProperties": STRING}), "$", "closed"),
        (of(a={"type": "object", "properties": {}}), "$.properties.a", "closed"),
        (of(a={"type": "string"}), "$.properties.a", "maxLength"),
        (of(a={"type": "string", "maxLength": 10**7}), "$.properties.a", "maxLength"),
        (of(a={"type": ["string", "null"]}), "$.properties.a", "maxLength"),
        (of(a={"type": "array", "items": STRING}), "$.properties.a", "maxItems"),
        (of(a={"type": "array", "maxItems": 3}), "$.properties.a", "items"),
        (of(a={"type": "array", "maxItems": 3, "items": {"type": "string"}}), "$.properties.a.items", "maxLength"),
        (of(a={}), "$.properties.a", "no type"),
        (of(a=True), "$.properties.a", "true or false"),
        (of(a={"description": "anything"}), "$.properties.a", "no type"),
        (of(a={**STRING, "pattern": "^(a+)+$"}), "$.properties.a", "`pattern`"),
        (of(top={"patternProperties": {"^x": STRING}}), "$", "`patternProperties`"),
        (of(a={"not": STRING}), "$.properties.a", "`not`"),
        (of(a={"$ref": "https://evil.example/schema.json"}), "$.properties.a", "`$ref`"),
        (of(a={"$ref": "#"}), "$.properties.a", "`$ref`"),
        (of(a={"$ref": "#/properties/a"}), "$.properties.a", "`$ref`"),
        (of(a={"$ref": "#/$defs/missing"}), "$.properties.a", "`$ref`"),
        (of(a={"$dynamicRef": "#x"}), "$.properties.a", "`$dynamicRef`"),
        (of(a={**STRING, "$id": "https://evil.example/"}), "$.properties.a", "`$id`"),
        (of(a=of(top={"$defs": {}})), "$.properties.a", "`$defs`"),
        (of(a={"anyOf": [STRING, {"type": "string"}]}), "$.properties.a.anyOf[1]", "maxLength"),
        (of(top={"required": ["b"]}), "$", "requires"),
        (of(a={"type": "string", "enum": ["x" * 20_000]}), "$.properties.a", "listed values"),
        ({"type": "array", "maxItems": 1, "items": STRING}, "$", "an object"),
        (of(top={"$schema": "http://json-schema.org/draft-04/schema#"}), "$.$schema", "2020-12"),
        (of(top={"$schema": 3}), "$.$schema", "2020-12"),
        (of(a={"type": "text"}), "$", "not a valid"),
        (of(a={"type": "integer", "minimum": float("inf")}), "$", "not a valid"),
        (of(a={"$ref": "#/$defs/d"}, top={"$defs": {"d": of(a={"$ref": "#/$defs/d"})}}), ".$ref(d)", "circle"),
        (of(**{f"p{n}": STRING for n in range(1_001)}), "$.properties.p", "more than 1000"),
        (of(a={**STRING, "description": "x" * 70_000}), "$", "bytes"),
    ],
)
def test_what_is_open_unbounded_or_fetched_is_refused_with_its_place(
    schema: dict[str, Any], path: str, why: str
) -> None:
    with pytest.raises(ToolRefused) as refused:
        guard_schema(schema, where="a_tool")
    assert path in refused.value.details["path"]
    assert why in refused.value.what
    assert refused.value.where == "a_tool"


def test_a_schema_of_great_depth_is_refused_and_does_not_end_the_process() -> None:
    schema: dict[str, Any] = STRING
    for _ in range(2_000):
        schema = of(a=schema)
    assert not accepted(schema)


def test_a_model_is_not_shown_what_the_platform_sets() -> None:
    schema = of(a=STRING, chat_session_id=STRING, top={"required": ["a", "chat_session_id"]})
    assert without(schema, frozenset({"chat_session_id"})) == of(a=STRING, top={"required": ["a"]})
    assert set(property_names(of(a={"type": "array", "maxItems": 1, "items": of(b=STRING)}))) == {"a", "b"}


# Any schema the guard accepts bounds what passes it, and any way of loosening one is refused.

leaves = st.one_of(
    st.just({"type": "boolean"}),
    st.builds(lambda n: {"type": "integer", "minimum": n}, st.integers(-5, 5)),
    st.builds(lambda n: {"type": "string", "maxLength": n}, st.integers(0, 20)),
    st.builds(lambda n: {"type": ["null", "string"], "maxLength": n}, st.integers(0, 20)),
    st.builds(lambda v: {"enum": v}, st.lists(st.text(max_size=5), min_size=1, max_size=3, unique=True)),
)
names = st.sampled_from(["a", "b", "c"])


def bigger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.dictionaries(names, inner, max_size=3).map(lambda properties: of(**properties)),
        st.builds(lambda items, n: {"type": "array", "items": items, "maxItems": n}, inner, st.integers(0, 4)),
        st.lists(inner, min_size=1, max_size=2).map(lambda branches: {"anyOf": branches}),
    )


schemas = st.dictionaries(names, st.recursive(leaves, bigger, max_leaves=8), max_size=3).map(lambda p: of(**p))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=4), st.just("long" * 200)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=6), st.dictionaries(st.sampled_from(["a", "b", "c", "other"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema, itself first."""
    yield schema
    inside = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for part in [*inside, *([schema["items"]] if "items" in schema else [])]:
        yield from nodes(part)


def longest(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict | list):
        return max((longest(item) for item in (value.values() if isinstance(value, dict) else value)), default=0)
    return 0


@settings(max_examples=150, deadline=None)
@given(schema=schemas, value=st.dictionaries(names, values, max_size=3))
def test_what_passes_an_accepted_schema_is_small(schema: dict[str, Any], value: Any) -> None:
    guard_schema(schema, where="a_tool")
    if not violations(value, schema):
        assert longest(value) <= 20
        assert '"other"' not in json.dumps(value)


LOOSENINGS = (
    lambda node: node.pop("additionalProperties", None) is not None,
    lambda node: node.pop("maxLength", None) is not None,
    lambda node: node.pop("maxItems", None) is not None,
    lambda node: node.pop("items", None) is not None,
    lambda node: node.pop("type", None) is not None and not {"enum"} & node.keys(),
    lambda node: node.setdefault("pattern", "x") == "x",
    lambda node: node.setdefault("$ref", "https://evil.example") is not None,
    lambda node: node.setdefault("unevaluatedProperties", True),
    lambda node: node.setdefault("$anchor", "x") == "x",
)


@settings(max_examples=150, deadline=None)
@given(schema=schemas, data=st.data())
def test_a_schema_that_is_loosened_anywhere_is_refused(schema: dict[str, Any], data: st.DataObject) -> None:
    loose = copy.deepcopy(schema)
    node = data.draw(st.sampled_from(list(nodes(loose))))
    if data.draw(st.sampled_from(LOOSENINGS))(node):
        assert not accepted(loose)


@settings(max_examples=150, deadline=None)
@given(schema=values)
def test_whatever_is_handed_in_is_accepted_or_refused_and_nothing_else(schema: Any) -> None:
    accepted(schema if isinstance(schema, dict) else {"type": "object", "properties": schema})
