"""What was taken in from outside, and what began and came to no end: receipts and used-up approvals, side by side.

An approval is used up before the first packet, and a receipt or an `acquire.failed` is written at the end. A process
that is killed in between leaves a used-up approval with neither: here that is `interrupted` (or `under_way`, while its
time lasts), never a silence. Nothing of it counts as acquired, and it has to be allowed again.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sqlalchemy import select

from learngraph_kernel.sandbox.receipts import Receipt, receipts
from learngraph_kernel.store.clock import from_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.schema import acquisition_approvals, acquisition_receipts, audit

State: TypeAlias = Literal["stored", "under_way", "interrupted"]
_MARGIN = dt.timedelta(seconds=60)  # storing, after the request's own time


@dataclass(frozen=True, slots=True)
class Acquisition:
    """One download.

    Attributes:
        at: when it was stored; of one without an end when its approval was used up.
        allowed_by: the person.
        request: what was allowed.
        receipt: of one that was stored.
    """

    state: State
    at: str
    allowed_by: str
    request: dict[str, Any]
    receipt: Receipt | None

    def as_json(self) -> dict[str, Any]:
        """`{"state", "allowed_by", …the receipt}`, or `{"state", "allowed_by", "at", "kind", "requested_url"}`."""
        facts = {"state": self.state, "allowed_by": self.allowed_by}
        if self.receipt is not None:
            return facts | self.receipt.as_json()
        return facts | {"at": self.at, "kind": self.request["kind"], "requested_url": self.request["url"]}


def acquisitions(store: Store, limit: int) -> list[Acquisition]:
    """The latest downloads, newest first; failed ones are in the audit and not here.

    Args:
        limit: at most so many.
    """
    found = [_stored(store, receipt) for receipt in receipts(store, limit)]
    found += _unfinished(store, limit)
    return sorted(found, key=lambda item: item.at, reverse=True)[:limit]


def _stored(store: Store, receipt: Receipt) -> Acquisition:
    query = select(acquisition_approvals).where(acquisition_approvals.c.id == receipt.approval)
    (approval,) = store.rows(query)
    return Acquisition("stored", receipt.at, approval["granted_by"], json.loads(approval["body"]), receipt)


def _unfinished(store: Store, limit: int) -> list[Acquisition]:
    table = acquisition_approvals
    query = select(table).where(table.c.claimed_at.is_not(None)).order_by(table.c.claimed_at.desc()).limit(limit)
    claimed = store.rows(query)
    if not claimed:
        return []
    ended = _ended(store, claimed[-1]["claimed_at"])
    now = store.clock()
    return [_open(row, now) for row in claimed if row["id"] not in ended]


def _open(row: dict[str, Any], now: dt.datetime) -> Acquisition:
    request = json.loads(row["body"])
    over = from_text(row["claimed_at"]) + dt.timedelta(seconds=request["limits"]["seconds"]) + _MARGIN
    return Acquisition(
        "under_way" if now < over else "interrupted", row["claimed_at"], row["granted_by"], request, None
    )


def _ended(store: Store, since: str) -> set[str]:
    """The approvals that a receipt or a recorded failure names."""
    done = store.scalars(select(acquisition_receipts.c.body).where(acquisition_receipts.c.at >= since))
    failed = select(audit.c.details).where(audit.c.action == "acquire.failed", audit.c.at >= since)
    ended: set[str] = set()
    for body in map(json.loads, done):
        ended |= {body["approval"], *body["redirect_approvals"]}
    for body in map(json.loads, store.scalars(failed)):
        ended.update(body["approvals"])
    return ended
