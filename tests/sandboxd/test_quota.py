"""Counting what a workspace holds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from learngraph_kernel.sandboxd.quota import QuotaExceeded, check_room, exceeded, unlinked_bytes
from learngraph_kernel.sandboxd.scan import Limits, Usage, scan
from learngraph_kernel.sandboxd.watch import CommandWatch
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder

LIMITS = Limits(bytes=1 << 20, files=20, directories=10, depth=8)


def broken(folder: WorkspaceFolder, limits: Limits = LIMITS) -> str | None:
    """The limit that is exceeded, as a walk finds it that stops there, and as one does that sees everything."""
    found = exceeded(scan(folder.files_fd, limits), limits)
    complete = exceeded(scan(folder.files_fd), limits)
    assert (found is None) == (complete is None)
    return None if found is None else found.limit


def test_an_honest_workspace_is_within_its_limits(folder: WorkspaceFolder) -> None:
    folder.put("work/a", b"x" * 1000, limits=LIMITS)
    usage = scan(folder.files_fd, LIMITS).usage
    assert (usage.files, usage.directories, usage.apparent) == (1, 3, 1000)
    assert usage.bytes == max(usage.apparent, usage.allocated)
    assert broken(folder) is None


def test_a_sparse_file_counts_what_it_claims(folder: WorkspaceFolder) -> None:
    with (folder.files / "work/a").open("wb") as file:
        file.truncate(1 << 40)
    assert broken(folder) == "bytes"


def test_a_preallocated_file_counts_what_it_occupies(folder: WorkspaceFolder) -> None:
    with (folder.files / "work/a").open("wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, 2 << 20)
        except OSError as error:
            pytest.skip(f"this file system does not preallocate: {error}")
        file.truncate(0)
        os.posix_fallocate(file.fileno(), 0, 2 << 20)
    assert broken(folder) == "bytes"


def test_a_file_with_several_names_counts_its_bytes_once(folder: WorkspaceFolder) -> None:
    folder.put("work/a", b"x" * (600 << 10), limits=LIMITS)
    os.link(folder.files / "work/a", folder.files / "work/b")
    usage = scan(folder.files_fd, LIMITS).usage
    assert (usage.files, usage.apparent) == (2, 600 << 10)


@pytest.mark.parametrize("kind", ["file", "link", "fifo"])
def test_every_name_counts(folder: WorkspaceFolder, kind: str) -> None:
    for number in range(21):
        path = folder.files / f"work/{number}"
        {"file": path.touch, "link": lambda p=path: p.symlink_to("x"), "fifo": lambda p=path: os.mkfifo(p)}[kind]()
    assert broken(folder) == "files"


def test_folders_and_their_depth_count(folder: WorkspaceFolder) -> None:
    (folder.files / "work/a/b/c/d/e/f").mkdir(parents=True)
    assert broken(folder) is None
    (folder.files / "work/a/b/c/d/e/f/g/h").mkdir(parents=True)
    assert broken(folder) in ("depth", "directories")
    assert broken(folder, Limits(directories=100, depth=8)) == "depth"
    assert broken(folder, Limits(directories=10, depth=100)) == "directories"


def test_a_link_to_a_full_place_counts_as_one_name(folder: WorkspaceFolder) -> None:
    (folder.files / "work/link").symlink_to("/usr")
    assert scan(folder.files_fd, LIMITS).usage.files == 1


@pytest.mark.parametrize(
    ("usage", "add", "limit"),
    [
        (Usage(0, 0, 1 << 20, 0), {"size": 1}, "bytes"),
        (Usage(0, 0, 0, 1 << 20), {"size": 1}, "bytes"),
        (Usage(20, 0, 0, 0), {"size": 0}, "files"),
        (Usage(0, 10, 0, 0), {"size": 0, "directories": 1}, "directories"),
    ],
)
def test_there_must_be_room_before_a_write(usage: Usage, add: dict[str, int], limit: str) -> None:
    with pytest.raises(QuotaExceeded) as refusal:
        check_room(usage, LIMITS, **add)
    assert refusal.value.limit == limit
    check_room(Usage(19, 9, (1 << 20) - 1, 0), LIMITS, size=1, directories=1)


def test_deleted_files_that_are_held_open_are_found(folder: WorkspaceFolder) -> None:
    device = os.fstat(folder.files_fd).st_dev
    with (folder.files / "work/a").open("wb") as file:
        file.write(b"x" * (1 << 20))
        file.flush()
        os.fsync(file.fileno())
        assert unlinked_bytes([os.getpid()], device) == 0
        (folder.files / "work/a").unlink()
        assert unlinked_bytes([os.getpid(), 2**22 + 1], device) >= 1 << 20
    assert unlinked_bytes([os.getpid()], device) == 0


WRITE_FOR_EVER = """
import os, sys
number = 0
while True:
    with open(f"{sys.argv[1]}/{number}", "wb") as file:
        file.write(bytes(200_000))
    number += 1
"""


def test_a_command_that_fills_the_workspace_is_stopped_and_what_it_deleted_is_back(folder: WorkspaceFolder) -> None:
    limits = Limits(bytes=20 << 20)
    folder.put("inputs/in", b"precious", limits=limits)
    command: list[subprocess.Popen[bytes]] = []
    watch = CommandWatch(folder, limits, on_exceeded=lambda _: command[0].kill())
    watch.begin()
    (folder.files / "inputs/in").unlink()
    command.append(subprocess.Popen([sys.executable, "-c", WRITE_FOR_EVER, str(folder.files / "work")]))
    assert command[0].wait(timeout=20) == -9
    seen = watch.finish()
    assert seen.exceeded is not None and seen.exceeded.limit == "bytes"
    assert seen.restored.restored == ("inputs/in",)
    assert seen.walks >= 1


def test_a_deletion_is_noticed_while_the_command_runs(folder: WorkspaceFolder) -> None:
    folder.put("work/a", b"", limits=LIMITS)
    noticed = threading.Event()
    watch = CommandWatch(
        folder, LIMITS, on_exceeded=lambda _: None, on_missing=lambda paths: noticed.set() if paths else None
    )
    watch.begin()
    (folder.files / "work/a").unlink()
    assert noticed.wait(5)
    seen = watch.finish(lambda paths: paths)
    assert seen.first_missing is not None
    assert seen.restored.allowed == ("work/a",)
    assert "work/a" not in seen.after.files


def test_a_full_workspace_starts_no_command(folder: WorkspaceFolder) -> None:
    (folder.files / "work/a").write_bytes(b"x" * (2 << 20))
    with pytest.raises(QuotaExceeded):
        CommandWatch(folder, LIMITS, on_exceeded=lambda _: None).begin()


def test_a_watch_that_fails_stops_the_command(folder: WorkspaceFolder) -> None:
    def broken_pids() -> list[int]:
        raise RuntimeError("no engine")

    stopped = threading.Event()
    watch = CommandWatch(folder, LIMITS, on_exceeded=lambda _: stopped.set(), pids=broken_pids, interval=0.01)
    watch.begin()
    assert stopped.wait(5)
    with pytest.raises(RuntimeError):
        watch.finish()


def test_a_scan_of_ten_thousand_files_is_cheap(folder: WorkspaceFolder) -> None:
    for number in range(100):
        (folder.files / f"work/d{number}").mkdir()
        for each in range(100):
            (folder.files / f"work/d{number}/f{each}").touch()
    started = time.process_time()
    assert scan(folder.files_fd).usage.files == 10_000
    assert time.process_time() - started < 0.5
