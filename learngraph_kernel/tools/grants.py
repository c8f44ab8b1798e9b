"""Standing grants: `always`, bound to the authorisation hash of a tool as it was when a person said so.

A grant lapses for good when its tool is seen with another hash; that everything changes back does not revive it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, update

from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.schema import tool_grants as table
from learngraph_kernel.store.writer import Batch
from learngraph_kernel.tools.approval_record import Approval
from learngraph_kernel.tools.errors import UnknownGrant
from learngraph_kernel.tools.transactions import note, tell, transact


@dataclass(frozen=True, slots=True)
class StandingGrant:
    """A person's `always`.

    Attributes:
        id: `g_…`.
        ended_because: `revoked`, `lapsed`, or None while it holds.
    """

    id: str
    owner: str
    workspace: Path
    tool: str
    authorisation_hash: str
    approval_id: str
    granted_by: str
    granted_at: str
    ended_at: str | None
    ended_because: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "workspace": str(self.workspace),
            "tool": self.tool,
            "authorisation_hash": self.authorisation_hash,
            "approval_id": self.approval_id,
            "granted_by": self.granted_by,
            "granted_at": self.granted_at,
            "state": self.ended_because or "active",
            "ended_at": self.ended_at,
        }


class Grants:
    """Standing grants of people, each for one workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def standing(self, owner: str, workspace: Path, tool: str, authorisation_hash: str) -> bool:
        """Whether a grant holds for exactly this; grants of the tool with another hash lapse."""
        return await asyncio.to_thread(self._standing, owner, workspace, tool, authorisation_hash)

    async def listed(self, owner: str, workspace: Path | None = None) -> list[StandingGrant]:
        """A person's grants, ended ones included, newest first."""
        query = select(table).where(table.c.owner == owner).order_by(table.c.granted_at.desc(), table.c.id)
        if workspace is not None:
            query = query.where(table.c.workspace == str(workspace))
        rows = await asyncio.to_thread(self._store.rows, query)
        return [StandingGrant(**{**row, "workspace": Path(row["workspace"])}) for row in rows]

    async def revoke(self, owner: str, grant_id: str) -> None:
        """Takes a grant back; an ended one stays as it is. Raises UnknownGrant (also when it is somebody else's)."""

        def work(batch: Batch) -> None:
            mine = select(table.c.id).where(table.c.id == grant_id, table.c.owner == owner)
            if batch.connection.scalar(mine) is None:
                raise UnknownGrant("there is no such grant", where=grant_id[:80], remedy="reload the list of grants")
            _end(batch, grant_id, "revoked", owner)

        await asyncio.to_thread(transact, self._store, owner, work)

    def _standing(self, owner: str, workspace: Path, tool: str, authorisation_hash: str) -> bool:
        query = select(table.c.id, table.c.authorisation_hash).where(
            table.c.owner == owner,
            table.c.workspace == str(workspace),
            table.c.tool == tool,
            table.c.ended_at.is_(None),
        )
        rows: list[Mapping[str, Any]] = list(self._store.rows(query))
        other = [row["id"] for row in rows if row["authorisation_hash"] != authorisation_hash]
        if other:
            transact(self._store, "platform", lambda batch: _end_all(batch, other, "lapsed", "platform"))
        return len(other) < len(rows)


def give(batch: Batch, approval: Approval, by: str) -> str:
    """Records the `always` that came with an approval, in its transaction; returns the grant's id."""
    grant_id = f"g_{secrets.token_hex(16)}"
    row = {
        "id": grant_id,
        "owner": approval.owner,
        "workspace": str(approval.workspace),
        "tool": approval.tool,
        "authorisation_hash": approval.authorisation_hash,
        "approval_id": approval.id,
        "granted_by": by,
        "granted_at": to_text(batch.clock()),
    }
    batch.connection.execute(insert(table).values(row))
    facts = {"tool": approval.tool, "authorisation_hash": approval.authorisation_hash, "owner": approval.owner}
    note(batch, by, "grant.given", grant_id, facts)
    tell(batch, "grant.given", grant_id, facts)
    return grant_id


def _end_all(batch: Batch, grant_ids: list[str], because: str, by: str) -> None:
    for grant_id in grant_ids:
        _end(batch, grant_id, because, by)


def _end(batch: Batch, grant_id: str, because: str, by: str) -> None:
    change = update(table).where(table.c.id == grant_id, table.c.ended_at.is_(None))
    ended = batch.connection.execute(change.values(ended_at=to_text(batch.clock()), ended_because=because))
    if ended.rowcount:
        note(batch, by, f"grant.{because}", grant_id, {})
        tell(batch, f"grant.{because}", grant_id, {})
