"""A real sandboxd in a process of its own, for tests and benchmarks: started, killed, started again on its state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from learngraph_kernel.sandbox.client import SandboxClient, SandboxUnavailable

REPOSITORY = Path(__file__).resolve().parents[2]
QUIET = {"warm_kernels": 0, "disk_kept": 0, "active_per_user": 8, "memory_share": 0.95, "container_memory": 512 << 20}


class Sandboxd:
    """A daemon with its state below a folder. As a context manager it leaves no container behind.

    Args:
        folder: short, since the socket lies in it.
        image: pinned image id.
        settings: changes to `QUIET`, as in the settings file.
    """

    def __init__(self, folder: Path, image: str, **settings: Any) -> None:
        self.folder, self.state = folder, folder / "state"
        self.socket = folder / "s.sock"
        self.log = folder / "sandboxd.log"
        self.settings: dict[str, Any] = {"image": image, **QUIET, **settings}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it and waits until it answers."""
        config = self.folder / "sandboxd.toml"
        lines = [f"{name} = {json.dumps(value)}" for name, value in self.settings.items()]
        config.write_text("[sandbox]\n" + "\n".join(lines) + "\n")
        command = [sys.executable, "-m", "learngraph_kernel.cli", "sandboxd"]
        command += ["--config", str(config), "--state", str(self.state), "--socket", str(self.socket)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "LEARNGRAPH_HOME": str(self.folder / "home")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self.wait()

    def wait(self, seconds: float = 60.0) -> None:
        """Until it answers."""
        deadline = time.monotonic() + seconds
        while True:
            assert self.process is not None
            client = SandboxClient(self.socket)
            try:
                client.health()
                return
            except SandboxUnavailable:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"sandboxd did not start:\n{self.log.read_text()[-3000:]}") from None
            finally:
                client.close()
            time.sleep(0.02)

    def kill(self) -> None:
        """`kill -9`."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and waits."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)

    def instance(self) -> str:
        """Its id, as its containers' labels have it."""
        client = SandboxClient(self.socket)
        try:
            return str(client.health()["instance"])
        finally:
            client.close()

    def containers(self, *, every: bool = False) -> list[str]:
        """Ids of this daemon's containers, running ones unless `every`, asked of the engine."""
        return containers_of(self.instance(), every=every)

    def __enter__(self) -> Sandboxd:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def containers_of(instance: str, *, every: bool = False) -> list[str]:
    """Ids of an instance's containers."""
    words = ["docker", "ps", "--no-trunc", "--quiet", "--filter", f"label=learngraph.instance={instance}"]
    return subprocess.run(
        [*words, *(["--all"] if every else [])], capture_output=True, text=True, check=True
    ).stdout.split()
