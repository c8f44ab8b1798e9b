"""What holds for every command: usage errors, as text and as JSON."""

from __future__ import annotations

import json

import pytest

from learngraph_kernel.cli.main import main


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.mark.parametrize(
    ("words", "reason", "place"),
    [
        (["list", "--nope"], "No such option '--nope'", "learngraph list"),
        (["source", "add", "x"], "Missing option '--kind'", "learngraph source add"),
        (["nope"], "No such command 'nope'", "learngraph"),
    ],
)
def test_a_usage_error_is_json_for_programs_and_usage_for_people(
    capsys: pytest.CaptureFixture[str], words: list[str], reason: str, place: str
) -> None:
    code, out, _ = said(capsys, *words, "--json")
    error = json.loads(out)["error"]
    assert code == 2
    assert reason in error["reason"]
    assert (error["code"], error["place"], error["remedy"]) == ("usage", place, f"{place} --help")
    code, out, err = said(capsys, *words)
    assert (code, out) == (2, "") and reason in err
