from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.acquire import file_request
from learngraph_kernel.sandbox.approvals import StoredApprovals
from learngraph_kernel.sandbox.receipts import Receipt, receipt, record
from learngraph_kernel.store.database import Home, Store
from learngraph_kernel.store.garbage import garbage


def a_receipt(sha256: str) -> Receipt:
    return Receipt(
        id="rc_1", kind="git", request="0" * 64, requested_url="https://a.example/", final_url="https://a.example/",
        redirects=(), addresses=("8.8.8.8",), declared_type=None, detected_type="text/plain", wire_bytes=1,
        stored_bytes=1, sha256=sha256, commit="1" * 40, approval="ap_1", redirect_approvals=(), at="2026-12-01",
    )  # fmt: skip


def unreferenced(home: Home) -> list[str]:
    """What the garbage collector would remove a week from now."""
    import datetime as dt

    with Store.open(home, clock=lambda: dt.datetime.now(dt.UTC) + dt.timedelta(days=7)) as later:
        return [candidate.sha256 for candidate in garbage(later).candidates]


def test_a_receipt_keeps_what_it_names_from_the_garbage_collector(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        file, loose = store.artifacts.put(b"a file of a tree"), store.artifacts.put(b"loose")
        manifest = store.artifacts.put_json({"files": [{"sha256": file}]})
        record(store, a_receipt(manifest), actor="session:s1")
    assert unreferenced(home) == [loose]


def test_a_receipt_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(BadInput, match="rc_nope"):
        receipt(store, "rc_nope")


def test_a_database_from_before_acquisitions_is_brought_up_to_date(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    Store.open(home).close()
    with sqlite3.connect(home.database) as connection:
        first = {"runs", "events", "event_artifacts", "audit", "outbox", "alembic_version", "sqlite_sequence"}
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(set(names) - first):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    connection.close()
    with Store.open(home) as store:
        approvals = StoredApprovals(store, "session:s1")
        request = file_request("https://files.example/a")
        assert approvals.grant(request, by="user:ana") == approvals.claim(request)
