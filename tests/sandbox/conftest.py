"""The engine and the image, both real, and a local site to fetch from. Without an engine tests are skipped, a line
each."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from learngraph_kernel.sandbox.acquire import Gate
from learngraph_kernel.sandbox.acquisition import Request
from learngraph_kernel.sandbox.approvals import StoredApprovals
from learngraph_kernel.sandbox.resolvers import FixedResolver
from learngraph_kernel.sandboxd.image import Recipe, build_image
from learngraph_kernel.sandboxd.image.docker_command import Docker
from learngraph_kernel.sandboxd.image.errors import EngineError
from learngraph_kernel.store.database import Home, Store
from tests.sandbox.local_site import NAMES, Site, ToSite, loopback_allowed, make_authority, start_site
from tests.sandboxd.running import Sandboxd

SOCKET = "/var/run/docker.sock"
API = "/v1.41"


class RunContainer(Protocol):
    """Makes a container, starts it unless told not to, and returns its name."""

    def __call__(self, body: dict[str, Any], *, start: bool = True) -> str: ...


class _Connection(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(SOCKET)


class Engine:
    """The engine as tests speak to it: its own HTTP API, nothing of ours in between."""

    def __init__(self) -> None:
        self.command = Docker()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = _Connection("docker")
        data = None if body is None else json.dumps(body)
        connection.request(method, API + path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status >= 400:
            raise AssertionError(f"{method} {path}: {answer.status} {text}")
        return json.loads(text) if text else None


@pytest.fixture(scope="session")
def docker_engine() -> Engine:
    """The engine of this machine; skips where there is none."""
    try:
        Docker().version()
    except EngineError as error:
        pytest.skip(f"NO DOCKER ENGINE: {error.what.splitlines()[-1]}")
    return Engine()


@pytest.fixture(scope="session")
def sandbox_image(docker_engine: Engine) -> str:
    """The id of the image of this checkout; built unless the engine has it."""
    return build_image(Recipe.load()).id


@pytest.fixture
def run_container(docker_engine: Engine) -> Iterator[RunContainer]:
    """Makes containers from bodies of `POST /containers/create`, and removes them when the test is over."""
    names: list[str] = []

    def run(body: dict[str, Any], *, start: bool = True) -> str:
        name = f"lg-test-{uuid.uuid4().hex[:12]}"
        names.append(name)
        docker_engine.ask("POST", f"/containers/create?name={name}", body)
        if start:
            docker_engine.ask("POST", f"/containers/{name}/start")
        return name

    yield run
    for name in names:
        docker_engine.command.call("rm", "--force", "--volumes", name)


@pytest.fixture(scope="session")
def sandboxd(sandbox_image: str) -> Iterator[Sandboxd]:
    """A daemon with one warm kernel, in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lg-t"))
    with Sandboxd(folder, sandbox_image, warm_kernels=1) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def site(authority: tuple[Path, Path]) -> Iterator[Site]:
    running, server = start_site(authority[1])
    yield running
    server.shutdown()
    server.server_close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(Home(tmp_path / "home")) as opened:
        yield opened


@dataclass
class World:
    """A gate to the local site, with everything a test may want to look at or replace."""

    gate: Gate
    site: Site
    store: Store
    approvals: StoredApprovals
    connector: ToSite

    def allow(self, request: Request) -> str:
        return self.approvals.grant(request, by="user:ana")

    def replace(self, **parts: object) -> Gate:
        self.gate = replace(self.gate, **parts)  # type: ignore[arg-type]
        return self.gate

    def artifacts(self) -> int:
        return len(list(self.store.artifacts.iterate()))


@pytest.fixture
def world(site: Site, store: Store, authority: tuple[Path, Path]) -> World:
    approvals = StoredApprovals(store, "session:s1")
    connector = ToSite(site)
    gate = Gate(
        store,
        approvals,
        "session:s1",
        resolver=FixedResolver({name: ["127.0.0.1"] for name in NAMES}),
        connector=connector,
        tls=ssl.create_default_context(cafile=str(authority[0])),
        authorities=authority[0],
        policy=loopback_allowed,
    )
    return World(gate, site, store, approvals, connector)
