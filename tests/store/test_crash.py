"""`kill -9` at any moment loses nothing that was acknowledged, and leaves a chain that goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from learngraph_kernel.store.database import Home, Store
from learngraph_kernel.store.ledger import check_chain

KILLS = 40


def kill_when(child: int, acknowledgements: Path, lines: int, chance: random.Random) -> None:
    """Kills a process after so many acknowledgements and a moment."""
    deadline = time.monotonic() + 30
    while not acknowledgements.exists() or acknowledgements.read_bytes().count(b"\n") < lines:
        assert time.monotonic() < deadline, "the child records nothing"
        time.sleep(0.001)
    time.sleep(chance.random() * 0.004)
    os.kill(child, signal.SIGKILL)


def test_forty_kills_lose_no_acknowledged_event_or_artifact(
    home: Home, tmp_path: Path, new_run: Callable[..., str]
) -> None:
    chance = random.Random(20261201)
    with Store.open(home) as store:
        run = new_run(store)
    script = Path(__file__).with_name("crash_child.py")
    parent = subprocess.Popen(
        [sys.executable, str(script), str(home.root), run], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    acknowledged: dict[int, str] = {}
    for number in range(KILLS):
        file = tmp_path / f"acknowledged-{number}"
        print(file, file=parent.stdin, flush=True)
        kill_when(int(parent.stdout.readline()), file, chance.randrange(1, 25), chance)
        assert parent.stdout.readline() == "ended\n"
        with Store.open(home) as store:
            for line in file.read_text().splitlines():
                kind, *rest = line.split()
                if kind == "artifact":
                    store.artifacts.verify(rest[0])
                else:
                    acknowledged[int(rest[0])] = rest[1]
            recorded = {event.seq: event.hash for event in store.ledger.events(run)}
            assert acknowledged.items() <= recorded.items()
            assert check_chain(store.ledger.events(run)) == store.ledger.head(run)
    parent.stdin.close()
    assert parent.wait(timeout=10) == 0
    assert len(acknowledged) >= KILLS
    with Store.open(home) as store:
        assert store.check() == []
