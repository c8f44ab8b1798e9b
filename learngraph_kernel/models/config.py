"""`[models.…]` in learngraph.toml: parsed strictly, secrets by reference only, opened into an adapter.

```toml
[models.default]
adapter = "scripted"
script = "model.yaml"                  # relative to the workspace

[models.cheap]
adapter = "litellm"
model = "openai/gpt-4o-mini"
base_url = "https://relay.example/v1"  # optional
api_key_env = "OPENAI_API_KEY"         # the name of an environment variable, never the key;
                                       # or api_key = "secret:openai", kept by `learngraph secret set openai`
auth_style = "bearer"                  # how the key is sent; some relays want "x-api-key"
temperature = 0
max_output_tokens = 2000
thinking = "off"
limits = {no_output_s = 60, total_s = 600, attempts = 4}
capabilities = {structured_output = "json_schema"}   # or the path of a snapshot in JSON
prices = {input = 0.15, output = 0.6, currency = "USD"}
```

Another adapter is a package with an entry point in the group `learngraph.model`: a callable that takes a `ModelConfig`.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.metadata
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from learngraph_kernel.errors import BadInput, Unavailable
from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.errors import ModelMisconfigured
from learngraph_kernel.models.messages import Defaults, Limits, Thinking
from learngraph_kernel.models.port import ModelAdapter
from learngraph_kernel.models.prices import Prices
from learngraph_kernel.naming import suggestion

DEFAULT = "default"
ENTRY_POINTS = "learngraph.model"

_COMMON = {"adapter", "limits", "prices", "temperature", "max_output_tokens", "thinking"}
_KEYS: dict[str, set[str]] = {
    "scripted": {*_COMMON, "script"},
    "litellm": {*_COMMON, "model", "base_url", "api_key_env", "api_key", "auth_style", "capabilities"},
}
_SECRETS = {"api_key", "apikey", "key", "token", "secret", "password", "authorization", "access_token", "auth"}
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_REFERENCE = re.compile(r"secret:([a-z][a-z0-9_-]{0,63})")
AuthStyle: TypeAlias = Literal["bearer", "x-api-key"]
_ADD_ONE = 'add [models.default] with adapter = "scripted" or "litellm" to learngraph.toml'


class SecretInConfig(ModelMisconfigured):
    """A key stands in the file itself."""

    code = "secret_in_config"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One declared model; fields an adapter has no use for are None.

    Attributes:
        name: as in `[models.NAME]`.
        adapter: `scripted`, `litellm`, or an entry point's name.
        root: the workspace, which relative paths start from.
        secret: the name of the key in the vault.
        auth_style: the header that the key is sent in.
        options: the keys of an adapter from elsewhere, as written.
    """

    name: str
    adapter: str
    root: Path
    model: str | None = None
    script: Path | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    secret: str | None = None
    auth_style: AuthStyle = "bearer"
    defaults: Defaults = field(default_factory=Defaults)
    capabilities: Capabilities | None = None
    prices: Prices | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def parse_models(table: Mapping[str, Any], *, root: Path, where: str = "learngraph.toml") -> dict[str, ModelConfig]:
    """The `models` table of a workspace file.

    Args:
        table: what stands under `models`: name → settings.
        root: the workspace folder.
        where: names the file in messages.

    Raises:
        ModelMisconfigured: an unknown key (with the closest known one), a missing or ill-typed value.
        SecretInConfig: a key where only the name of a variable may stand.
    """
    return {name: _parse(name, settings, root, f"{where} [models.{name}]") for name, settings in table.items()}


def _parse(name: str, settings: Any, root: Path, where: str) -> ModelConfig:
    if not isinstance(settings, Mapping):
        raise ModelMisconfigured("a model is a table", where=where, remedy=_ADD_ONE)
    _refuse_secrets(settings, where)
    adapter = _text(settings, "adapter", where)
    if adapter is None:
        raise ModelMisconfigured("`adapter` is missing", where=where, remedy=f"one of {', '.join(_adapters())}")
    if adapter not in _KEYS:
        _known_adapter(adapter, where)
        options = {key: value for key, value in settings.items() if key not in _COMMON}
        return ModelConfig(name, adapter, root, options=options, **_common(settings, where))
    for key in settings:
        if key not in _KEYS[adapter]:
            remedy = suggestion(key, _KEYS[adapter], kind="keys")
            raise ModelMisconfigured(f"unknown key {key!r} for adapter {adapter}", where=where, remedy=remedy)
    return ModelConfig(
        name,
        adapter,
        root,
        model=_required(settings, "model", where) if adapter == "litellm" else None,
        script=root / _required(settings, "script", where) if adapter == "scripted" else None,
        base_url=_base_url(settings, where),
        api_key_env=_text(settings, "api_key_env", where),
        secret=_secret(settings, where),
        auth_style=_auth_style(settings, where),
        capabilities=_capabilities(settings, root, where),
        **_common(settings, where),
    )


