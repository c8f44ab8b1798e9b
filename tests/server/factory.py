"""Opens the runtime of a test's server: as the product's, but code runs on the host where there is no box."""

from __future__ import annotations

import os
from pathlib import Path

from learngraph_kernel.agent.runtime import Runtime
from learngraph_kernel.store.home import Home


async def open_runtime(home: Path, root: Path, *, heartbeat: float = 15.0) -> Runtime:
    isolation = "docker" if os.environ.get("LEARNGRAPH_TEST_BOX") else "host"
    runtime = Runtime(Home(home), isolation=isolation, heartbeat=heartbeat)  # type: ignore[arg-type]
    await runtime.start()
    return runtime
