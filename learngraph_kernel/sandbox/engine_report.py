"""What the sandbox needs of this machine, asked of the one package that may come near Docker, in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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
    """Engine, known weaknesses and image of this machine; a check that gives no answer is a line as well.

    Args:
        environ: environment variables of the asking process.
    """
    command = [sys.executable, "-m", "learngraph_kernel.sandboxd.preflight"]
    try:
        done = subprocess.run(command, env=dict(environ), capture_output=True, text=True, timeout=SECONDS, check=True)
    except subprocess.TimeoutExpired:
        return [_unavailable(f"gave no answer in {SECONDS:.0f} s", "restart it: systemctl restart docker")]
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return [_unavailable(f"the check broke: {last}", 'pip install --force-reinstall "learngraph"')]
    return [ReportLine(**line) for line in json.loads(done.stdout)]


def daemon_report() -> list[ReportLine]:
    """The sandboxd that runs use: whether it runs, by which settings, and what it says it lacks. Starts nothing."""
    from learngraph_kernel.errors import LearnGraphError
    from learngraph_kernel.sandbox.client import connected
    from learngraph_kernel.sandbox.place import default_socket, listening

    path = default_socket()
    if not listening(path):
        return [ReportLine("sandboxd", "ok", "not running; started when a run needs it")]
    try:
        with connected(path) as client:
            answer = client.readiness()
    except LearnGraphError as error:
        return [ReportLine("sandboxd", "failed", error.what, error.remedy)]
    chosen = answer["settings"]
    strict = "on" if chosen["strict"] else "off"
    lines = [ReportLine("sandboxd", "ok", f"{path}: runtime {chosen['runtime']}, strict {strict}")]
    for check in answer["checks"]:
        if check["state"] == "failed":
            lines.append(ReportLine(f"sandboxd {check['name']}", "unavailable", check["reason"], check["remedy"]))
    return lines


def _unavailable(detail: str, remedy: str) -> ReportLine:
    return ReportLine("docker engine", "unavailable", detail, remedy)
