"""Cells as JSON, and rows as text for a terminal."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from learngraph_kernel.data.arrow_form import canonical_batches, canonical_schema, unique_names
from learngraph_kernel.data.cells import UnreadableCell, json_value, python_value
from learngraph_kernel.data.textual import text_table


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (2**63, 2**63),
        (0.1, 0.1),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Decimal("1.25"), 1.25),
        (Decimal("0.10"), 0.1),
        (Decimal("12345678901234567.89"), "12345678901234567.89"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (dt.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02T03:04:05"),
        (dt.datetime(2024, 1, 2, tzinfo=dt.UTC), "2024-01-02T00:00:00+00:00"),
        (dt.time(1, 2), "01:02:00"),
        (dt.timedelta(hours=1), 3600.0),
        (b"\x00\x01", "AAE="),
        ([Decimal("1.5"), {"a": dt.date(2024, 1, 1)}], [1.5, {"a": "2024-01-01"}]),
    ],
)
def test_a_cell_as_json(value: Any, expected: Any) -> None:
    assert json_value(value) == expected
    assert type(json_value(value)) is type(expected)


@pytest.mark.parametrize("days", [2**31 - 1, -1_000_000])
def test_a_date_python_cannot_hold_is_an_error(days: int) -> None:
    with pytest.raises(UnreadableCell, match="outside the years 1 to 9999"):
        python_value(pa.scalar(days, pa.int32()).cast(pa.date32()))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["a", "a", "a_2"], ["a", "a_3", "a_2"]),
        (["a_2", "a", "a"], ["a_2", "a", "a_3"]),
        (["a", "A"], ["a", "A"]),
    ],
)
def test_repeated_column_names_are_numbered(names: list[str], expected: list[str]) -> None:
    assert unique_names(names) == expected


def test_what_lies_under_a_null_does_not_reach_the_file() -> None:
    validity = pa.py_buffer(b"\x05")
    first, second = (
        pa.Array.from_buffers(pa.int32(), 3, [validity, pa.array(values, pa.int32()).buffers()[1]])
        for values in ([1, 99, 3], [1, 7, 3])
    )
    written = []
    for array in (first, second):
        schema = pa.schema([("a", pa.int32())])
        (batch,) = canonical_batches([pa.record_batch([array], schema=schema)], schema, canonical_schema(schema))
        written.append(batch.serialize().to_pybytes())
        assert batch.to_pydict() == {"a": [1, None, 3]}
    assert written[0] == written[1]


def test_batches_of_any_size_become_the_same_batches() -> None:
    schema = pa.schema([("a", pa.int64()), ("s", pa.string())])
    rows = 70_000
    table = pa.table({"a": list(range(rows)), "s": [str(i) for i in range(rows)]}, schema=schema)

    def stored(size: int) -> list[bytes]:
        batches = canonical_batches(table.to_batches(size), schema, canonical_schema(schema))
        return [batch.serialize().to_pybytes() for batch in batches]

    assert stored(1_000) == stored(65_536) == stored(69_999)


def test_a_table_for_people_aligns_numbers_and_wide_characters() -> None:
    assert text_table(["name", "n"], [("陈", 1), ("Ada", 20), (None, None)]) == (
        "name   n\n────  ──\n陈     1\nAda   20\n"
    )


def test_control_characters_in_data_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in text_table(["a"], [("\x1b[31mred\x07",)])
