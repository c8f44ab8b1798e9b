"""Permission to delete: bound to exact paths of one workspace, for a time, and good for one command.

A path that ends with a slash (`work/old/`) stands for the folder and everything below it; any other for itself alone.
A grant is spent by the first command whose deletions it covers, in one statement, so two commands cannot share it.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlalchemy import Connection, Engine, insert, select, update

from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.sandbox.paths import check_deletable
from learngraph_kernel.sandboxd.schema import deletion_grants
from learngraph_kernel.store.clock import Clock, to_text, utcnow

MIN_TTL = 60
MAX_TTL = 24 * 3600
MAX_PATHS = 1_000


class GrantRefused(BadInput):
    """Such a grant cannot be given."""

    code: ClassVar[str] = "grant_refused"


class DeletionNotGranted(LearnGraphError):
    """A person has to allow the deletion first: the challenge. `details["paths"]` lists what is to be granted."""

    code: ClassVar[str] = "deletion_not_granted"


@dataclass(frozen=True, slots=True)
class DeletionGrant:
    """One permission; `paths` as given."""

    id: str
    workspace: str
    paths: tuple[str, ...]
    granted_by: str
    expires_at: dt.datetime

    def covers(self, path: str) -> bool:
        """Whether a file or folder may go."""
        return any(
            path == granted.rstrip("/") or (granted.endswith("/") and path.startswith(granted))
            for granted in self.paths
        )


class Grants:
    """The grants in sandboxd's database."""

    def __init__(self, engine: Engine, *, clock: Clock = utcnow) -> None:
        self._engine = engine
        self._clock = clock

    def give(self, workspace: str, paths: Sequence[str], *, ttl: float, by: str) -> DeletionGrant:
        """Records a grant.

        Args:
            paths: below `work/`; with a slash at the end for a whole folder.
            ttl: seconds it is good for, 60 to 86,400.
            by: who grants.

        Raises:
            GrantRefused, PathRefused
        """
        if not MIN_TTL <= ttl <= MAX_TTL:
            raise GrantRefused(f"a grant lasts {MIN_TTL} to {MAX_TTL} seconds, not {ttl:g}", where="ttl")
        if not 1 <= len(paths) <= MAX_PATHS:
            raise GrantRefused(f"a grant names 1 to {MAX_PATHS} paths", where="paths")
        for path in paths:
            check_deletable(path.removesuffix("/"))
        now = self._clock()
        grant = DeletionGrant(
            f"g_{secrets.token_hex(12)}", workspace, tuple(paths), by, now + dt.timedelta(seconds=ttl)
        )
        row = {
            "id": grant.id,
            "workspace": workspace,
            "paths": json.dumps(list(paths), ensure_ascii=False),
            "granted_by": by,
            "granted_at": to_text(now),
            "expires_at": to_text(grant.expires_at),
        }
        with self._engine.begin() as connection:
            connection.execute(insert(deletion_grants).values(row))
        return grant

    def claim(self, workspace: str, deleted: Iterable[str], *, by: str) -> frozenset[str]:
        """Spends the grants that cover what a command has deleted.

        Args:
            deleted: paths of files and folders.
            by: id of the command.

        Returns:
            The paths that were allowed to go. A grant that covers none of them stays good.
        """
        wanted, allowed = set(deleted), set[str]()
        with self._engine.begin() as connection:
            for grant in self._live(connection, workspace):
                covered = {path for path in wanted - allowed if grant.covers(path)}
                if covered and self._spend(connection, grant, by):
                    allowed |= covered
        return frozenset(allowed)

    def claim_all(self, workspace: str, targets: Sequence[str], *, recursive: bool, by: str) -> None:
        """Spends what a removal needs, all or nothing.

        Args:
            targets: paths to remove.
            recursive: a target may be a folder, so the grant must be for everything below it.

        Raises:
            DeletionNotGranted: nothing was spent; the error names what is not covered.
        """
        needed = [f"{path}/" if recursive else path for path in targets]
        with self._engine.begin() as connection:
            live = self._live(connection, workspace)
            spend = [grant for grant in live if any(_covers(grant, path) for path in needed)]
            open_ = [path for path in needed if not any(_covers(grant, path) for grant in spend)]
            if open_:
                raise _challenge(open_)
            if not all(self._spend(connection, grant, by) for grant in spend):
                raise _challenge(needed)

    def _live(self, connection: Connection, workspace: str) -> list[DeletionGrant]:
        table = deletion_grants.c
        query = (
            select(table.id, table.paths, table.granted_by, table.expires_at)
            .where(table.workspace == workspace, table.used_at.is_(None), table.expires_at > to_text(self._clock()))
            .order_by(table.granted_at, table.id)
        )
        return [
            DeletionGrant(row.id, workspace, tuple(json.loads(row.paths)), row.granted_by, _moment(row.expires_at))
            for row in connection.execute(query)
        ]

    def _spend(self, connection: Connection, grant: DeletionGrant, by: str) -> bool:
        table = deletion_grants.c
        spent = connection.execute(
            update(deletion_grants)
            .where(table.id == grant.id, table.used_at.is_(None))
            .values(used_at=to_text(self._clock()), used_by=by)
        )
        return spent.rowcount == 1


def _covers(grant: DeletionGrant, needed: str) -> bool:
    if needed.endswith("/"):
        return any(granted.endswith("/") and needed.startswith(granted) for granted in grant.paths)
    return grant.covers(needed)


def _challenge(paths: Sequence[str]) -> DeletionNotGranted:
    details: dict[str, Any] = {"paths": list(paths), "remedy_zh": "请先由用户批准删除这些路径"}
    return DeletionNotGranted(
        f"{len(paths)} path(s) may not be deleted without permission",
        where=paths[0],
        remedy="ask the user to grant the deletion of these paths",
        details=details,
    )


def _moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
