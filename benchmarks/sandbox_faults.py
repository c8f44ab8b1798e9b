"""The bar "Faults", under load from 8 clients: sandboxd killed at random, dockerd restarted, commands gone wild.

    python benchmarks/sandbox_faults.py [--kills 100] [--clients 8] [--engine-restarts 0] [--runaways 0]

`--engine-restarts` works on a dockerd of its own, started beside the machine's (needs root). Each of `--runaways`
starts five at once: a fork bomb, one that eats memory, an output flood, one that fills its disk quota, one that makes
files without end. Prints a JSON summary; exit code 1 if anything was orphaned, lost or unclear, or if a runaway ended
as something else or disturbed another session.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from learngraph_kernel.sandboxd.image import Recipe, build_image
from tests.sandboxd.load import Worker, summary
from tests.sandboxd.runaways import WILD, Runaway
from tests.sandboxd.running import Sandboxd, containers_of


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--engine-restarts", type=int, default=0)
    parser.add_argument("--runaways", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--image", help="image id (default: the recipe's, built when missing)")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    image = options.image or build_image(Recipe.load()).id
    folder = Path(tempfile.mkdtemp(prefix="lg-faults-"))
    engine = PrivateEngine(folder, image) if options.engine_restarts else None
    room = options.clients + (len(WILD) if options.runaways else 0)
    small = {"workspace_bytes": 32 << 20, "output_bytes": 1 << 20} if options.runaways else {}
    daemon = Sandboxd(folder, image, active_per_user=room, retained_per_user=room, container_memory=256 << 20, **small)
    daemon.start()
    instance, stop, started = daemon.instance(), threading.Event(), time.monotonic()
    workers = [Worker(daemon.socket, f"client-{n}", options.seed + n, stop) for n in range(options.clients)]
    faults = ["kill"] * options.kills + ["engine"] * options.engine_restarts + ["wild"] * options.runaways
    wrong: list[str] = []
    ended: Counter[str] = Counter()
    dice.shuffle(faults)
    for fault in faults:
        time.sleep(0.2 + 2 * dice.random())
        if fault == "kill":
            daemon.kill()
            daemon.start()
        elif fault == "wild":
            wild = [Runaway(daemon.socket, name, f"wild-{time.monotonic_ns()}-{n}") for n, name in enumerate(WILD)]
            for runaway in wild:
                runaway.finish(180)
                wrong += runaway.wrong
                ended[f"{runaway.name}: {runaway.state}"] += 1
        else:
            assert engine is not None
            engine.restart()
    time.sleep(5)
    for worker in workers:
        worker.finish()
    daemon.stop()
    orphans = containers_of(instance, every=True)
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]
    wrong += [f"a mount is left: {line}" for line in mounts if engine is None]
    if engine is not None:
        engine.stop()
    result: dict[str, Any] = summary(workers) | {"faults": len(faults), "orphans": len(orphans), "log": str(daemon.log)}
    if options.runaways and not (options.kills or options.engine_restarts):
        # Nothing but the wild ones was broken, so nobody else may have noticed anything.
        wrong += [f"another session's command: {state}" for state in result["commands"] if state != "exited"]
    result |= {"wrong": wrong, "wild": dict(ended)}
    result["seconds"] = round(time.monotonic() - started)
    print(json.dumps(result, indent=2))
    return 1 if orphans or result["unclear"] or wrong else 0


class PrivateEngine:
    """A dockerd of our own beside the machine's, so that restarting it disturbs nobody. Needs root."""

    def __init__(self, folder: Path, image: str) -> None:
        self._folder = folder
        archive = folder / "image.tar"
        subprocess.run(["docker", "save", "--output", str(archive), image], check=True)
        os.environ["DOCKER_HOST"] = f"unix://{folder}/docker.sock"
        self._process = self._start()
        subprocess.run(["docker", "load", "--quiet", "--input", str(archive)], check=True, stdout=subprocess.DEVNULL)
        archive.unlink()

    def _start(self) -> subprocess.Popen[bytes]:
        # In a network of its own: with `--bridge none` in the machine's it would remove the other engine's bridge.
        command = [
            "unshare",
            "--net",
            "dockerd",
            "--host",
            os.environ["DOCKER_HOST"],
            "--pidfile",
            f"{self._folder}/docker.pid",
        ]
        command += ["--data-root", f"{self._folder}/data", "--exec-root", f"{self._folder}/exec"]
        command += ["--bridge", "none", "--iptables=false"]
        with (self._folder / "dockerd.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        while subprocess.run(["docker", "version"], capture_output=True, check=False).returncode != 0:
            if process.poll() is not None:
                raise SystemExit(f"dockerd did not start; see {self._folder}/dockerd.log")
            time.sleep(0.1)
        return process

    def stop(self) -> None:
        """As an operator stops it."""
        self._process.terminate()
        self._process.wait()

    def restart(self) -> None:
        """Away for a moment, and back."""
        self.stop()
        time.sleep(0.5)
        self._process = self._start()


if __name__ == "__main__":
    sys.exit(main())
