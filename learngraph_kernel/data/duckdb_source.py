"""Sources of kind `duckdb`: a DuckDB file, read and never written."""

from __future__ import annotations

from pathlib import Path

from learngraph_kernel.data.duckdb_engine import DuckDBSource, open_database
from learngraph_kernel.data.source import SourceConfig, resolve_path


class DuckDBKind:
    """`kind = "duckdb"  path = "data/sales.duckdb"`."""

    def open(self, config: SourceConfig, root: Path, home: Path) -> DuckDBSource:
        return open_database(resolve_path(config, root), config, home)
