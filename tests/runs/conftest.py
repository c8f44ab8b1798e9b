"""What the tests of runs share: a store with two sealed runs, their exported files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from learngraph_kernel.runs.folder import RunParts, parts_of_folder, write_folder
from learngraph_kernel.runs.seal import seal_run_in_store
from learngraph_kernel.runs.stored import parts_of_run
from learngraph_kernel.store.database import Home, Store
from tests.runs.sample_run import ACTOR, OTHER_RUN, RUN, SIGNER, record_run


@pytest.fixture(scope="session")
def sealed_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Two sealed runs with a comment each; not to be changed."""
    with Store.open(Home(tmp_path_factory.mktemp("sealed") / "home")) as opened:
        for run, week in ((RUN, 7), (OTHER_RUN, 8)):
            record_run(opened, run, week=week)
            seal_run_in_store(opened, run, signer=SIGNER, actor=ACTOR)
            opened.ledger.append(run, "comment.added", {"text": "looks right"}, actor="user:bo", after_seal=True)
        yield opened


@pytest.fixture(scope="session")
def pristine(sealed_store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """Every file of both runs as exported, by run."""
    folders = {}
    for run in (RUN, OTHER_RUN):
        folder = tmp_path_factory.mktemp("exports") / run
        write_folder(parts_of_run(sealed_store, run), folder)
        parts = parts_of_folder(folder)
        folders[run] = {name: parts.read(name) for name in parts.files}
    return folders


@pytest.fixture
def sealed_parts(sealed_store: Store) -> RunParts:
    return parts_of_run(sealed_store, RUN)
