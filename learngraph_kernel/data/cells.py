"""One Arrow value as a Python value, exactly, and one Python value as JSON.

Whole decimals (DuckDB's HUGEINT and the sums of integers) become int. What Python's own types cannot hold without loss
is spelled as text: nanoseconds that are no whole microsecond, intervals with months.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from learngraph_kernel.errors import LearnGraphError

_EPOCH = dt.datetime(1970, 1, 1)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class UnreadableCell(LearnGraphError):
    """A stored value lies outside what Python can represent."""

    code = "unreadable_cell"


def python_value(scalar: pa.Scalar) -> Any:
    """The exact Python value of an Arrow scalar.

    Returns None, bool, int, float, Decimal, str, date, time, datetime, timedelta, bytes, or for nested values list and
    dict. Raises UnreadableCell for dates Python has no value for (infinity, BC, after 9999).
    """
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_decimal(kind):
        value = scalar.as_py()
        return int(value) if kind.scale == 0 else value
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [python_value(item) for item in scalar.values]
    if pa.types.is_struct(kind):
        return {field.name: python_value(scalar[index]) for index, field in enumerate(kind)}
    try:
        return _temporal(scalar) if pa.types.is_temporal(kind) else scalar.as_py()
    except (OverflowError, ValueError) as error:
        raise UnreadableCell(f"a {kind} outside the years 1 to 9999", remedy="cast it to text in the query") from error


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """`python_value` of a whole column, faster where Arrow's own conversion is exact."""
    kind = column.type
    plain = (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
        or (pa.types.is_decimal(kind) and kind.scale > 0)
    )
    return column.to_pylist() if plain else [python_value(value) for value in column]


def _temporal(scalar: pa.Scalar) -> Any:
    kind = scalar.type
    if kind == pa.month_day_nano_interval():
        return _interval(*scalar.as_py())
    if pa.types.is_timestamp(kind):
        return _timestamp(scalar.value, kind)
    if pa.types.is_time64(kind) and kind.unit == "ns" and scalar.value % 1_000:
        moment = (_EPOCH + dt.timedelta(microseconds=scalar.value // 1_000)).time()
        return f"{moment.isoformat(timespec='microseconds')}{scalar.value % 1_000:03d}"
    return scalar.as_py()


def _timestamp(value: int, kind: pa.DataType) -> dt.datetime | str:
    nanoseconds = value * (1_000_000_000 // _PER_SECOND[kind.unit])
    moment = _EPOCH + dt.timedelta(microseconds=nanoseconds // 1_000)
    if nanoseconds % 1_000:
        zone = "" if kind.tz is None else "+00:00"
        return f"{moment.isoformat(timespec='microseconds')}{nanoseconds % 1_000:03d}{zone}"
    return moment if kind.tz is None else moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(kind.tz))


def _interval(months: int, days: int, nanoseconds: int) -> dt.timedelta | str:
    if months == 0 and nanoseconds % 1_000 == 0:
        return dt.timedelta(days=days, microseconds=nanoseconds // 1_000)
    seconds = Decimal(nanoseconds) / 1_000_000_000
    date = (f"{months}M" if months else "") + (f"{days}D" if days else "")
    return f"P{date}" + (f"T{seconds:f}S" if nanoseconds else "")  # ISO 8601


def json_value(value: Any) -> Any:
    """A cell as a JSON value for people and scripts.

    Dates and times as ISO 8601, durations as seconds, bytes as base64; a Decimal as a number when reading that number
    back gives the same value, else as a string; floats that JSON has no number for as strings.
    """
    if isinstance(value, Decimal):
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    return value
