"""The port every data source answers to, and the registry that finds a source by its kind.

A source is read-only: it lists its tables and executes *guarded* statements, handing back Arrow record batches as they
come. Built-in kinds are named here; anyone else's is found through the entry-point group `learngraph.source`, where an
entry loads to a `SourceKind`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from learngraph_kernel.data.limits import Limits
from learngraph_kernel.errors import BadInput, LearnGraphError, Unavailable
from learngraph_kernel.evidence.values import Column
from learngraph_kernel.naming import suggestion

if TYPE_CHECKING:
    import pyarrow as pa

    from learngraph_kernel.data.guard import GuardedStatement

ENTRY_POINT_GROUP = "learngraph.source"


class UnknownKind(BadInput):
    """No source of that kind is installed."""

    code = "unknown_source_kind"


class BadOptions(BadInput):
    """A source was declared with options its kind does not have, or without one it needs."""

    code = "bad_source_options"


class SourceMissing(BadInput):
    """The file or folder a source names is not there."""

    code = "source_missing"


class SourceUnusable(Unavailable):
    """The source exists but cannot be opened or read now."""

    code = "source_unusable"


class QueryFailed(LearnGraphError):
    """The engine could not carry out a statement that the guard had let through."""

    code = "query_failed"
    exit_code = BadInput.exit_code


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """One `[sources.NAME]` table of learngraph.toml.

    Attributes:
        options: the kind's own keys (`path`, `dataset`, …).
        where: file and line, for messages.
    """

    name: str
    kind: str
    options: Mapping[str, Any]
    limits: Limits = field(default_factory=Limits)
    where: str = "learngraph.toml"


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table of a source; `rows` is None when counting would cost a scan."""

    name: str
    columns: tuple[Column, ...]
    rows: int | None = None


class Execution(Protocol):
    """A running query: its Arrow schema, then its record batches, once. Leaving the context ends it."""

    @property
    def schema(self) -> pa.Schema: ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The result in order. Raises QueryFailed, QueryTimeout."""

    def __enter__(self) -> Execution: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Source(Protocol):
    """An open, read-only source."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def dialect(self) -> str:
        """The SQL dialect the guard reads statements in."""

    @property
    def limits(self) -> Limits: ...

    def execute(self, statement: GuardedStatement, limits: Limits) -> Execution:
        """Start a guarded statement. Raises QueryFailed, QueryTimeout."""

    def tables(self) -> list[TableInfo]:
        """Tables and views, by name."""

    def test(self) -> None:
        """Ask the engine something. Raises SourceUnusable."""

    def stale(self) -> bool:
        """Whether the files beneath have changed since the source was opened."""

    def close(self) -> None: ...


class SourceKind(Protocol):
    """How sources of one kind are checked and opened."""

    @property
    def keys(self) -> frozenset[str]:
        """Option keys a `[sources.NAME]` table of this kind may have."""

    @property
    def required(self) -> frozenset[str]:
        """Those it must have."""

    def open(self, config: SourceConfig, root: Path, home: Path) -> Source:
        """Open a source; paths are relative to `root`, caches live under `home`. Raises SourceMissing, Unavailable."""


@dataclass(frozen=True, slots=True)
class BuiltInKind:
    """A kind that comes with LearnGraph: its options are known without importing its engine.

    learngraph.toml is checked before a run starts its kernel; importing DuckDB, Arrow and sqlglot for that would make
    every run wait for half a second.

    Attributes:
        opener: `module:class`; the class has the `open` of `SourceKind`.
    """

    opener: str
    keys: frozenset[str]
    required: frozenset[str]

    def open(self, config: SourceConfig, root: Path, home: Path) -> Source:
        """As `SourceKind.open`."""
        opened: Source = self.load()().open(config, root, home)
        return opened

    def load(self) -> Any:
        """The class that opens, imported now."""
        module, _, attribute = self.opener.partition(":")
        return getattr(importlib.import_module(module), attribute)


def _with_path(opener: str) -> BuiltInKind:
    return BuiltInKind(f"learngraph_kernel.data.{opener}", frozenset({"path"}), frozenset({"path"}))


BUILT_IN_KINDS: Mapping[str, BuiltInKind] = {
    "duckdb": _with_path("duckdb_source:DuckDBKind"),
    "sqlite": _with_path("sqlite_source:SQLiteKind"),
    "folder": _with_path("folder_source:FolderKind"),
    "sample": BuiltInKind("learngraph_kernel.data.samples:SampleKind", frozenset({"dataset"}), frozenset({"dataset"})),
}


def source_kind(kind: str, where: str | None = None) -> SourceKind:
    """The `SourceKind` registered under a name. Raises UnknownKind with the closest known kind."""
    if kind in BUILT_IN_KINDS:
        return BUILT_IN_KINDS[kind]
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if kind not in found:
        raise UnknownKind(
            f"no source kind {kind!r} is installed", where=where, remedy=suggestion(kind, {*BUILT_IN_KINDS, *found})
        )
    made: SourceKind = found[kind].load()()
    return made


def resolve_path(config: SourceConfig, root: Path) -> Path:
    """The source's `path`, relative to the workspace. Raises SourceMissing when nothing is there."""
    path = (root / str(config.options["path"])).expanduser()
    if not path.exists():
        raise SourceMissing(
            f"source {config.name!r}: there is no {path}",
            where=config.where,
            remedy="correct `path` or put the data there",
        )
    return path.resolve()


def check_options(name: str, kind: str, options: Mapping[str, str], root: Path) -> None:
    """Whether a source could be declared like this: its kind's keys, and a path that exists.

    Raises UnknownKind, BadOptions, SourceMissing.
    """
    known = source_kind(kind)
    for key in options:
        if key not in known.keys:
            raise BadOptions(
                f"a {kind} source takes no --{key}",
                remedy="it takes " + ", ".join(f"--{k}" for k in sorted(known.keys)),
            )
    for key in sorted(known.required - options.keys()):
        raise BadOptions(f"a {kind} source needs --{key}")
    if "path" in options:
        resolve_path(SourceConfig(name, kind, options, where=str(root)), root)
