"""File operations in the physical workspace: nothing outside is read, written or deleted, whatever lies inside."""

from __future__ import annotations

import io
import os
import socket
import stat
from pathlib import Path

import pytest

from learngraph_kernel.sandbox.paths import PathRefused
from learngraph_kernel.sandboxd import beneath
from learngraph_kernel.sandboxd.beneath import FileRefused, NoSuchFile
from learngraph_kernel.sandboxd.quota import QuotaExceeded
from learngraph_kernel.sandboxd.restore import DeletionGuard
from learngraph_kernel.sandboxd.scan import Limits
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder

LIMITS = Limits(bytes=1 << 20, files=50, directories=20)


@pytest.fixture(params=["openat2", "by component"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with the kernel's resolution and with the one for older kernels."""
    if request.param == "openat2" and not beneath.OPENAT2:
        pytest.skip("this kernel has no openat2")
    monkeypatch.setattr(beneath, "OPENAT2", request.param == "openat2")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret").write_text("secret")
    return place


def test_what_is_put_can_be_read(folder: WorkspaceFolder) -> None:
    folder.put("inputs/a/b/表.csv", b"1,2", limits=LIMITS)
    folder.put("work/stream", io.BytesIO(b"x" * 3000), limits=LIMITS)
    with folder.open("inputs/a/b/表.csv") as file:
        assert file.read() == b"1,2"
    entries, more = folder.entries("inputs", recursive=True)
    assert [(entry.path, entry.kind) for entry in entries] == [
        ("inputs/a", "folder"),
        ("inputs/a/b", "folder"),
        ("inputs/a/b/表.csv", "file"),
    ]
    assert not more
    assert [entry.path for entry in folder.entries()[0]] == ["inputs", "outputs", "work"]
    assert [entry.path for entry in folder.entries("inputs")[0]] == ["inputs/a"]


def test_a_replaced_file_is_a_new_inode_so_that_another_name_of_the_old_one_keeps_its_bytes(
    folder: WorkspaceFolder,
) -> None:
    first = folder.put("work/a", b"old", limits=LIMITS)
    os.link(folder.files / "work/a", folder.files / "work/b")
    second = folder.put("work/a", b"new", limits=LIMITS)
    assert first.status.st_ino != second.status.st_ino
    assert (folder.files / "work/b").read_bytes() == b"old"


def test_links_are_never_followed(folder: WorkspaceFolder, outside: Path) -> None:
    (folder.files / "work/file").symlink_to(outside / "secret")
    (folder.files / "work/folder").symlink_to(outside)
    (folder.files / "work/self").symlink_to(".")
    for path in ("work/file", "work/folder/secret", "work/folder", "work/self/file"):
        with pytest.raises(FileRefused):
            folder.open(path)
        with pytest.raises(FileRefused):
            folder.put(path if path != "work/folder" else "work/folder/new", b"x", limits=LIMITS)
    with pytest.raises(FileRefused):
        folder.entries("work/folder")
    with pytest.raises(FileRefused):
        folder.delete("work/folder/secret")
    assert (outside / "secret").read_text() == "secret"
    assert sorted(os.listdir(outside)) == ["secret"]


def test_a_deleted_link_leaves_its_target(folder: WorkspaceFolder, outside: Path) -> None:
    (folder.files / "work/tree").mkdir()
    (folder.files / "work/tree/link").symlink_to(outside)
    (folder.files / "work/link").symlink_to(outside)
    assert folder.delete("work/link") == ["work/link"]
    assert folder.delete("work/tree", recursive=True) == ["work/tree/link"]
    assert (outside / "secret").exists()
    assert os.listdir(folder.staging_fd) == []


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "link", "device"])
def test_only_regular_files_are_opened(folder: WorkspaceFolder, kind: str) -> None:
    path = folder.files / "work/x.py"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = os.getcwd()
            os.chdir(path.parent)
            server.bind(path.name)
            os.chdir(here)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("y")
    else:
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    for call in (folder.open, folder.check_script):
        with pytest.raises(FileRefused):
            call("work/x.py")
    if kind != "device":
        with pytest.raises(FileRefused):
            folder.put("work/x.py", b"", limits=LIMITS)


def test_a_hard_link_from_outside_gives_nothing_away(folder: WorkspaceFolder, outside: Path) -> None:
    os.link(outside / "secret", folder.files / "work/a")
    with pytest.raises(FileRefused) as refusal:
        folder.open("work/a")
    assert refusal.value.rule == "hard_link"
    folder.put("work/a", b"new", limits=LIMITS)
    assert (outside / "secret").read_text() == "secret"


def test_the_shadows_own_link_does_not_count(folder: WorkspaceFolder) -> None:
    folder.put("work/a", b"1", limits=LIMITS)
    DeletionGuard(folder).arm()
    assert os.stat(folder.files / "work/a").st_nlink == 2
    with folder.open("work/a") as file:
        assert file.read() == b"1"
    os.link(folder.files / "work/a", folder.files / "work/b")
    with pytest.raises(FileRefused):
        folder.open("work/a")


