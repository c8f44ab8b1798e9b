"""A small shop as a DuckDB file and a SQLite file, a home folder, an artifact store."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from learngraph_kernel.data.duckdb_engine import DuckDBSource
from learngraph_kernel.data.duckdb_source import DuckDBKind
from learngraph_kernel.data.source import SourceConfig
from learngraph_kernel.data.sqlite_source import SQLiteKind, SQLiteSource
from learngraph_kernel.store.artifacts import ArtifactStore

CORPUS = Path(__file__).parent / "corpus"


def corpus_statements(name: str) -> list[str]:
    """The statements of a corpus file, split at `;` before a line break."""
    return [text for text in re.split(r";\n", (CORPUS / name).read_text(encoding="utf-8")) if text.strip()]


@pytest.fixture(scope="session")
def shop_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute((CORPUS / "shop.sql").read_text(encoding="utf-8"))
    return path


@pytest.fixture(scope="session")
def shop_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            create table orders (id integer, customer_id integer, amount real, status text, region text,
                                 ordered_at text, note text);
            create table customers (id integer, name text);
            create table "Weekly Sales" ("Total €" real);
            create table 订单 (金额 real);
            insert into customers values (1, 'Ada'), (2, 'Bo');
            insert into orders values (1, 1, 12.5, 'paid', 'north', '2024-01-02', null),
                                      (2, 2, 30.0, 'open', 'south', '2024-02-03', 'rush');
            """
        )
    connection.close()
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def artifacts(home: Path) -> ArtifactStore:
    return ArtifactStore(home / "artifacts")


@pytest.fixture(scope="session")
def shop(shop_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBSource]:
    home = tmp_path_factory.mktemp("home")
    source = DuckDBKind().open(SourceConfig("shop", "duckdb", {"path": str(shop_file)}), shop_file.parent, home)
    yield source
    source.close()


@pytest.fixture(scope="session")
def lite(shop_sqlite: Path) -> SQLiteSource:
    folder = shop_sqlite.parent
    return SQLiteKind().open(SourceConfig("lite", "sqlite", {"path": str(shop_sqlite)}), folder, folder)
