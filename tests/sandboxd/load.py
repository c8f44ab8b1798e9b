"""Clients that work while somebody breaks things, and that check afterwards that nothing of theirs was lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from learngraph_kernel.sandbox.answers import NotReady, OverCapacity, Refusal
from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandbox.transport import SandboxUnavailable, new_key

ENDS = frozenset({"exited", "lost", "failed", "cancelled", "timed_out", "refused"})
SCRIPT = b"""import sys, time
open(f"outputs/{sys.argv[1]}.txt", "w").write(sys.argv[1])
time.sleep(0.05)
print(sys.argv[1])
"""


@dataclass
class Worker:
    """One client with a session of its own. It works until `stop`, and never gives a step up: it repeats it.

    Attributes:
        stored: files whose writing was acknowledged, with their content.
        ends: how its commands ended.
        unclear: whatever was not a clear state.
    """

    socket: Path
    name: str
    seed: int
    stop: threading.Event
    stored: dict[str, bytes] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    unclear: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.client = SandboxClient(self.socket, timeout=60)
        self.thread = threading.Thread(target=self._work, name=self.name)
        self.thread.start()

    def _work(self) -> None:
        dice, turn = random.Random(self.seed), 0
        while not self.stop.is_set():
            turn += 1
            try:
                self._turn(turn, dice)
            except (SandboxUnavailable, NotReady, OverCapacity) as error:
                self.refusals[error.code] += 1
                time.sleep(0.05 + dice.random() / 10)
            except Refusal as error:
                # A command of the same session that a dead daemon had begun may still be ending: a clear state too.
                self.refusals[error.code] += 1
                if error.code not in ("busy", "expired"):
                    self.unclear.append(f"{type(error).__name__} {error.code}: {error}")
                time.sleep(0.05)
            except Exception as error:  # noqa: BLE001  the very thing that must not happen
                self.unclear.append(f"{type(error).__name__}: {error}")
                time.sleep(0.05)

    def _turn(self, turn: int, dice: random.Random) -> None:
        box = self.client.create(self.name)
        data = dice.randbytes(200)
        self.client.put_file(box.id, f"inputs/{turn}.bin", data)
        self.stored[f"inputs/{turn}.bin"] = data
        if turn == 1:
            self.client.put_file(box.id, "work/s.py", SCRIPT)
        key, word = new_key(), f"{self.name}-{turn}"
        done = self.client.run(box.id, ["python", "work/s.py", word], timeout=20, key=key)
        self.ends[done.state] += 1
        if done.state not in ENDS or (done.state != "exited" and not done.reason):
            self.unclear.append(f"command {done.id}: {done.state} {done.reason}")
        elif done.state == "exited" and (done.exit_code, done.stdout) != (0, f"{word}\n".encode()):
            self.unclear.append(f"command {done.id}: {done}")
        elif done.state == "exited":
            self.stored[f"outputs/{word}.txt"] = word.encode()
        if dice.random() < 0.1:
            self.client.stop(box.id)

    def finish(self) -> None:
        """Ends the work, then compares every acknowledged file with what is there."""
        self.stop.set()
        self.thread.join(120)
        if self.thread.is_alive():
            self.unclear.append(f"{self.name} hangs")
        box = self.client.create(self.name)
        there = {file["path"] for file in self.client.files(box.id)}
        for path, data in self.stored.items():
            if path not in there or self.client.get_file(box.id, path) != data:
                self.unclear.append(f"lost file {path}")
        self.client.delete(box.id)
        self.client.close()


def summary(workers: list[Worker]) -> dict[str, object]:
    """What all of them saw."""
    ends: Counter[str] = sum((worker.ends for worker in workers), Counter())
    refusals: Counter[str] = sum((worker.refusals for worker in workers), Counter())
    return {
        "clients": len(workers),
        "files": sum(len(worker.stored) for worker in workers),
        "commands": dict(ends),
        "refusals": dict(refusals),
        "unclear": [line for worker in workers for line in worker.unclear],
    }
