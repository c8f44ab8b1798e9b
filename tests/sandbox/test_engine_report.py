"""The doctor's lines about the sandbox, asked for in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from learngraph_kernel.sandbox import engine_report as reporting
from learngraph_kernel.sandbox.engine_report import engine_report
from tests.sandbox.conftest import Engine


def test_a_machine_without_docker_is_one_line_with_a_remedy() -> None:
    (line,) = engine_report({**os.environ, "PATH": ""})
    assert (line.name, line.state) == ("docker engine", "unavailable")
    assert "apt-get install docker.io" in (line.remedy or "")


def test_an_engine_that_does_not_answer_is_told_apart(tmp_path: Path) -> None:
    nowhere = f"unix://{tmp_path}/docker.sock"
    (line,) = engine_report({**os.environ, "DOCKER_HOST": nowhere})
    assert (line.state, nowhere in line.detail or "command" in line.detail) == ("unavailable", True)


def test_a_check_that_hangs_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "SECONDS", 0.001)
    (line,) = engine_report(os.environ)
    assert line.detail == "gave no answer in 0 s"


def test_the_engine_of_this_machine_is_reported(docker_engine: Engine) -> None:
    lines = engine_report(os.environ)
    assert [line.name for line in lines] == ["docker engine", "docker weaknesses", "sandbox image"]
    assert [line.name for line in lines if line.state != "ok" and not line.remedy] == []


def test_asking_imports_nothing_of_docker_into_this_process() -> None:
    code = (
        "import os, sys; from learngraph_kernel.sandbox.engine_report import engine_report\n"
        "engine_report({**os.environ, 'PATH': ''})\n"
        "print([name for name in sys.modules if name == 'docker' or '.sandboxd' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
