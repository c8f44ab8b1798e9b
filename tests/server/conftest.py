"""A real Jupyter server with the extension, in a process of its own, and a client of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from tests.conftest import CARDS, REPOSITORY

TOKEN = "a-token-for-tests"


@dataclass
class Server:
    """One server process.

    Attributes:
        root: its root folder, a workspace with the source `shop`.
    """

    root: Path
    home: Path
    port: int
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/base/learngraph/api/v1"

    @property
    def log(self) -> Path:
        return self.root.parent / "server.log"

    def start(self) -> None:
        """Starts it and waits until it answers."""
        command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={self.port}"]
        command += [f"--ServerApp.root_dir={self.root}", "--ServerApp.base_url=/base/", "--ServerApp.ip=127.0.0.1"]
        command += [f"--IdentityProvider.token={TOKEN}", "--ServerApp.port_retries=0"]
        command += ["--ServerApp.jpserver_extensions=learngraph_server=True"]
        if not any("runtime_factory" in option for option in self.options):
            command += ["--LearnGraphServer.runtime_factory=tests.server.factory:open_runtime"]
        command += self.options
        path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "jupyter_extension")])
        environment = {**os.environ, "PYTHONPATH": path, "LEARNGRAPH_HOME": str(self.home), **self.environment}
        environment |= {
            "JUPYTER_CONFIG_DIR": str(self.root.parent / "config"),
            "JUPYTER_RUNTIME_DIR": str(self.root.parent),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/base/api", timeout=5).raise_for_status()
                return
            except httpx.HTTPError:
                assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.05)

    def kill(self) -> None:
        """`kill -9` of the server and whatever it started."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def client(self, **headers: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"token {TOKEN}", **headers}, timeout=60)

    def follow(self, session: str, *, after: int = 0, until: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
        """The events of a session as a browser gets them; ends after one of these types."""
        with self.client() as client:
            headers = {"Last-Event-ID": str(after)} if after else {}
            with client.stream("GET", f"/sessions/{session}/events", headers=headers) as answer:
                assert answer.status_code == 200 and answer.headers["content-type"] == "text/event-stream"
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        event = json.loads(line[6:])
                        yield event
                        if event["type"] in until:
                            return


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_server(folder: Path, **options: Any) -> Server:
    root = folder / "root"
    (root / "metrics").mkdir(parents=True)
    with duckdb.connect(str(root / "shop.duckdb")) as connection:
        connection.execute("create table orders(id integer, region varchar, amount decimal(18, 2))")
        connection.execute("insert into orders values (1,'n',100.25),(2,'s',200.25),(3,'n',300.00),(4,'e',400.00)")
    (root / "learngraph.toml").write_text('[sources.shop]\nkind = "duckdb"\npath = "shop.duckdb"\n')
    (root / "metrics" / "shop.yaml").write_text(CARDS)
    return Server(root, folder / "home", free_port(), **options)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for one module."""
    made = make_server(tmp_path_factory.mktemp("server"), options=["--LearnGraphServer.heartbeat=0.2"])
    made.start()
    yield made
    made.stop()


@pytest.fixture
def api(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client
