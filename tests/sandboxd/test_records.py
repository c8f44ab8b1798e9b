"""sandboxd's database: one transaction at a time, whichever thread asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from learngraph_kernel.sandboxd.records import Records


def test_threads_that_write_at_once_take_turns(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.db")

    def note(thread: int) -> None:
        for turn in range(25):
            with records.transaction():
                records.note_image(f"{thread}-{turn}", 1.0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(note, range(8)))
    assert all(records.used_image(f"{thread}-{turn}") for thread in range(8) for turn in range(25))
    records.close()


def test_a_transaction_that_fails_is_undone_whole_and_the_next_one_works(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.db")

    def fail() -> None:
        with records.transaction():
            records.note_image("half", 1.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert records.used_image("half") is None
    records.note_image("whole", 2.0)
    assert records.used_image("whole") == {"id": "whole", "first_used": 2.0}
    records.close()
