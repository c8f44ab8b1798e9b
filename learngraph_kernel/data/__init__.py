"""Data: the workspace file, sources, the SQL guard, snapshots. Nothing here knows of runs or kernels.

Start with `workspace` (learngraph.toml → sources), then `source` (the port), `guard` (what may be asked) and
`snapshots` (what is kept of the answer). `duckdb_engine` and `sqlite_source` are the barriers in the engines
themselves. Heavy modules (duckdb, pyarrow, sqlglot) are imported by those that need them, so importing this package
costs nothing.
"""
