"""The files of workspaces, for the daemon: the logical layer, the folder when there is one, and a command's watch.

Everything here blocks and runs in worker threads. A folder that is missing (it expired, the host was reinstalled) is
rebuilt from the logical layer when a container needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from learngraph_kernel.sandbox.argv import CheckedCommand
from learngraph_kernel.sandbox.paths import FOLDERS
from learngraph_kernel.sandboxd.folders import open_to_container
from learngraph_kernel.sandboxd.grants import DeletionGrant, Grants
from learngraph_kernel.sandboxd.hardening import GID, UID
from learngraph_kernel.sandboxd.records import Row
from learngraph_kernel.sandboxd.scan import Limits
from learngraph_kernel.sandboxd.schema import workspace_key
from learngraph_kernel.sandboxd.settings import Settings
from learngraph_kernel.sandboxd.storage import FileVersion, Storage
from learngraph_kernel.sandboxd.watch import CommandWatch
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder


class Files:
    """Files of all workspaces."""

    def __init__(self, settings: Settings, storage: Storage, grants: Grants) -> None:
        self._settings, self._storage, self._grants = settings, storage, grants
        self.limits = Limits(bytes=settings.workspace_bytes)

    def root(self, row: Row) -> Path:
        """The physical folder's place; it need not exist."""
        return self._settings.workspaces / str(row["folder"])

    def folder(self, row: Row) -> WorkspaceFolder:
        """The physical folder, made where it is missing and then filled from the logical layer."""
        root = self.root(row)
        new = not root.exists()
        privileged = os.geteuid() == 0
        folder = WorkspaceFolder(root, owner=(UID, GID) if privileged else None)
        try:
            if new and not privileged:
                for name in FOLDERS:
                    open_to_container(folder.files / name, others=(os.geteuid(),))
            if new:
                self._storage.rebuild(_key(row), folder, limits=self.limits)
        except BaseException:
            folder.close()
            raise
        return folder

    def prepare(self, row: Row) -> Path:
        """Makes sure the folder is there; returns what a container mounts."""
        with self.folder(row) as folder:
            return folder.files

    def drop(self, row: Row) -> None:
        """Forgets the logical layer, at the end of a session."""
        self._storage.drop(_key(row))

    def put(self, row: Row, path: str, data: BinaryIO) -> dict[str, Any]:
        """Writes a file to both layers; the folder only if it is there."""
        if not self.root(row).exists():
            return asdict(self._storage.put(_key(row), path, data, folder=None, limits=self.limits))
        with self.folder(row) as folder:
            return asdict(self._storage.put(_key(row), path, data, folder=folder, limits=self.limits))

    def open(self, row: Row, path: str) -> BinaryIO:
        """The bytes of a file, from the logical layer first."""
        if not self.root(row).exists():
            return self._storage.open(_key(row), path)
        with self.folder(row) as folder:
            return self._storage.open(_key(row), path, folder=folder)

    def listing(self, row: Row, below: str | None) -> list[dict[str, Any]]:
        """The files with their sizes, versions and hashes."""
        return [asdict(version) for version in self._storage.files(_key(row), below=below)]

    def delete(self, row: Row, path: str, recursive: bool) -> list[str]:
        """Deletes below `work/`; returns what is gone."""
        if not self.root(row).exists():
            return self._storage.delete(_key(row), path, folder=None, recursive=recursive)
        with self.folder(row) as folder:
            return self._storage.delete(_key(row), path, folder=folder, recursive=recursive)

    def publish(self, row: Row, path: str) -> FileVersion:
        """Makes an output immutable."""
        if not self.root(row).exists():
            return self._storage.publish(_key(row), path, folder=None)
        with self.folder(row) as folder:
            return self._storage.publish(_key(row), path, folder=folder)

    def grant(self, row: Row, paths: list[str], ttl: float, by: str) -> DeletionGrant:
        """Records a permission to delete."""
        return self._grants.give(_key(row), paths, ttl=ttl, by=by)

    def take_over(self, row: Row) -> None:
        """Imports what lies in the folder: after a crash, what a lost command had written."""
        if self.root(row).exists():
            with self.folder(row) as folder:
                self._storage.import_changes(_key(row), folder)

    def sweep(self) -> int:
        """Frees contents that nothing names."""
        return self._storage.sweep()

    def command(
        self, row: Row, identity: str, first_pid: int, on_exceeded: Callable[[str], None], checked: CheckedCommand
    ) -> FilesOfCommand:
        """The files' side of one command, begun. Raises QuotaExceeded, FileRefused, NoSuchFile."""
        around = FilesOfCommand(self, self._storage, self._grants, row, identity, first_pid, on_exceeded)
        try:
            around.begin(checked)
        except BaseException:
            around.close()
            raise
        return around

    @property
    def approve(self) -> bool:
        """Whether deletions need a grant."""
        return self._settings.approve_deletions


