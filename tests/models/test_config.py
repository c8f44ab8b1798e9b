"""`[models.…]` in learngraph.toml."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.errors import Unavailable
from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.config import ModelConfig, SecretInConfig, choose_model, open_model, parse_models
from learngraph_kernel.models.errors import ModelMisconfigured
from learngraph_kernel.models.port import complete, request_for

from .conftest import asking


def parse(text: str, root: Path = Path("/w")) -> dict[str, ModelConfig]:
    return parse_models(tomllib.loads(text), root=root)


def test_a_scripted_model_is_relative_to_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text("rules: [{steps: [{text: hello}]}]")
    config = parse('[default]\nadapter = "scripted"\nscript = "model.yaml"', tmp_path)["default"]
    assert asyncio.run(complete(open_model(config), asking("x"))).text == "hello"


def test_everything_a_litellm_model_can_say() -> None:
    config = parse(
        """
        [cheap]
        adapter = "litellm"
        model = "openai/gpt-4o-mini"
        base_url = "https://relay.example/v1"
        api_key_env = "RELAY_KEY"
        temperature = 0
        max_output_tokens = 2000
        thinking = "off"
        limits = {no_output_s = 5, attempts = 2}
        capabilities = {structured_output = "json_schema", thinking = "switchable"}
        prices = {input = 0.15, output = 0.6}
        """
    )["cheap"]
    request = request_for(open_model(config, environ={}), ())
    assert (request.model, request.temperature, request.max_output_tokens, request.thinking) == (
        "openai/gpt-4o-mini",
        0,
        2000,
        "off",
    )
    assert (request.limits.no_output_s, request.limits.total_s, request.limits.attempts) == (5, 600, 2)
    assert config.capabilities == Capabilities(structured_output="json_schema", thinking="switchable")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('adapter = "scripted"', "`script` is missing"),
        ('adapter = "litellm"', "`model` is missing"),
        ('model = "x"', "`adapter` is missing"),
        ('adapter = "litelm"\nmodel = "x"', "did you mean 'litellm'"),
        ('adapter = "litellm"\nmodl = "x"', "did you mean 'model'"),
        ('adapter = "scripted"\nscript = "a"\nbase_url = "http://x"', "unknown key 'base_url' for adapter scripted"),
        ('adapter = "litellm"\nmodel = 3', "`model` is 3"),
        ('adapter = "litellm"\nmodel = "x"\nbase_url = "relay.example"', "`base_url` is"),
        ('adapter = "litellm"\nmodel = "x"\ntemperature = "hot"', "`temperature` is 'hot'"),
        ('adapter = "litellm"\nmodel = "x"\nmax_output_tokens = 0', "`max_output_tokens` is 0"),
        ('adapter = "litellm"\nmodel = "x"\nthinking = "maybe"', "`thinking` is 'maybe'"),
        ('adapter = "litellm"\nmodel = "x"\nlimits = {seconds = 3}', "limit 'seconds'"),
        ('adapter = "litellm"\nmodel = "x"\nlimits = {attempts = 0}', "must be positive"),
        ('adapter = "litellm"\nmodel = "x"\nlimits = 3', "`limits` is 3"),
        ('adapter = "litellm"\nmodel = "x"\nprices = 3', "`prices` is 3"),
        ('adapter = "litellm"\nmodel = "x"\ncapabilities = {thinkin = "none"}', "did you mean 'thinking'"),
        ('adapter = "litellm"\nmodel = "x"\ncapabilities = {tools = "yes"}', "give true or false"),
        ('adapter = "litellm"\nmodel = "x"\ncapabilities = {context_window = 0}', "a number of tokens"),
        ('adapter = "litellm"\nmodel = "x"\ncapabilities = {structured_output = "xml"}', "one of none"),
        ('adapter = "litellm"\nmodel = "x"\ncapabilities = "missing.json"', "missing.json"),
    ],
)
def test_a_wrong_setting_is_named_with_its_remedy(settings: str, says: str) -> None:
    with pytest.raises(ModelMisconfigured) as caught:
        parse(f"[a]\n{settings}")
    assert says in str(caught.value)
    assert "learngraph.toml [models.a]" in str(caught.value) or "missing.json" in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "line",
    [
        'api_key = "sk-very-secret-1"',
        'API-KEY = "sk-very-secret-1"',
        'token = "sk-very-secret-1"',
        'api_key_env = "sk-very-secret-1"',
        'base_url = "https://me:sk-very-secret-1@relay.example"',
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(line: str) -> None:
    with pytest.raises(SecretInConfig) as caught:
        parse(f'[a]\nadapter = "litellm"\nmodel = "x"\n{line}')
    assert 'api_key_env = "ITS_NAME"' in str(caught.value)
    assert "very-secret" not in str(caught.value) + json.dumps(caught.value.as_json())


def test_no_model_at_all_says_how_to_add_one() -> None:
    with pytest.raises(Unavailable, match=r"add \[models\.default\]"):
        choose_model({})


def test_a_wrong_name_gives_the_closest() -> None:
    models = parse('[default]\nadapter = "scripted"\nscript = "a.yaml"')
    assert choose_model(models).name == "default"
    with pytest.raises(ModelMisconfigured, match="did you mean 'default'"):
        choose_model(models, "defualt")


def test_a_capability_snapshot_survives_its_file(tmp_path: Path) -> None:
    snapshot = Capabilities(tools=False, thinking="required", context_window=128_000)
    (tmp_path / "snapshot.json").write_text(json.dumps(snapshot.as_json()))
    text = '[a]\nadapter = "litellm"\nmodel = "x"\ncapabilities = "snapshot.json"'
    assert parse(text, tmp_path)["a"].capabilities == snapshot


def test_a_snapshot_of_another_format_is_refused() -> None:
    with pytest.raises(ModelMisconfigured, match="unknown format 'v9'"):
        Capabilities.from_json({"format": "v9"})


def test_an_adapter_from_another_package_gets_its_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[learngraph.model]\nparrot = parrot_plugin:make\n")
    (tmp_path / "parrot_plugin.py").write_text("def make(config):\n    return ('parrot', config.options)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = parse('[a]\nadapter = "parrot"\nvolume = 11')["a"]
    opened: Any = open_model(config)
    assert opened == ("parrot", {"volume": 11})


def test_opening_models_imports_no_vendor(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from learngraph_kernel.models import open_model, parse_models\n"
        "config = parse_models({'a': {'adapter': 'litellm', 'model': 'openai/x'}}, root=pathlib.Path('.'))['a']\n"
        "open_model(config)\n"
        "print(sorted({'litellm', 'openai', 'httpx', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
