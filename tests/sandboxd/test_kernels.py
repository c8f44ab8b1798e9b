"""Kernels in real containers: warm and cold, interrupted, dying, ending with their client."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_client import BlockingKernelClient

from learngraph_kernel.sandbox.client import Kernel, SandboxClient
from learngraph_kernel.sandbox.transport import new_key
from tests.sandboxd.running import REPOSITORY, Sandboxd

DAEMON = {"warm_kernels": 1, "sweep_every": 0.5}


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def connected(kernel: Kernel) -> BlockingKernelClient:
    until(lambda: all(Path(f"{kernel.folder}/k-{n}").exists() for n in range(1, 6)))
    client = BlockingKernelClient()
    client.load_connection_file(str(kernel.connection_file))
    client.start_channels()
    client.wait_for_ready(timeout=60)
    return client


def said(client: BlockingKernelClient, code: str) -> tuple[str, str]:
    text: list[str] = []

    def hook(message: dict[str, Any]) -> None:
        text.append(message["content"].get("text", ""))

    reply = client.execute_interactive(code, output_hook=hook, allow_stdin=False, timeout=60)
    return reply["content"].get("ename", "ok"), "".join(text)


def warm(client: SandboxClient) -> bool:
    return "learngraph_sandbox_kernels_warm 1" in client.metrics()


def test_a_warm_kernel_finds_broker_and_ticket_by_name_and_is_used_once(client: SandboxClient) -> None:
    until(lambda: warm(client))
    kernel = client.start_kernel("r1")
    assert kernel.warm and kernel.state == "running"
    kernel.ticket_file.write_text("secret")
    kernel.ticket_file.chmod(0o640)
    channel = connected(kernel)
    code = "import os; print(open(os.environ['LEARNGRAPH_TICKET_FILE']).read(), os.environ['LEARNGRAPH_BROKER'])"
    assert said(channel, code) == ("ok", f"secret {kernel.broker_socket}\n")
    code = f"open({str(kernel.granted)!r} + '/x', 'w')"
    assert said(channel, code)[0] == "OSError"
    channel.stop_channels()
    client.stop_kernel(kernel)
    client.stop_kernel(kernel)
    assert not kernel.folder.exists() and client.kernel(kernel).state == "stopped"
    until(lambda: warm(client))
    assert client.start_kernel("r1").id != kernel.id


def test_interrupt_reaches_the_cell_and_death_is_seen(client: SandboxClient) -> None:
    kernel = client.start_kernel("r2")
    channel = connected(kernel)
    channel.execute("import time; time.sleep(60)", stop_on_error=False)
    time.sleep(0.5)
    client.interrupt_kernel(kernel)
    assert channel.get_shell_msg(timeout=30)["content"]["ename"] == "KeyboardInterrupt"
    assert said(channel, "print('next')") == ("ok", "next\n")
    channel.execute("import os; os._exit(7)")
    until(lambda: client.kernel(kernel).state == "exited")
    assert client.kernel(kernel).exit_code == 7
    channel.stop_channels()


def test_the_callers_own_folders_are_mounted_at_the_same_paths(client: SandboxClient) -> None:
    folder, granted = (Path(tempfile.mkdtemp(prefix="lg-")) for _ in range(2))
    ports = dict(zip(("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port"), range(1, 6), strict=True))
    connection = {"transport": "ipc", "ip": f"{folder}/k", "key": "k", "signature_scheme": "hmac-sha256"} | ports
    (folder / "kernel.json").write_text(json.dumps(connection))
    (folder / "kernel.json").chmod(0o600)
    (granted / "snapshot").write_bytes(b"granted")
    key = new_key()
    kernel = client.start_kernel("r3", folder=folder, granted=granted, key=key)
    assert (kernel.folder, kernel.warm) == (folder, False)
    assert client.start_kernel("r3", folder=folder, granted=granted, key=key).id == kernel.id
    channel = connected(kernel)
    assert said(channel, f"print(open({str(granted / 'snapshot')!r}).read())") == ("ok", "granted\n")
    channel.stop_channels()
    client.stop_kernel(kernel)
    assert folder.exists()  # the caller's are the caller's to remove
    shutil.rmtree(folder)
    shutil.rmtree(granted)


def test_a_kernel_ends_with_the_process_that_asked_for_it(client: SandboxClient, daemon: Sandboxd) -> None:
    code = (
        "import sys, os; from pathlib import Path; from learngraph_kernel.sandbox.client import SandboxClient\n"
        "print(SandboxClient(Path(sys.argv[1])).start_kernel('r4').id); sys.stdout.flush(); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", code, str(daemon.socket)]
    done = subprocess.run(command, env={"PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True, check=False)
    identity = done.stdout.strip()
    assert identity.startswith("k_"), done.stderr
    until(lambda: identity not in {kernel.id for kernel in client.overview()[1]})
