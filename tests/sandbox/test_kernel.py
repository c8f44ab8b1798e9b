"""The kernelspec "Python (LearnGraph sandbox)" as any Jupyter client uses it: a real container each."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandbox.provisioner import NAME, SandboxProvisioner
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.sandboxd.running import Sandboxd

SECONDS = 60.0
SPEC = Path(__file__).parents[2] / "learngraph_kernel" / "sandbox" / "kernelspec"


@pytest.fixture
def jupyter(sandboxd: Sandboxd, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which Jupyter finds the kernelspec and the kernelspec finds the daemon."""
    monkeypatch.setenv("LEARNGRAPH_SANDBOXD", str(sandboxd.socket))
    specs = tmp_path / "jupyter" / "kernels"
    specs.mkdir(parents=True)
    (specs / NAME).symlink_to(SPEC)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("A_SECRET_OF_THE_HOST", "hunter2")


class Session:
    """A kernel and one client of it."""

    def __init__(self, manager: KernelManager) -> None:
        self.manager = manager
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)

    @property
    def provisioner(self) -> SandboxProvisioner:
        assert isinstance(self.manager.provisioner, SandboxProvisioner)
        return self.manager.provisioner

    def run(self, code: str, **options: Any) -> str:
        """What a cell prints; an error's name and value if it raises."""
        printed: list[str] = []

        def hook(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                printed.append(content["text"])
            elif message["msg_type"] == "error":
                printed.append(f"{content['ename']}: {content['evalue']}")

        reply = self.client.execute_interactive(code, timeout=SECONDS, output_hook=hook, **options)
        assert reply["content"]["status"] != "aborted"
        return "".join(printed).strip()

    def end(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def start(jupyter: None, tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Starts kernels; they are gone after the test."""
    sessions: list[Session] = []

    def start(cwd: Path = tmp_path) -> Session:
        manager = KernelManager(kernel_name=NAME)
        manager.start_kernel(cwd=str(cwd))
        sessions.append(Session(manager))
        return sessions[-1]

    yield start
    for session in sessions:
        session.end()


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_an_interrupt_stops_the_cell_and_keeps_what_the_kernel_knows(start: Callable[..., Session]) -> None:
    session = start()
    session.run("kept = 42")
    # An error aborts what is queued behind it unless told otherwise; the next cell may be by then.
    request = session.client.execute("import time\nprint('begun', flush=True)\ntime.sleep(120)", stop_on_error=False)
    while session.client.get_iopub_msg(timeout=SECONDS)["msg_type"] != "stream":
        pass
    session.manager.interrupt_kernel()
    # Whether it is ready may have been asked more than once.
    replies = iter(lambda: session.client.get_shell_msg(timeout=SECONDS), None)
    reply = next(reply for reply in replies if reply["parent_header"]["msg_id"] == request)
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    assert session.run("print(kept)") == "42"


def test_a_restart_forgets_everything_and_a_connected_client_stays_connected(start: Callable[..., Session]) -> None:
    session = start()
    first = session.provisioner.kernel
    session.run("kept = 42\nopen('/tmp/left', 'w').close()")
    session.manager.restart_kernel(now=True)
    session.client.wait_for_ready(timeout=SECONDS)
    assert session.run("import os\nprint('kept' in globals(), os.path.exists('/tmp/left'))") == "False False"
    second = session.provisioner.kernel
    assert first is not None and second is not None
    assert (first.id, first.folder) == (second.id, second.folder)


def test_a_polite_shutdown_removes_container_and_folders(start: Callable[..., Session], sandboxd: Sandboxd) -> None:
    session = start()
    kernel = session.provisioner.kernel
    assert kernel is not None and kernel.folder.exists()
    session.client.stop_channels()
    session.manager.shutdown_kernel()
    assert not session.manager.is_alive()
    assert not kernel.folder.exists() and not kernel.granted.exists()
    assert until(lambda: len(sandboxd.containers()) <= 1)  # the next warm one


def test_a_cell_may_ask_the_person(start: Callable[..., Session]) -> None:
    session = start()
    answer = session.run(
        "print('hello', input('who? '))", allow_stdin=True, stdin_hook=lambda _: session.client.input("Ana")
    )
    assert answer == "hello Ana"


def test_a_large_output_arrives_whole(start: Callable[..., Session]) -> None:
    assert len(start().run("print('x' * 8_000_000)")) == 8_000_000


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os\nos.kill(os.getpid(), 9)", "killed"),
        ("hoard = [bytearray(b'x' * (64 << 20)) for _ in range(64)]", "out of memory"),
        ("import os\nos._exit(3)", "ended"),
    ],
)
def test_a_death_is_noticed_and_explained(start: Callable[..., Session], code: str, reason: str) -> None:
    session = start()
    session.client.execute(code)
    assert until(lambda: not session.manager.is_alive())
    kernel = session.provisioner.kernel
    assert kernel is not None and kernel.state == "exited"
    assert kernel.reason is not None and reason in kernel.reason


def test_nothing_of_the_host_is_in_the_box(start: Callable[..., Session], home: Path, tmp_path: Path) -> None:
    session = start()
    seen = json.loads(
        session.run(
            "import json, os, pathlib, socket\n"
            "def reach(family, address):\n"
            "    try:\n"
            "        with socket.socket(family) as s:\n"
            "            s.settimeout(2); s.connect(address)\n"
            "    except OSError as error:\n"
            "        return type(error).__name__\n"
            "    return 'connected'\n"
            "print(json.dumps({'environment': dict(os.environ), 'tmp': sorted(os.listdir('/tmp')),\n"
            f"  'files': [p for p in {[str(home), str(tmp_path), str(SPEC), '/root/.ssh', '/var/run/docker.sock']!r}\n"
            "             if os.access(p, os.F_OK)],\n"
            "  'links': os.listdir('/sys/class/net') if os.path.exists('/sys/class/net') else ['lo'],\n"
            "  'network': reach(socket.AF_INET, ('1.1.1.1', 443)), 'uid': os.getuid()}))"
        )
    )
    kernel = session.provisioner.kernel
    assert kernel is not None
    assert "hunter2" not in json.dumps(seen["environment"])
    assert {name for name in seen["environment"] if name.startswith("LEARNGRAPH")} == {
        "LEARNGRAPH_BROKER",
        "LEARNGRAPH_TICKET_FILE",
    }
    assert seen["files"] == []
    assert {name for name in seen["tmp"] if name.startswith("lg-")} == {kernel.folder.name, kernel.granted.name}
    assert (seen["links"], seen["network"], seen["uid"]) == (["lo"], "OSError", 65532)


def test_two_kernels_see_neither_each_others_folder_nor_processes(start: Callable[..., Session]) -> None:
    one, other = start(), start()
    theirs = other.provisioner.kernel
    assert theirs is not None
    assert one.run(f"import os\nprint(os.path.exists({str(theirs.folder)!r}))") == "False"
    assert one.run("print(sum(n.isdigit() for n in os.listdir('/proc')) < 6)") == "True"


def test_a_warm_kernel_is_used_once(start: Callable[..., Session], sandboxd: Sandboxd) -> None:
    daemon = SandboxClient(sandboxd.socket)
    seen: set[str] = set()
    for _ in range(2):
        assert until(lambda: "kernels_warm 1" in daemon.metrics())
        session = start()
        kernel = session.provisioner.kernel
        assert kernel is not None and kernel.warm and kernel.id not in seen
        seen.add(kernel.id)
        assert session.run("import os\nprint(os.path.exists('/tmp/mark'))\nopen('/tmp/mark', 'w').close()") == "False"
        session.end()


def test_lg_works_in_a_kernel_that_belongs_to_no_run(
    start: Callable[..., Session], workspace: Path, home: Path, sandboxd: Sandboxd
) -> None:
    session = start(workspace)
    said = session.run(
        "import learngraph_kernel as lg, os\n"
        "orders = lg.query('shop', 'select sum(amount) as total from orders')\n"
        "print(lg.cell('Q1.r0.total'), len(orders.arrow()), os.access(orders._path, os.W_OK), orders._path)"
    )
    kernel = session.provisioner.kernel
    assert kernel is not None
    total, rows, writable, path = said.split()
    assert (total, rows, writable) == ("1000.50", "1", "False")
    assert Path(path).parent == kernel.granted
    session.end()
    with Store.open(Home(home)) as store:
        (run,) = store.runs()
        (begun,) = store.ledger.events(run.run_id, types=["run.started"])
        assert (run.status, run.isolation) == ("completed", "docker")
        assert begun.data["image"] == sandboxd.settings["image"]


def test_nbclient_runs_a_notebook_with_widgets_in_it(jupyter: None) -> None:
    nb = nbformat.v4.new_notebook()
    nb.cells = [
        nbformat.v4.new_code_cell(
            "import anywidget, traitlets\nclass W(anywidget.AnyWidget):\n"
            "    _esm = 'export default {render() {}}'\n    n = traitlets.Int(7).tag(sync=True)\nW()"
        ),
        nbformat.v4.new_code_cell("import pandas, pyarrow, polars\nprint(pandas.DataFrame({'a': [1]}).a.sum())"),
    ]
    NotebookClient(nb, kernel_name=NAME, timeout=SECONDS, startup_timeout=60).execute()
    assert nb.cells[1].outputs[0].text == "1\n"
    assert "application/vnd.jupyter.widget-view+json" in nb.cells[0].outputs[0].data
    assert any(
        state["state"].get("n") == 7
        for state in nb.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    )


def test_without_a_daemon_the_start_says_what_to_do(
    jupyter: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LEARNGRAPH_SANDBOXD", str(tmp_path / "none.sock"))
    with pytest.raises(Exception, match="sandboxd does not answer") as caught:
        KernelManager(kernel_name=NAME).start_kernel()
    assert caught.value.code == "sandbox_unavailable"  # type: ignore[attr-defined]
    assert os.environ["LEARNGRAPH_SANDBOXD"] in str(caught.value)


def test_a_kernel_that_nobody_asks_about_keeps_its_lease(
    start: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learngraph_kernel.sandbox.companion.RENEW_SECONDS", 0.1)
    companion = start().provisioner._companion
    assert companion is not None
    renewed: list[object] = []
    ask = companion._ask
    monkeypatch.setattr(companion, "_ask", lambda: renewed.append(ask()))
    assert until(lambda: len(renewed) >= 2)
