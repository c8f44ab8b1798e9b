"""Socket folders: private, and cleared away once their owner has been killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from learngraph_kernel.broker.folders import make_folder

MAKE = "from learngraph_kernel.broker.folders import make_folder; import os; print(make_folder(), flush=True); {}"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_what_a_killed_process_left_is_cleared_away_and_the_rest_is_kept(temporary: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", MAKE.format("os.kill(os.getpid(), 9)")], capture_output=True, text=True, check=False
    )
    alive = subprocess.Popen(
        [sys.executable, "-c", MAKE.format("input()")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert alive.stdout is not None
    kept = Path(alive.stdout.readline().strip())
    foreign = temporary / "lg-of-somebody-else"
    foreign.mkdir()
    mine = make_folder()
    assert mine.stat().st_mode & 0o777 == 0o700
    assert killed.stdout.strip()
    assert {path.name for path in temporary.glob("lg-*")} == {mine.name, kept.name, foreign.name}
    alive.communicate("")


def test_a_pipe_or_link_in_the_owners_place_is_left_alone(temporary: Path) -> None:
    """A sandboxed kernel has a folder there too; a pipe must not make every later run wait."""
    for name in ("lg-pipe", "lg-link"):
        (temporary / name).mkdir()
    os.mkfifo(temporary / "lg-pipe" / "owner")
    (temporary / "lg-link" / "owner").symlink_to("/proc/self/environ")
    make_folder()
    assert (temporary / "lg-pipe").exists() and (temporary / "lg-link").exists()
