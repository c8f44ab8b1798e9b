"""Another process swaps files and folders for links while we work on them: nothing outside is read, changed or kept."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandboxd import beneath
from learngraph_kernel.sandboxd.restore import DeletionGuard
from learngraph_kernel.sandboxd.scan import Limits, scan
from learngraph_kernel.sandboxd.storage import Storage
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder

LIMITS = Limits()
SECONDS = 0.5
SECRET = b"secret from outside"

# Exchanges the names of an honest file and a link, as fast as the kernel can (renameat2, RENAME_EXCHANGE).
SWAP = """
import ctypes, os, sys
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None)
print("ready", flush=True)
while True:
    for one, other in ((b"d", b"evil-folder"), (b"f", b"evil-file"), (b"d", b"evil-relative")):
        for _ in range(3):
            libc.renameat2(-100, one, -100, other, 2)
"""


@pytest.fixture(params=["openat2", "by component"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "openat2" and not beneath.OPENAT2:
        pytest.skip("this kernel has no openat2")
    monkeypatch.setattr(beneath, "OPENAT2", request.param == "openat2")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "f").write_bytes(SECRET)
    return place


@pytest.fixture
def swapped(folder: WorkspaceFolder, outside: Path) -> Iterator[WorkspaceFolder]:
    """A workspace whose `work/d` and `work/f` are links to `outside` half of the time."""
    work = folder.files / "work"
    folder.put("work/d/f", b"honest", limits=LIMITS)
    folder.put("work/f", b"honest", limits=LIMITS)
    (work / "evil-folder").symlink_to(outside)
    (work / "evil-file").symlink_to(outside / "f")
    (work / "evil-relative").symlink_to("../../../outside")
    swapper = subprocess.Popen([sys.executable, "-c", SWAP, str(work)], stdout=subprocess.PIPE)
    assert swapper.stdout is not None and swapper.stdout.readline() == b"ready\n"
    yield folder
    assert swapper.poll() is None, "the swapper died"
    swapper.kill()
    swapper.wait()
    swapper.stdout.close()


def repeat(call: Callable[[int], object]) -> Counter[str]:
    """Calls again and again; counts what came of it. At least a hundred times, however busy the machine is."""
    outcomes: Counter[str] = Counter()
    started = time.monotonic()
    number = 0
    while number < 100 or time.monotonic() - started < SECONDS:
        number += 1
        try:
            call(number)
            outcomes["done"] += 1
        except BadInput:
            outcomes["refused"] += 1
    return outcomes


@pytest.mark.usefixtures("way")
def test_reading_never_leads_out(swapped: WorkspaceFolder) -> None:
    def read(number: int) -> None:
        with swapped.open("work/d/f" if number % 2 else "work/f") as file:
            assert file.read() == b"honest"

    outcomes = repeat(read)
    assert outcomes["done"] and outcomes["refused"], outcomes


@pytest.mark.usefixtures("way")
def test_writing_never_leads_out(swapped: WorkspaceFolder, outside: Path) -> None:
    outcomes = repeat(lambda number: swapped.place(f"work/d/n{number % 20}", b"new", room=10))
    assert outcomes["done"] and outcomes["refused"], outcomes
    assert os.listdir(outside) == ["f"] and (outside / "f").read_bytes() == SECRET
    assert os.listdir(swapped.staging_fd) == []


@pytest.mark.usefixtures("way")
def test_deleting_never_leads_out(swapped: WorkspaceFolder, outside: Path) -> None:
    def delete(number: int) -> None:
        if number % 2:
            swapped.place("work/d/f", b"honest", room=10)
        else:
            swapped.delete("work/d/f")

    outcomes = repeat(delete)
    assert outcomes["done"] and outcomes["refused"], outcomes
    assert (outside / "f").read_bytes() == SECRET


@pytest.mark.usefixtures("way")
def test_listing_and_counting_never_lead_out(swapped: WorkspaceFolder, outside: Path) -> None:
    for number in range(50):
        (outside / f"listed-{number}").touch()

    def look(number: int) -> None:
        if number % 2:
            entries, _ = swapped.entries("work/d", recursive=True)
            assert all("listed" not in entry.path for entry in entries)
        else:
            found = scan(swapped.files_fd, LIMITS)
            assert all("listed" not in path for path in found.files)

    assert repeat(look)["done"]


def test_the_shadow_never_holds_a_file_from_outside(swapped: WorkspaceFolder, outside: Path) -> None:
    guard = DeletionGuard(swapped)
    foreign = os.stat(outside / "f").st_ino

    def arm(_: int) -> None:
        for name in os.listdir(swapped.shadow_fd):
            os.unlink(name, dir_fd=swapped.shadow_fd)
        guard.arm()
        kept = [
            os.stat(name, dir_fd=swapped.shadow_fd, follow_symlinks=False) for name in os.listdir(swapped.shadow_fd)
        ]
        assert all(status.st_ino != foreign for status in kept)

    assert repeat(arm)["done"]
    assert os.stat(outside / "f").st_nlink == 1


def test_restoring_never_leads_out(swapped: WorkspaceFolder, outside: Path) -> None:
    guard = DeletionGuard(swapped)
    swapped.put("work/safe", b"honest", limits=LIMITS)

    def restore(_: int) -> None:
        guard.arm()
        (swapped.files / "work/safe").unlink()
        assert "work/safe" in guard.restore().restored

    assert repeat(restore)["done"]
    assert os.listdir(outside) == ["f"] and (outside / "f").read_bytes() == SECRET


def test_what_is_taken_over_never_comes_from_outside(swapped: WorkspaceFolder, storage: Storage) -> None:
    def take(_: int) -> None:
        storage.import_changes("w", swapped)
        for each in storage.files("w"):
            with storage.open("w", each.path) as file:
                assert file.read() == b"honest"

    assert repeat(take)["done"]
