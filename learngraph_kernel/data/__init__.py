"""Data: the workspace file, sources, the SQL guard, snapshots. Nothing here knows of runs or kernels."""
