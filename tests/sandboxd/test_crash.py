"""`kill -9` of sandboxd at random moments under load: nothing orphaned, nothing lost, everything said clearly."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

from tests.sandbox.conftest import Engine
from tests.sandboxd.load import Worker, summary
from tests.sandboxd.running import Sandboxd, containers_of

KILLS = 3
SEED = 20261201


def test_kill_9_under_load(base: Path, docker_engine: Engine, sandbox_image: str) -> None:
    dice = random.Random(SEED)
    daemon = Sandboxd(base / "crash", sandbox_image, active_per_user=4, container_memory=256 << 20)
    daemon.folder.mkdir()
    daemon.start()
    instance = daemon.instance()
    stop = threading.Event()
    workers = [Worker(daemon.socket, f"client-{n}", SEED + n, stop) for n in range(4)]
    try:
        for _ in range(KILLS):
            time.sleep(0.3 + 2 * dice.random())
            daemon.kill()
            daemon.start()
        time.sleep(1.5)
        for worker in workers:
            worker.finish()
    finally:
        stop.set()
        for worker in workers:
            worker.thread.join(60)
        daemon.stop()
    seen = summary(workers)
    assert seen["unclear"] == []
    assert containers_of(instance, every=True) == []
    assert seen["commands"].get("exited", 0) >= 4  # type: ignore[attr-defined]
