"""The workspace: the folder with `learngraph.toml`, and the sources that file declares.

Keys are strict: a wrong one is an error naming the file, the line and the closest known key, before anything opens.
Edits go through tomlkit, so comments and layout stay; reading takes the standard library, since every run reads.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learngraph_kernel.data.acquired import Acquired, parse_acquired
from learngraph_kernel.data.limits import Limits, RunLimits
from learngraph_kernel.data.source import Source, SourceConfig, source_kind
from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import did_you_mean, suggestion

if TYPE_CHECKING:
    import tomlkit

FILE_NAME = "learngraph.toml"
SECTIONS = frozenset({"sources", "models", "runs", "acquired", "tools", "mcp", "budget", "agent"})
"""Top-level tables; each part checks the keys of its own."""

_COMMON_KEYS = frozenset({"kind", "limits"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class BadWorkspace(BadInput):
    """learngraph.toml cannot be used as it is."""

    code = "bad_workspace"


class UnknownSource(BadInput):
    """The workspace declares no source of that name."""

    code = "unknown_source"


class SourceExists(BadInput):
    """The workspace already declares a source of that name."""

    code = "source_exists"


@dataclass(frozen=True)
class Workspace:
    """A workspace and its open sources.

    Attributes:
        root: the folder; relative paths start here.
        sources: by name, in file order.
        file: the learngraph.toml, or None when there is none.
        models: the `models` table as written; `models.config.parse_models` reads it.
        runs: what one run may ask.
        acquired: what was taken in from outside, pinned by hash, by name.
        tools: the `tools` table as written; `tools.settings.parse_tools` reads it.
        mcp: the `mcp` table as written; `tools.mcp.config.parse_mcp` reads it.
        budget: the `budget` table as written; `accounts.budgets.parse_budget` reads it.
        agent: the `agent` table as written; `agent.settings` reads it.
    """

    root: Path
    sources: Mapping[str, SourceConfig]
    file: Path | None = None
    models: Mapping[str, Any] = field(default_factory=dict)
    runs: RunLimits = field(default_factory=RunLimits)
    acquired: Mapping[str, Acquired] = field(default_factory=dict)
    tools: Mapping[str, Any] = field(default_factory=dict)
    mcp: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)
    agent: Mapping[str, Any] = field(default_factory=dict)
    _open: dict[tuple[str, Path], Source] = field(default_factory=dict, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def source(self, name: str) -> SourceConfig:
        """A declared source. Raises UnknownSource with the closest name."""
        if name not in self.sources:
            nowhere = f"; neither this folder nor one above it has a {FILE_NAME}" if self.file is None else ""
            raise UnknownSource(
                f"there is no source {name!r}{nowhere}",
                where=str(self.file or self.root),
                remedy=suggestion(name, self.sources, kind="sources")
                if self.sources
                else "go to the workspace (or name it: --workspace), or declare the source here: "
                f"learngraph source add {name} --kind folder --path FOLDER",
            )
        return self.sources[name]

    def open_source(self, name: str, home: Path) -> Source:
        """An open source, kept open by this workspace and reopened when its files have changed.

        Takes the declared name and the home folder (for caches). Raises UnknownSource, SourceMissing, Unavailable.
        """
        config = self.source(name)
        with self._lock:
            known = self._open.get((name, home))
            if known is not None:
                if not known.stale():
                    return known
                known.close()
                del self._open[name, home]
            opened = source_kind(config.kind, config.where).open(config, self.root, home)
            self._open[name, home] = opened
            return opened

    def close(self) -> None:
        """Close every open source."""
        with self._lock:
            for source in self._open.values():
                source.close()
            self._open.clear()


def find_workspace(start: Path | None = None) -> Workspace:
    """The workspace a folder (or a file in it) belongs to: the nearest learngraph.toml upwards.

    Without one, the folder itself is a workspace without sources. Raises BadWorkspace.
    """
    here = (start or Path.cwd()).absolute()
    if not here.exists():
        raise BadWorkspace("there is no such folder", where=str(here))
    folder = here if here.is_dir() else here.parent
    for candidate in (folder, *folder.parents):
        if (candidate / FILE_NAME).is_file():
            return load_workspace(candidate)
    return Workspace(folder, {})


def load_workspace(root: Path) -> Workspace:
    """The workspace of exactly this folder; without a learngraph.toml it has no sources. Raises BadWorkspace."""
    if not root.is_dir():
        raise BadWorkspace("there is no such folder", where=str(root))
    file = root / FILE_NAME
    if not file.is_file():
        return Workspace(root.absolute(), {})
    text = _text(file)
    try:
        body = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _editable(file, text)  # says where
        raise BadWorkspace(f"not valid TOML: {error}", where=str(file)) from error
    lines = _Lines(file, text)
    for key in body:
        if key not in SECTIONS:
            raise BadWorkspace(f"unknown key {key!r}", where=lines.of(key), remedy=suggestion(key, SECTIONS))
    for key in SECTIONS:
        if not isinstance(body.get(key, {}), dict):
            header = "" if key in ("runs", "tools", "agent") else ".NAME"
            raise BadWorkspace(f"`{key}` must be a table", where=lines.of(key), remedy=f"write [{key}{header}]")
    tables, models, runs = (body.get(key, {}) for key in ("sources", "models", "runs"))
    sources = {name: _source(name, table, lines) for name, table in tables.items()}
    run_limits = RunLimits.from_config(runs, _place_of_limit(runs, RunLimits, lines, "runs"))
    acquired = parse_acquired(body.get("acquired", {}), lines.of)
    as_written = {name: body.get(name, {}) for name in ("tools", "mcp", "budget", "agent")}
    return Workspace(root.absolute(), sources, file, models, run_limits, acquired, **as_written)


def _place_of_limit(table: Mapping[str, Any], limits: type[Limits | RunLimits], lines: _Lines, *path: str) -> str:
    """Where the first unknown key of a table of limits stands, else the table."""
    wrong = [key for key in table if key not in limits.__slots__]
    return lines.of(*path, *wrong[:1])


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        raise BadWorkspace(f"cannot be read: {error}", where=str(file)) from error


def _editable(file: Path, text: str) -> tomlkit.TOMLDocument:
    """The text as a document that keeps comments and layout. Raises BadWorkspace with line and column."""
    import tomlkit
    from tomlkit.exceptions import ParseError, TOMLKitError

    try:
        return tomlkit.parse(text)
    except ParseError as error:
        reason = re.sub(r" at line \d+ col \d+$", "", str(error))
        raise BadWorkspace(f"not valid TOML: {reason}", where=f"{file}:{error.line}:{error.col}") from error
    except TOMLKitError as error:
        raise BadWorkspace(f"not valid TOML: {error}", where=str(file)) from error


@dataclass(frozen=True)
class _Lines:
    """Finds the line of a key for messages; TOML parsers keep no places."""

    file: Path
    text: str

    def of(self, *path: str) -> str:
        """`file:line` of the deepest part of a key's path that stands in the text."""
        for length in range(len(path), 0, -1):
            line = self._find(path[:length])
            if line is not None:
                return f"{self.file}:{line}"
        return str(self.file)

    def _find(self, path: tuple[str, ...]) -> int | None:
        section: tuple[str, ...] = ()
        for number, line in enumerate(self.text.splitlines(), start=1):
            header = re.match(r"\s*\[+\s*(.+?)\s*\]+\s*(?:#.*)?$", line)
            if header:
                section = _dotted(header[1])
                if section[: len(path)] == path:
                    return number
                continue
            key = re.match(r"\s*([^=#]+?)\s*=", line)
            if key and (*section, *_dotted(key[1]))[: len(path)] == path:
                return number
            inline = re.search(rf"[{{,]\s*\"?{re.escape(path[-1])}\"?\s*=", line)
            if inline and key and (*section, *_dotted(key[1])) == path[:-1]:
                return number
        return None


