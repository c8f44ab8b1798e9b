"""A workspace on disk, sandboxd's database, and the engine and the image as for tests of the runtime's side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, event

from learngraph_kernel.sandboxd.schema import metadata
from learngraph_kernel.sandboxd.storage import Storage
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder
from learngraph_kernel.store.artifacts import ArtifactStore
from tests.sandbox.conftest import docker_engine, run_container, sandbox_image

__all__ = ["docker_engine", "run_container", "sandbox_image"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[WorkspaceFolder]:
    with WorkspaceFolder(tmp_path / "workspace") as folder:
        yield folder


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path / 'sandboxd.db'}")
    event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys = ON"))
    metadata.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def blobs(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "blobs")


@pytest.fixture
def storage(database: Engine, blobs: ArtifactStore) -> Storage:
    return Storage(database, blobs)
