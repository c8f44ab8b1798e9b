"""A store of the test's own, and the endpoint that plays scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.models.conftest import litellm_library
from tests.models.scripted_endpoint import Served, serve_scripts

__all__ = ["litellm_library"]


@pytest.fixture
def place(home: Path) -> Home:
    found = Home(home)
    found.ensure()
    return found


@pytest.fixture
def store(place: Home) -> Iterator[Store]:
    with Store.open(place) as opened:
        yield opened


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_scripts() as running:
        yield running
