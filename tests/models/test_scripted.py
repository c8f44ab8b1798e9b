"""The scripted model: what matches, what plays, and that it is always the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from learngraph_kernel.models.errors import ModelMisconfigured, ScriptUnmatched
from learngraph_kernel.models.events import TextDelta, ThinkingSummaryDelta, Usage
from learngraph_kernel.models.messages import (
    Message,
    NormalizedRequest,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_results,
    user,
)
from learngraph_kernel.models.port import Completion, Pacing, complete
from learngraph_kernel.models.prices import Prices
from learngraph_kernel.models.script import parse_script
from learngraph_kernel.models.scripted import ScriptedModel, read_script

from .conftest import Waits, asking, scripted

SCRIPT = r"""
model: demo
chunk: 5
rules:
  - name: either
    match: {last: [delay, cancel]}
    steps: [{text: one}]
  - name: week
    match: {last_regex: 'week (?P<week>\d{4}-W\d\d)'}
    steps:
      - text: "Week ${week} costs ${money}."
      - tool_call: {name: query, arguments: {sql: "select '${week}'", nested: [{week: "${week}"}]}}
  - name: after the tool
    match: {conversation: "42 rows", turn: 2}
    steps: [{text: two}]
  - name: other model
    match: {model: small}
    steps: [{text: three}]
  - name: whole talk
    match: {conversation_regex: "alpha.*omega"}
    steps: [{text: four}]