class FilesOfCommand:
    """What happens to the files around one command: quota, shadow, restore, import into the logical layer."""

    def __init__(
        self,
        files: Files,
        storage: Storage,
        grants: Grants,
        row: Row,
        identity: str,
        first_pid: int,
        on_exceeded: Callable[[str], None],
    ) -> None:
        self._files, self._storage, self._grants = files, storage, grants
        self._row, self._key, self._id = row, _key(row), identity
        self._folder = files.folder(row)
        self._watch = CommandWatch(
            self._folder,
            files.limits,
            on_exceeded=lambda broken: on_exceeded(broken.what),
            pids=lambda: container_pids(first_pid),
        )

    def begin(self, checked: CheckedCommand) -> None:
        """Checks quota and script, protects the files. Raises QuotaExceeded, FileRefused, NoSuchFile."""
        if checked.script is not None:
            self._folder.check_script(checked.script)
        self._watch.begin()

    def close(self) -> None:
        """Lets go of the folder."""
        self._folder.close()

    def remove(self, checked: CheckedCommand) -> None:
        """`rm`: deletes the targets in both layers. Raises DeletionNotGranted, FileRefused, NoSuchFile."""
        if self._files.approve:
            self._grants.claim_all(self._key, checked.targets, recursive=checked.recursive, by=self._id)
        for target in checked.targets:
            gone = self._storage.delete(self._key, target, folder=self._folder, recursive=checked.recursive)
            self._watch.guard.forget(gone)

    def finish(self) -> dict[str, Any]:
        """Undoes deletions without permission, takes changes over. Returns the report for the record."""
        try:
            seen = self._watch.finish(self._authorise)
            taken = self._storage.import_changes(self._key, self._folder, seen.after)
        finally:
            self._folder.close()
        report: dict[str, Any] = {name: value for name, value in asdict(seen.restored).items() if value}
        report["changed"] = [version.path for version in taken.changed][:1000]
        report["usage"] = asdict(seen.usage)
        if taken.refused:
            report["refused"] = taken.refused[:1000]
        if self._files.approve and seen.restored.restored:
            report["challenge"] = {"paths": seen.restored.restored, "ask": "POST /v1/sandboxes/{id}/grants"}
        if seen.exceeded is not None:
            report["quota"] = seen.exceeded.what
        return report

    def _authorise(self, deleted: frozenset[str]) -> frozenset[str]:
        """Below `work/`, and with a grant where one is needed; nothing else may go."""
        below = frozenset(path for path in deleted if path.startswith("work/"))
        return self._grants.claim(self._key, below, by=self._id) if self._files.approve else below


def container_pids(first_pid: int) -> Iterable[int]:
    """The processes in the control group of a container's first process; none when it has ended."""
    try:
        lines = Path(f"/proc/{first_pid}/cgroup").read_text().splitlines()
        places = dict(line.split(":", 2)[1:] for line in lines)
        relative = places.get("pids", places.get("", ""))
        base = Path("/sys/fs/cgroup/pids") if "pids" in places else Path("/sys/fs/cgroup")
        return [int(pid) for pid in (base / relative.lstrip("/") / "cgroup.procs").read_text().split()]
    except (OSError, ValueError):
        return []


def _key(row: Row) -> str:
    return workspace_key(row["owner"], row["session"])