def _common(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    thinking = _text(settings, "thinking", where)
    if thinking is not None and thinking not in get_args(Thinking):
        remedy = f"one of {', '.join(get_args(Thinking))}"
        raise ModelMisconfigured(f"`thinking` is {thinking!r}", where=where, remedy=remedy)
    most = settings.get("max_output_tokens")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise ModelMisconfigured(f"`max_output_tokens` is {most!r}", where=where, remedy="give a number above 0")
    warmth = settings.get("temperature")
    if warmth is not None and (isinstance(warmth, bool) or not isinstance(warmth, int | float) or warmth < 0):
        raise ModelMisconfigured(f"`temperature` is {warmth!r}", where=where, remedy="give a number from 0")
    for key in ("prices", "limits"):
        if not isinstance(settings.get(key, {}), Mapping):
            raise ModelMisconfigured(f"`{key}` is {settings[key]!r}", where=where, remedy="give a table in braces")
    prices = settings.get("prices")
    return {
        "defaults": Defaults(_limits(settings.get("limits", {}), where), warmth, most, thinking),  # type: ignore[arg-type]
        "prices": None if prices is None else Prices.from_table(prices, where=f"{where}, prices"),
    }


def _limits(table: Any, where: str) -> Limits:
    known = {"no_output_s": (int, float), "total_s": (int, float), "attempts": (int,)}
    for key, value in dict(table).items():
        if key not in known or isinstance(value, bool) or not isinstance(value, known[key]):
            remedy = "known: no_output_s and total_s (seconds), attempts"
            raise ModelMisconfigured(f"limit {key!r} is {value!r}", where=where, remedy=remedy)
    try:
        return Limits(**table)
    except BadInput as error:
        raise ModelMisconfigured(error.what, where=where, remedy=error.remedy) from error


def _capabilities(settings: Mapping[str, Any], root: Path, where: str) -> Capabilities | None:
    given = settings.get("capabilities")
    if given is None:
        return None
    if isinstance(given, str):
        path = root / given
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            remedy = "give a capability snapshot in JSON, or a table"
            raise ModelMisconfigured(f"cannot be read: {error}", where=str(path), remedy=remedy) from error
        where = str(path)
    if not isinstance(given, Mapping):
        raise ModelMisconfigured("`capabilities` is not a table", where=where, remedy="give a table or a JSON file")
    return Capabilities.from_json(given, where=where)


def _refuse_secrets(settings: Mapping[str, Any], where: str) -> None:
    """Never repeats the value: a message may end up in a log."""
    remedy = (
        'run `learngraph secret set NAME` and write api_key = "secret:NAME", or put the key into an environment '
        'variable and write api_key_env = "ITS_NAME"'
    )
    for key, value in settings.items():
        reference = key == "api_key" and isinstance(value, str) and _REFERENCE.fullmatch(value)
        if key.lower().replace("-", "_") in _SECRETS and not reference:
            raise SecretInConfig(f"`{key}` holds a secret in the file", where=where, remedy=remedy)
    variable = settings.get("api_key_env")
    if variable is not None and not (isinstance(variable, str) and _VARIABLE.fullmatch(variable)):
        raise SecretInConfig("`api_key_env` is not the name of an environment variable", where=where, remedy=remedy)
    url = settings.get("base_url")
    if isinstance(url, str) and "@" in urlsplit(url).netloc:
        raise SecretInConfig("`base_url` holds a user or password", where=where, remedy=remedy)


def _secret(settings: Mapping[str, Any], where: str) -> str | None:
    """The name in `secret:NAME`; what else stands there was refused before."""
    reference = settings.get("api_key")
    if reference is None:
        return None
    if "api_key_env" in settings:
        raise ModelMisconfigured("both `api_key` and `api_key_env`", where=where, remedy="keep one of them")
    return str(reference).removeprefix("secret:")


def _auth_style(settings: Mapping[str, Any], where: str) -> AuthStyle:
    style = settings.get("auth_style", "bearer")
    if style not in get_args(AuthStyle):
        remedy = f"one of {', '.join(get_args(AuthStyle))}"
        raise ModelMisconfigured(f"`auth_style` is {style!r}", where=where, remedy=remedy)
    chosen: AuthStyle = style
    return chosen


def _base_url(settings: Mapping[str, Any], where: str) -> str | None:
    url = _text(settings, "base_url", where)
    if url is not None and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc):
        raise ModelMisconfigured(f"`base_url` is {url!r}", where=where, remedy="give http://… or https://…")
    return url


