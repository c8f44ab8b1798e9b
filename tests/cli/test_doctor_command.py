"""`learngraph doctor` as a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def doctor(home: Path, workspace: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = "from learngraph_kernel.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", command, "doctor", "--workspace", str(workspace), *options],
        env={**os.environ, "LEARNGRAPH_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "learngraph.toml").write_text("")
    return folder


def test_a_sound_machine_is_exit_0_and_prints_one_document(tmp_path: Path, workspace: Path) -> None:
    done = doctor(tmp_path / "home", workspace, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"]) == (0, True), done.stdout
    assert {"name", "state", "detail", "remedy"} == set(report["checks"][0])


def test_a_failure_is_exit_1_and_the_rest_is_still_shown(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    (workspace / "learngraph.toml").write_text("[sources")
    done = doctor(tmp_path / "home", workspace, "--json")
    states = {check["name"]: check["state"] for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert (states["home"], states["workspace"], states["python"]) == ("failed", "failed", "ok")


def test_a_person_sees_the_remedy_under_its_failure(tmp_path: Path, workspace: Path) -> None:
    (workspace / "learngraph.toml").write_text('[sources.x]\nkind = "duckdb"\npath = "gone.duckdb"\n')
    lines = doctor(tmp_path / "home", workspace).stdout.splitlines()
    place = next(number for number, line in enumerate(lines) if "source x" in line)
    assert lines[place].startswith("failed")
    assert lines[place + 1].strip().startswith("→")
