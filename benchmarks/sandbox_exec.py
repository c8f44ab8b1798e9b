"""A warm command through sandboxd against a raw `docker exec` of the same command, side by side.

    python benchmarks/sandbox_exec.py [--runs 50]

Both run the same script in the same container in turn; ours includes the policy checks, the records, quota, restore and
the output in the answer. Prints medians and their ratio; the bar is 0.5. Needs an engine and the sandbox image.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandboxd.image import Recipe, build_image
from tests.sandboxd.running import Sandboxd

BAR = 0.5
SCRIPT = b"print(sum(range(1000)))\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--image", help="image id (default: the recipe's, built when missing)")
    options = parser.parse_args()
    image = options.image or build_image(Recipe.load()).id
    with tempfile.TemporaryDirectory(prefix="lg-bench-") as folder, Sandboxd(Path(folder), image) as daemon:
        client = SandboxClient(daemon.socket)
        sandbox = client.create("bench")
        client.put_file(sandbox.id, "work/hello.py", SCRIPT)
        client.start(sandbox.id)
        (container,) = daemon.containers()
        ours: list[float] = []
        raw: list[float] = []
        for _ in range(options.runs + 1):  # the first of each is not counted
            ours.append(_timed(lambda: _ours(client, sandbox.id)))
            raw.append(_timed(lambda: _raw(container)))
    result = {
        "runs": options.runs,
        "ours_ms": round(1000 * statistics.median(ours[1:]), 1),
        "docker_exec_ms": round(1000 * statistics.median(raw[1:]), 1),
    }
    result["ratio"] = round(result["ours_ms"] / result["docker_exec_ms"], 3)
    print(json.dumps(result | {"bar": BAR, "met": result["ratio"] <= BAR}))
    return 0 if result["ratio"] <= BAR else 1


def _ours(client: SandboxClient, sandbox: str) -> None:
    done = client.run(sandbox, ["python", "work/hello.py"])
    assert (done.exit_code, done.stdout) == (0, b"499500\n"), done


def _raw(container: str) -> None:
    command = ["docker", "exec", container, "python3", "-I", "-B", "/workspace/work/hello.py"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == b"499500\n", done


def _timed(function: object) -> float:
    started = time.perf_counter()
    function()  # type: ignore[operator]
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
