"""The doctor, against homes and workspaces that are broken in one way each."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from learngraph_kernel.doctor import CheckResult, Surroundings, diagnose
from learngraph_kernel.doctor import installation as installation_checks
from learngraph_kernel.doctor import storage as storage_checks
from learngraph_kernel.doctor import workspace as workspace_checks
from learngraph_kernel.doctor.registry import CHECKS
from learngraph_kernel.doctor.report import Check
from learngraph_kernel.errors import BadInput
from learngraph_kernel.runs.keys import PRIVATE_NAME, load_or_create_signer
from learngraph_kernel.store.database import Home, Store
from learngraph_kernel.store.run_record import RunRecord

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    """A home with a database and a key, and an empty workspace file."""
    home = Home(tmp_path / "home")
    home.ensure()
    Store.open(home).close()
    load_or_create_signer(home.keys)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "learngraph.toml").write_text("")
    return Surroundings(home.root, tmp_path / "work", {"PATH": ""})


def only(check: Check, around: Surroundings) -> CheckResult:
    (result,) = diagnose(around, [("it", check)])
    return result


def declare(around: Surroundings, text: str) -> None:
    (around.start / "learngraph.toml").write_text(text)


def recorded_artifact(around: Surroundings) -> tuple[str, Path]:
    """An artifact that an event of a run names: its hash and its file."""
    with Store.open(Home(around.home)) as store:
        sha = store.artifacts.put(b"rows")
        with store.unit_of_work("user:a") as work:
            work.insert_run(RunRecord("r_1", "user:a", dt.datetime(2026, 12, 1, tzinfo=dt.UTC)))
        store.ledger.append("r_1", "call.completed", {"artifacts": [sha]}, actor="user:a")
        return sha, store.artifacts.path(sha)


def test_a_sound_home_and_workspace_have_no_failure(around: Surroundings) -> None:
    assert [result for result in diagnose(around) if result.state == "failed"] == []


def test_every_result_that_is_not_ok_has_a_remedy(around: Surroundings) -> None:
    shutil.rmtree(around.home)
    around.home.write_text("a file")
    declare(around, '[source.x]\nkind = "duckdb"')
    results = diagnose(around)
    assert {result.state for result in results} > {"ok", "failed"}
    assert [result.name for result in results if result.state != "ok" and not result.remedy] == []


def test_names_of_checks_are_unique() -> None:
    assert len({name for name, _ in CHECKS}) == len(CHECKS)


def test_a_check_that_breaks_hides_no_other(around: Surroundings) -> None:
    def fine(around: Surroundings) -> Iterator[CheckResult]:
        yield CheckResult("fine", "ok", "well")

    def half(around: Surroundings) -> Iterator[CheckResult]:
        yield CheckResult("half", "ok", "first part")
        raise ZeroDivisionError("no")

    def refused(around: Surroundings) -> Iterator[CheckResult]:
        raise BadInput("is wrong", where="there", remedy="put it right")
        yield

    results = diagnose(around, [("half", half), ("refused", refused), ("fine", fine)])
    assert [(result.name, result.state) for result in results] == [
        ("half", "ok"),
        ("half", "failed"),
        ("refused", "failed"),
        ("fine", "ok"),
    ]
    assert results[1].detail == "the check broke: ZeroDivisionError: no"
    assert (results[2].detail, results[2].remedy) == ("there: is wrong", "put it right")


def test_a_home_that_is_not_there_yet_is_fine(around: Surroundings) -> None:
    shutil.rmtree(around.home)
    assert only(storage_checks.home, around).state == "ok"
    assert only(storage_checks.database, around).detail == "none yet (made by the first run)"
    assert only(storage_checks.signing_key, around).state == "ok"
    assert not around.home.exists()


def test_a_home_that_is_a_file_is_named(around: Surroundings) -> None:
    shutil.rmtree(around.home)
    around.home.write_text("x")
    result = only(storage_checks.home, around)
    assert (result.state, result.detail) == ("failed", f"{around.home} is not a folder")


def test_a_home_that_cannot_be_written_is_named(around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**more: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(storage_checks.tempfile, "TemporaryFile", refuse)  # root may write anywhere
    result = only(storage_checks.home, around)
    assert (result.state, result.detail) == ("failed", f"{around.home} cannot be written: Permission denied")


def test_a_home_that_others_can_read_is_a_warning(around: Surroundings) -> None:
    around.home.chmod(0o755)
    warning, room = diagnose(around, [("home", storage_checks.home)])
    assert (warning.state, warning.remedy) == ("warning", f"chmod 700 {around.home}")
    assert room.state == "ok"


@pytest.mark.parametrize(
    ("free", "state"),
    [
        (storage_checks.FAIL_BELOW - 1, "failed"),
        (storage_checks.WARN_BELOW - 1, "warning"),
        (storage_checks.WARN_BELOW, "ok"),
    ],
)
def test_little_room_is_told_before_it_runs_out(
    free: int, state: str, around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_checks.shutil, "disk_usage", lambda path: Usage(1, 1, free))
    assert only(storage_checks.home, around).state == state


def test_a_database_that_is_none_is_failed_with_a_remedy(around: Surroundings) -> None:
    (around.home / "learngraph.db").write_bytes(b"not a database" * 1000)
    result = only(storage_checks.database, around)
    assert (result.state, "learngraph.db" in result.detail) == ("failed", True)
    assert result.remedy


def test_a_damaged_page_is_found(around: Surroundings) -> None:
    path = around.home / "learngraph.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(path.read_bytes())
    for page in range(2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(data)
    assert {result.state for result in diagnose(around, [("database", storage_checks.database)])} == {"failed"}


def test_a_missing_artifact_of_a_run_is_found(around: Surroundings) -> None:
    sha, path = recorded_artifact(around)
    path.unlink()
    (result,) = diagnose(around, [("database", storage_checks.database)])
    assert result.state == "failed"
    assert sha in result.detail


def test_a_changed_artifact_is_found_when_looked_at_deeply(around: Surroundings) -> None:
    _, path = recorded_artifact(around)
    path.chmod(0o600)
    path.write_bytes(b"mows")
    deep = Surroundings(around.home, around.start, around.environ, deep=True)
    assert only(storage_checks.database, around).state == "ok"
    assert only(storage_checks.database, deep).state == "failed"


def test_a_key_that_others_can_read_is_failed(around: Surroundings) -> None:
    key = Home(around.home).keys / PRIVATE_NAME
    key.chmod(0o644)
    result = only(storage_checks.signing_key, around)
    assert (result.state, result.remedy) == ("failed", f"chmod 600 {key}")


def test_a_damaged_key_is_failed_and_left_alone(around: Surroundings) -> None:
    key = Home(around.home).keys / PRIVATE_NAME
    key.write_bytes(b"-----BEGIN nothing-----")
    assert only(storage_checks.signing_key, around).state == "failed"
    assert key.read_bytes() == b"-----BEGIN nothing-----"


def test_no_workspace_file_is_a_warning(around: Surroundings) -> None:
    (around.start / "learngraph.toml").unlink()
    assert only(workspace_checks.workspace, around).state == "warning"


def test_a_wrong_key_in_the_workspace_is_told_once(around: Surroundings) -> None:
    declare(around, '[source.x]\nkind = "duckdb"')
    results = [result for result in diagnose(around) if result.state == "failed"]
    assert [result.name for result in results] == ["workspace"]
    assert "'source'" in results[0].detail
    assert "sources" in (results[0].remedy or "")


def test_each_source_is_told_by_itself(around: Surroundings) -> None:
    (around.start / "data").mkdir()
    (around.start / "data" / "sales.csv").write_text("a,b\n1,2\n")
    declare(
        around,
        '[sources.gone]\nkind = "duckdb"\npath = "gone.duckdb"\n[sources.files]\nkind = "folder"\npath = "data"\n',
    )
    gone, files = diagnose(around, [("sources", workspace_checks.sources)])
    assert (gone.name, gone.state, "gone.duckdb" in gone.detail) == ("source gone", "failed", True)
    assert (files.name, files.state, files.detail) == ("source files", "ok", "folder, 1 tables")


def test_a_wrong_metric_card_is_failed_at_its_place(around: Surroundings) -> None:
    (around.start / "metrics").mkdir()
    (around.start / "metrics" / "weekly.yaml").write_text("set: weekly\nmetrics: [{name: a, versoin: 1.0.0}]\n")
    result = only(workspace_checks.metric_cards, around)
    assert (result.state, "metrics/weekly.yaml" in result.detail) == ("failed", True)


def test_no_model_is_a_capability_that_is_not_there(around: Surroundings) -> None:
    assert only(workspace_checks.models, around).state == "unavailable"


def test_each_model_is_told_by_itself(around: Surroundings) -> None:
    (around.start / "model.yaml").write_text("rules: [{steps: [{text: hi}]}]")
    declare(
        around,
        '[models.default]\nadapter = "scripted"\nscript = "model.yaml"\n'
        '[models.lost]\nadapter = "scripted"\nscript = "lost.yaml"\n'
        '[models.keyless]\nadapter = "litellm"\nmodel = "openai/x"\napi_key_env = "SOME_KEY"\n',
    )
    found = {result.name: result for result in diagnose(around, [("models", workspace_checks.models)])}
    assert found["model default"].state == "ok"
    assert (found["model lost"].state, "lost.yaml" in found["model lost"].detail) == ("failed", True)
    assert found["model keyless"].remedy == "export SOME_KEY=… before starting"


def test_a_key_in_the_workspace_file_is_not_repeated(around: Surroundings) -> None:
    declare(around, '[models.default]\nadapter = "litellm"\nmodel = "x"\napi_key = "sk-secret-9"\n')
    result = only(workspace_checks.models, around)
    assert result.state == "failed"
    assert "sk-secret-9" not in str(result)


def versions(monkeypatch: pytest.MonkeyPatch, **wrong: str | None) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name not in wrong:
            return real(name)
        found = wrong[name]
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_packages_below_their_floor_or_missing_are_named(around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    versions(monkeypatch, duckdb="0.9.0", sqlglot=None)
    result = only(installation_checks.packages, around)
    assert result.detail.startswith("duckdb 0.9.0 is not >=")
    assert "sqlglot is missing" in result.detail
    assert (result.remedy or "").startswith("pip install --upgrade 'duckdb>=")


def test_a_refused_litellm_is_failed_and_a_missing_one_only_unavailable(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions(monkeypatch, litellm="1.82.7")
    assert only(installation_checks.litellm, around).state == "failed"
    versions(monkeypatch, litellm=None)
    assert only(installation_checks.litellm, around).state == "unavailable"


def test_a_kernelspec_without_its_program_is_failed(
    around: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["/gone/python"], "display_name": "x", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    result = only(installation_checks.kernel, around)
    assert result.state == "failed"
    assert (result.remedy or "").startswith(f"{sys.executable} -m ipykernel install")


def test_a_kernelspec_with_a_bare_python_is_ok_in_an_environment_that_is_not_activated(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = only(installation_checks.kernel, around)
    assert result.state == "ok" and sys.executable in result.detail


def test_a_kernel_is_started_when_looked_at_deeply(around: Surroundings) -> None:
    deep = Surroundings(around.home, around.start, os.environ, deep=True)
    assert only(installation_checks.kernel, deep).detail == "python3 starts and computes"


def test_the_papermill_engine_is_loaded_as_papermill_does_it(around: Surroundings) -> None:
    deep = Surroundings(around.home, around.start, os.environ, deep=True)
    assert only(installation_checks.papermill_engine, deep).state == "ok"


def test_missing_tools_are_unavailable_with_their_remedy(around: Surroundings) -> None:
    assert only(installation_checks.chromium, around).remedy == "apt-get install chromium"


def test_the_doctor_itself_imports_nothing_that_could_be_broken() -> None:
    code = (
        "import sys; from learngraph_kernel.doctor.registry import CHECKS\n"
        "heavy = {'sqlalchemy', 'duckdb', 'cryptography', 'yaml', 'jupyter_client', 'packaging'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
