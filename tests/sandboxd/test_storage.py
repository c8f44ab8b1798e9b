"""The logical layer: files by content and version, with or without a folder."""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import os
import shutil

import pytest
from sqlalchemy import Engine, event

from learngraph_kernel.sandboxd.beneath import FileRefused, NoSuchFile
from learngraph_kernel.sandboxd.quota import QuotaExceeded
from learngraph_kernel.sandboxd.scan import Limits
from learngraph_kernel.sandboxd.schema import workspace_key
from learngraph_kernel.sandboxd.storage import KEPT_VERSIONS, Storage
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder
from learngraph_kernel.store.artifacts import ArtifactStore
from learngraph_kernel.store.clock import utcnow

KEY = workspace_key("uid:1000", "s1")
LIMITS = Limits(bytes=1 << 20, files=50, directories=20)


def read(storage: Storage, path: str, folder: WorkspaceFolder | None = None) -> bytes:
    with storage.open(KEY, path, folder=folder) as file:
        return file.read()


def test_a_write_goes_to_both_layers(storage: Storage, folder: WorkspaceFolder) -> None:
    made = storage.put(KEY, "inputs/a.csv", io.BytesIO(b"1,2"), folder=folder, limits=LIMITS)
    assert (made.version, made.size, made.origin) == (1, 3, "put")
    assert (folder.files / "inputs/a.csv").read_bytes() == b"1,2"
    assert read(storage, "inputs/a.csv") == b"1,2"
    assert storage.import_changes(KEY, folder).changed == ()


def test_thousands_of_files_are_taken_over_in_few_statements(
    storage: Storage, folder: WorkspaceFolder, database: Engine
) -> None:
    """Others wait for the end of this transaction: one statement a file kept them waiting until they gave up."""
    statements: list[str] = []
    event.listen(database, "before_cursor_execute", lambda *given: statements.append(given[2]))
    for turn in (b"1", b"2"):
        for number in range(3_000):
            (folder.files / f"work/{number}").write_bytes(turn)
        statements.clear()
        assert len(storage.import_changes(KEY, folder).changed) == 3_000
        assert len(statements) < 40
    for number in range(3_000):
        (folder.files / f"work/{number}").unlink()
    statements.clear()
    assert len(storage.import_changes(KEY, folder).removed) == 3_000
    assert len(statements) < 40


def test_everything_is_there_without_a_folder(storage: Storage) -> None:
    storage.put(KEY, "inputs/a", b"1", folder=None, limits=LIMITS)
    storage.put(KEY, "work/b", b"2", folder=None, limits=LIMITS)
    assert [each.path for each in storage.files(KEY)] == ["inputs/a", "work/b"]
    assert [each.path for each in storage.files(KEY, below="work")] == ["work/b"]
    assert read(storage, "inputs/a") == b"1"
    with pytest.raises(NoSuchFile):
        storage.open(KEY, "work/x")


def test_a_workspace_belongs_to_one_owner_and_one_session(storage: Storage) -> None:
    storage.put(KEY, "inputs/a", b"1", folder=None, limits=LIMITS)
    for other in (workspace_key("uid:1001", "s1"), workspace_key("uid:1000", "s2"), workspace_key("uid:1", "000:s1")):
        assert storage.files(other) == []


def test_what_a_command_leaves_is_taken_over(storage: Storage, folder: WorkspaceFolder) -> None:
    storage.put(KEY, "work/same", b"s", folder=folder, limits=LIMITS)
    storage.put(KEY, "work/changed", b"1", folder=folder, limits=LIMITS)
    storage.put(KEY, "work/gone", b"g", folder=folder, limits=LIMITS)
    (folder.files / "work/changed").write_bytes(b"2")
    (folder.files / "work/gone").unlink()
    (folder.files / "outputs/new.txt").write_bytes(b"n")
    (folder.files / "work/link").symlink_to("/etc/passwd")
    report = storage.import_changes(KEY, folder)
    assert {(each.path, each.version) for each in report.changed} == {("work/changed", 2), ("outputs/new.txt", 1)}
    assert report.removed == ("work/gone",)
    assert [path for path, _ in report.refused] == ["work/link"]
    assert read(storage, "work/changed") == b"2"
    with storage.open_version(KEY, "work/changed", 1) as file:
        assert file.read() == b"1"
    with storage.open_version(KEY, "work/gone", 1) as file:
        assert file.read() == b"g"
    again = storage.import_changes(KEY, folder)
    assert (again.changed, again.removed) == ((), ())


def test_a_change_that_sets_back_the_clock_is_seen(storage: Storage, folder: WorkspaceFolder) -> None:
    path = folder.files / "work/a"
    storage.put(KEY, "work/a", b"1", folder=folder, limits=LIMITS)
    before = path.stat()
    path.write_bytes(b"2")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [each.path for each in storage.import_changes(KEY, folder).changed] == ["work/a"]


