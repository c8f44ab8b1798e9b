"""A full disk: one clear error, nothing half written, everything that was acknowledged readable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.store.database import Home, RunRecord, Store, utcnow
from learngraph_kernel.store.errors import StorageFull


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB; only root can make one."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.getuid() != 0:
        pytest.skip("mounting a small file system needs root; the file size limit is tested instead")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no small file system here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def record_until_full(home: Path, room: str) -> dict[str, Any]:
    script = Path(__file__).with_name("full_disk_child.py")
    done = subprocess.run([sys.executable, str(script), str(home), room], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def check(result: dict[str, Any]) -> None:
    for what in ("artifact", "event"):
        assert result[what]["code"] == "storage_full"
        assert result[what]["place"] is not None
        assert "free disk space" in result[what]["remedy"]
    assert result["artifacts"] is True
    assert result["temporaries"] == 0
    assert result["acknowledged"] > 10
    assert result["readable"] == result["acknowledged"]
    assert result["earlier"] == "earlier"


def test_a_limit_on_file_sizes_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    check(record_until_full(tmp_path / "home", "limit"))


def test_a_full_disk_is_reported_and_loses_nothing(small_disk: Path) -> None:
    check(record_until_full(small_disk / "home", "disk"))


def test_a_store_that_was_closed_is_readable_on_a_full_disk_and_writable_once_there_is_room(
    small_disk: Path, new_run: Callable[..., str]
) -> None:
    """A closed SQLite database has no WAL, and making one needs room even to read."""
    home = Home(small_disk / "home")
    with Store.open(home) as store:
        run = new_run(store)
        store.ledger.append(run, "a", {}, actor="u")
    fill = small_disk / "fill"
    with pytest.raises(OSError, match="No space"), fill.open("wb", buffering=0) as file:  # noqa: PT012
        while True:
            file.write(bytes(512))
    with Store.open(home) as store:
        assert [event.type for event in store.ledger.events(run)] == ["a"]
        assert [record.run_id for record in store.runs()] == [run]
        with pytest.raises(StorageFull, match="free disk space"):
            store.ledger.append(run, "b", {}, actor="u")
        fill.unlink()
        assert store.ledger.append(run, "b", {}, actor="u").seq == 2
        assert [event.type for event in store.ledger.events(run)] == ["a", "b"]


def test_a_new_home_on_a_full_disk_says_so(small_disk: Path) -> None:
    fill = small_disk / "fill"
    with pytest.raises(OSError, match="No space"), fill.open("wb", buffering=0) as file:  # noqa: PT012
        while True:
            file.write(bytes(512))
    with pytest.raises(StorageFull, match=str(small_disk)):
        Store.open(Home(small_disk / "home")).close()


def test_without_room_a_run_is_not_half_recorded(tmp_path: Path) -> None:
    """The unit of work's row and event are refused together."""
    home = Home(tmp_path / "home")
    script = (
        "import resource, signal, sys\nfrom pathlib import Path\nfrom learngraph_kernel.store.database import *\n"
        "from learngraph_kernel.errors import LearnGraphError\n"
        "store = Store.open(Home(Path(sys.argv[1])))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    with store.unit_of_work('u') as work:\n"
        "        work.insert_run(RunRecord('r_2', 'u', utcnow()))\n"
        "        work.append('r_2', 'a', {'pad': 'x' * 200_000})\n"
        "except LearnGraphError as error: print(error.code)\n"
    )
    with Store.open(home) as store, store.unit_of_work("u") as work:
        work.insert_run(RunRecord("r_1", "u", utcnow()))
    done = subprocess.run([sys.executable, "-c", script, str(home.root)], capture_output=True, text=True, check=True)
    assert done.stdout == "storage_full\n"
    with Store.open(home) as store:
        assert [run.run_id for run in store.runs()] == ["r_1"]
