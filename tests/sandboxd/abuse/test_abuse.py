"""Every probe is held by sandboxd, and every probe works on a sandboxd that believes everybody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandboxd.schema import workspace_key
from tests.sandboxd.abuse.probes import PROBES, SECRET, Scene
from tests.sandboxd.running import REPOSITORY, Sandboxd
from tests.sandboxd.test_two_users import _as_nobody

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: cannot become another user")


class Trusting(Sandboxd):
    """The daemon without its checks."""

    def start(self) -> None:
        config = self.folder / "sandboxd.toml"
        lines = [f"{name} = {json.dumps(value)}" for name, value in self.settings.items()]
        config.write_text("[sandbox]\n" + "\n".join(lines) + "\n")
        command = [sys.executable, "-m", "tests.sandboxd.abuse.trusting", "sandboxd", "--config", str(config)]
        command += ["--state", str(self.state), "--socket", str(self.socket)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "LEARNGRAPH_HOME": str(self.folder / "home")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self.wait()


class Stranger:
    """Calls as uid 65534, each in a process of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        import multiprocessing
        import secrets

        ours, theirs = multiprocessing.Pipe()
        every = {"Idempotency_Key": secrets.token_hex(8), **headers}
        process = multiprocessing.get_context("fork").Process(
            target=_as_nobody, args=(self._path, method, target, body, every, theirs)
        )
        process.start()
        answer: tuple[int, Any] = ours.recv()
        process.join()
        return answer


@contextmanager
def scene(daemon: Sandboxd) -> Iterator[Scene]:
    """What the owner has, and the stranger before it."""
    daemon.socket.chmod(0o666)
    for folder in (daemon.folder, daemon.folder.parent):
        folder.chmod(0o755)
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (daemon.state / "service-keys" / "trusted.pub").write_bytes(public)
    owner = SandboxClient(daemon.socket)
    box, other = owner.create("secret").id, owner.create("other").id
    owner.put_file(box, "work/secret", SECRET)
    owner.put_file(box, "work/s.py", b"print('said in secret')")
    command = owner.run(box, ["python", "work/s.py"]).id
    kernel = owner.start_kernel("r_secret")
    folder = Path(tempfile.mkdtemp(prefix="lg-owners-"))
    granted = folder.with_name(folder.name + "-granted")
    granted.mkdir()
    yield Scene(owner, Stranger(daemon.socket), box, other, kernel.id, command, key, folder)
    for path in (folder, granted):
        shutil.rmtree(path)
    for running in owner.overview()[1]:
        owner.stop_kernel(running)
    for sandbox in owner.overview()[0]:
        owner.delete(sandbox.id)
    owner.close()


@pytest.fixture(scope="module")
def guarded(base: Path, docker_engine: object, sandbox_image: str) -> Iterator[Scene]:
    with Sandboxd(base / "guarded", sandbox_image) as daemon, scene(daemon) as there:
        yield there


@pytest.fixture(scope="module")
def trusting(base: Path, docker_engine: object, sandbox_image: str) -> Iterator[Scene]:
    with Trusting(base / "trusting", sandbox_image) as daemon, scene(daemon) as there:
        yield there


@pytest.mark.parametrize("name", PROBES)
def test_it_is_held(guarded: Scene, name: str) -> None:
    assert not PROBES[name](guarded)
    assert guarded.file_is(SECRET)
    assert {kernel.id: kernel.state for kernel in guarded.owner.overview()[1]} == {guarded.kernel: "running"}


@pytest.mark.parametrize("name", PROBES)
def test_the_probe_can_tell_a_hole(trusting: Scene, name: str) -> None:
    assert PROBES[name](trusting), "it is held by a daemon without checks as well: it could not tell a hole"


def test_a_workspaces_name_says_nothing_of_its_owner() -> None:
    assert "ana" not in workspace_key("user:ana", "secret")
