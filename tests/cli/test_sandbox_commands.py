"""`learngraph sandbox ls|logs|stop|gc` against a real daemon, and without one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from learngraph_kernel.sandbox.client import SandboxClient
from tests.conftest import Said
from tests.sandbox.conftest import docker_engine, sandbox_image
from tests.sandboxd.running import Sandboxd

__all__ = ["docker_engine", "sandbox_image"]


@pytest.fixture
def daemon(sandbox_image: str) -> Iterator[Sandboxd]:
    folder = Path(tempfile.mkdtemp(prefix="lg-cli"))
    with Sandboxd(folder, sandbox_image) as running:
        yield running
    shutil.rmtree(folder)


def test_a_workspaces_commands_are_listed_shown_and_stopped(daemon: Sandboxd, learngraph: Callable[..., Said]) -> None:
    client = SandboxClient(daemon.socket)
    box = client.create("cli")
    client.put_file(box.id, "work/a.py", b"print('said')")
    done = client.run(box.id, ["python", "work/a.py"])
    client.close()

    def sandbox(*words: str) -> Said:
        return learngraph("sandbox", *words, LEARNGRAPH_SANDBOXD=str(daemon.socket))

    assert sandbox("ls", "--json").json["sandboxes"][0]["state"] == "warm_idle"
    assert box.id in sandbox("ls").out
    assert sandbox("logs", box.id, "--json").json["execs"][0]["exec"] == done.id
    assert sandbox("logs", done.id).out == "said\n"
    assert sandbox("stop", box.id, "--json").json == {"stopped": [{"id": box.id, "state": "cold"}]}
    assert sandbox("stop", box.id, "--delete").code == 0
    assert sandbox("ls", "--json").json["sandboxes"] == []
    assert sandbox("gc", "--json").json == {"containers": 0, "cold": 0, "contents": 0}
    assert sandbox("logs", "nonsense").code == 2


def test_the_image_is_made_and_its_id_printed(
    daemon: Sandboxd, sandbox_image: str, learngraph: Callable[..., Said]
) -> None:
    said = learngraph("sandbox", "build", LEARNGRAPH_SANDBOXD=str(daemon.socket))
    assert (said.code, said.out) == (0, f"{sandbox_image}\n"), said.err
    assert "100 %  done" in said.err


def test_a_pull_without_a_registry_says_what_to_configure(daemon: Sandboxd, learngraph: Callable[..., Said]) -> None:
    said = learngraph("sandbox", "build", "--pull", "--json", LEARNGRAPH_SANDBOXD=str(daemon.socket))
    assert (
        said.code == 2
        and said.json["error"]["code"] == "no_registry"
        and "image_registry" in said.json["error"]["remedy"]
    )


def test_without_a_daemon_the_remedy_is_said(learngraph: Callable[..., Said], tmp_path: Path) -> None:
    said = learngraph("sandbox", "ls", "--json", LEARNGRAPH_SANDBOXD=str(tmp_path / "none.sock"))
    assert said.code == 1 and said.json["error"]["code"] == "sandbox_unavailable" and said.json["error"]["remedy"]
