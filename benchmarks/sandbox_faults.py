"""The bar "Faults": sandboxd killed at 100 random moments under load from 8 clients; dockerd restarted under load.

    python benchmarks/sandbox_faults.py [--kills 100] [--clients 8] [--engine-restarts 0]

`--engine-restarts` restarts dockerd with `service docker restart`, or by killing and starting it by hand: only on a
machine of your own. Prints a JSON summary; exit code 1 if anything was orphaned, lost or unclear.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from learngraph_kernel.sandboxd.image import Recipe, build_image
from tests.sandboxd.load import Worker, summary
from tests.sandboxd.running import Sandboxd, containers_of


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--engine-restarts", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--image", help="image id (default: the recipe's, built when missing)")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    image = options.image or build_image(Recipe.load()).id
    folder = Path(tempfile.mkdtemp(prefix="lg-faults-"))
    daemon = Sandboxd(folder, image, active_per_user=options.clients, container_memory=256 << 20)
    daemon.start()
    instance, stop, started = daemon.instance(), threading.Event(), time.monotonic()
    workers = [Worker(daemon.socket, f"client-{n}", options.seed + n, stop) for n in range(options.clients)]
    faults = ["kill"] * options.kills + ["engine"] * options.engine_restarts
    dice.shuffle(faults)
    for fault in faults:
        time.sleep(0.2 + 2 * dice.random())
        if fault == "kill":
            daemon.kill()
            daemon.start()
        else:
            restart_engine()
    time.sleep(5)
    for worker in workers:
        worker.finish()
    daemon.stop()
    orphans = containers_of(instance, every=True)
    result = summary(workers) | {"faults": len(faults), "orphans": len(orphans), "log": str(daemon.log)}
    result["seconds"] = round(time.monotonic() - started)
    print(json.dumps(result, indent=2))
    return 1 if orphans or result["unclear"] else 0


def restart_engine() -> None:
    """Stops dockerd as an operator would, and waits until a new one answers."""
    pid = int(Path("/var/run/docker.pid").read_text())
    subprocess.run(["kill", f"-{signal.SIGTERM.value}", str(pid)], check=True)
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.1)
    with open("/tmp/dockerd.log", "ab") as log:
        subprocess.Popen(["dockerd"], stdout=log, stderr=log, start_new_session=True)
    while subprocess.run(["docker", "version"], capture_output=True, check=False).returncode != 0:
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