def test_only_changed_files_are_hashed(
    storage: Storage, folder: WorkspaceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        storage.put(KEY, f"work/{name}", name.encode(), folder=folder, limits=LIMITS)
    (folder.files / "work/b").write_bytes(b"changed")
    opened: list[str] = []
    real = folder.open
    monkeypatch.setattr(folder, "open", lambda path: (opened.append(path), real(path))[1])
    storage.import_changes(KEY, folder)
    assert opened == ["work/b"]


def test_files_that_cannot_be_named_are_refused_by_name(storage: Storage, folder: WorkspaceFolder) -> None:
    os.close(os.open(os.fsencode(folder.files) + b"/work/\xff", os.O_CREAT | os.O_WRONLY))
    (folder.files / "work/a\u202eb").touch()
    os.link(folder.files / "work/a\u202eb", folder.files / "work/second")
    report = storage.import_changes(KEY, folder)
    assert report.changed == () and len(report.refused) == 3
    assert all(path.isprintable() for path, _ in report.refused)


def test_a_lost_folder_is_rebuilt(storage: Storage, folder: WorkspaceFolder) -> None:
    storage.put(KEY, "inputs/a", b"1", folder=None, limits=LIMITS)
    storage.put(KEY, "work/d/e/b", b"2", folder=None, limits=LIMITS)
    assert storage.import_changes(KEY, folder).removed == ()
    assert storage.rebuild(KEY, folder, limits=LIMITS) == 2
    assert (folder.files / "work/d/e/b").read_bytes() == b"2"
    assert storage.rebuild(KEY, folder, limits=LIMITS) == 0
    shutil.rmtree(folder.files / "work/d")
    (folder.files / "inputs/a").write_bytes(b"spoilt")
    assert storage.rebuild(KEY, folder, limits=LIMITS) == 2
    assert (folder.files / "inputs/a").read_bytes() == b"1"
    with pytest.raises(QuotaExceeded):
        storage.rebuild(KEY, folder, limits=Limits(files=1))


def test_a_published_version_stays(storage: Storage, folder: WorkspaceFolder) -> None:
    (folder.files / "outputs/r.txt").write_bytes(b"first")
    published = storage.publish(KEY, "outputs/r.txt", folder=folder)
    assert published.published and published.version == 1
    for number in range(KEPT_VERSIONS + 5):
        storage.put(KEY, "outputs/r.txt", str(number).encode(), folder=folder, limits=LIMITS)
    kept = storage.versions(KEY, "outputs/r.txt")
    assert [each.version for each in kept] == [1, *range(7, 17)]
    with storage.open_version(KEY, "outputs/r.txt", 1) as file:
        assert file.read() == b"first"
    with pytest.raises(NoSuchFile):
        storage.open_version(KEY, "outputs/r.txt", 2)


@pytest.mark.parametrize("path", ["work/a", "inputs/a", "outputs/missing"])
def test_only_outputs_that_are_there_are_published(storage: Storage, folder: WorkspaceFolder, path: str) -> None:
    storage.put(KEY, "work/a", b"", folder=folder, limits=LIMITS)
    with pytest.raises((FileRefused, NoSuchFile)):
        storage.publish(KEY, path, folder=folder)
    with pytest.raises((FileRefused, NoSuchFile)):
        storage.publish(KEY, path, folder=None)


def test_a_deletion_goes_to_both_layers(storage: Storage, folder: WorkspaceFolder) -> None:
    for path in ("work/d/a", "work/d/b", "work/c"):
        storage.put(KEY, path, b"1", folder=folder, limits=LIMITS)
    with pytest.raises(FileRefused):
        storage.delete(KEY, "work/d", folder=folder)
    assert storage.delete(KEY, "work/d", folder=folder, recursive=True) == ["work/d/a", "work/d/b"]
    assert storage.delete(KEY, "work/c", folder=None) == ["work/c"]
    assert storage.files(KEY) == []
    with pytest.raises(NoSuchFile):
        storage.delete(KEY, "work/d", folder=folder, recursive=True)


def test_a_write_beyond_the_quota_changes_no_layer(storage: Storage, folder: WorkspaceFolder) -> None:
    storage.put(KEY, "work/a", b"old", folder=folder, limits=LIMITS)
    too_much = b"x" * (LIMITS.bytes + 1)
    for where in (folder, None):
        for data in (too_much, io.BytesIO(too_much)):
            with pytest.raises(QuotaExceeded):
                storage.put(KEY, "work/a", data, folder=where, limits=LIMITS)
    storage.put(KEY, "work/b", b"x" * (LIMITS.bytes - 100), folder=None, limits=LIMITS)
    with pytest.raises(QuotaExceeded):
        storage.put(KEY, "work/c", b"x" * 200, folder=None, limits=LIMITS)
    assert read(storage, "work/a") == b"old"
    assert (folder.files / "work/a").read_bytes() == b"old"


def test_contents_are_counted_and_swept_when_nobody_names_them(database: Engine, blobs: ArtifactStore) -> None:
    now = [utcnow()]
    storage = Storage(database, blobs, clock=lambda: now[0])
    other = workspace_key("uid:2", "s")
    shared = storage.put(KEY, "work/a", b"shared", folder=None, limits=LIMITS).sha256
    storage.put(other, "work/b", b"shared", folder=None, limits=LIMITS)
    alone = storage.put(KEY, "work/c", b"alone", folder=None, limits=LIMITS).sha256
    assert (storage.references(shared), storage.references(alone)) == (2, 1)
    storage.drop(KEY)
    assert storage.sweep() == 0  # still in the grace period
    now[0] += dt.timedelta(hours=1)
    assert storage.sweep() == 1
    assert shared in blobs and alone not in blobs
    assert storage.files(KEY) == [] and len(storage.files(other)) == 1


def test_a_file_that_is_being_written_is_not_taken_over_half(
    storage: Storage, folder: WorkspaceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder.files / "work/a"
    path.write_bytes(b"1" * 100)
    real = os.fstat
    calls = []

    def fstat(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        if status.st_ino == path.stat().st_ino:
            calls.append(1)
            path.write_bytes(b"2" * (100 + len(calls)))
        return status

    monkeypatch.setattr(os, "fstat", fstat)
    report = storage.import_changes(KEY, folder)
    assert report.changed == () and report.refused[0][0] == "work/a"


def test_a_version_is_plain_data(storage: Storage) -> None:
    made = storage.put(KEY, "inputs/a", b"1", folder=None, limits=LIMITS)
    assert dataclasses.asdict(made)["sha256"] == made.sha256 and storage.find(KEY, "inputs/a") == made
