from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.store import migrations
from learngraph_kernel.store.database import Home, Store
from learngraph_kernel.store.errors import StoreCorrupt, StoreTooNew, StoreUnavailable
from learngraph_kernel.store.ledger import check_chain, draft
from learngraph_kernel.store.schema import HEAD


def tables(path: Path) -> dict[str, str]:
    """The schema as SQLite keeps it, without the version table, spaces evened out."""
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {name: "".join(sql.split()) for name, sql in found if name != "alembic_version"}


def at_revision(path: Path, revision: str | None) -> None:
    """A database that holds nothing but a version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        if revision is not None:
            connection.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
    connection.close()


def test_migrating_from_nothing_gives_the_tables_of_a_new_database(tmp_path: Path) -> None:
    old, new = Home(tmp_path / "old"), Home(tmp_path / "new")
    at_revision(old.database, None)
    for home in (old, new):
        Store.open(home).close()
    assert tables(old.database) == tables(new.database)
    with sqlite3.connect(old.database) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]


def test_the_code_expects_the_newest_packaged_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


def test_the_journal_is_a_wal_that_is_flushed_at_every_commit(store: Store) -> None:
    with store._engine.connect() as connection:
        values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    assert values == ["wal", 2]  # 2 is FULL


def test_opening_a_current_database_imports_no_alembic(home: Home) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom learngraph_kernel.store.database import Home, Store\n"
        "Store.open(Home(Path(sys.argv[1]))).close()\nprint('alembic' in sys.modules)"
    )
    for _ in ("new", "current"):
        done = subprocess.run(
            [sys.executable, "-c", script, str(home.root)], capture_output=True, text=True, check=True
        )
        assert done.stdout == "False\n"


def test_a_newer_database_is_left_alone_and_named(home: Home) -> None:
    at_revision(home.database, "9999")
    before = home.database.read_bytes()
    with pytest.raises(StoreTooNew, match="9999") as caught:
        Store.open(home)
    assert "upgrade LearnGraph" in str(caught.value)
    assert tables(home.database) == {}
    assert len(home.database.read_bytes()) == len(before)


def test_a_file_that_is_no_database_is_named(home: Home) -> None:
    home.ensure()
    home.database.write_bytes(b"these are my notes, not a database. " * 100)
    with pytest.raises(StoreCorrupt, match=str(home.database)) as caught:
        Store.open(home)
    assert "backup" in str(caught.value)
    assert home.database.read_bytes().startswith(b"these are my notes")


def test_someone_elses_database_is_not_taken_over(home: Home) -> None:
    home.ensure()
    with sqlite3.connect(home.database) as connection:
        connection.execute("CREATE TABLE songs (title)")
    connection.close()
    with pytest.raises(StoreCorrupt, match="other tables"):
        Store.open(home)
    assert list(tables(home.database)) == ["songs"]


def damage(path: Path, first: int, last: int) -> None:
    with path.open("r+b") as file:
        file.seek(first)
        file.write(b"\xff" * (last - first))


def test_corrupt_pages_are_reported_and_earlier_runs_stay_readable(home: Home, new_run: Callable[..., str]) -> None:
    with Store.open(home) as store:
        earlier = new_run(store)
        name = store.artifacts.put(b"earlier")
        store.ledger.append(earlier, "a", {"result": name}, actor="u")
        run = new_run(store)
        store.ledger.append_many([draft(run, "a", {"n": n, "pad": "x" * 900}, actor="u") for n in range(200)])
    size = home.database.stat().st_size
    damage(home.database, size // 2, size - 4096)
    with Store.open(home) as store:
        seen: list[int] = []
        with pytest.raises(StoreCorrupt, match=str(home.database)) as caught:
            seen.extend(event.seq for event in store.ledger.events(run))
        assert "backup" in str(caught.value)
        assert len(seen) > 10
        assert seen == list(range(1, len(seen) + 1))
        assert {finding.code for finding in store.check()} == {"store_corrupt"}
        assert store.run(earlier).events == 1
        assert check_chain(store.ledger.events(earlier)) == store.ledger.head(earlier)
        assert store.artifacts.read(name) == b"earlier"


def test_a_database_cut_short_is_reported(home: Home, new_run: Callable[..., str]) -> None:
    with Store.open(home) as store:
        run = new_run(store)
        store.ledger.append_many([draft(run, "a", {"n": n, "pad": "x" * 900}, actor="u") for n in range(200)])
    with home.database.open("r+b") as file:
        file.truncate(home.database.stat().st_size // 2)

    def read_all() -> None:
        with Store.open(home) as store:
            list(store.ledger.events(run))

    with pytest.raises(StoreCorrupt):
        read_all()


def test_a_folder_where_the_database_should_be_is_unavailable(home: Home) -> None:
    home.ensure()
    home.database.mkdir()
    with pytest.raises(StoreUnavailable, match=str(home.database)):
        Store.open(home)


def test_processes_that_make_the_same_database_at_once_all_succeed(home: Home) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom learngraph_kernel.store.database import *\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "with Store.open(Home(Path(sys.argv[1]))) as store, store.unit_of_work('u') as work:\n"
        "    work.insert_run(RunRecord(new_run_id(), 'u', utcnow()))"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(home.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.communicate("go\n", timeout=60)
    assert [child.returncode for child in children] == [0, 0, 0, 0]
    with Store.open(home) as store:
        assert len(store.runs()) == 4


def test_a_database_another_process_holds_is_busy_not_broken(
    home: Home, monkeypatch: pytest.MonkeyPatch, new_run: Callable[..., str]
) -> None:
    monkeypatch.setattr("learngraph_kernel.store.sqlite.BUSY_SECONDS", 0.05)
    with Store.open(home) as store:
        run = new_run(store)
        holder = sqlite3.connect(home.database, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LearnGraphError) as caught:
            store.ledger.append(run, "a", {}, actor="u")
        assert caught.value.code == "store_busy"
        assert store.run(run).events == 0
        holder.execute("ROLLBACK")
        holder.close()
        assert store.ledger.append(run, "a", {}, actor="u").seq == 1