def _dotted(text: str) -> tuple[str, ...]:
    parts = re.findall(r'"([^"]*)"|\'([^\']*)\'|([^\s."\']+)', text)
    return tuple(next(piece for piece in (*found, "") if piece or piece is found[-1]) for found in parts)


def _source(name: str, table: Any, lines: _Lines) -> SourceConfig:
    where = lines.of("sources", name)
    if not isinstance(table, dict):
        raise BadWorkspace(f"source {name!r} must be a table", where=where, remedy=f"write [sources.{name}]")
    if "kind" not in table:
        for key in table:
            remedy = did_you_mean(key, {"kind"})
            if remedy:
                raise BadWorkspace(f"unknown key {key!r}", where=lines.of("sources", name, key), remedy=remedy)
        raise BadWorkspace(f"source {name!r} has no `kind`", where=where, remedy='e.g. kind = "duckdb"')
    kind = source_kind(str(table["kind"]), lines.of("sources", name, "kind"))
    for key, value in table.items():
        place = lines.of("sources", name, key)
        if key not in kind.keys | _COMMON_KEYS:
            raise BadWorkspace(f"unknown key {key!r}", where=place, remedy=suggestion(key, kind.keys | _COMMON_KEYS))
        if key != "limits" and not isinstance(value, str):
            raise BadWorkspace(f"`{key}` of source {name!r} must be a text", where=place)
    for key in sorted(kind.required - table.keys()):
        raise BadWorkspace(f"source {name!r} has no `{key}`", where=where, remedy=f'add {key} = "…"')
    limits = table.get("limits", {})
    if not isinstance(limits, dict):
        raise BadWorkspace("`limits` must be a table", where=lines.of("sources", name, "limits"))
    place = _place_of_limit(limits, Limits, lines, "sources", name, "limits")
    options = {key: value for key, value in table.items() if key not in _COMMON_KEYS}
    return SourceConfig(name, str(table["kind"]), options, Limits.from_config(limits, place), where)


