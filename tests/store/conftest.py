from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from learngraph_kernel.store.database import Home, RunRecord, Store, new_run_id, utcnow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with Store.open(home) as opened:
        yield opened


@pytest.fixture
def new_run() -> Callable[..., str]:
    """Adds a run to a store; returns its id."""

    def add(store: Store, **fields: object) -> str:
        run_id = new_run_id()
        values = {"actor": "user:ana", "started_at": utcnow(), **fields}
        with store.unit_of_work("user:ana") as work:
            work.insert_run(RunRecord(run_id, **values))  # type: ignore[arg-type]
        return run_id

    return add
