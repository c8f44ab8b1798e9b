"""Sources of kind `duckdb`: a DuckDB file, opened read-only."""

from __future__ import annotations

from pathlib import Path

from learngraph_kernel.data.duckdb_engine import DuckDBSource, connect, lock
from learngraph_kernel.data.source import SourceConfig, resolve_path


class DuckDBKind:
    """`kind = "duckdb"  path = "data/sales.duckdb"`."""

    def open(self, config: SourceConfig, root: Path, home: Path) -> DuckDBSource:
        path = resolve_path(config, root)
        connection = connect(path, config.name, config.where, home)
        lock(connection)
        return DuckDBSource(config.name, config.kind, config.limits, connection, (path,))
