"""A kernel whose run was not known when it started finds its ticket in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from learngraph_kernel.broker.protocol import TICKET_FILE_VARIABLE, TICKET_VARIABLE
from learngraph_kernel.errors import Unavailable
from learngraph_kernel.notebook.client import _ticket


def test_the_environment_wins_then_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TICKET_VARIABLE, raising=False)
    monkeypatch.delenv(TICKET_FILE_VARIABLE, raising=False)
    assert _ticket() is None
    (tmp_path / "ticket").write_text("from the file\n")
    monkeypatch.setenv(TICKET_FILE_VARIABLE, str(tmp_path / "ticket"))
    assert _ticket() == "from the file"
    monkeypatch.setenv(TICKET_VARIABLE, "from the environment")
    assert _ticket() == "from the environment"


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TICKET_VARIABLE, raising=False)
    monkeypatch.setenv(TICKET_FILE_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(Unavailable):
        _ticket()
