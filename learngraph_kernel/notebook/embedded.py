"""An embedded runtime for scripts and notebooks that nobody started through LearnGraph.

The runtime is a child process, so that the caller stays on the standard library and a crash of the one does not take
the other; it records an exploratory run and seals it when the caller ends.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from learngraph_kernel.broker.protocol import BROKER_VARIABLE, READY, TICKET_VARIABLE
from learngraph_kernel.errors import Unavailable

_keep_alive: list[subprocess.Popen[bytes]] = []
"""Dropping the process object would close its standard input, and with it the run."""


def start_embedded() -> tuple[str, str]:
    """Starts the runtime for this process and waits until it listens.

    Returns:
        The socket's path and the ticket's secret; both are also put into the environment for child processes.

    Raises:
        Unavailable: the runtime did not start; the message carries what it printed.
    """
    folder = tempfile.mkdtemp(prefix="lg-")
    path, ticket = str(Path(folder) / "broker"), secrets.token_urlsafe(24)
    environment = {**os.environ, BROKER_VARIABLE: path, TICKET_VARIABLE: ticket}
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe that nobody reads would stop the runtime once it is full
    process = subprocess.Popen(
        [sys.executable, "-m", "learngraph_kernel.runs.embedded"],
        env=environment,
        stdin=subprocess.PIPE,  # its end tells the runtime that we are gone
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )
    assert process.stdout is not None
    if process.stdout.readline() != READY:
        process.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
        shutil.rmtree(folder, ignore_errors=True)
        raise Unavailable(
            f"the embedded runtime did not start: {said.splitlines()[-1] if said else 'it said nothing'}",
            remedy="run `learngraph doctor`",
        )
    process.stdout.close()
    errors.close()
    _keep_alive.append(process)
    os.environ[BROKER_VARIABLE], os.environ[TICKET_VARIABLE] = path, ticket
    return path, ticket
