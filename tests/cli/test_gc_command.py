from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from learngraph_kernel.cli.gc_command import command
from learngraph_kernel.store.artifacts import ArtifactStore
from learngraph_kernel.store.home import Home


@pytest.fixture
def artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    monkeypatch.setenv("LEARNGRAPH_HOME", str(tmp_path / "home"))
    home = Home.default()
    home.ensure()
    return ArtifactStore(home.artifacts)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_dry_run_shows_what_the_real_one_then_removes(artifacts: ArtifactStore) -> None:
    old, young = artifacts.put(b"old"), artifacts.put(b"young")
    os.utime(artifacts.path(old), (0, 0))
    dry = json.loads(run("--dry-run", "--json"))
    assert dry == {
        "dry_run": True,
        "artifacts": [{"sha256": old, "size": 3}],
        "bytes": 3,
        "kept": 1,
        "young": 1,
    }
    assert old in artifacts
    assert json.loads(run("--json")) == dry | {"dry_run": False}
    assert old not in artifacts
    assert young in artifacts


def test_a_person_reads_the_same(artifacts: ArtifactStore) -> None:
    name = artifacts.put(b"12345")
    assert run("--dry-run").splitlines() == [
        "0 artifacts would go, 0 bytes; 1 kept, 1 of them only for now (too young)"
    ]
    assert run("--grace-hours", "0", "--dry-run").splitlines() == [
        f"{name}  5 bytes",
        "1 artifacts would go, 5 bytes; 0 kept",
    ]
    assert run("--grace-hours", "0").splitlines()[-1] == "1 artifacts removed, 5 bytes; 0 kept"
    assert run().splitlines() == ["0 artifacts removed, 0 bytes; 0 kept"]
