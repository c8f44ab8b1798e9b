"""What the tests of `lg` by hand share: a run that gets sealed, a Jupyter kernel that LearnGraph did not start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from learngraph_kernel.store.database import RunRecord, Store
from learngraph_kernel.store.home import Home


def sealed_run(home: Path, seconds: float = 60) -> RunRecord:
    """The one run of a home, once it is sealed; the runtime seals it a moment after its caller has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (home / "learngraph.db").exists():
            with Store.open(Home(home)) as store:
                runs = store.runs()
                if runs and all(run.seal for run in runs):
                    (run,) = runs
                    return run
        time.sleep(0.05)
    raise AssertionError(f"no sealed run within {seconds} s")


class ByHand:
    """A kernel as JupyterLab starts it: cells are executed with their id in the request's metadata."""

    def __init__(self, cwd: Path) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(cwd))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, cell: str = "cell-1") -> str:
        """Executes a cell; what it printed and displayed as text, or its error."""
        message = self.client.session.msg(
            "execute_request",
            {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False},
            metadata={"cellId": cell},
        )
        self.client.shell_channel.send(message)
        said = ""
        while True:
            got = self.client.get_iopub_msg(timeout=60)
            if got["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            content = got["content"]
            if got["msg_type"] == "stream":
                said += content["text"]
            elif got["msg_type"] in ("execute_result", "display_data"):
                said += content["data"]["text/plain"]
            elif got["msg_type"] == "error":
                said += f"{content['ename']}: {content['evalue']}"
            elif got["msg_type"] == "status" and content["execution_state"] == "idle":
                return said

    def complete(self, code: str, cursor: int | None = None) -> list[str]:
        """What a completion request offers at a place of a cell (default: its end), each with the text it replaces."""
        place = len(code) if cursor is None else cursor
        identity = self.client.complete(code, place)
        reply: dict[str, Any] = self.client.get_shell_msg(timeout=60)
        while reply["parent_header"].get("msg_id") != identity:
            reply = self.client.get_shell_msg(timeout=60)
        content = reply["content"]
        before, after = code[: content["cursor_start"]], code[content["cursor_end"] :]
        return [f"{before}{match}{after}" for match in content["matches"]]

    def end(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def by_hand(workspace: Path, home: Path) -> Iterator[ByHand]:
    kernel = ByHand(workspace)
    yield kernel
    kernel.end()
