"""`learngraph audit` as a person and a script meet it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import get_args

import pytest

from learngraph_kernel.cli import main
from learngraph_kernel.cli.audit_command import _REASONS
from learngraph_kernel.evidence.audit.matching import Rejection


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "f.csv").write_text("airport,flights,late\nJFK,6077,512\nLGA,5200,700\n")
    (tmp_path / "more.json").write_text('[{"airport": "JFK", "gates": 128}]')
    (tmp_path / "good.md").write_text("# Week 7\n\nJFK had 6,077 flights and LGA 5,200.\n")
    (tmp_path / "bad.md").write_text("JFK had 6,177 flights.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["audit", *arguments])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.mark.usefixtures("folder")
def test_all_grounded_is_exit_0_with_a_table_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "good.md", "--facts", "f.csv")
    assert code == 0
    assert "3:9" in out
    assert "f.csv!R2C2" in out
    assert "2 numbers: 2 grounded, 0 derived, 0 ungrounded" in out


def test_a_text_without_numbers_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "words.md").write_text("Nothing to see.\n")
    assert run(capsys, "words.md", "--facts", "f.csv")[:2] == (0, "no numbers: nothing to check\n")


@pytest.mark.usefixtures("folder")
def test_something_ungrounded_is_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "bad.md", "--facts", "f.csv")
    assert code == 3
    assert "ungrounded" in out


@pytest.mark.usefixtures("folder")
def test_json_is_one_list_of_findings(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "good.md", "--facts", "f.csv", "--json")
    assert code == 0
    statuses = [finding["status"] for finding in json.loads(out)]
    assert statuses == ["not_a_conclusion", "grounded", "grounded"]


@pytest.mark.parametrize("facts", [["--facts", "f.csv", "more.json"], ["--facts", "f.csv", "--facts", "more.json"]])
def test_several_files_of_facts(folder: Path, capsys: pytest.CaptureFixture[str], facts: list[str]) -> None:
    (folder / "t.md").write_text("JFK had 6,077 flights and 128 gates.")
    assert run(capsys, "t.md", *facts)[0] == 0


def test_every_reason_for_a_rejection_has_words_for_people() -> None:
    assert set(_REASONS) == {*get_args(Rejection), "chance"}


@pytest.mark.usefixtures("folder")
def test_a_dash_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"JFK had 6,077 flights.")))
    assert run(capsys, "-", "--facts", "f.csv")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nope.md", "--facts", "f.csv"], "no such file"),
        (["good.md", "--facts", "nope.csv"], "no such file"),
        (["good.md", "--facts", "."], "folder"),
        (["good.md"], "--facts"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_bad_input_is_exit_2_with_one_message(
    capsys: pytest.CaptureFixture[str], arguments: list[str], word: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert word in err
    assert out == ""


@pytest.mark.usefixtures("folder")
def test_bad_input_for_a_program_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "nope.md", "--facts", "f.csv", "--json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "audit_input"
