"""`learngraph run` in the closed box: where a run goes, what it says of that, and that it never goes elsewhere."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from learngraph_kernel.runs.box import BoxKernel
from learngraph_kernel.runs.placement import NotForTheBox, NotIsolated, Placement, SandboxChoice, place
from learngraph_kernel.sandbox.place import default_socket, listening
from learngraph_kernel.sandbox.transport import SandboxUnavailable
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.sandboxd.running import Sandboxd

Command = Callable[..., Any]
CELLS = (
    "import learngraph_kernel as lg\n"
    "orders = lg.query('shop', 'select region, sum(amount) as amount from orders group by region order by region')\n"
    "orders.df()",
    "total = lg.query('shop', 'select sum(amount) as amount from orders')\n"
    "m = lg.metrics('shop', {'orders': total})\nlg.report('Revenue was [[m:revenue]].')",
    "lg.output(revenue=lg.ref('m:revenue'))",
)


@pytest.fixture
def boxed(sandboxd: Sandboxd, home: Path, monkeypatch: pytest.MonkeyPatch) -> Sandboxd:
    monkeypatch.setenv("LEARNGRAPH_SANDBOXD", str(sandboxd.socket))
    return sandboxd


def started(home: Path, run_id: str) -> Any:
    with Store.open(Home(home)) as store:
        (event,) = store.ledger.events(run_id, types=["run.started"])
        return event.data


def test_a_formal_run_in_the_box_repeats_reruns_and_verifies_with_its_image(
    boxed: Sandboxd, home: Path, learngraph: Command, write_notebook: Command
) -> None:
    notebook = write_notebook(*CELLS[:2])
    one, two = (learngraph("run", notebook, "--formal", "--sandbox", "docker", "--json") for _ in range(2))
    assert (one.code, two.code) == (0, 0), one.err + two.err
    assert (one.json["tier"], one.json["isolation"]) == ("formal", "docker")
    assert one.json["content_hash"] == two.json["content_hash"]
    assert started(home, one.json["run_id"])["image"] == boxed.settings["image"]
    again = learngraph("rerun", one.json["run_id"], "--json")
    assert (again.code, again.json["same"], again.json["isolation"]) == (0, True, "docker"), again.err
    assert learngraph("verify", one.json["run_id"]).code == 0
    exported = home.parent / "exported"
    assert learngraph("export", one.json["run_id"], "--to", exported).code == 0
    assert json.loads((exported / "content.json").read_text())["image"] == boxed.settings["image"]


def test_auto_takes_the_box_that_is_there_and_says_so(
    boxed: Sandboxd, learngraph: Command, write_notebook: Command
) -> None:
    done = learngraph("run", write_notebook("import os\nassert os.getuid() == 65532"), "--json")
    assert (done.code, done.json["isolation"]) == (0, "docker"), done.err


def test_auto_without_a_daemon_takes_the_host_and_says_so(learngraph: Command, write_notebook: Command) -> None:
    done = learngraph("run", write_notebook("1"), "--json")
    assert (done.code, done.json["isolation"]) == (0, "host"), done.err


def test_auto_with_a_daemon_that_cannot_takes_the_host_and_says_why(
    sandbox_image: str, tmp_path_factory: pytest.TempPathFactory, learngraph: Command, write_notebook: Command
) -> None:
    folder = tmp_path_factory.mktemp("d")
    with Sandboxd(folder, "sha256:" + "0" * 64) as running:
        done = learngraph("run", write_notebook("1"), "--json", LEARNGRAPH_SANDBOXD=str(running.socket))
        assert (done.code, done.json["isolation"]) == (0, "host"), done.err
        assert "not in the closed box" in done.err and "image" in done.err
        refused = learngraph(
            "run", write_notebook("1"), "--sandbox", "docker", "--json", LEARNGRAPH_SANDBOXD=str(running.socket)
        )
        assert (refused.code, refused.json["error"]["code"]) == (1, "sandbox_unavailable")
        assert refused.json["error"]["remedy"]


@pytest.mark.parametrize(("options", "metadata"), [(["--sandbox", "docker"], None), ([], {"governed": True})])
def test_who_must_be_in_the_box_is_refused_without_one_and_nothing_ran(
    learngraph: Command, write_notebook: Command, workspace: Path, options: list[str], metadata: dict[str, Any] | None
) -> None:
    notebook = write_notebook("open('ran', 'w').close()", metadata=metadata)
    done = learngraph("run", notebook, *options, "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "sandbox_unavailable"), done.err
    assert done.json["error"]["remedy"] and not (workspace / "ran").exists()
    assert learngraph("list", "--json").json in ([], {"runs": []})


def test_a_governed_workflow_runs_in_the_box(boxed: Sandboxd, learngraph: Command, write_notebook: Command) -> None:
    notebook = write_notebook("1", metadata={"governed": True})
    assert learngraph("run", notebook, "--json").json["isolation"] == "docker"
    refused = learngraph("run", notebook, "--sandbox", "host", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (1, "not_isolated")


def test_a_failed_run_is_resumed_in_the_box_without_asking_twice(
    boxed: Sandboxd, home: Path, learngraph: Command, write_notebook: Command
) -> None:
    notebook = write_notebook(
        "import learngraph_kernel as lg\nlg.query('shop', 'select 1 as n')", "import os\nos.kill(os.getpid(), 9)"
    )
    died = learngraph("run", notebook, "--json")
    assert (died.code, died.json["error"]["code"]) == (1, "kernel_died")
    assert "killed" in died.json["error"]["reason"]
    resumed = learngraph("resume", died.json["run_id"], "--json")
    assert (resumed.json["isolation"], resumed.json["error"]["code"]) == ("docker", "kernel_died")
    with Store.open(Home(home)) as store:
        calls = list(store.ledger.events(died.json["run_id"], types=["call.completed"]))
    assert len(calls) == 1


def test_what_the_box_lacks_is_explained_where_it_fails(
    boxed: Sandboxd, learngraph: Command, write_notebook: Command
) -> None:
    done = learngraph("run", write_notebook("open('data.csv')"), "--json")
    assert "--sandbox host" in done.json["error"]["remedy"]


def test_an_image_that_is_not_here_is_refused(boxed: Sandboxd) -> None:
    async def start() -> None:
        async with BoxKernel("r_0", image="sha256:" + "1" * 64) as kernel:
            await kernel.start("ticket")

    with pytest.raises(SandboxUnavailable) as caught:
        asyncio.run(start())
    assert caught.value.details["cause"] == "image_unknown"


def test_asking_for_a_daemon_that_is_not_there_takes_no_time(home: Path) -> None:
    begun = time.perf_counter()
    assert not any(listening(default_socket()) for _ in range(10))
    assert (time.perf_counter() - begun) / 10 < 0.02


def with_kernel(name: str | None, language: str = "python") -> Any:
    nb = nbformat.v4.new_notebook()
    if name is not None:
        nb.metadata["kernelspec"] = {"name": name, "language": language, "display_name": name}
    return nb


@pytest.mark.parametrize(
    ("own", "asked", "sandbox", "governed", "expected"),
    [
        (None, None, "auto", False, ("python3", "auto")),
        ("python3", None, "auto", False, ("python3", "auto")),
        ("python3", None, "host", False, ("python3", "host")),
        ("python3", None, "docker", False, ("python3", "docker")),
        ("python3", None, "auto", True, ("python3", "docker")),
        ("my-env", None, "auto", False, ("my-env", "host")),
        ("my-env", None, "docker", False, ("my-env", "docker")),
        ("python3", "my-env", "auto", False, ("my-env", "host")),
        ("ir", None, "auto", False, ("ir", "host")),
        ("learngraph-sandbox", None, "auto", False, ("learngraph-sandbox", "docker")),
        ("learngraph-sandbox", None, "host", False, ("python3", "host")),
        ("python3", "learngraph-sandbox", "auto", False, ("learngraph-sandbox", "docker")),
    ],
)
def test_where_a_notebook_runs(
    own: str | None, asked: str | None, sandbox: SandboxChoice, governed: bool, expected: tuple[str, SandboxChoice]
) -> None:
    nb = with_kernel(own, "R" if own == "ir" else "python")
    assert place(nb, kernel=asked, sandbox=sandbox, governed=governed, where="nb") == Placement(*expected)


@pytest.mark.parametrize(
    ("own", "asked", "sandbox", "governed", "refusal"),
    [
        ("python3", None, "host", True, NotIsolated),
        ("ir", None, "docker", False, NotForTheBox),
        ("ir", None, "auto", True, NotForTheBox),
        ("python3", "my-env", "docker", False, NotForTheBox),
    ],
)
def test_what_cannot_be_placed_is_refused(
    own: str, asked: str | None, sandbox: SandboxChoice, governed: bool, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        place(
            with_kernel(own, "R" if own == "ir" else "python"),
            kernel=asked,
            sandbox=sandbox,
            governed=governed,
            where="nb",
        )