def add_source(root: Path, name: str, kind: str, options: Mapping[str, str]) -> SourceConfig:
    """Declare a source in a workspace's learngraph.toml (made if missing); comments stay.

    Raises SourceExists, BadWorkspace, UnknownKind; then the file is as it was.
    """
    if not _NAME.match(name):
        raise BadWorkspace(f"{name!r} is no source name", remedy="letters, digits, _ and -, starting with a letter")
    workspace = load_workspace(root)
    if name in workspace.sources:
        raise SourceExists(
            f"source {name!r} is declared already", where=workspace.sources[name].where, remedy="remove it first"
        )
    file = root / FILE_NAME
    import tomlkit

    document = _editable(file, _text(file)) if file.is_file() else tomlkit.document()
    if "sources" not in document:
        document.add("sources", tomlkit.table(is_super_table=True))
    entry = tomlkit.table()
    entry.add("kind", kind)
    for key, value in options.items():
        entry.add(key, value)
    document["sources"][name] = entry
    text = tomlkit.dumps(document)
    config = _source(name, {"kind": kind, **options}, _Lines(file, text))
    _write(file, text)
    return config


def pin_acquired(root: Path, entry: Acquired) -> None:
    """Writes an `[acquired.NAME]` table, over the one of that name if there is one; comments stay.

    Raises BadWorkspace; then the file is as it was.
    """
    if not _NAME.match(entry.name):
        raise BadWorkspace(f"{entry.name!r} is no name", remedy="letters, digits, _ and -, starting with a letter")
    load_workspace(root)  # a file that is wrong stays as it is
    import tomlkit

    file = root / FILE_NAME
    document = _editable(file, _text(file)) if file.is_file() else tomlkit.document()
    if "acquired" not in document:
        document.add("acquired", tomlkit.table(is_super_table=True))
    table = tomlkit.table()
    for key in ("kind", "url", "sha256", "commit", "receipt"):
        if (value := getattr(entry, key)) is not None:
            table.add(key, value)
    document["acquired"][entry.name] = table
    _write(file, tomlkit.dumps(document))


def remove_source(root: Path, name: str) -> SourceConfig:
    """Take a source out of a workspace's learngraph.toml. Raises UnknownSource, BadWorkspace."""
    config = load_workspace(root).source(name)
    import tomlkit

    file = root / FILE_NAME
    document = _editable(file, _text(file))
    del document["sources"][name]
    _write(file, tomlkit.dumps(document))
    return config


def _write(file: Path, text: str) -> None:
    """Replace the file in one step, keeping its mode."""
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{FILE_NAME}-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.chmod(temporary, mode)
    os.replace(temporary, file)
