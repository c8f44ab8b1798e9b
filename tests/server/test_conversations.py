"""The conversations of `tests/agent/turn`, through the HTTP API of a real Jupyter server that knows two people."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from learngraph_kernel.agent.runtime import Runtime
from tests.agent.turn import test_conversations as conversations
from tests.agent.world import ANA, World
from tests.server.conftest import Server, make_server
from tests.server.remote import RemoteRuntime

OVER_HTTP = [
    conversations.test_a_number_is_asked_for_and_answered_from_a_run_that_is_sealed,
    conversations.test_periods_are_compared_and_the_second_question_knows_the_first,
    conversations.test_a_chart_is_drawn_in_the_notebook,
    conversations.test_a_question_in_chinese_is_answered_and_checked_in_chinese,
    conversations.test_a_wrong_column_is_mended,
    conversations.test_a_rejected_approval_has_no_effect_and_the_turn_goes_on,
    conversations.test_an_approval_lets_exactly_that_happen_once,
    conversations.test_edited_arguments_are_asked_about_anew_and_then_used,
    conversations.test_a_form_is_filled,
    conversations.test_an_instruction_in_a_document_is_material_and_nothing_else,
    conversations.test_a_question_carries_only_what_its_owner_brought,
    conversations.test_stop_takes_a_second_at_most_and_says_so,
    conversations.test_stop_reaches_a_model_that_hangs,
    conversations.test_a_branch_keeps_the_old_answer,
    conversations.test_a_budget_that_is_hit_is_warned_of_and_ends_in_an_answer,
    conversations.test_a_budget_of_the_conversation_is_warned_of_wound_down_and_then_refuses,
    conversations.test_a_model_that_fails_fails_the_turn_with_its_reason,
    conversations.test_a_second_question_waits_for_the_first_and_withdraws_what_was_asked,
    conversations.test_without_a_model_the_turn_is_refused_whole,
]


@pytest.fixture
def two_people(home: Path, workspace: Path, tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own home, whose root folder is the test's workspace."""
    folder = tmp_path / "server"
    options = ["--ServerApp.identity_provider_class=tests.server.people.TwoPeople", "--LearnGraphServer.heartbeat=0.1"]
    server = make_server(folder, options=options)
    shutil.rmtree(server.root)
    server.root, server.home = workspace, home
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("conversation", OVER_HTTP, ids=lambda function: function.__name__.removeprefix("test_"))
def test_over_http(
    conversation: Callable[[Path, Path], None],
    home: Path,
    workspace: Path,
    two_people: Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def play(home: Path, workspace: Path, act: Callable[[World], Awaitable[None]], **options: Any) -> None:
        assert not options
        remote = cast(Runtime, RemoteRuntime(two_people, ANA))

        async def whole() -> None:
            session = await remote.log.create(ANA, workspace, settings={})
            await act(World(remote, workspace, session))

        asyncio.run(whole())

    monkeypatch.setattr(conversations, "play", play)
    conversation(home, workspace)
