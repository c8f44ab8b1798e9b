"""Commands that go wild, each in a session of its own, and what must be said of each afterwards."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from learngraph_kernel.sandbox.client import Command, SandboxClient

KEPT = bytes(range(256)) * 64
"""A file that a session had before; it must be there afterwards, byte for byte."""

FORK_BOMB = b"""import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
MEMORY = b"""held = []
while True:
    held.append(bytearray(b"x") * (16 << 20))
"""
FLOOD = b"""import sys
while True:
    sys.stdout.write("x" * 65536)
"""
DISK = b"""n = 0
while True:
    n += 1
    with open(f"outputs/{n}.bin", "wb") as file:
        file.write(b"x" * (1 << 20))
        file.flush()
"""
MANY_FILES = b"""n = 0
while True:
    n += 1
    open(f"outputs/{n}", "w").close()
"""

WILD: Mapping[str, bytes] = {
    "fork bomb": FORK_BOMB,
    "memory": MEMORY,
    "output flood": FLOOD,
    "disk": DISK,
    "many files": MANY_FILES,
}

SECONDS: Mapping[str, float] = {"fork bomb": 4.0, "output flood": 4.0, "memory": 30.0, "disk": 60.0, "many files": 60.0}
"""Wall time of each. The first two end by it; the others must meet their limit before, however busy the machine is."""


def fault(name: str, done: Command) -> str | None:
    """What is wrong with how a wild command ended; None when it is as it must be."""
    reason = (done.reason or "").lower()
    right = {
        # The bomb's processes are bounded and do nothing; its time ends it, and its container with it.
        "fork bomb": done.state == "timed_out",
        # Killed by the kernel (137), or told so by Python (MemoryError); with its runner, the container ends.
        "memory": (done.state == "exited" and done.exit_code in (137, 1)) or (done.state == "failed" and bool(reason)),
        "output flood": done.state == "timed_out" and done.truncated,
        "disk": done.state == "failed" and "workspace" in reason,
        "many files": done.state == "failed" and "files" in reason,
    }[name]
    clear = done.state == "exited" or bool(done.reason)
    return None if right and clear else f"{name}: {done.state} {done.exit_code} {done.reason!r} cut={done.truncated}"


@dataclass
class Runaway:
    """One wild command, run to its end in a thread.

    Attributes:
        wrong: what was not as it must be.
    """

    socket: Path
    name: str
    session: str
    wrong: list[str] = field(default_factory=list)
    state: str = ""

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, name=self.session)
        self.thread.start()

    def finish(self, seconds: float) -> None:
        """Waits for its end; one that has none within this time is wrong."""
        self.thread.join(seconds)
        if self.thread.is_alive() or not self.state:
            self.wrong.append(f"{self.name}: no end within {seconds:.0f} s")

    def _run(self) -> None:
        client = SandboxClient(self.socket, timeout=90)
        try:
            box = client.create(self.session)
            client.put_file(box.id, "inputs/kept.bin", KEPT)
            client.put_file(box.id, "work/wild.py", WILD[self.name])
            done = client.run(box.id, ["python", "work/wild.py"], timeout=SECONDS[self.name])
            self.state = done.state
            if (wrong := fault(self.name, done)) is not None:
                self.wrong.append(wrong)
            if client.get_file(box.id, "inputs/kept.bin") != KEPT:
                self.wrong.append(f"{self.name}: a file of its session is gone")
            after = client.run(box.id, ["python", "work/wild.py", "x"], timeout=1) if self.name == "memory" else None
            if after is not None and after.state not in ("exited", "failed", "timed_out"):
                self.wrong.append(f"{self.name}: its session is unusable afterwards: {after.reason}")
            client.delete(box.id)
        except Exception as error:  # noqa: BLE001  whatever it is, it is no clear end
            self.wrong.append(f"{self.name}: {type(error).__name__}: {error}")
        finally:
            client.close()
