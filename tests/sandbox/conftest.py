from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from learngraph_kernel.sandbox.acquire import Gate
from learngraph_kernel.sandbox.acquisition import Request
from learngraph_kernel.sandbox.approvals import StoredApprovals
from learngraph_kernel.sandbox.resolvers import FixedResolver
from learngraph_kernel.store.database import Home, Store
from tests.sandbox.local_site import NAMES, Site, ToSite, loopback_allowed, make_authority, start_site


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
