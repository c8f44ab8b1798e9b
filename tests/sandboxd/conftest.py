"""A workspace on disk, sandboxd's database, and the engine and the image as for tests of the runtime's side."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy import create_engine, event

from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandboxd.schema import metadata
from learngraph_kernel.sandboxd.storage import Storage
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder
from learngraph_kernel.store.artifacts import ArtifactStore
from tests.sandbox.conftest import Engine, docker_engine, run_container, sandbox_image
from tests.sandboxd.running import Sandboxd, containers_of

__all__ = ["docker_engine", "run_container", "sandbox_image"]


@pytest.fixture(scope="session")
def base() -> Iterator[Path]:
    """A short folder for daemons: a socket's path has 108 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="lg-t"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def daemon(base: Path, docker_engine: Engine, sandbox_image: str, request: pytest.FixtureRequest) -> Iterator[Sandboxd]:
    """A daemon for one module; `DAEMON` in the module changes its settings. It must leave no container behind."""
    name = request.module.__name__.rpartition(".")[2]
    with Sandboxd(base / name, sandbox_image, **getattr(request.module, "DAEMON", {})) as running:
        instance = running.instance()
        yield running
    assert containers_of(instance, every=True) == []


@pytest.fixture
def client(daemon: Sandboxd) -> Iterator[SandboxClient]:
    client = SandboxClient(daemon.socket)
    yield client
    for sandbox in client.overview()[0]:
        client.delete(sandbox.id)
    for kernel in client.overview()[1]:
        client.stop_kernel(kernel)
    client.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[WorkspaceFolder]:
    with WorkspaceFolder(tmp_path / "workspace") as folder:
        yield folder


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlalchemy.Engine]:
    engine = create_engine(f"sqlite:///{tmp_path / 'sandboxd.db'}")
    event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys = ON"))
    metadata.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def blobs(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "blobs")


@pytest.fixture
def storage(database: sqlalchemy.Engine, blobs: ArtifactStore) -> Storage:
    return Storage(database, blobs)
