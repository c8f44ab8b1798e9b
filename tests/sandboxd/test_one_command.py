"""A whole command, without a container: policy, watch, undoing, grants, and what is taken over."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy import Engine

from learngraph_kernel.sandbox.argv import check_argv
from learngraph_kernel.sandboxd.grants import Grants
from learngraph_kernel.sandboxd.scan import Limits
from learngraph_kernel.sandboxd.storage import ImportReport, Storage
from learngraph_kernel.sandboxd.watch import CommandWatch, Watched
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder

LIMITS = Limits(bytes=10 << 20)
SCRIPT = b"""
import os, shutil, time
shutil.rmtree("work/data")
os.remove("inputs/in.csv")
os.rename("work/a.txt", "outputs/a.txt")
with open("work/tmp", "w") as file:
    file.write("t")
os.remove("work/tmp")
with open("outputs/result.txt", "w") as file:
    file.write("42")
time.sleep(0.3)
"""


@pytest.fixture
def grants(database: Engine) -> Grants:
    return Grants(database)


def run(folder: WorkspaceFolder, storage: Storage, grants: Grants) -> tuple[Watched, ImportReport]:
    for path, data in {
        "inputs/in.csv": b"1,2",
        "work/data/x.csv": b"x",
        "work/data/deep/y.csv": b"y",
        "work/a.txt": b"a",
        "work/step.py": SCRIPT,
    }.items():
        storage.put("w", path, data, folder=folder, limits=LIMITS)
    command = check_argv(["python3", "work/step.py"])
    assert command.script is not None
    folder.check_script(command.script)
    watch = CommandWatch(folder, LIMITS, on_exceeded=lambda error: pytest.fail(str(error)))
    watch.begin()
    subprocess.run([sys.executable, *command.argv[1:]], cwd=folder.files, check=True)
    seen = watch.finish(lambda paths: grants.claim("w", paths, by="e1"))
    return seen, storage.import_changes("w", folder, seen.after)


def test_what_a_script_deletes_without_permission_is_back(
    folder: WorkspaceFolder, storage: Storage, grants: Grants
) -> None:
    seen, taken = run(folder, storage, grants)
    assert set(seen.restored.restored) == {
        "inputs/in.csv",
        "work/data",
        "work/data/deep",
        "work/data/x.csv",
        "work/data/deep/y.csv",
    }
    assert seen.first_missing is not None and seen.exceeded is None
    assert {each.path for each in taken.changed} == {"outputs/a.txt", "outputs/result.txt"}
    assert taken.removed == ("work/a.txt",) and taken.refused == ()
    with storage.open("w", "outputs/result.txt") as file:
        assert file.read() == b"42"
    assert storage.import_changes("w", folder).changed == ()


def test_what_was_granted_stays_away_once(folder: WorkspaceFolder, storage: Storage, grants: Grants) -> None:
    grants.give("w", ["work/data/"], ttl=60, by="ana")
    seen, taken = run(folder, storage, grants)
    assert seen.restored.restored == ("inputs/in.csv",)
    assert set(taken.removed) == {"work/a.txt", "work/data/x.csv", "work/data/deep/y.csv"}
    again, _ = run(folder, storage, grants)
    assert "work/data/x.csv" in again.restored.restored
