"""A declared model with its account, against a strict endpoint: key, header, snapshot, address; and the probe."""

from __future__ import annotations

import asyncio
import datetime as dt
import email.utils
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from learngraph_kernel.accounts.opening import open_declared
from learngraph_kernel.accounts.snapshots import Snapshots
from learngraph_kernel.accounts.vault import UnknownSecret, Vault
from learngraph_kernel.models.config import ModelConfig, SecretInConfig, open_model, parse_models
from learngraph_kernel.models.errors import ModelError, ModelMisconfigured
from learngraph_kernel.models.events import ResponseStarted
from learngraph_kernel.models.litellm_adapter import _retry_after
from learngraph_kernel.models.messages import Limits, NormalizedRequest, user
from learngraph_kernel.models.port import Completion, ModelAdapter, complete
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.models.scripted_endpoint import FIELDS, KEY, Served

pytestmark = pytest.mark.usefixtures("litellm_library")
RULES = [
    {"match": {"last": "ping"}, "steps": [{"tool_call": {"name": "ping", "arguments": {}}}]},
    {"match": {}, "steps": [{"text": "ok"}]},
]


@pytest.fixture
def declared(served: Served, tmp_path: Path) -> ModelConfig:
    (tmp_path / "script.yaml").write_text(yaml.safe_dump({"rules": RULES}))
    served.play("m", tmp_path / "script.yaml")
    table = {"adapter": "litellm", "model": "openai/m", "base_url": served.url, "api_key": "secret:relay"}
    return parse_models({"default": table}, root=tmp_path)["default"]


def ask(adapter: ModelAdapter, text: str = "hello") -> Completion:
    request = NormalizedRequest(adapter.model, (user(text),), limits=Limits(10, 20, attempts=1))
    return asyncio.run(complete(adapter, request))


def test_the_key_comes_from_the_vault_when_it_is_needed_and_is_masked_first(
    declared: ModelConfig, store: Store, place: Home
) -> None:
    told: list[str] = []
    adapter = open_declared(declared, store, place, redact=told.append)
    with pytest.raises(UnknownSecret) as caught:
        ask(adapter)
    assert "learngraph secret set relay" in (caught.value.remedy or "")
    Vault(store, place).put("relay", KEY, actor="user:ana")
    assert ask(adapter).text == "ok" and KEY in told


def test_without_a_vault_the_key_is_unavailable(declared: ModelConfig) -> None:
    with pytest.raises(Exception, match="no vault is open here"):
        ask(open_model(declared))


@pytest.mark.parametrize(("style", "wanted", "fine"), [
    ("x-api-key", "x-api-key", True), ("bearer", "x-api-key", False), ("x-api-key", "authorization", False),
])  # fmt: skip
def test_the_key_goes_into_the_one_header_that_is_declared(
    declared: ModelConfig, store: Store, place: Home, served: Served, style: Any, wanted: str, fine: bool
) -> None:
    Vault(store, place).put("relay", KEY, actor="user:ana")
    served.key_header = wanted
    adapter = open_declared(replace(declared, auth_style=style), store, place)
    if fine:
        assert ask(adapter).text == "ok"
    else:
        with pytest.raises(ModelError) as caught:
            ask(adapter)
        assert caught.value.code == "model_authentication" and KEY not in str(caught.value)


def test_the_endpoint_s_own_id_of_a_request_is_kept(declared: ModelConfig, store: Store, place: Home) -> None:
    Vault(store, place).put("relay", KEY, actor="user:ana")
    (started,) = [
        event for event in ask(open_declared(declared, store, place)).events if isinstance(event, ResponseStarted)
    ]
    assert started.request_id.startswith("req-")
    with pytest.raises(ModelError) as caught:
        ask(open_declared(replace(declared, model="openai/nothing"), store, place))
    assert str(caught.value.details["request_id"]).startswith("req-")


def test_a_literal_key_is_refused_and_two_keys_as_well(tmp_path: Path) -> None:
    table = {"adapter": "litellm", "model": "openai/m"}
    for key in ("sk-literal", "secret:", "secret:Bad Name", 7):
        with pytest.raises(SecretInConfig):
            parse_models({"m": {**table, "api_key": key}}, root=tmp_path)
    with pytest.raises(ModelMisconfigured, match="both"):
        parse_models({"m": {**table, "api_key": "secret:a", "api_key_env": "A"}}, root=tmp_path)


