"""Wild commands beside ordinary ones: each ends as what it is, and nobody else notices."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

from tests.sandbox.conftest import Engine
from tests.sandboxd.load import Worker, summary
from tests.sandboxd.runaways import WILD, Runaway
from tests.sandboxd.running import Sandboxd, containers_of

SETTINGS = {"active_per_user": 16, "container_memory": 256 << 20, "workspace_bytes": 32 << 20, "output_bytes": 1 << 20}


def processes_of_the_box() -> list[str]:
    """Processes of the containers' uid that are left on this machine and are no runner of another daemon."""
    listed = subprocess.run(["ps", "-o", "args=", "-u", "65532"], capture_output=True, text=True, check=False)
    return [line for line in listed.stdout.splitlines() if "wild.py" in line]


def test_five_runaways_end_as_what_they_are_and_disturb_nobody(
    base: Path, docker_engine: Engine, sandbox_image: str
) -> None:
    with Sandboxd(base / "wild", sandbox_image, **SETTINGS) as daemon:
        instance, stop = daemon.instance(), threading.Event()
        workers = [Worker(daemon.socket, f"client-{n}", n, stop) for n in range(4)]
        wild = [Runaway(daemon.socket, name, f"wild-{n}") for n, name in enumerate(WILD)]
        for runaway in wild:
            runaway.finish(120)
        for worker in workers:
            worker.finish()
        seen = summary(workers)
        assert [wrong for runaway in wild for wrong in runaway.wrong] == []
        assert seen["unclear"] == []
        assert set(seen["commands"]) == {"exited"}  # type: ignore[call-overload]
        assert processes_of_the_box() == []
        assert containers_of(instance, every=True) == []
