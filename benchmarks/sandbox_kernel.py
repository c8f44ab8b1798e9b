"""The bars of a sandboxed kernel: first cell warm and cold, and the flights demo in the box against plain papermill.

    python benchmarks/sandbox_kernel.py [--rounds 10] [--only warm|cold|flights]

*warm*: from the request to the answer of the first cell, taken from the pool: p50 ≤ 200 ms. *cold*: the same with an
empty pool, in turns with a bare `docker run` of the same image and kernel (no limits, no profile, no records): ≤ 1.5 ×.
*flights*: `learngraph run --sandbox docker` in a warm kernel, seal included, in turns with `papermill` on a host
kernel, both sealed, whole processes: ≤ 0.8 ×. Needs an engine and the sandbox image.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from _pairs import PYTHON, REPOSITORY, Bar, Cost, alternately, conclude, environment, process, ratio, scratch, table

sys.path.insert(0, str(REPOSITORY))

from jupyter_client.blocking.client import BlockingKernelClient

from learngraph_kernel.runs.box import BoxKernel
from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandboxd.image import Recipe, build_image
from tests.sandboxd.running import Sandboxd

CELL = "print(6 * 7)"
SECONDS = 60.0


async def box_first_cell() -> float:
    """Milliseconds until the first cell of a kernel in the box has answered."""
    begun = time.perf_counter()
    async with BoxKernel(f"bench-{secrets.token_hex(4)}") as kernel:
        await kernel.start("a ticket")
        await kernel.connect()
        await kernel.client.execute_interactive(CELL, timeout=SECONDS, output_hook=lambda _: None)
        return 1000 * (time.perf_counter() - begun)


@contextlib.contextmanager
def bare_container(image: str, folder: Path) -> Iterator[Path]:
    """A kernel as `docker run` alone gives it; its connection file."""
    folder.mkdir()
    folder.chmod(0o777)
    path = folder / "kernel.json"
    ports = {f"{name}_port": n for n, name in enumerate(("shell", "iopub", "stdin", "control", "hb"), 1)}
    info = {"transport": "ipc", "ip": str(folder / "k"), "key": "k", "signature_scheme": "hmac-sha256", **ports}
    path.write_text(json.dumps(info))
    path.chmod(0o644)
    command = ["docker", "run", "--detach", "--init", "--network", "none", "--volume", f"{folder}:{folder}"]
    command += ["--env", "IPYTHONDIR=/tmp/ipython", image, "python3", "-m", "ipykernel_launcher", "-f", str(path)]
    container = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield path
    finally:
        subprocess.run(["docker", "rm", "--force", container], check=True, capture_output=True)


def bare_first_cell(image: str, folder: Path) -> float:
    """Milliseconds until the first cell of a bare container has answered."""
    begun = time.perf_counter()
    with bare_container(image, folder) as path:
        while not all((folder / f"k-{port}").exists() for port in range(1, 6)):
            time.sleep(0.005)
        client = BlockingKernelClient(connection_file=str(path))
        client.load_connection_file()
        client.start_channels()
        client.execute_interactive(CELL, timeout=SECONDS, output_hook=lambda _: None)
        took = 1000 * (time.perf_counter() - begun)
        client.stop_channels()
    return took


def until_warm(daemon: Sandboxd) -> None:
    """Waits until a kernel waits."""
    client = SandboxClient(daemon.socket)
    while "kernels_warm 1\n" not in client.metrics():
        time.sleep(0.05)
    client.close()


def measure_warm(image: str, folder: Path, rounds: int) -> list[Bar]:
    took = []
    with daemon_with(image, folder, warm_kernels=1) as daemon:
        for _ in range(rounds):
            until_warm(daemon)
            took.append(asyncio.run(box_first_cell()))
    print(f"first cell, warm: p50 {statistics.median(took):.0f} ms, worst {max(took):.0f} ms ({rounds} rounds)")
    return [Bar("first cell from the warm pool, p50", statistics.median(took), "ms", at_most=200)]


def measure_cold(image: str, folder: Path, rounds: int) -> list[Bar]:
    ours, bare = [], []
    with daemon_with(image, folder, warm_kernels=0):
        for round_ in range(rounds):
            ours.append(asyncio.run(box_first_cell()))
            bare.append(bare_first_cell(image, folder / f"b{round_}"))
    share = statistics.median(one / other for one, other in zip(ours, bare, strict=True))
    print(f"first cell, cold: {statistics.median(ours):.0f} ms, bare docker run {statistics.median(bare):.0f} ms")
    return [Bar("first cell, cold / bare docker run and kernel start", share, "×", at_most=1.5)]


def measure_flights(image: str, folder: Path, rounds: int) -> list[Bar]:
    shutil.copytree(REPOSITORY / "notebooks", folder / "notebooks")
    notebook, out = folder / "notebooks" / "flights_weekly.ipynb", folder / "out.ipynb"
    with daemon_with(image, folder, warm_kernels=1) as daemon:
        env = environment(folder / "home") | {"LEARNGRAPH_SANDBOXD": str(daemon.socket)}

        def command(*words: object) -> Cost:
            until_warm(daemon)
            return process([PYTHON, "-m", *map(str, words)], cwd=notebook.parent, env=env)

        costs = alternately(
            rounds,
            lambda: command("learngraph_kernel.cli", "run", notebook.name, "--sandbox", "docker", "-o", out),
            lambda: command("papermill", "--no-progress-bar", notebook.name, out),
        )
    table(["learngraph run --sandbox docker", "papermill on the host"], costs)
    return [Bar("flights in the warm box, sealed / papermill on the host", ratio(costs, 0, 1), "×", at_most=0.8)]


@contextlib.contextmanager
def daemon_with(image: str, folder: Path, *, warm_kernels: int) -> Iterator[Sandboxd]:
    """A daemon for one measurement, which this process's client finds."""
    with Sandboxd(folder / f"d{secrets.token_hex(2)}", image, warm_kernels=warm_kernels) as daemon:
        os.environ["LEARNGRAPH_SANDBOXD"] = str(daemon.socket)
        yield daemon


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", choices=["warm", "cold", "flights"])
    options = parser.parse_args()
    image = build_image(Recipe.load()).id
    measures = {"warm": measure_warm, "cold": measure_cold, "flights": measure_flights}
    bars: list[Bar] = []
    for name, measure in measures.items():
        if options.only in (None, name):
            with scratch() as folder:
                bars += measure(image, Path(folder), options.rounds)
    return conclude(bars)


if __name__ == "__main__":
    raise SystemExit(main())
