from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from learngraph_kernel.models.messages import Limits, NormalizedRequest, user
from learngraph_kernel.models.port import Pacing
from learngraph_kernel.models.script import parse_script
from learngraph_kernel.models.scripted import ScriptedModel

from .endpoint import Seen, serve


@pytest.fixture(scope="session")
def endpoint() -> Iterator[tuple[str, Seen]]:
    """A running OpenAI-compatible server: its base URL and what it has seen."""
    with serve() as running:
        yield running


@pytest.fixture(scope="session")
def litellm_library() -> Any:
    """LiteLLM, imported once (seconds)."""
    from learngraph_kernel.models.litellm_adapter import import_litellm

    return import_litellm()


class Waits(list[float]):
    """Records pauses instead of waiting."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def pacing(waits: Waits) -> Pacing:
    """No real pauses; chance always in the middle."""
    return Pacing(sleep=waits.sleep, chance=lambda: 0.5)


def scripted(text: str, **more: Any) -> ScriptedModel:
    """A scripted model from YAML text."""
    return ScriptedModel(parse_script(yaml.safe_load(text), where="test.yaml"), **more)


def asking(text: str, *, model: str = "scripted", **limits: Any) -> NormalizedRequest:
    """A request of one user message."""
    return NormalizedRequest(model, (user(text),), limits=Limits(**limits))
