"""Sources of kind `folder`: CSV, Parquet and JSON-lines files become tables named after the file.

CSV and JSON are read once into memory, since inferring their types twice could give two answers; Parquet stays where it
is, behind a view, and DuckDB may open exactly those files. Then the engine is locked like any other.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path

import duckdb

from learngraph_kernel.data.duckdb_engine import DuckDBSource, connect, first_line, lock, quoted
from learngraph_kernel.data.source import SourceConfig, SourceMissing, SourceUnusable, resolve_path

READERS: Mapping[str, str] = {
    ".csv": "read_csv(?, strict_mode = true)",
    ".csv.gz": "read_csv(?, strict_mode = true)",
    ".tsv": "read_csv(?, strict_mode = true, delim = '\\t')",
    ".jsonl": "read_json(?, format = 'newline_delimited')",
    ".ndjson": "read_json(?, format = 'newline_delimited')",
    ".json": "read_json(?)",
    ".parquet": "read_parquet(?)",
}


class FolderKind:
    """`kind = "folder"  path = "data"`."""

    def open(self, config: SourceConfig, root: Path, home: Path) -> DuckDBSource:
        folder = resolve_path(config, root)
        if not folder.is_dir():
            raise SourceMissing(f"source {config.name!r}: {folder} is not a folder", where=config.where)
        files = table_files(folder, config)
        connection = connect(home)
        for table, path in files.items():
            _load(connection, table, path, config)
        parquet = [str(path) for path in files.values() if _suffix(path) == ".parquet"]
        views = [spelling for path in parquet for spelling in (path, glob.escape(path))]
        if views:
            connection.execute("SET allowed_paths = ?", [views])
        lock(connection)
        return DuckDBSource(config.name, config.kind, config.limits, connection, files=(folder, *files.values()))


def table_files(folder: Path, config: SourceConfig) -> dict[str, Path]:
    """Table name → file, for the files of a folder that are tables. Raises SourceMissing when there is none or two
    files would make one table."""
    tables: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = _suffix(path)
        if suffix is None or not path.is_file() or path.name.startswith("."):
            continue
        table = path.name[: -len(suffix)]
        if table in tables:
            raise SourceMissing(
                f"source {config.name!r}: {tables[table].name} and {path.name} would both be the table {table!r}",
                where=config.where,
                remedy="rename one of them",
            )
        tables[table] = path
    if not tables:
        raise SourceMissing(
            f"source {config.name!r}: no table files in {folder}",
            where=config.where,
            remedy="known: " + " ".join(READERS),
        )
    return tables


def _suffix(path: Path) -> str | None:
    name = path.name.lower()
    return next((suffix for suffix in READERS if name.endswith(suffix) and len(name) > len(suffix)), None)


def _load(connection: duckdb.DuckDBPyConnection, table: str, path: Path, config: SourceConfig) -> None:
    suffix = _suffix(path) or path.suffix
    pattern = glob.escape(str(path))  # DuckDB's readers take patterns
    name = quoted(table)
    try:
        if suffix == ".parquet":  # a view takes no parameter
            literal = "'" + pattern.replace("'", "''") + "'"
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({literal})")
        else:
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {READERS[suffix]}", [pattern])
    except duckdb.Error as error:
        raise SourceUnusable(
            f"source {config.name!r}: {path.name} cannot be read as a table: {first_line(error)}",
            where=str(path),
            remedy="correct the file, or move it out of the folder",
        ) from error
