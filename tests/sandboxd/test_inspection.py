"""The answer of the fixed runner is checked like any input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from learngraph_kernel.sandbox.inside.inspect_file import FORMAT, MAX_OUTPUT, bounded_json, inspect
from learngraph_kernel.sandbox.paths import PathRefused
from learngraph_kernel.sandboxd.inspection import InspectionFailed, inspection_argv, read_inspection

GOOD = {"format": FORMAT, "task": "inspect", "error": None, "warnings": [], "kind": "csv", "size": 3, "encoding": None}


def test_an_honest_answer_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,=2\n")
    found = read_inspection("inspect", 0, bounded_json(inspect(str(tmp_path / "a.csv"))) + b"\n")
    assert (found.kind, found.size, found.details["rows"]) == ("csv", 9, 1)
    assert found.warnings[0]["code"] == "formula"


@pytest.mark.parametrize(
    "change",
    [
        {"format": "x"},
        {"task": "text"},
        {"kind": 1},
        {"size": "3"},
        {"size": True},
        {"details": []},
        {"warnings": None},
        {"warnings": [1]},
        {"warnings": [{}]},
        {"error": 1},
        {"text": ["x"]},
    ],
)
def test_another_answer_is_refused(change: dict[str, object]) -> None:
    read_inspection("inspect", 0, json.dumps(GOOD).encode())
    with pytest.raises(InspectionFailed):
        read_inspection("inspect", 0, json.dumps(GOOD | change).encode())


@pytest.mark.parametrize("stdout", [b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b" " * (MAX_OUTPUT + 2)])
def test_what_is_no_report_is_refused(stdout: bytes) -> None:
    with pytest.raises(InspectionFailed):
        read_inspection("inspect", 0, stdout)


def test_a_runner_that_died_says_nothing() -> None:
    with pytest.raises(InspectionFailed):
        read_inspection("inspect", 137, json.dumps(GOOD).encode())


def test_only_the_path_is_the_agents() -> None:
    argv = inspection_argv("inspect", "inputs/a b.csv")
    assert argv[:3] == ("python3", "-I", "-B") and argv[-2:] == ("inspect", "inputs/a b.csv")
    with pytest.raises(PathRefused):
        inspection_argv("text", "../etc/passwd")
