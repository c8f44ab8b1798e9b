"""The logical layer: the files of a chat session by content, with their versions, whether or not there is a folder.

The physical folder (`workspace`) is what a container works on, and may be thrown away at any time; this layer lives as
long as the session. Writes go to both, reads prefer this one, so attachments and listings work without Docker. After a
command its changes are taken over: only files whose inode, times or size differ are hashed again. A folder that is
gone is rebuilt from here.

Contents are in an artifact store of sandboxd's own (the runtime's garbage collector must not see it). The reference
count of a content is the number of versions that name it; `sweep` removes those that no version names. Older versions
of a path are dropped beyond ten, or when the session keeps more than 1 GiB of them; published ones never.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from sqlalchemy import Connection, Engine, Row, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from learngraph_kernel.sandbox.paths import PathRefused, check_deletable, check_path
from learngraph_kernel.sandbox.refusals import printable
from learngraph_kernel.sandboxd.beneath import FileRefused, NoSuchFile
from learngraph_kernel.sandboxd.quota import QuotaExceeded, check_room
from learngraph_kernel.sandboxd.scan import Limits, Scan, Usage, scan
from learngraph_kernel.sandboxd.schema import file_versions, workspace_files
from learngraph_kernel.sandboxd.workspace import CHUNK, WorkspaceFolder
from learngraph_kernel.store.artifacts import ArtifactStore
from learngraph_kernel.store.clock import Clock, to_text, utcnow

KEPT_VERSIONS = 10
KEPT_BYTES = 1 << 30
PIECE = 500
"""Paths that one statement asks about."""
SEEN = ("inode", "mtime_ns", "ctime_ns", "seen_size")
_files, _versions = workspace_files.c, file_versions.c


@dataclass(frozen=True, slots=True)
class FileVersion:
    """One content of a path: its version (from 1), sha256, size in bytes, `put` or `command`, and when it was stored.

    A published version is immutable: it stays when the file is changed or deleted.
    """

    path: str
    version: int
    sha256: str
    size: int
    origin: str
    published: bool
    at: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a path holds now: sha256 of the stored bytes, size in bytes, and how the file looked in the folder."""

    path: str
    sha256: str
    size: int
    status: os.stat_result | None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What a command changed: paths with a new version, paths that are gone, and what could not be taken over."""

    changed: tuple[FileVersion, ...]
    removed: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]


class Storage:
    """Files of all workspaces in sandboxd's database and blob store. Safe to use from several threads."""

    def __init__(self, engine: Engine, blobs: ArtifactStore, *, clock: Clock = utcnow) -> None:
        self._engine = engine
        self._reading = engine.execution_options(reads_only=True)
        self._blobs = blobs
        self._clock = clock

    # One file

    def put(
        self,
        workspace: str,
        path: str,
        data: bytes | BinaryIO,
        *,
        folder: WorkspaceFolder | None,
        limits: Limits,
    ) -> FileVersion:
        """Writes a file to both layers.

        Args:
            workspace: `schema.workspace_key`.
            folder: the physical workspace; None when there is none at the moment.

        Raises:
            PathRefused, FileRefused, QuotaExceeded, StorageFull: no layer was changed.
        """
        path = check_path(path, new=True)
        if "/" not in path:
            raise FileRefused("is_a_folder", "this is a folder", path)
        sha256, size = self._store(data, limits)
        status: os.stat_result | None = None
        if folder is not None:
            with self._blobs.open(sha256) as content:
                status = folder.put(path, content, limits=limits).status
        with self._engine.begin() as connection:
            if folder is None:
                self._check_logical_room(connection, workspace, path, size, limits)
            version = self._record(connection, workspace, path, sha256, size, "put", status)
            self._prune(connection, workspace)
        return version

    def open(self, workspace: str, path: str, *, folder: WorkspaceFolder | None = None) -> BinaryIO:
        """The bytes of a file: from the logical layer, else from the folder.

        Raises:
            PathRefused, FileRefused, NoSuchFile, ArtifactCorrupt (at the end of reading)
        """
        found = self.find(workspace, check_path(path))
        if found is not None:
            return self._blobs.open(found.sha256)
        if folder is None:
            raise NoSuchFile("there is no such file", where=printable(path))
        return folder.open(path)

    def open_version(self, workspace: str, path: str, version: int) -> BinaryIO:
        """The bytes of an earlier or a published version. Raises NoSuchFile."""
        for each in self.versions(workspace, path):
            if each.version == version:
                return self._blobs.open(each.sha256)
        raise NoSuchFile(f"there is no version {version} of this file", where=printable(path))

    def find(self, workspace: str, path: str) -> FileVersion | None:
        """The present version of a file, from the logical layer alone."""
        with self._reading.connect() as connection:
            row = connection.execute(_present(workspace).where(_files.path == path)).first()
        return None if row is None else _version(row)

    def files(self, workspace: str, *, below: str | None = None) -> list[FileVersion]:
        """The present files, by path, from the logical layer alone; `below` a folder of the workspace."""
        with self._reading.connect() as connection:
            rows = connection.execute(_present(workspace).order_by(_files.path)).all()
        prefix = "" if below is None else f"{check_path(below)}/"
        return [_version(row) for row in rows if row.path.startswith(prefix)]

    def versions(self, workspace: str, path: str) -> list[FileVersion]:
        """Every version kept of a path, oldest first; also of a file that was deleted."""
        query = select(file_versions).where(_versions.workspace == workspace, _versions.path == path)
        with self._reading.connect() as connection:
            return [_version(row) for row in connection.execute(query.order_by(_versions.version))]

    def delete(
        self, workspace: str, path: str, *, folder: WorkspaceFolder | None, recursive: bool = False
    ) -> list[str]:
        """Deletes a file or folder below `work/` from both layers; its versions stay until they are pruned.

        Returns:
            The paths of the files that are gone.

        Raises:
            PathRefused, FileRefused, NoSuchFile
        """
        path = check_deletable(path)
        gone = {each.path for each in self.files(workspace) if each.path == path or each.path.startswith(f"{path}/")}
        if gone - {path} and not recursive:
            raise FileRefused("is_a_folder", "this is a folder", path, "remove it recursively (rm -r)")
        if folder is not None:
            try:
                gone.update(folder.delete(path, recursive=recursive))
            except NoSuchFile:
                if not gone:
                    raise
        elif not gone:
            raise NoSuchFile("there is no such file", where=printable(path))
        with self._engine.begin() as connection:
            self._forget(connection, workspace, gone)
        return sorted(gone)

    def publish(self, workspace: str, path: str, *, folder: WorkspaceFolder | None) -> FileVersion:
        """Makes the present content of `outputs/…` an immutable version; with a folder, what lies there now.

        Raises:
            PathRefused, FileRefused, NoSuchFile
        """
        path = check_path(path)
        if not path.startswith("outputs/"):
            raise FileRefused("not_an_output", "only files below outputs/ are published", path, "copy it to outputs/")
        if folder is not None:
            with folder.open(path) as file:
                sha256, status = self._take(file, path)
            with self._engine.begin() as connection:
                self._record(connection, workspace, path, sha256, status.st_size, "command", status)
        found = self.find(workspace, path)
        if found is None:
            raise NoSuchFile("there is no such file", where=printable(path))
        which = (_versions.workspace == workspace, _versions.path == path, _versions.version == found.version)
        with self._engine.begin() as connection:
            connection.execute(update(file_versions).where(*which).values(published=True))
            row = connection.execute(select(file_versions).where(*which)).one()
        return _version(row)

    # A whole workspace

    def import_changes(self, workspace: str, folder: WorkspaceFolder, found: Scan | None = None) -> ImportReport:
        """Takes over what a command left in the folder. To be called when it has ended and deletions are undone.

        Args:
            found: a complete walk made since then; made here when None.
        """
        now = scan(folder.files_fd) if found is None else found
        with self._reading.connect() as connection:
            known = {row.path: row for row in connection.execute(_seen(workspace))}
        taken: list[Content] = []
        refused: list[tuple[str, str]] = []
        for path, status in now.files.items():
            if path in known and _stamp(status) == tuple(known[path])[1:]:
                continue
            try:
                with folder.open(path) as file:
                    sha256, status = self._take(file, path)
                taken.append(Content(path, sha256, status.st_size, status))
            except (PathRefused, FileRefused, NoSuchFile) as error:
                refused.append((printable(path), error.what))
        refused += [(printable(path), "this is no regular file") for path in now.others]
        # A file that was never in the folder is not gone because the folder does not have it.
        removed = [path for path, row in known.items() if path not in now.files and row.inode is not None]
        with self._engine.begin() as connection:
            before = {row.path: row.version for row in connection.execute(_present(workspace))}
            recorded = self._record_all(connection, workspace, taken, "command")
            self._forget(connection, workspace, removed)
            changed = [each for each in recorded if before.get(each.path) != each.version]
            self._prune(connection, workspace)
        return ImportReport(tuple(changed), tuple(removed), tuple(refused))

    def rebuild(self, workspace: str, folder: WorkspaceFolder, *, limits: Limits) -> int:
        """Writes every present file into a folder that lacks it or has another content; returns how many.

        Raises:
            QuotaExceeded: the session's files exceed the limits; nothing was written.
            FileRefused: something is in the way.
        """
        now = scan(folder.files_fd)
        with self._reading.connect() as connection:
            known = {row.path: row for row in connection.execute(_seen(workspace))}
        present = self.files(workspace)
        total = Usage(len(present), 0, sum(each.size for each in present), 0)
        check_room(total, limits, size=0, files=0)
        written: list[tuple[FileVersion, os.stat_result]] = []
        for each in present:
            status = now.files.get(each.path)
            if status is not None and _stamp(status) == tuple(known[each.path])[1:]:
                continue
            with self._blobs.open(each.sha256) as content:
                written.append((each, folder.place(each.path, content, room=each.size).status))
        with self._engine.begin() as connection:
            self._point(connection, workspace, [(each.path, each.version, status) for each, status in written])
        return len(written)

    def drop(self, workspace: str) -> None:
        """Forgets a workspace with all its versions, at the end of its session; `sweep` then frees the bytes."""
        with self._engine.begin() as connection:
            connection.execute(delete(workspace_files).where(_files.workspace == workspace))
            connection.execute(delete(file_versions).where(_versions.workspace == workspace))

    def references(self, sha256: str) -> int:
        """How many versions, of all workspaces, have this content."""
        query = select(func.count()).select_from(file_versions).where(_versions.sha256 == sha256)
        with self._reading.connect() as connection:
            return connection.execute(query).scalar_one()

    def sweep(self, *, grace: float = 300.0) -> int:
        """Removes contents that no version names and that were stored more than `grace` seconds ago.

        The grace period belongs to writers who have stored a content and not yet recorded it.

        Returns:
            How many contents were removed.
        """
        before = (self._clock() - dt.timedelta(seconds=grace)).timestamp()
        return sum(
            self._blobs.remove_if_older(sha256, before)
            for sha256 in list(self._blobs.iterate())
            if self.references(sha256) == 0
        )

    # Inside

    def _store(self, data: bytes | BinaryIO, limits: Limits) -> tuple[str, int]:
        if isinstance(data, bytes):
            if len(data) > limits.bytes:
                raise QuotaExceeded("bytes", limits, Usage(0, 0, len(data), 0))
            return self._blobs.put(data), len(data)
        with self._blobs.writer() as artifact:
            while chunk := data.read(CHUNK):
                if artifact.size + len(chunk) > limits.bytes:
                    raise QuotaExceeded("bytes", limits, Usage(0, 0, artifact.size, 0))
                artifact.write(chunk)
        return artifact.sha256, artifact.size

    def _take(self, file: BinaryIO, path: str) -> tuple[str, os.stat_result]:
        """Stores an open file of the folder; its status before and after must agree, else someone is writing to it."""
        before = os.fstat(file.fileno())
        with self._blobs.writer() as artifact:
            while artifact.size <= before.st_size and (chunk := file.read(CHUNK)):
                artifact.write(chunk)
        after = os.fstat(file.fileno())
        if _stamp(after) != _stamp(before) or artifact.size != after.st_size:
            raise FileRefused("changing", "the file was being written to", path, "wait until the command has ended")
        return artifact.sha256, after

    def _record(
        self,
        connection: Connection,
        workspace: str,
        path: str,
        sha256: str,
        size: int,
        origin: str,
        status: os.stat_result | None,
    ) -> FileVersion:
        return self._record_all(connection, workspace, [Content(path, sha256, size, status)], origin)[0]

    def _record_all(
        self, connection: Connection, workspace: str, contents: Sequence[Content], origin: str
    ) -> list[FileVersion]:
        """Makes each the present content of its path; a new version only when it differs from the present one.

        A command may leave tens of thousands of files, and others wait for the end of this transaction: so the
        statements are few, not one a file.
        """
        at, recorded, made = to_text(self._clock()), [], []
        for start in range(0, len(contents), PIECE):
            piece = contents[start : start + PIECE]
            paths = [content.path for content in piece]
            here = (_versions.workspace == workspace) & _versions.path.in_(paths)
            newest = select(_versions.path, func.max(_versions.version)).where(here).group_by(_versions.path)
            latest = {row[0]: row[1] for row in connection.execute(newest)}
            present = {row.path: row for row in connection.execute(_present(workspace).where(_files.path.in_(paths)))}
            for content in piece:
                current = present.get(content.path)
                if current is not None and current.sha256 == content.sha256:
                    recorded.append(_version(current))
                    continue
                version = latest.get(content.path, 0) + 1
                row = FileVersion(content.path, version, content.sha256, content.size, origin, False, at)
                recorded.append(row)
                made.append({name: getattr(row, name) for name in FileVersion.__slots__} | {"workspace": workspace})
        if made:
            connection.execute(insert(file_versions), made)
        pairs = zip(recorded, contents, strict=True)
        self._point(connection, workspace, [(each.path, each.version, content.status) for each, content in pairs])
        return recorded

    def _point(
        self, connection: Connection, workspace: str, pointers: Sequence[tuple[str, int, os.stat_result | None]]
    ) -> None:
        """Says which version of each path is present, and how its file in the folder looked then."""
        rows = []
        for path, version, status in pointers:
            stamp = (None, None, None, None) if status is None else _stamp(status)
            seen = dict(zip(SEEN, stamp, strict=True))
            rows.append({"workspace": workspace, "path": path, "version": version, **seen})
        if rows:
            row = upsert(workspace_files)
            change = {name: row.excluded[name] for name in (*SEEN, "version")}
            connection.execute(row.on_conflict_do_update(index_elements=["workspace", "path"], set_=change), rows)

    def _forget(self, connection: Connection, workspace: str, paths: Iterable[str]) -> None:
        gone = [{"gone": path} for path in paths]
        if gone:
            mine = (_files.workspace == workspace) & (_files.path == bindparam("gone"))
            connection.execute(delete(workspace_files).where(mine), gone)

    def _prune(self, connection: Connection, workspace: str) -> None:
        """Drops old versions that are neither published nor present: beyond ten of a path, beyond 1 GiB in all."""
        mine = _versions.workspace == workspace
        many = select(_versions.path).where(mine).group_by(_versions.path).having(func.count() > KEPT_VERSIONS)
        for path in connection.execute(many).scalars().all():
            versions = select(file_versions).where(mine, _versions.path == path)
            older = connection.execute(versions.order_by(_versions.version.desc()).offset(KEPT_VERSIONS)).all()
            self._drop_versions(connection, workspace, [row for row in older if not row.published])
        kept = select(file_versions).where(mine, _versions.published.is_(False))
        present = {(row.path, row.version) for row in connection.execute(_present(workspace))}
        spare = [
            row for row in connection.execute(kept.order_by(_versions.at)) if (row.path, row.version) not in present
        ]
        excess = sum(row.size for row in spare) - KEPT_BYTES
        for row in spare:
            if excess <= 0:
                break
            self._drop_versions(connection, workspace, [row])
            excess -= row.size

    def _drop_versions(self, connection: Connection, workspace: str, rows: Iterable[Row[Any]]) -> None:
        for row in rows:
            connection.execute(
                delete(file_versions).where(
                    _versions.workspace == workspace, _versions.path == row.path, _versions.version == row.version
                )
            )

    def _check_logical_room(self, connection: Connection, workspace: str, path: str, size: int, limits: Limits) -> None:
        rows = [row for row in connection.execute(_present(workspace)) if row.path != path]
        check_room(Usage(len(rows), 0, sum(row.size for row in rows), 0), limits, size=size)


def _present(workspace: str) -> Any:
    same_file = (_files.workspace == _versions.workspace) & (_files.path == _versions.path)
    present = same_file & (_files.version == _versions.version)
    return select(file_versions).join(workspace_files, present).where(_files.workspace == workspace)


def _seen(workspace: str) -> Any:
    columns = (_files.path, _files.inode, _files.mtime_ns, _files.ctime_ns, _files.seen_size)
    return select(*columns).where(_files.workspace == workspace)


def _stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    """What changes whenever the content of a file does."""
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _version(row: Row[Any]) -> FileVersion:
    return FileVersion(row.path, row.version, row.sha256, row.size, row.origin, row.published, row.at)
