"""The LiteLLM adapter against a real OpenAI-compatible server on the loopback interface."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from learngraph_kernel.errors import Unavailable
from learngraph_kernel.models import litellm_adapter
from learngraph_kernel.models.ask import ask
from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.errors import ModelDisconnected, ModelError, ModelTimedOut
from learngraph_kernel.models.events import ResponseStarted, TextDelta, ThinkingSummaryDelta, Usage
from learngraph_kernel.models.litellm_adapter import LiteLLMModel, check_version
from learngraph_kernel.models.messages import (
    Defaults,
    Limits,
    Message,
    NormalizedRequest,
    TextPart,
    Tool,
    ToolCall,
    ToolResult,
    system,
    tool_results,
    user,
)
from learngraph_kernel.models.port import Completion, Pacing, complete
from learngraph_kernel.models.prices import Prices

from .conftest import Waits
from .endpoint import WORDS, Seen

pytestmark = pytest.mark.usefixtures("litellm_library")
Endpoint = tuple[str, Seen]

KEY = "sk-test-0123456789"
QUERY = Tool("query", "Runs SQL.", {"type": "object", "properties": {"sql": {"type": "string"}}})


def adapter(endpoint: Endpoint, name: str, **more: Any) -> LiteLLMModel:
    settings = {"base_url": endpoint[0], "api_key_env": "TEST_KEY", "environ": {"TEST_KEY": KEY}, **more}
    return LiteLLMModel(f"openai/{name}", **settings)


def request(name: str, *messages: Message, limits: Limits | None = None, **more: Any) -> NormalizedRequest:
    return NormalizedRequest(
        f"openai/{name}", messages or (user("hi"),), limits=limits or Limits(10, 20, attempts=1), **more
    )


def run(endpoint: Endpoint, name: str, pacing: Pacing | None = None, **more: Any) -> Completion:
    return asyncio.run(complete(adapter(endpoint, name), request(name, **more), pacing))


def failing(endpoint: Endpoint, name: str, **more: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        run(endpoint, name, **more)
    return caught.value


def last_body(endpoint: Endpoint) -> dict[str, Any]:
    return endpoint[1].bodies[-1]


def test_text_arrives_as_deltas(endpoint: Endpoint) -> None:
    completion = run(endpoint, "plain")
    assert [event.text for event in completion.events if isinstance(event, TextDelta)] == WORDS
    assert isinstance(completion.events[0], ResponseStarted)
    assert completion.finish == "stop"


def test_cached_tokens_are_split_from_input(endpoint: Endpoint) -> None:
    assert run(endpoint, "plain").usage == Usage(input=20, cached=100, cache_creation=0, output=9)


def test_tokens_nobody_counted_are_not_made_up(endpoint: Endpoint) -> None:
    assert run(endpoint, "no-usage").usage is None


def test_thinking_is_kept_apart_from_the_text(endpoint: Endpoint) -> None:
    completion = run(endpoint, "thinking")
    thoughts = "".join(event.text for event in completion.events if isinstance(event, ThinkingSummaryDelta))
    assert (thoughts, completion.text) == ("Let me see.", "Done.")


def test_tool_calls_are_put_together_and_malformed_ones_kept(endpoint: Endpoint) -> None:
    completion = run(endpoint, "tools", tools=(QUERY,))
    assert completion.tool_calls == (
        ToolCall("call_a", "query", {"sql": "select 1"}),
        ToolCall("call_b", "metric", {}, malformed="not json"),
    )
    assert (completion.text, completion.finish) == ("Looking. ", "tool_calls")


def test_an_output_limit_that_was_reached_shows_in_the_finish(endpoint: Endpoint) -> None:
    assert run(endpoint, "length").finish == "length"


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        ("error-400", "model_request_refused", 400),
        ("error-401", "model_authentication", 401),
        ("error-403", "model_authentication", 403),
        ("error-404", "model_not_found", 404),
        ("error-408", "model_timed_out", 408),
        ("error-422", "model_request_refused", 422),
        ("error-429", "model_rate_limited", 429),
        ("error-500", "model_server_failed", 500),
        ("error-502", "model_server_failed", 502),
        ("error-503", "model_server_failed", 503),
        ("error-504", "model_server_failed", 504),
        ("error-529", "model_server_failed", 529),
        ("too-long", "model_context_exceeded", 400),
        ("stream-error", "model_server_failed", None),
    ],
)
def test_an_http_error_has_its_code(endpoint: Endpoint, name: str, code: str, status: int) -> None:
    error = failing(endpoint, name)
    assert (error.code, error.details.get("status")) == (code, status)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("disconnect", "model_disconnected"),
        ("short", "model_disconnected"),
        ("garbage", "model_garbled"),
        ("late-garbage", "model_garbled"),
        ("page", "model_garbled"),
        ("filtered", "model_content_refused"),
    ],
)
def test_a_broken_stream_is_never_a_completed_answer(endpoint: Endpoint, name: str, code: str) -> None:
    error = failing(endpoint, name)
    assert (error.code, error.details) == (code, {})


def test_nobody_listening_is_a_disconnect() -> None:
    model = LiteLLMModel("openai/x", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelDisconnected):
        asyncio.run(complete(model, request("x")))


def test_one_attempt_is_one_http_request(endpoint: Endpoint) -> None:
    before = len(endpoint[1].bodies)
    failing(endpoint, "error-500")
    assert len(endpoint[1].bodies) - before == 1


def test_a_flaky_endpoint_is_retried_by_us(endpoint: Endpoint, pacing: Pacing) -> None:
    completion = run(endpoint, "flaky", pacing, limits=Limits(10, 20, attempts=4))
    assert completion.attempts == 3


def test_the_wait_that_a_429_asks_for_is_kept(endpoint: Endpoint, pacing: Pacing, waits: Waits) -> None:
    with pytest.raises(ModelError):
        run(endpoint, "error-429", pacing, limits=Limits(10, 20, attempts=2))
    assert waits == [7.25]


def test_a_slow_endpoint_meets_the_no_output_limit(endpoint: Endpoint) -> None:
    began = time.monotonic()
    with pytest.raises(ModelTimedOut, match=r"no output for 0\.3 s"):
        run(endpoint, "slow", limits=Limits(no_output_s=0.3, total_s=10, attempts=1))
    assert time.monotonic() - began < 1.2


def test_one_adapter_serves_one_event_loop_after_another(endpoint: Endpoint) -> None:
    model = adapter(endpoint, "plain")
    texts = [asyncio.run(complete(model, request("plain"))).text for _ in range(3)]
    assert texts == ["".join(WORDS)] * 3


def test_many_requests_run_at_once(endpoint: Endpoint) -> None:
    model = adapter(endpoint, "slow")

    async def together() -> list[Completion]:
        return await asyncio.gather(*(complete(model, request("slow")) for _ in range(4)))

    began = time.monotonic()
    assert {completion.text for completion in asyncio.run(together())} == {"one two"}
    assert time.monotonic() - began < 4.5


def test_only_what_the_snapshot_allows_is_sent(endpoint: Endpoint) -> None:
    nothing = Capabilities(
        tools=False, temperature=False, stream_usage=False, structured_output="none", output_limit="none"
    )
    wish = request(
        "plain",
        tools=(QUERY,),
        temperature=0.2,
        max_output_tokens=10,
        thinking="off",
        response_schema={"type": "object"},
    )
    asyncio.run(complete(adapter(endpoint, "plain", capabilities=nothing), wish))
    assert set(last_body(endpoint)) == {"model", "messages", "stream"}


def test_what_the_snapshot_allows_is_sent(endpoint: Endpoint) -> None:
    able = Capabilities(structured_output="json_schema", output_limit="max_completion_tokens", max_output_tokens=8)
    wish = request("plain", tools=(QUERY,), temperature=0.2, max_output_tokens=10, response_schema={"type": "object"})
    asyncio.run(complete(adapter(endpoint, "plain", capabilities=able), wish))
    body = last_body(endpoint)
    assert body["temperature"] == 0.2
    assert body["max_completion_tokens"] == 8
    assert body["stream_options"] == {"include_usage": True}
    assert body["tools"][0]["function"]["name"] == "query"
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_a_conversation_with_tools_is_sent_in_order(endpoint: Endpoint) -> None:
    run_messages = (
        system("be brief"),
        user("how many?"),
        Message("assistant", (TextPart("Looking."), ToolCall("c1", "query", {"sql": "select 1"}))),
        tool_results([ToolResult("c1", "1"), ToolResult("c2", "no such table", error=True)]),
    )
    asyncio.run(complete(adapter(endpoint, "plain"), request("plain", *run_messages)))
    call = {"id": "c1", "type": "function", "function": {"name": "query", "arguments": '{"sql": "select 1"}'}}
    assert last_body(endpoint)["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "how many?"},
        {"role": "assistant", "content": "Looking.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "error: no such table"},
    ]


def test_the_key_comes_from_the_named_variable(endpoint: Endpoint) -> None:
    run(endpoint, "plain")
    assert endpoint[1].headers[-1]["authorization"] == f"Bearer {KEY}"


def test_a_missing_key_is_named_before_anything_is_sent(endpoint: Endpoint) -> None:
    before = len(endpoint[1].bodies)
    with pytest.raises(Unavailable, match="TEST_KEY is not set"):
        asyncio.run(complete(adapter(endpoint, "plain", environ={}), request("plain")))
    assert len(endpoint[1].bodies) == before


def test_another_provider_s_key_is_not_lent_to_this_address(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-someone-else")
    asyncio.run(complete(adapter(endpoint, "plain", api_key_env=None), request("plain")))
    assert "someone-else" not in endpoint[1].headers[-1]["authorization"]


def test_a_key_in_the_endpoint_s_message_is_blotted_out(endpoint: Endpoint) -> None:
    model = adapter(endpoint, "echo-key")
    with pytest.raises(ModelError) as caught:
        asyncio.run(complete(model, request("echo-key")))
    assert "Incorrect API key" in str(caught.value)
    assert KEY not in str(caught.value)


def test_prices_of_the_configuration_make_the_cost(endpoint: Endpoint) -> None:
    prices = Prices.from_table({"input": 1, "cached": 0.5, "output": 2, "currency": "CNY"}, where="t")
    cost = asyncio.run(complete(adapter(endpoint, "plain", prices=prices), request("plain"))).cost
    assert cost is not None
    assert cost.as_json() == {"amount": "0.000088", "currency": "CNY"}


def test_a_relay_s_price_is_unknown(endpoint: Endpoint) -> None:
    assert run(endpoint, "plain").cost is None


def test_the_provider_s_list_price_is_used_at_its_own_address(litellm_library: Any) -> None:
    model = LiteLLMModel("openai/gpt-4o-mini")
    usage = litellm_library.Usage(prompt_tokens=1_000_000, completion_tokens=0, total_tokens=1_000_000)
    cost = model._cost(litellm_library, "openai/gpt-4o-mini", Usage(input=1_000_000), usage)
    assert cost is not None
    assert (cost.currency, cost.amount > 0) == ("USD", True)


def test_ask_works_through_it(endpoint: Endpoint) -> None:
    model = adapter(endpoint, "plain", defaults=Defaults(Limits(10, 20, 1), temperature=0))
    answer = asyncio.run(ask(model, "How punctual?"))
    assert answer.text == "".join(WORDS)
    assert last_body(endpoint)["temperature"] == 0


@pytest.mark.parametrize(
    ("version", "fine"),
    [
        ("1.82.7", False),
        ("1.82.8", False),
        ("1.83.99", False),
        ("1.9.0", False),
        ("1.84.0", True),
        ("1.84.0rc1", True),
        ("1.110.2", True),
        ("2.0", True),
    ],
)
def test_a_refused_version_is_never_imported(version: str, fine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    if fine:
        assert check_version() == version
    else:
        with pytest.raises(Unavailable, match=f"litellm {version} is refused"):
            litellm_adapter.import_litellm()


def test_a_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(Unavailable, match=r'pip install "learngraph\[models\]"'):
        check_version()


def test_importing_reads_no_env_file_and_asks_no_network(tmp_path: Any) -> None:
    (tmp_path / ".env").write_text("LEARNGRAPH_LEAK=1\n")
    code = (
        "import os, socket\n"
        "asked = []\n"
        "def refuse(*args, **more):\n"
        "    asked.append(args)\n"
        "    raise OSError('no network')\n"
        "socket.getaddrinfo = socket.socket.connect = refuse\n"
        "from learngraph_kernel.models.litellm_adapter import import_litellm\n"
        "library = import_litellm()\n"
        "print(os.environ.get('LEARNGRAPH_LEAK'), library.num_retries, len(asked))"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LITELLM")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["None", "0", "0"]), done.stderr


def test_signed_thinking_goes_back_to_its_own_provider_only() -> None:
    from learngraph_kernel.models.litellm_wire import StreamReader, wire_request

    reader = StreamReader()
    for block in (
        {"type": "thinking", "thinking": "Let ", "signature": None},
        {"type": "thinking", "thinking": "me", "signature": None},
        {"type": "thinking", "thinking": "", "signature": "sig"},
        {"type": "redacted_thinking", "data": "x"},
    ):
        delta = SimpleNamespace(content=None, tool_calls=None, thinking_blocks=[block])
        list(reader.read(SimpleNamespace(delta=delta, finish_reason=None)))
    opaque = reader.opaque("anthropic/claude")
    turn = Message("assistant", (*opaque, TextPart("Done.")))
    own = wire_request(NormalizedRequest("anthropic/other", (turn,)), Capabilities())["messages"][0]
    other = wire_request(NormalizedRequest("openai/x", (turn,)), Capabilities())["messages"][0]
    assert own["thinking_blocks"] == [
        {"type": "thinking", "thinking": "Let me", "signature": "sig"},
        {"type": "redacted_thinking", "data": "x"},
    ]
    assert other == {"role": "assistant", "content": "Done."}


def test_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    from learngraph_kernel.models.litellm_wire import StreamReader

    reader = StreamReader()
    for number, text in (("a", '{"n": 1}'), ("b", '{"n": 2}')):
        function = SimpleNamespace(name="q", arguments=text)
        piece = SimpleNamespace(index=0, id=number, function=function)
        list(reader.read(SimpleNamespace(delta=SimpleNamespace(content=None, tool_calls=[piece]), finish_reason=None)))
    assert [event.call for event in reader.calls()] == [ToolCall("a", "q", {"n": 1}), ToolCall("b", "q", {"n": 2})]