"""


def play(request: NormalizedRequest, text: str = SCRIPT, pacing: Pacing | None = None) -> Completion:
    return asyncio.run(complete(scripted(text), request, pacing))


@pytest.mark.parametrize(
    ("messages", "model", "said"),
    [
        ((user("why the delay?"),), "demo", "one"),
        ((user("did they cancel?"),), "demo", "one"),
        ((user("delay"), assistant("hm"), user("week 2013-W07 please")), "demo", "Week 2013-W07 costs ${money}."),
        (
            (
                user("count"),
                Message("assistant", (ToolCall("c", "query", {}),)),
                tool_results([ToolResult("c", "42 rows")]),
            ),
            "demo",
            "two",
        ),
        ((user("anything"),), "small", "three"),
        ((system("alpha"), user("x"), assistant("omega"), user("y")), "demo", "four"),
    ],
)
def test_the_first_rule_that_fits_plays(messages: tuple[Message, ...], model: str, said: str) -> None:
    assert play(NormalizedRequest(model, messages)).text == said


def test_named_groups_reach_into_tool_arguments() -> None:
    (call,) = play(asking("week 2013-W07")).tool_calls
    assert call.arguments == {"sql": "select '2013-W07'", "nested": [{"week": "2013-W07"}]}


def test_text_is_cut_into_deltas_of_the_chunk() -> None:
    events = play(asking("week 2013-W07")).events
    assert [event.text for event in events if isinstance(event, TextDelta)][:3] == ["Week ", "2013-", "W07 c"]


def test_the_same_request_gives_the_same_events() -> None:
    first, second = play(asking("week 2013-W07")), play(asking("week 2013-W07"))
    assert first.events == second.events


def test_different_conversations_have_different_call_ids() -> None:
    first, second = play(asking("week 2013-W07")), play(asking("week 2013-W08"))
    assert first.tool_calls[0].id != second.tool_calls[0].id


def test_thinking_is_its_own_block() -> None:
    completion = play(asking("x"), "rules: [{steps: [{thinking: hm}, {text: done}]}]")
    assert completion.text == "done"
    assert [event.text for event in completion.events if isinstance(event, ThinkingSummaryDelta)] == ["hm"]


def test_usage_is_computed_from_the_text_when_not_given() -> None:
    completion = play(asking("delay"))
    assert completion.usage is not None
    assert completion.usage.output == 1
    longer = play(asking("delay" * 100)).usage
    assert longer is not None
    assert longer.input > completion.usage.input + 100


def test_given_usage_and_finish_are_reported() -> None:
    completion = play(
        asking("x"), "rules: [{steps: [{text: cut}, {usage: {input: 9, cached: 3, output: 2}}, {finish: length}]}]"
    )
    assert (completion.usage, completion.finish) == (Usage(9, 3, 0, 2), "length")


def test_tool_calls_finish_as_tool_calls() -> None:
    assert play(asking("week 2013-W07")).finish == "tool_calls"


def test_prices_make_a_cost() -> None:
    prices = Prices.from_table({"input": 2, "cached": 1, "output": 10, "currency": "CNY"}, where="t")
    adapter = scripted("rules: [{steps: [{text: x}, {usage: {input: 1000, cached: 500, output: 100}}]}]", prices=prices)
    cost = asyncio.run(complete(adapter, asking("x"))).cost
    assert cost is not None
    assert cost.as_json() == {"amount": "0.0035", "currency": "CNY"}


def test_delays_are_waited_for_in_seconds(waits: Waits) -> None:
    adapter = scripted("rules: [{steps: [{delay_ms: 250}, {text: x}]}]", sleep=waits.sleep)
    asyncio.run(complete(adapter, asking("x")))
    assert waits == [0.25]


def test_times_count_for_each_conversation() -> None:
    adapter = scripted("rules: [{steps: [{fault: {kind: server, times: 1}}, {text: x}]}]")
    fast = Pacing(sleep=lambda seconds: asyncio.sleep(0), chance=lambda: 0)
    attempts = [asyncio.run(complete(adapter, asking(text), fast)).attempts for text in ("a", "b", "a")]
    assert attempts == [2, 2, 1]


def test_an_unmatched_talk_names_the_script_and_the_nearest_rule() -> None:
    with pytest.raises(ScriptUnmatched) as caught:
        play(asking("week 2013-7 please"))
    message = str(caught.value)
    assert "script test.yaml" in message
    assert "last user text 'week 2013-7 please'" in message
    assert r"nearest is rule 'week', where `last_regex` wants /week (?P<week>\d{4}-W\d\d)/" in message


def test_nearest_is_the_rule_with_the_fewest_missed_conditions() -> None:
    script = """rules:
      - {name: far, match: {last: a, turn: 2}, steps: [{text: x}]}
      - {name: near, match: {last: zzz}, steps: [{text: x}]}"""
    with pytest.raises(ScriptUnmatched) as caught:
        play(asking("hello"), script)
    assert caught.value.details["nearest"] == "near"


@pytest.mark.parametrize(
    ("body", "place", "says"),
    [
        ("rules: []", "s.yaml", "no rules"),
        ("[]", "s.yaml", "the script is"),
        ("rule: [{steps: [{text: a}]}]", "s.yaml", "did you mean 'rules'"),
        ("rules: [{step: [{text: a}]}]", "s.yaml, rule 1", "did you mean 'steps'"),
        ("rules: [{steps: []}]", "s.yaml, rule 1", "no steps"),
        ("rules: [{steps: [{text: a}]}, {match: {lst: a}, steps: [{text: a}]}]", "s.yaml, rule 2, match", "'last'"),
        ("rules: [{match: {last: 3}, steps: [{text: a}]}]", "rule 1, match", "`last` is 3"),
        ("rules: [{match: {last: []}, steps: [{text: a}]}]", "rule 1, match", "`last` is []"),
        ("rules: [{match: {turn: 0}, steps: [{text: a}]}]", "rule 1, match", "`turn` is 0"),
        ("rules: [{match: {last_regex: '('}, steps: [{text: a}]}]", "rule 1, match", "`last_regex`"),
        ("rules: [{steps: [{text: a}, {speak: b}]}]", "rule 1, step 2", "unknown key 'speak'"),
        ("rules: [{steps: [{text: a, thinking: b}]}]", "rule 1, step 1", "says 2 things"),
        ("rules: [{steps: [{text: 3}]}]", "rule 1, step 1", "`text` cannot be 3"),
        ("rules: [{steps: [{tool_call: {arguments: {}}}]}]", "rule 1, step 1", "`tool_call` cannot be"),
        ("rules: [{steps: [{tool_call: {name: q, args: {}}}]}]", "rule 1, step 1", "unknown key 'args'"),
        ("rules: [{steps: [{usage: {in: 3}}]}]", "rule 1, step 1", "unknown key 'in'"),
        ("rules: [{steps: [{usage: {input: -3}}]}]", "rule 1, step 1", "`usage` cannot be"),
        ("rules: [{steps: [{delay_ms: -1}]}]", "rule 1, step 1", "`delay_ms` cannot be -1"),
        ("rules: [{steps: [{finish: done}]}]", "rule 1, step 1", "`finish` cannot be 'done'"),
        ("rules: [{steps: [{fault: fire}]}]", "rule 1, step 1", "unknown fault 'fire'"),
        ("rules: [{steps: [{fault: {kind: server, times: twice}}]}]", "rule 1, step 1", "`times` is 'twice'"),
        ("{chunk: 0, rules: [{steps: [{text: a}]}]}", "s.yaml", "`chunk` is 0"),
        ("{capabilities: {tool: true}, rules: [{steps: [{text: a}]}]}", "s.yaml, capabilities", "did you mean 'tools'"),
    ],
)
def test_a_wrong_script_is_refused_at_its_place(body: str, place: str, says: str) -> None:
    with pytest.raises(ModelMisconfigured) as caught:
        parse_script(yaml.safe_load(body), where="s.yaml")
    assert place in str(caught.value)
    assert says in str(caught.value)


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text("rules: [{steps: [{text: 你好}]}]", encoding="utf-8")
    assert asyncio.run(complete(ScriptedModel(read_script(path)), asking("x"))).text == "你好"


@pytest.mark.parametrize(
    ("content", "says"), [(None, "No such file"), (b"a: [", "not YAML"), (b"\xff\xfe\x00", "not YAML")]
)
def test_an_unreadable_script_names_its_file(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "model.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelMisconfigured) as caught:
        read_script(path)
    assert says in str(caught.value)
    assert "model.yaml" in str(caught.value)


@pytest.mark.parametrize(
    "prices",
    [
        {"input": 1},
        {"input": 1, "output": -1},
        {"input": 1, "output": "x"},
        {"in": 1},
        {"input": 1, "output": 1, "currency": "shells"},
    ],
)
def test_wrong_prices_are_refused(prices: dict[str, Any]) -> None:
    with pytest.raises(ModelMisconfigured):
        Prices.from_table(prices, where="t")
