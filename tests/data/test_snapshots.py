"""Snapshots: what is stored, that the same rows give the same bytes, limits, and reading back exactly."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from learngraph_kernel.canonical import decode_value, encode_value
from learngraph_kernel.data.arrow_form import BATCH_ROWS
from learngraph_kernel.data.duckdb_engine import DuckDBSource
from learngraph_kernel.data.duckdb_source import DuckDBKind
from learngraph_kernel.data.guard import SqlRefused
from learngraph_kernel.data.limits import Limits, QueryTimeout
from learngraph_kernel.data.snapshots import ArrowSnapshot, SnapshotUnreadable, open_snapshot, take_snapshot
from learngraph_kernel.data.source import SourceConfig
from learngraph_kernel.evidence.values import Column, SnapshotInfo, SnapshotReader
from learngraph_kernel.store.artifacts import ArtifactStore


def snap(source: DuckDBSource, sql: str, store: ArtifactStore, limits: Limits | None = None) -> ArrowSnapshot:
    return take_snapshot(source, sql, artifacts=store, ref="Q1", limits=limits)


def test_the_record_says_what_was_asked_and_stored(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    sql = "select id, amount from orders order by id limit 3"
    info = snap(shop, sql, artifacts).info
    assert info == SnapshotInfo(
        ref="Q1",
        source="shop",
        sql=sql,
        artifact=info.artifact,
        columns=(Column("id", "int32"), Column("amount", "decimal128(12, 2)")),
        row_count=3,
    )
    assert SnapshotInfo.from_json(info.as_json()) == info
    assert artifacts.verify(info.artifact)


def test_a_snapshot_is_a_snapshot_reader(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    reader: SnapshotReader = snap(shop, "select id, name from customers order by id", artifacts)
    assert reader.cell(0, "name") == "Ada"
    assert list(reader.column("id")) == [1, 2, 3, 4]
    assert list(reader.rows(2, 99)) == [(3, "陈"), (4, "Élodie")]
    assert list(reader.rows(-5, 1)) == [(1, "Ada")]
    assert list(reader.rows(3, 2)) == []


def test_a_cell_that_is_not_there_raises(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    reader = snap(shop, "select id from customers", artifacts)
    with pytest.raises(KeyError):
        reader.cell(0, "nope")
    for row in (-1, 4):
        with pytest.raises(IndexError):
            reader.cell(row, "id")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", True),
        ("7::utinyint", 7),
        ("18446744073709551615::ubigint", 2**64 - 1),
        ("170141183460469231731687303715884105727::hugeint", 2**127 - 1),
        ("sum(3)", 3),
        ("1.5::float", 1.5),
        ("0.1::double", 0.1),
        ("1.10::decimal(10, 2)", Decimal("1.10")),
        ("12::decimal(10, 0)", 12),
        ("'né'", "né"),
        ("null::varchar", None),
        ("'calm'::mood", "calm"),
        ("'\\x00ab'::blob", b"\x00ab"),
        ("date '2024-02-29'", dt.date(2024, 2, 29)),
        ("time '10:11:12.5'", dt.time(10, 11, 12, 500_000)),
        ("timestamp '2024-01-02 03:04:05.678901'", dt.datetime(2024, 1, 2, 3, 4, 5, 678_901)),
        ("timestamp_s '1969-12-31 23:59:59'", dt.datetime(1969, 12, 31, 23, 59, 59)),
        ("'2024-01-02 03:04:05.678901234'::timestamp_ns", "2024-01-02T03:04:05.678901234"),
        ("'2024-01-02 03:04:05.678901'::timestamp_ns", dt.datetime(2024, 1, 2, 3, 4, 5, 678_901)),
        ("timestamptz '2024-07-01 12:00:00+02'", dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)),
        ("interval '2 days 3 seconds'", dt.timedelta(days=2, seconds=3)),
        ("interval '14 months 1 day 2 seconds'", "P14M1DT2S"),
        ("'{\"a\": 1}'::json", '{"a": 1}'),
        ("uuid '00000000-0000-0000-0000-00000000000a'", "00000000-0000-0000-0000-00000000000a"),
        ("[1, null, 3]", [1, None, 3]),
        ("{'a': 1.5::decimal(4, 1), 'b': [date '2024-01-01']}", {"a": Decimal("1.5"), "b": [dt.date(2024, 1, 1)]}),
        ("map {'k': [1]}", [{"key": "k", "value": [1]}]),
        ("[1, 2]::int[2]", [1, 2]),
        ("['calm', null]::mood[]", ["calm", None]),
    ],
)
def test_a_value_comes_back_exactly_and_travels(
    expression: str, expected: Any, shop: DuckDBSource, artifacts: ArtifactStore
) -> None:
    value = snap(shop, f"select {expression} as v", artifacts).cell(0, "v")
    assert value == expected
    assert type(value) is type(expected)
    assert decode_value(encode_value(value)) == expected


def test_columns_of_one_name_are_numbered(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    reader = snap(shop, "select 1 as id, 2 as id, 3 as id_2, 4 as id", artifacts)
    assert [column.name for column in reader.info.columns] == ["id", "id_3", "id_2", "id_4"]
    assert reader.cell(0, "id_3") == 2


def test_an_empty_result_is_stored_with_its_columns(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    reader = snap(shop, "select id, name from customers where false", artifacts)
    assert reader.info.row_count == 0
    assert reader.column("name") == []
    assert list(reader.rows(0, 10)) == []


def test_the_file_is_mapped_not_copied(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    info = snap(shop, "select i from range(200000) r(i)", artifacts).info
    before = pa.total_allocated_bytes()
    reader = open_snapshot(info, artifacts)
    assert reader.cell(150_000, "i") == 150_000
    assert pa.total_allocated_bytes() - before < 100_000


# -- the same rows, the same bytes


@pytest.fixture
def plenty(tmp_path: Path, home: Path) -> Iterator[DuckDBSource]:
    path = tmp_path / "plenty.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "create table t as select i, case when i % 3 = 0 then null else i * 7 end as a, i % 2 = 0 as flag, "
            "case when i % 5 > 0 then 'text ' || (i % 100) end as s, "
            "case when i % 4 = 0 then null else [i, null] end as l, "
            "case when i % 7 > 0 then {'x': i, 'y': case when i % 2 = 0 then 'y' end} end as st, "
            "(i / 3)::decimal(18, 4) as d from range(200000) r(i)"
        )
    source = DuckDBKind().open(SourceConfig("plenty", "duckdb", {"path": str(path)}), tmp_path, home)
    yield source
    source.close()


@pytest.mark.parametrize(
    "sql",
    [
        "select * from t order by i",
        "select * from (select * from t where i >= 100000 union all select * from t where i < 100000) order by i",
        "select i, a, flag, s, l, st, d from t where i % 1 = 0 order by d, i",
        "select t.* from t join (select i from t) u using (i) order by t.i",
    ],
)
def test_the_same_rows_by_another_plan_give_the_same_artifact(
    sql: str, plenty: DuckDBSource, artifacts: ArtifactStore
) -> None:
    assert snap(plenty, sql, artifacts).info.artifact == snap(plenty, "select * from t", artifacts).info.artifact


def test_batches_hold_a_fixed_number_of_rows(plenty: DuckDBSource, artifacts: ArtifactStore) -> None:
    info = snap(plenty, "select * from t where i % 3 > 0", artifacts).info
    with pa.memory_map(str(artifacts.path(info.artifact))) as file:
        reader = pa.ipc.open_file(file)
        sizes = [reader.get_batch(index).num_rows for index in range(reader.num_record_batches)]
    assert sizes[:-1] == [BATCH_ROWS] * (len(sizes) - 1)
    assert sum(sizes) == info.row_count


def test_another_value_gives_another_artifact(plenty: DuckDBSource, artifacts: ArtifactStore) -> None:
    changed = "select * replace (case when i = 77777 then -1 else a end as a) from t"
    assert snap(plenty, changed, artifacts).info.artifact != snap(plenty, "select * from t", artifacts).info.artifact


# -- limits


def test_rows_beyond_the_limit_are_cut_and_it_says_so(plenty: DuckDBSource, artifacts: ArtifactStore) -> None:
    reader = snap(plenty, "select i from t", artifacts, Limits(rows=70_000))
    assert (reader.info.row_count, reader.info.truncated) == (70_000, "rows")
    assert reader.cell(69_999, "i") == 69_999


def test_exactly_the_limit_is_not_cut(plenty: DuckDBSource, artifacts: ArtifactStore) -> None:
    assert snap(plenty, "select i from t", artifacts, Limits(rows=200_000)).info.truncated is None


def test_bytes_beyond_the_limit_are_cut_at_a_row(plenty: DuckDBSource, artifacts: ArtifactStore) -> None:
    info = snap(plenty, "select i from t", artifacts, Limits(bytes=800_000)).info
    assert (info.row_count, info.truncated) == (100_000, "bytes")
    assert artifacts.size(info.artifact) < 810_000


def test_a_cut_snapshot_is_deterministic(plenty: DuckDBSource, artifacts: ArtifactStore) -> None:
    limits = Limits(bytes=3_000_000)
    assert snap(plenty, "from t", artifacts, limits).info == snap(plenty, "from t", artifacts, limits).info


def test_a_limit_smaller_than_one_row_stores_none(plenty: DuckDBSource, artifacts: ArtifactStore) -> None:
    info = snap(plenty, "select * from t", artifacts, Limits(bytes=1)).info
    assert (info.row_count, info.truncated) == (0, "bytes")


def test_a_timeout_stores_nothing(plenty: DuckDBSource, artifacts: ArtifactStore) -> None:
    with pytest.raises(QueryTimeout) as error:
        snap(plenty, "select count(*) from t a, t b where (a.i * b.i) % 7 = 3", artifacts, Limits(seconds=0.2))
    assert error.value.code == "query_timeout"
    assert list(artifacts.iterate()) == []


def test_a_refused_statement_stores_nothing(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    with pytest.raises(SqlRefused):
        snap(shop, "select * from read_csv('/etc/passwd')", artifacts)
    assert list(artifacts.iterate()) == []


def test_a_damaged_file_is_named(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    info = snap(shop, "select 1 as a", artifacts).info
    path = artifacts.path(info.artifact)
    path.chmod(0o600)
    path.write_bytes(b"damaged")
    with pytest.raises(SnapshotUnreadable, match="snapshot Q1 cannot be read"):
        open_snapshot(info, artifacts)


def test_a_record_that_does_not_fit_its_file_is_found(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    info = snap(shop, "select 1 as a", artifacts).info
    other = SnapshotInfo(**{**{name: getattr(info, name) for name in SnapshotInfo.__slots__}, "row_count": 2})
    with pytest.raises(SnapshotUnreadable, match="other rows or columns"):
        open_snapshot(other, artifacts)


def test_the_record_names_the_columns_that_come_from_no_table(shop: DuckDBSource, artifacts: ArtifactStore) -> None:
    info = snap(shop, "select id, 45 as share from orders", artifacts).info
    assert info.constants == ("share",)
    assert SnapshotInfo.from_json(info.as_json()) == info
