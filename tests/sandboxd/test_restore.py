"""Deletions without permission are undone; renames, own files and granted deletions are left alone."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from learngraph_kernel.sandboxd.restore import DeletionGuard
from learngraph_kernel.sandboxd.scan import Limits
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder

LIMITS = Limits()


@pytest.fixture
def guard(folder: WorkspaceFolder) -> DeletionGuard:
    for path in ("inputs/in.csv", "work/a", "work/d/b", "work/d/e/c"):
        folder.put(path, path.encode(), limits=LIMITS)
    (folder.files / "work/empty").mkdir(mode=0o700)
    guard = DeletionGuard(folder)
    guard.arm()
    return guard


def content(folder: WorkspaceFolder) -> dict[str, str]:
    found = folder.scan(LIMITS)
    return {path: (folder.files / path).read_text() for path in found.files}


def test_rmtree_is_undone(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    before, inode = content(folder), os.stat(folder.files / "work/d/e/c").st_ino
    os.chmod(folder.files / "work/d/e", 0o750)
    guard.arm()
    for top in ("inputs", "work"):
        for each in os.listdir(folder.files / top):
            path = folder.files / top / each
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    report = guard.restore()
    assert content(folder) == before
    assert os.stat(folder.files / "work/d/e/c").st_ino == inode
    assert os.stat(folder.files / "work/d/e").st_mode & 0o777 == 0o750
    assert (folder.files / "work/empty").is_dir()
    assert set(report.restored) == {*before, "work/d", "work/d/e", "work/empty"}
    assert not report.lost and not report.allowed and not report.displaced


def test_nothing_deleted_is_nothing_restored(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    (folder.files / "work/new").write_text("n")
    (folder.files / "work/a").write_text("changed in place")
    report = guard.restore()
    assert (report.restored, report.replaced, report.lost) == ((), (), ())
    assert content(folder)["work/a"] == "changed in place"


def test_a_rename_is_no_deletion(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    os.rename(folder.files / "work/a", folder.files / "outputs/a2")
    os.rename(folder.files / "work/d", folder.files / "work/moved")
    assert guard.missing(folder.scan(LIMITS)) == []
    assert guard.restore().restored == ()
    assert "work/moved/e/c" in content(folder) and "work/a" not in content(folder)


def test_a_second_name_keeps_a_file(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    os.link(folder.files / "work/a", folder.files / "work/b")
    os.unlink(folder.files / "work/a")
    assert guard.restore().restored == ()


def test_files_of_the_command_itself_may_go(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    (folder.files / "work/tmp").write_text("t")
    (folder.files / "work/tmp").unlink()
    assert guard.restore().restored == ()


def test_saving_by_rename_is_reported_as_replaced_and_kept(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    (folder.files / "work/tmp").write_text("new")
    os.replace(folder.files / "work/tmp", folder.files / "work/a")
    report = guard.restore()
    assert report.replaced == ("work/a",) and report.restored == ()
    assert content(folder)["work/a"] == "new"


def test_one_file_renamed_over_all_others_in_turn_destroys_only_names_that_come_back(
    folder: WorkspaceFolder, guard: DeletionGuard
) -> None:
    junk = folder.files / "work/junk"
    junk.write_text("junk")
    for path in ("work/a", "inputs/in.csv", "work/d/b", "work/d/e/c"):
        os.replace(junk, folder.files / path)
        junk = folder.files / path
    report = guard.restore()
    assert set(report.restored) == {"work/a", "inputs/in.csv", "work/d/b"}
    assert report.replaced == ("work/d/e/c",)


@pytest.mark.parametrize("obstacle", ["file", "link", "folder link"])
def test_what_stands_in_the_way_is_moved_aside_and_never_followed(
    folder: WorkspaceFolder, guard: DeletionGuard, obstacle: str
) -> None:
    shutil.rmtree(folder.files / "work/d")
    place = folder.files / "work/d"
    outside = folder.root / "outside"
    outside.mkdir()
    if obstacle == "file":
        place.write_text("mine")
    else:
        place.symlink_to(outside if obstacle == "folder link" else "/etc/passwd")
    report = guard.restore()
    assert (folder.files / "work/d/e/c").read_text() == "work/d/e/c"
    assert [path for path, _ in report.displaced] == ["work/d"]
    aside = folder.files / report.displaced[0][1]
    assert aside.is_symlink() or aside.read_text() == "mine"
    assert os.listdir(outside) == []


def test_a_folder_with_the_name_of_a_deleted_file_is_moved_aside(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    (folder.files / "work/a").unlink()
    (folder.files / "work/a").mkdir()
    (folder.files / "work/a/x").touch()
    report = guard.restore()
    assert (folder.files / "work/a").read_text() == "work/a"
    assert (folder.files / report.displaced[0][1] / "x").exists()


def test_what_was_granted_stays_deleted(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    shutil.rmtree(folder.files / "work/d")
    (folder.files / "work/a").unlink()
    asked: list[frozenset[str]] = []

    def grant(paths: frozenset[str]) -> frozenset[str]:
        asked.append(paths)
        return frozenset(path for path in paths if path.startswith("work/d"))

    report = guard.restore(grant)
    assert asked == [frozenset({"work/d", "work/d/b", "work/d/e", "work/d/e/c", "work/a"})]
    assert report.restored == ("work/a",)
    assert report.allowed == ("work/d", "work/d/b", "work/d/e", "work/d/e/c")
    assert not (folder.files / "work/d").exists()


def test_the_shadow_follows_the_workspace(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    assert len(os.listdir(folder.shadow_fd)) == 4
    folder.delete("work/a")
    folder.put("work/new", b"", limits=LIMITS)
    assert guard.arm() == 4
    assert len(os.listdir(folder.shadow_fd)) == 4
    (folder.files / "work/new").unlink()
    assert guard.restore().restored == ("work/new",)


def test_a_deletion_by_the_api_during_the_command_is_not_undone(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    folder.delete("work/d", recursive=True)
    guard.forget(["work/d"])
    assert guard.restore().restored == ()


def test_links_and_fifos_are_not_protected_and_do_no_harm(folder: WorkspaceFolder, guard: DeletionGuard) -> None:
    (folder.files / "work/link").symlink_to("/etc/passwd")
    os.mkfifo(folder.files / "work/fifo")
    assert guard.arm() == 4
    assert guard.restore().restored == ()


def test_where_links_are_not_allowed_files_are_copied(folder: WorkspaceFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.put("work/a", b"1", limits=LIMITS)
    real = os.link

    def link(source: str, target: str, **options: object) -> None:
        if options["src_dir_fd"] == folder.files_fd:
            raise PermissionError(1, "not permitted")
        real(source, target, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", link)
    guard = DeletionGuard(folder)
    guard.arm()
    (folder.files / "work/a").unlink()
    assert guard.restore().restored == ("work/a",)
    assert (folder.files / "work/a").read_bytes() == b"1"


def test_ten_thousand_files_come_back_in_a_second(folder: WorkspaceFolder) -> None:
    for number in range(100):
        (folder.files / f"work/d{number}").mkdir()
        for each in range(100):
            (folder.files / f"work/d{number}/f{each}").touch()
    guard = DeletionGuard(folder)
    started = time.process_time()
    guard.arm()
    armed = time.process_time() - started
    shutil.rmtree(folder.files / "work/d7")
    for number in range(50, 100):
        shutil.rmtree(folder.files / f"work/d{number}")
    started = time.process_time()
    report = guard.restore()
    restored = time.process_time() - started
    assert len(report.restored) == 51 * 101
    assert armed < 1 and restored < 1  # processor time: the machine may be busy
