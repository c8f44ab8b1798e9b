"""The syntax a guarded statement may be made of: sqlglot node classes, and table names that are not tables.

Function nodes are checked by name (`guard_functions`); every other node must be listed in `STRUCTURE`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ROOTS: Mapping[str, str] = {
    "Select": "select",
    "Union": "select",
    "Except": "select",
    "Intersect": "select",
    "Subquery": "select",
    "Values": "select",
    "Table": "select",
    "Pivot": "pivot",
    "Describe": "describe",
    "Summarize": "summarize",
}
"""What a statement may be, and the kind it is reported as."""

_STRUCTURE = """
    Add Alias Aliases All And Any AtTimeZone Between BitString Boolean BitwiseAnd BitwiseLeftShift BitwiseNot
    BitwiseOr BitwiseRightShift BitwiseXor Bracket ByteString CTE Collate Column ColumnDef Comprehension Cube DPipe
    DataType DataTypeParam Describe Distinct Div Dot EQ Escape Except Fetch Filter From GT GTE Glob Group
    GroupingSets Having HavingMax HexString ILike JSONKeyValue Identifier IgnoreNulls In IntDiv Intersect Interval
    IntervalSpan Is JSONPath JSONPathFilter JSONPathKey JSONPathRecursive JSONPathRoot JSONPathSlice
    JSONPathSubscript JSONPathSelector JSONPathUnion JSONPathWildcard Join Kwarg LT LTE Lambda Lateral Like Limit
    LimitOptions Literal Match Mod Mul NEQ Neg Not Null NullSafeEQ NullSafeNEQ Offset Or Order Ordered Paren Pivot
    PivotAlias PivotAny Pow PropertyEQ Qualify RangeOverlaps RawString RegexpILike RegexpLike RespectNulls Rollup
    Select SimilarTo Slice Star Sub Subquery Summarize Table TableAlias TableSample Tuple Union UnpivotColumns
    Values Var Where Window WindowSpec With WithinGroup Xor
"""
STRUCTURE = frozenset(_STRUCTURE.split())

NAMES_WITHOUT_CALL: Mapping[str, str] = {
    "CurrentCatalog": "current_catalog",
    "CurrentDatabase": "current_database",
    "CurrentRole": "current_role",
    "CurrentSchema": "current_schema",
    "CurrentSchemas": "current_schemas",
    "CurrentUser": "current_user",
    "SessionUser": "session_user",
    "ReadCSV": "read_csv",
    "ReadParquet": "read_parquet",
}
"""Function nodes that some spelling reaches without a parenthesis, or that must never pass under any spelling."""

TABLE_FUNCTION_NODES = frozenset({"GenerateSeries", "Unnest", "Explode", "Repeat"})

SYSTEM_SCHEMAS = frozenset({"information_schema", "pg_catalog", "system", "temp", "sqlite_temp"})

READABLE_SYSTEM_TABLES: Mapping[str, frozenset[tuple[str, ...]]] = {
    "duckdb": frozenset({("information_schema", "tables"), ("information_schema", "columns")}),
    "sqlite": frozenset({("sqlite_master",), ("sqlite_schema",), ("main", "sqlite_master"), ("main", "sqlite_schema")}),
}

CATALOGUES: Mapping[str, str] = {
    "duckdb": "read information_schema.tables or information_schema.columns",
    "sqlite": "read sqlite_master",
}
"""Where to look instead."""

HIDDEN_TABLE_PREFIXES = ("duckdb_", "pg_", "pragma_", "sqlite_", "dbstat")

STATEMENT_WORDS = frozenset({"show", "table", "describe", "desc", "summarize", "pragma", "call", "explain", "execute"})
"""Unquoted in FROM, these begin a statement for an engine."""

# Both engines' replacement scans turn such names into files, quoted or not.
FILE_SUFFIX = re.compile(
    r"\.(csv|tsv|txt|json|jsonl|ndjson|geojson|parquet|arrow|feather|avro|orc|xlsx|xls|db|sqlite|sqlite3|duckdb)"
    r"(\.(gz|gzip|zst|zstd|bz2))?$",
    re.IGNORECASE,
)