def test_a_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    with WorkspaceFolder(tmp_path / "w", owner=(65532, 65532)) as folder:
        placed = folder.put("work/a", b"1", limits=LIMITS)
        assert (placed.status.st_uid, placed.status.st_gid) == (65532, 65532)
        assert os.stat(folder.files / "work").st_uid == 65532
        assert os.stat(folder.files).st_uid == 0
        os.chown(folder.files / "work/a", 1000, 1000)
        with pytest.raises(FileRefused) as refusal:
            folder.open("work/a")
    assert refusal.value.rule == "foreign_owner"


@pytest.mark.parametrize("name", ["A.csv", "ａ.csv", "a.CSV"])
def test_a_name_that_would_be_confused_with_another_is_refused(folder: WorkspaceFolder, name: str) -> None:
    folder.put("work/a.csv", b"", limits=LIMITS)
    with pytest.raises(FileRefused) as refusal:
        folder.put(f"work/{name}", b"", limits=LIMITS)
    assert refusal.value.rule == "collision"
    with pytest.raises(FileRefused):
        folder.put("work/A.CSV/x", b"", limits=LIMITS)


@pytest.mark.parametrize("path", ["inputs/a", "outputs/a", "work", "inputs", "../outside/secret", "/etc/passwd"])
def test_only_what_lies_below_work_is_deleted(folder: WorkspaceFolder, path: str) -> None:
    folder.put("inputs/a", b"", limits=LIMITS)
    folder.put("outputs/a", b"", limits=LIMITS)
    with pytest.raises(PathRefused):
        folder.delete(path, recursive=True)
    assert (folder.files / "inputs/a").exists() and (folder.files / "outputs/a").exists()


def test_a_folder_is_deleted_only_recursively_and_completely(folder: WorkspaceFolder) -> None:
    for path in ("work/d/a", "work/d/e/b", "work/d/e/f/c"):
        folder.put(path, b"", limits=LIMITS)
    with pytest.raises(FileRefused):
        folder.delete("work/d")
    assert sorted(folder.delete("work/d", recursive=True)) == ["work/d/a", "work/d/e/b", "work/d/e/f/c"]
    with pytest.raises(NoSuchFile):
        folder.delete("work/d")
    assert os.listdir(folder.files / "work") == []


def test_folders_nested_beyond_every_path_limit_are_deleted(folder: WorkspaceFolder) -> None:
    current = os.open(folder.files / "work", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=current)
        deeper = os.open("d", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = deeper
    os.close(current)
    assert folder.scan(LIMITS).stopped in ("depth", "directories")
    folder.delete("work/d", recursive=True)
    assert os.listdir(folder.files / "work") == []
    assert os.listdir(folder.staging_fd) == []


@pytest.mark.parametrize(
    ("limit", "before", "path", "data"),
    [
        ("bytes", [("work/a", b"x" * (1 << 20))], "work/b", b"x"),
        ("bytes", [], "work/b", b"x" * ((1 << 20) + 1)),
        ("files", [(f"work/{n}", b"") for n in range(50)], "work/b", b""),
        ("directories", [], "work/" + "/".join("d" * 19) + "/b", b""),
    ],
)
def test_what_exceeds_the_quota_is_not_written(
    folder: WorkspaceFolder, limit: str, before: list[tuple[str, bytes]], path: str, data: bytes
) -> None:
    for name, content in before:
        folder.put(name, content, limits=LIMITS)
    with pytest.raises(QuotaExceeded) as refusal:
        folder.put(path, data, limits=LIMITS)
    assert refusal.value.limit == limit
    assert not (folder.files / path).exists()
    assert os.listdir(folder.staging_fd) == []


def test_a_file_may_be_replaced_when_the_workspace_is_full(folder: WorkspaceFolder) -> None:
    folder.put("work/a", b"x" * (1 << 20), limits=LIMITS)
    folder.put("work/a", b"y" * (1 << 20), limits=LIMITS)
    assert folder.scan(LIMITS).usage.apparent == 1 << 20


def test_a_failing_source_leaves_the_old_file(folder: WorkspaceFolder) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise ConnectionResetError

    folder.put("work/a", b"old", limits=LIMITS)
    with pytest.raises(ConnectionResetError):
        folder.put("work/a", Broken(), limits=LIMITS)
    assert (folder.files / "work/a").read_bytes() == b"old"
    assert os.listdir(folder.staging_fd) == []


def test_names_that_are_not_text_are_listed_and_counted(folder: WorkspaceFolder) -> None:
    os.close(os.open(os.fsencode(folder.files) + b"/work/\xff\xfe", os.O_CREAT | os.O_WRONLY))
    (folder.files / "work/a\x1b[31m").touch()
    assert folder.scan(LIMITS).usage.files == 2
    assert len(folder.entries("work")[0]) == 2


def test_the_root_itself_must_not_be_a_link(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "w").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        WorkspaceFolder(tmp_path / "w")
    assert os.listdir(outside) == ["secret"]
