"""Bad input: one clear message with the place and the remedy, the right exit code, earlier runs readable."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{not json", "not a notebook"),
        ("[]", "not a notebook"),
        ('{"cells": 3, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "not a notebook"),
        ("", "not a notebook"),
        ('{"nbformat": 9, "cells": []}', "not a notebook"),
    ],
)
def test_what_is_no_notebook_is_said_to_be_none(learngraph: Command, workspace: Path, text: str, words: str) -> None:
    path = workspace / "nb.ipynb"
    path.write_text(text)
    said = learngraph("run", path, "--json")
    assert said.code == 2, said.out + said.err
    assert words in said.json["error"]["reason"]
    assert "nb.ipynb" in said.json["error"]["place"]
    assert "Traceback" not in said.err


def test_a_missing_notebook_and_a_folder_are_refused(learngraph: Command, workspace: Path) -> None:
    for path in (workspace / "none.ipynb", workspace):
        said = learngraph("run", path, "--json")
        assert said.code == 2
        assert said.json["error"]["code"] == "not_a_notebook"


def test_an_older_notebook_format_runs(learngraph: Command, workspace: Path) -> None:
    path = workspace / "old.ipynb"
    path.write_text(
        '{"metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 3, "nbformat_minor": 0, '
        '"worksheets": [{"cells": '
        '[{"cell_type": "code", "input": "print(6 * 7)", "language": "python", "outputs": [], "metadata": {}}]}]}'
    )
    said = learngraph("run", path, "--json")
    assert said.code == 0, said.out
    assert "42" in Path(said.json["notebook"]).read_text()


def test_an_unknown_kernel_names_the_installed_ones(learngraph: Command, write_notebook: Command) -> None:
    said = learngraph("run", write_notebook("1"), "-k", "fortran", "--json")
    assert said.code == 2
    assert "python3" in said.json["error"]["reason"]


def test_unknown_metadata_is_an_error_with_the_closest_key(learngraph: Command, write_notebook: Command) -> None:
    said = learngraph("run", write_notebook("1", metadata={"contrat": {}}), "--json")
    assert said.code == 2
    assert "contract" in str(said.json["error"])


def test_a_wrong_key_in_the_workspace_file_is_named_with_its_line(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    (workspace / "learngraph.toml").write_text('[sources.shop]\nkind = "duckdb"\npaht = "shop.duckdb"\n')
    said = learngraph("run", write_notebook("1"), "--json")
    assert said.code == 2
    error = said.json["error"]
    assert "paht" in error["reason"] and "path" in error["remedy"] and "3" in error["place"]


@pytest.mark.parametrize(
    ("cell", "code", "words"),
    [
        ("1 / 0", "cell_failed", "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", "kernel_died", "died"),
        ("import time\nwhile True: time.sleep(0.1)", "cell_timeout", "3 s"),
        ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", "cell_timeout", "3 s"),
        ("while True: print('x' * 100_000)", "output_limit", "2 MiB"),
        ("print('x' * 10_000_000)", "output_limit", "2 MiB"),
        ("input()", "cell_failed", "StdinNotImplementedError"),
    ],
)
def test_a_cell_that_misbehaves_is_named_and_leaves_earlier_runs_readable(
    learngraph: Command, write_notebook: Command, cell: str, code: str, words: str
) -> None:
    # Only the cells that are to time out may: on a busy machine a flood can take seconds to arrive.
    seconds = 3 if code == "cell_timeout" else 60
    said = learngraph("run", write_notebook("x = 1", cell), "--execution-timeout", seconds, "--max-output", 2, "--json")
    assert said.code == 1, said.out
    error = said.json["error"]
    assert error["code"] == code and words in error["reason"]
    assert "cell 2 (c1)" in error["place"]
    assert len(said.out) < 200_000
    shown = learngraph("show", said.json["run_id"], "--json").json
    assert shown["status"] == "failed"
    assert [event["type"] for event in shown["events"]][-2:] == ["cell.failed", "run.failed"]


def test_a_cell_that_forks_leaves_no_process_behind(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    path = write_notebook(
        "import os, pathlib, time\npid = os.fork()\nif pid == 0:\n    time.sleep(600)\n    os._exit(0)\n"
        "pathlib.Path('child').write_text(str(pid))"
    )
    said = learngraph("run", path, "--json")
    assert said.code == 0, said.out
    child = Path(f"/proc/{(workspace / 'child').read_text()}")
    assert not child.exists() or "Z" in (child / "stat").read_text().split()[2]


def test_a_metric_that_refers_to_a_missing_column_names_card_and_column(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    cards = workspace / "metrics" / "shop.yaml"
    cards.write_text(cards.read_text().replace("orders.amount", "orders.amont"))
    path = write_notebook(
        "import learngraph_kernel as lg",
        'q = lg.query("shop", "select * from orders")',
        'lg.metrics("shop", {"orders": q})',
    )
    said = learngraph("run", path, "--json")
    assert said.code == 1
    assert "amont" in said.json["error"]["reason"] and "amount" in said.json["error"]["reason"]


def test_a_metric_that_refers_to_itself_is_a_cycle(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    cards = workspace / "metrics" / "shop.yaml"
    cards.write_text(cards.read_text().replace("sum(orders.amount)", "metric(revenue)"))
    path = write_notebook("import learngraph_kernel as lg", 'lg.metrics("shop", {})')
    said = learngraph("run", path, "--json")
    assert said.code == 1
    assert "revenue" in said.json["error"]["reason"]


def test_a_corrupt_artifact_is_named_by_verify_and_the_other_run_still_reads(
    learngraph: Command, write_notebook: Command, home: Path
) -> None:
    query = ["import learngraph_kernel as lg", 'lg.query("shop", "select {n} as n from orders")']
    first, second = (
        learngraph("run", write_notebook(query[0], query[1].format(n=n), name=f"{n}.ipynb"), "--json").json["run_id"]
        for n in (1, 2)
    )
    calls = learngraph("show", first, "--json").json["calls"]
    artifact = calls[0]["artifacts"][0]
    path = home / "artifacts" / "sha256" / artifact[:2] / artifact
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    said = learngraph("verify", first, "--json")
    assert said.code == 5
    assert any(artifact in str(finding) for finding in said.json["findings"])
    assert learngraph("verify", second).code == 0


def test_a_corrupt_database_is_one_clear_message(learngraph: Command, write_notebook: Command, home: Path) -> None:
    home.mkdir(parents=True)
    (home / "learngraph.db").write_bytes(b"this is no database" * 400)
    said = learngraph("run", write_notebook("1"), "--json")
    assert said.code != 0
    assert said.json["error"]["remedy"]
    assert "Traceback" not in said.err
