"""`allow_once`: a person's word for one request, used up before the first packet, whatever comes of it.

The claim is one statement in one transaction of the store, which takes the write lock first: of any number of threads
and processes that claim the same approval, one gets it.
"""

from __future__ import annotations

import datetime as dt
import secrets
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import insert, select, update

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.acquisition import ApprovalNeeded, Request
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.schema import acquisition_approvals as table
from learngraph_kernel.store.writer import Batch

DEFAULT_TTL = dt.timedelta(hours=1)
MAX_TTL = dt.timedelta(hours=24)


class Approvals(Protocol):
    """Who may say yes, seen from a download."""

    def claim(self, request: Request, *, redirected_from: str | None = None) -> str:
        """Uses up an approval for exactly this request; returns its id. Raises ApprovalNeeded."""


@dataclass(slots=True)
class _Claim:
    digest: str
    actor: str
    claimed: list[str] = field(default_factory=list)

    def __call__(self, batch: Batch) -> None:
        self.claimed.clear()
        now = to_text(batch.clock())
        oldest = (
            select(table.c.id)
            .where(table.c.request == self.digest, table.c.claimed_at.is_(None), table.c.expires_at > now)
            .order_by(table.c.granted_at, table.c.id)
            .limit(1)
        )
        found = batch.connection.scalar(oldest)
        if found is not None:
            change = update(table).where(table.c.id == found).values(claimed_at=now, claimed_by=self.actor)
            batch.connection.execute(change)
            self.claimed.append(found)


@dataclass(frozen=True, slots=True)
class _Grant:
    id: str
    request: Request
    actor: str
    ttl: dt.timedelta

    def __call__(self, batch: Batch) -> None:
        now = batch.clock()
        row = {
            "id": self.id,
            "request": self.request.digest,
            "body": canonical_json(self.request.as_json()).decode(),
            "granted_by": self.actor,
            "granted_at": to_text(now),
            "expires_at": to_text(now + self.ttl),
        }
        batch.connection.execute(insert(table).values(row))


@dataclass(frozen=True, slots=True)
class StoredApprovals:
    """Approvals in the store's database.

    Attributes:
        actor: who claims, e.g. `session:…`, for the audit record.
    """

    store: Store
    actor: str

    def grant(self, request: Request, *, by: str, ttl: dt.timedelta = DEFAULT_TTL) -> str:
        """Records a person's `allow_once`; returns its id.

        Args:
            request: exactly what was shown to the person.
            by: the person, e.g. `user:ana`.
            ttl: how long it can be claimed; up to 24 hours.

        Raises:
            BadInput: the TTL is not positive or too long.
        """
        if not dt.timedelta(0) < ttl <= MAX_TTL:
            raise BadInput("an approval lasts more than 0 and at most 24 hours", where=str(ttl))
        approval = f"ap_{secrets.token_hex(16)}"
        with self.store.unit_of_work(by) as work:
            work.change(_Grant(approval, request, by, ttl))
            work.audit("acquire.approved", approval, {"request": request.as_json()})
        return approval

    def claim(self, request: Request, *, redirected_from: str | None = None) -> str:
        """See `Approvals.claim`. The oldest of several is taken."""
        step = _Claim(request.digest, self.actor)
        with self.store.unit_of_work(self.actor) as work:
            work.change(step)
        if not step.claimed:
            raise ApprovalNeeded(request, redirected_from=redirected_from)
        return step.claimed[0]