def _text(settings: Mapping[str, Any], key: str, where: str) -> str | None:
    value = settings.get(key)
    if value is not None and not (isinstance(value, str) and value):
        raise ModelMisconfigured(f"`{key}` is {value!r}", where=where, remedy="give text in quotes")
    return value


def _required(settings: Mapping[str, Any], key: str, where: str) -> str:
    value = _text(settings, key, where)
    if value is None:
        example = {"model": 'model = "openai/gpt-4o-mini"', "script": 'script = "model.yaml"'}[key]
        raise ModelMisconfigured(f"`{key}` is missing", where=where, remedy=f"add, for example, {example}")
    return value


def _adapters() -> list[str]:
    return [*_KEYS, *sorted(importlib.metadata.entry_points(group=ENTRY_POINTS).names)]


def _known_adapter(adapter: str, where: str) -> None:
    known = _adapters()
    if adapter not in known:
        remedy = suggestion(adapter, known, kind="adapters")
        raise ModelMisconfigured(f"unknown adapter {adapter!r}", where=where, remedy=remedy)


def choose_model(models: Mapping[str, ModelConfig], name: str = DEFAULT) -> ModelConfig:
    """The declared model of this name.

    Raises:
        Unavailable: no model is declared at all.
        ModelMisconfigured: none of this name.
    """
    if name in models:
        return models[name]
    if not models:
        raise Unavailable("no model is configured", where="learngraph.toml", remedy=_ADD_ONE)
    remedy = suggestion(name, models, kind="models")
    raise ModelMisconfigured(f"no model named {name!r}", where="learngraph.toml", remedy=remedy)


def open_model(
    config: ModelConfig,
    *,
    environ: Mapping[str, str] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    reveal: Callable[[str], str] | None = None,
) -> ModelAdapter:
    """The adapter of a declared model; cheap: no vendor is imported and nothing is sent.

    Args:
        config: from `parse_models`.
        environ: where keys are looked up (default: the process's environment), read when a model is asked.
        sleep: how a script's delays wait.
        reveal: gives the value of a secret in the vault, when a model is asked; without it there is no vault.

    Raises:
        ModelMisconfigured: the script is missing or wrong.
    """
    if config.adapter == "scripted":
        from learngraph_kernel.models.scripted import ScriptedModel, read_script

        assert config.script is not None  # `parse_models` requires it
        return ScriptedModel(read_script(config.script), defaults=config.defaults, prices=config.prices, sleep=sleep)
    if config.adapter == "litellm":
        from learngraph_kernel.models.litellm_adapter import LiteLLMModel

        assert config.model is not None  # `parse_models` requires it
        return LiteLLMModel(
            config.model,
            base_url=config.base_url,
            api_key_env=config.api_key_env,
            capabilities=config.capabilities,
            defaults=config.defaults,
            prices=config.prices,
            environ=os.environ if environ is None else environ,
            secret=_revealing(config, reveal),
            auth_style=config.auth_style,
        )
    (entry,) = importlib.metadata.entry_points(group=ENTRY_POINTS, name=config.adapter)
    adapter: ModelAdapter = entry.load()(config)
    return adapter


def _revealing(config: ModelConfig, reveal: Callable[[str], str] | None) -> Callable[[], str] | None:
    """How the adapter gets its key, if that is a secret."""
    name = config.secret
    if name is None:
        return None
    if reveal is not None:
        return functools.partial(reveal, name)

    def unavailable() -> str:
        raise Unavailable("no vault is open here", where=f"model {config.name}", remedy="ask it through `learngraph`")

    return unavailable
