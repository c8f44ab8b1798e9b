from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.tools.errors import ToolExists, ToolRefused
from learngraph_kernel.tools.registry import Entry, Registry
from learngraph_kernel.tools.settings import ToolSettings
from learngraph_kernel.tools.values import CallContext, Effect, Tool, ToolResult, ToolScope
from tests.tools.world import TEXT, closed, spec

READ = {Effect.READ}


async def nothing(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    return ToolResult("ok", None)


def tool(name: str, parameters: Mapping[str, Any] | None = None, **more: Any) -> Tool:
    return Tool(spec(name, READ, parameters, **more), nothing)


def scope(**more: Any) -> ToolScope:
    return ToolScope("user:ana", "s_1", "n_1", "m_1", Path("/w"), **more)


def names(registry: Registry, settings: ToolSettings | None = None, **more: Any) -> list[str]:
    return [found.name for found in registry.offered(scope(**more), settings or ToolSettings())]


def test_tools_are_offered_in_the_same_order_however_they_were_added() -> None:
    registry = Registry()
    for name in ("query", "mcp__shop__order", "ask"):
        registry.add(tool(name))
    assert names(registry) == ["ask", "mcp__shop__order", "query"]


def test_a_scope_sees_what_is_enabled_allowed_and_for_its_roles() -> None:
    registry = Registry()
    registry.add(tool("query"))
    registry.add(tool("look"))
    registry.add(tool("providers"), roles=frozenset({"manager"}))
    registry.add(tool("mcp__a__b"), enabled=False)
    assert names(registry) == ["look", "query"]
    assert names(registry, ToolSettings(disabled=frozenset({"look"}))) == ["query"]
    assert names(registry, ToolSettings(enabled=frozenset({"mcp__a__b"}))) == ["look", "mcp__a__b", "query"]
    assert names(registry, allowed=frozenset({"query"})) == ["query"]
    assert names(registry, roles=frozenset({"user", "manager"})) == ["look", "providers", "query"]


def test_what_may_not_be_called_is_not_found_and_the_remedy_names_only_what_may() -> None:
    registry = Registry()
    registry.add(tool("query"))
    registry.add(tool("queries"), enabled=False)
    assert isinstance(registry.found("query", scope(), ToolSettings()), Entry)
    remedy = registry.found("queries", scope(), ToolSettings())
    assert remedy == "did you mean 'query'?"
    registry.remove("query")
    assert registry.found("query", scope(), ToolSettings()) == "there are no tools here"


def test_a_name_is_taken_once() -> None:
    registry = Registry()
    registry.add(tool("query"))
    with pytest.raises(ToolExists):
        registry.add(tool("query"))


def test_arguments_of_the_platform_are_not_shown() -> None:
    registry = Registry()
    hidden = closed(what=TEXT, chat_session_id=TEXT)
    registry.add(tool("exec", hidden, hidden=frozenset({"chat_session_id"})))
    (shown,) = registry.offered(scope(), ToolSettings())
    assert shown.parameters == closed(what=TEXT)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (tool("Query"), "no name"),
        (tool("query\n"), "no name"),
        (tool("q" * 129), "no name"),
        (Tool(spec("query", READ, {"type": "object"}), nothing), "closed"),
        (tool("query", hidden=frozenset({"what"})), "hidden"),
        (tool("query", hidden=frozenset({"owner"})), "hidden"),
        (tool("query", redact=frozenset({"password"})), "redact"),
        (tool("query", authorisation={"x": float("nan")}), "facts"),
        (tool("query", authorisation={"x": "y" * 70_000}), "facts"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tool_that_breaks_the_rules_is_refused(bad: Tool, why: str) -> None:
    registry = Registry()
    with pytest.raises(ToolRefused) as refused:
        registry.add(bad)
    assert why in str(refused.value)
    assert registry.entries() == ()


def test_a_description_and_an_english_title_are_needed() -> None:
    for changes in ({"description": ""}, {"description": "x" * 8_001}, {"title": {"zh": "查询"}}):
        with pytest.raises(ToolRefused):
            Registry().add(Tool(dataclasses.replace(spec("query", READ), **changes), nothing))