PROBES = [
    ("takes everything", FIELDS | {"max_completion_tokens", "response_format", "reasoning_effort"},
     {"tools": True, "temperature": True, "stream_usage": True, "output_limit": "max_tokens",
      "structured_output": "json_schema", "thinking": "switchable"}),
    ("takes nothing", frozenset({"model", "messages", "stream"}),
     {"tools": False, "temperature": False, "stream_usage": False, "output_limit": "none",
      "structured_output": "none", "thinking": "none"}),
    ("a newer field for the limit", frozenset({"model", "messages", "stream", "tools", "max_completion_tokens"}),
     {"tools": True, "output_limit": "max_completion_tokens", "temperature": False}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fields", "expected"), PROBES, ids=[name for name, _, _ in PROBES])
def test_the_probe_finds_what_the_endpoint_takes_and_nothing_else_is_sent_afterwards(
    learngraph: Any, served: Served, declared: ModelConfig, tmp_path: Path, place: Home,
    name: str, fields: frozenset[str], expected: dict[str, Any],
) -> None:  # fmt: skip
    served.fields = fields
    with Store.open(place) as store:
        Vault(store, place).put("relay", KEY, actor="user:ana")
    (tmp_path / "learngraph.toml").write_text(
        f'[models.default]\nadapter = "litellm"\nmodel = "openai/m"\nbase_url = "{served.url}"\n'
        'api_key = "secret:relay"\n'
    )
    done = learngraph("models", "probe", "--workspace", tmp_path, "--json")
    assert done.code == 0, done.err
    found = done.json["capabilities"]
    assert {key: found[key] for key in expected} == expected
    assert KEY not in done.out
    listed = learngraph("models", "list", "--workspace", tmp_path, "--json").json["models"][0]
    assert listed["snapshot"]["capabilities"] == found
    with Store.open(place) as store:
        adapter = open_declared(declared, store, place)
        assert adapter.capabilities.as_json() == found
        request = NormalizedRequest(
            adapter.model, (user("hi"),), temperature=0.1, max_output_tokens=9, thinking="high",
            response_schema={"type": "object"}, limits=Limits(10, 20, attempts=1),
        )  # fmt: skip
        assert asyncio.run(complete(adapter, request)).text == "ok"
    assert set(served.requests[-1]) <= fields


def test_an_endpoint_that_does_not_answer_is_not_guessed_at(learngraph: Any, served: Served, tmp_path: Path) -> None:
    (tmp_path / "learngraph.toml").write_text(
        f'[models.default]\nadapter = "litellm"\nmodel = "openai/none"\nbase_url = "{served.url}"\napi_key_env = "K"\n'
    )
    done = learngraph("models", "probe", "--workspace", tmp_path, "--json", K=KEY)
    assert done.code != 0 and done.json["error"]["code"] == "model_not_found"


def test_a_snapshot_is_of_one_endpoint(declared: ModelConfig, store: Store) -> None:
    snapshots = Snapshots(store)
    adapter = open_model(declared)
    snapshots.keep(declared, adapter.capabilities, {"plain": "accepted"}, actor="user:ana")
    assert snapshots.of(declared) is not None
    for change in ({"model": "openai/n"}, {"base_url": "http://127.0.0.1:9/v1"}, {"auth_style": "x-api-key"}):
        assert snapshots.of(replace(declared, **change)) is None


class Refused(Exception):
    def __init__(self, value: str) -> None:
        super().__init__(value)
        self.response = type("Response", (), {"headers": {"Retry-After": value}})()


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [("7", 7, 7), ("1.5", 1.5, 1.5), ("-3", 0, 0), ("soon", None, None), ("nan", None, None), ("", None, None)],
)
def test_the_wait_that_an_endpoint_asks_for_is_read(value: str, least: float | None, most: float | None) -> None:
    found = _retry_after(Refused(value))
    assert found is None if least is None else found is not None and least <= found <= (most or 0)


def test_a_wait_may_be_a_date() -> None:
    then = email.utils.format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(seconds=30), usegmt=True)
    found = _retry_after(Refused(then))
    assert found is not None and 25 < found <= 30
