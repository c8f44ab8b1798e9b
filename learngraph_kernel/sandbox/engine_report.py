"""What the sandbox needs of this machine, asked of the one package that may come near Docker, in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from learngraph_kernel.errors import Unavailable

SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One component of the sandbox.

    Attributes:
        name: the component.
        state: as in `learngraph doctor`.
        detail: one sentence.
        remedy: what to do; None when nothing is wrong.
    """

    name: str
    state: Literal["ok", "warning", "failed", "unavailable"]
    detail: str
    remedy: str | None = None


def engine_report(environ: Mapping[str, str]) -> list[ReportLine]:
    """Engine, known weaknesses and image of this machine.

    Args:
        environ: environment variables of the asking process.

    Raises:
        Unavailable: the process gave no answer.
    """
    command = [sys.executable, "-m", "learngraph_kernel.sandboxd.preflight"]
    try:
        done = subprocess.run(command, env=dict(environ), capture_output=True, text=True, timeout=SECONDS, check=True)
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"no answer in {SECONDS:.0f} s",
            where="docker engine",
            remedy="restart the engine: systemctl restart docker",
        ) from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Unavailable(f"the check broke: {last}", where="docker engine", remedy="report this message") from error
    return [ReportLine(**line) for line in json.loads(done.stdout)]
