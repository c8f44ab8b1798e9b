"""A Jupyter kernel under the whole baseline, spoken to over ZMQ `ipc` sockets in a mounted folder."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from learngraph_kernel.sandboxd.hardening import GID, MIB, UID, ContainerSpec, Limits, Mount, container_config
from tests.sandbox.conftest import Engine, RunContainer

SECONDS = 30.0
LIMITS = Limits(memory=512 * MIB, pids=96)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path (a socket's may have 107 bytes) that the container's uid may write."""
    path = Path(tempfile.mkdtemp(prefix="lg-", dir="/tmp"))
    try:
        shutil.chown(path, UID, GID)
    except PermissionError:
        path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def connection_file(folder: Path) -> Path:
    ports = {f"{name}_port": number for number, name in enumerate(("shell", "iopub", "stdin", "control", "hb"), 1)}
    key = {"key": uuid.uuid4().hex, "signature_scheme": "hmac-sha256", "transport": "ipc", "ip": str(folder / "k")}
    path = folder / "kernel.json"
    path.write_text(json.dumps({**key, **ports}))
    path.chmod(0o644)
    return path


@pytest.fixture
def client(sandbox_image: str, run_container: RunContainer, folder: Path) -> Iterator[BlockingKernelClient]:
    path = connection_file(folder)
    command = ("/usr/bin/python3.11", "-B", "-m", "ipykernel_launcher", "-f", str(path))
    mounts = (Mount(str(folder), str(folder), read_only=False),)
    labels = {"learngraph.instance": "tests", "learngraph.kind": "kernel"}
    spec = ContainerSpec("lg-kernel", sandbox_image, command, labels, mounts=mounts, limits=LIMITS)
    run_container(container_config(spec))
    deadline = time.monotonic() + SECONDS
    while not all((folder / f"k-{port}").exists() for port in range(1, 6)):
        assert time.monotonic() < deadline, "the kernel made no sockets"
        time.sleep(0.01)
    kernel = BlockingKernelClient(connection_file=str(path))
    kernel.load_connection_file()
    kernel.start_channels()
    kernel.wait_for_ready(timeout=SECONDS)
    yield kernel
    kernel.stop_channels()


def run(client: BlockingKernelClient, code: str) -> tuple[str, str]:
    """A cell's status and what it printed, warnings among it."""
    printed: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])
        if message["msg_type"] == "error":
            printed.append(message["content"]["ename"])

    reply = client.execute_interactive(code, output_hook=hear, timeout=SECONDS, allow_stdin=False)
    return str(reply["content"]["status"]), "".join(printed)


def test_cells_run_and_print_nothing_of_the_box(client: BlockingKernelClient) -> None:
    code = "import pandas as pd, matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint(pd.DataFrame({'a': [1, 2]}).a.sum())"
    status, printed = run(client, code)
    assert (status, printed.splitlines()[0]) == ("ok", "3")
    assert "Warning" not in printed
    assert run(client, "!echo shell")[1].split() == ["shell"]


def test_a_program_cannot_be_put_into_tmp_and_run(client: BlockingKernelClient) -> None:
    code = "import shutil, subprocess\nshutil.copy('/usr/bin/true', '/tmp/t')\nsubprocess.run(['/tmp/t'])"
    assert run(client, code) == ("error", "PermissionError")


def test_a_file_larger_than_the_limit_is_not_written(client: BlockingKernelClient, folder: Path) -> None:
    limit = LIMITS.fsize
    code = f"f = open({str(folder / 'big')!r}, 'wb')\nf.truncate({limit})\nf.seek({limit})\nf.write(b'x')\nf.flush()"
    assert run(client, code) == ("error", "OSError")
    assert (folder / "big").stat().st_size == limit


def test_a_fork_bomb_ends_at_the_limit_and_the_kernel_lives(client: BlockingKernelClient) -> None:
    code = (
        "import os, signal, time\nchildren = []\ntry:\n    while len(children) < 2000:\n        pid = os.fork()\n"
        "        if pid == 0:\n            time.sleep(60); os._exit(0)\n        children.append(pid)\n"
        "except OSError as error:\n    print(type(error).__name__)\n"
        "for pid in children:\n    os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)\nprint(len(children) < 96)"
    )
    assert run(client, code) == ("ok", "BlockingIOError\nTrue\n")
    assert run(client, "print(6 * 7)") == ("ok", "42\n")


def test_memory_ends_at_the_limit_and_the_engine_says_so(client: BlockingKernelClient, docker_engine: Engine) -> None:
    code = "import subprocess\nprint(subprocess.run(['python3', '-c', 'x = bytearray(2**30)']).returncode)"
    assert run(client, code) == ("ok", "-9\n")
    assert run(client, "print(6 * 7)") == ("ok", "42\n")
