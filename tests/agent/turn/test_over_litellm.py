"""The conversations again, with the model on the other side of HTTP: LiteLLM asks an OpenAI-compatible server.

The server plays the script that the scripted adapter would have played, refuses what it does not know, and looks at
the key. What comes out must be the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from learngraph_kernel.agent.values import EventType, Question
from tests.agent.turn import test_conversations as conversations
from tests.agent.world import ANA, HOST_ALLOWED, World, call, play, run, say, turns, write
from tests.models.scripted_endpoint import KEY, Served, serve_scripts

SAME = [
    getattr(conversations, name)
    for name in (
        "test_a_number_is_asked_for_and_answered_from_a_run_that_is_sealed",
        "test_what_was_shown_is_what_the_events_fold_to_and_verify_still_holds",
        "test_periods_are_compared_and_the_second_question_knows_the_first",
        "test_a_chart_is_drawn_in_the_notebook",
        "test_a_question_in_chinese_is_answered_and_checked_in_chinese",
        "test_a_wrong_column_is_mended",
        "test_a_rejected_approval_has_no_effect_and_the_turn_goes_on",
        "test_an_approval_lets_exactly_that_happen_once",
        "test_edited_arguments_are_asked_about_anew_and_then_used",
        "test_a_form_is_filled",
        "test_an_instruction_in_a_document_is_material_and_nothing_else",
        "test_a_question_carries_only_what_its_owner_brought",
        "test_stop_takes_a_second_at_most_and_says_so",
        "test_stop_reaches_a_model_that_hangs",
        "test_a_branch_keeps_the_old_answer",
        "test_a_budget_that_is_hit_is_warned_of_and_ends_in_an_answer",
        "test_a_budget_of_the_conversation_is_warned_of_wound_down_and_then_refuses",
        "test_the_same_call_is_not_made_twice_and_going_in_circles_ends",
        "test_numbers_without_evidence_are_marked_when_repairs_are_used_up",
        "test_a_model_that_fails_fails_the_turn_with_its_reason",
        "test_a_second_question_waits_for_the_first_and_withdraws_what_was_asked",
        "test_a_turn_that_waits_goes_on_after_a_restart",
    )
]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serve_scripts() as running:
        yield running


@pytest.fixture
def declare(served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """`script` of the world, with the script on the server and LiteLLM in the workspace."""
    monkeypatch.setenv("SERVED_KEY", KEY)
    name = f"model-{tmp_path.name}"

    def script(
        workspace: Path, rules: Sequence[Mapping[str, Any]], *, settings: str = HOST_ALLOWED, **top: Any
    ) -> None:
        path = tmp_path / "served.yaml"
        path.write_text(yaml.safe_dump({"rules": list(rules), **top}, allow_unicode=True))
        served.play(name, path)
        toml = workspace / "learngraph.toml"
        model = f'adapter = "litellm"\nmodel = "openai/{name}"\nbase_url = "{served.url}"\napi_key_env = "SERVED_KEY"\n'
        toml.write_text(toml.read_text() + "\n[models.default]\n" + model + settings)

    before = len(served.requests)
    yield script
    assert len(served.requests) > before  # it did go over the wire


@pytest.mark.usefixtures("litellm_library")
@pytest.mark.parametrize("conversation", SAME, ids=lambda function: function.__name__.removeprefix("test_"))
def test_the_same_conversation(
    conversation: Callable[..., None],
    declare: Callable[..., None],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversations, "script", declare)
    names = conversation.__code__.co_varnames[: conversation.__code__.co_argcount]
    conversation(**{name: request.getfixturevalue(name) for name in names})


@pytest.mark.usefixtures("litellm_library")
def test_a_stopped_turn_hangs_up(home: Path, workspace: Path, served: Served, declare: Callable[..., None]) -> None:
    declare(workspace, turns([{"text": "I begin"}, {"delay_ms": 60_000}, {"text": "never"}]))

    async def act(world: World) -> None:
        served.hung_up.clear()
        await world.runtime.ask(world.session.id, ANA, Question("Hang"))
        async for event in world.runtime.log.follow(world.session.id):
            if event is not None and event.type is EventType.TEXT_DELTA:
                break
        await world.runtime.stop(world.session.id, ANA)
        assert await asyncio.to_thread(served.hung_up.wait, 1.0)

    play(home, workspace, act)


@pytest.mark.usefixtures("litellm_library")
@pytest.mark.parametrize("fault", ["rate_limit", "server", "disconnect", "garbage"])
def test_an_endpoint_that_recovers_before_anything_was_seen_is_asked_again(
    home: Path, workspace: Path, declare: Callable[..., None], fault: str
) -> None:
    flaky = {"fault": {"kind": fault, "times": 1}}
    answer = [flaky, say("Revenue was [[v:Q1.r0.amount]].")]
    declare(workspace, turns([flaky, write()], run(), answer))

    async def act(world: World) -> None:
        message = await world.ask("What was the revenue?")
        assert message.status == "completed" and (await world.end())["shown"] == "Revenue was 1,000.50."

    play(home, workspace, act)


@pytest.mark.usefixtures("litellm_library")
@pytest.mark.parametrize(("fault", "code"), [("disconnect", "model_disconnected"), ("garbage", "model_garbled")])
def test_an_answer_that_breaks_off_is_never_taken_for_whole_and_can_be_asked_anew(
    home: Path, workspace: Path, declare: Callable[..., None], fault: str, code: str
) -> None:
    declare(workspace, turns([say("All is w"), {"fault": {"kind": fault, "times": 1}}, say("ell.")]))

    async def act(world: World) -> None:
        message = await world.ask("Is all well?")
        assert message.status == "failed"
        error = (await world.end())["error"]
        assert error["code"] == code and error["retryable"]
        await world.runtime.regenerate(world.session.id, ANA, message.id)
        assert (await world.settled()).status == "completed"

    play(home, workspace, act)


@pytest.mark.usefixtures("litellm_library")
def test_a_tool_call_that_breaks_off_is_not_made(home: Path, workspace: Path, declare: Callable[..., None]) -> None:
    declare(workspace, turns([say("I write."), {"fault": "disconnect"}, call("list_sources")]))

    async def act(world: World) -> None:
        assert (await world.ask("Write it")).status == "failed"
        assert await world.events(EventType.TOOL_CALL) == []

    play(home, workspace, act)
