from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from learngraph_kernel.store.database import Home
from tests.tools.world import World, outside


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with outside() as server:
        made = World(Home(tmp_path / "home"), tmp_path / "workspace", server)
        yield made
        made.store.close()
