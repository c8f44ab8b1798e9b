"""The receipt of a download: what was asked, by whose leave, where it came from, and what was kept of it.

Receipt, audit record and outbox message are one transaction; the bytes are in the artifact store before it, under a
name that the receipt's row keeps from the garbage collector.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import insert, select

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.acquisition import Kind
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.schema import acquisition_receipts as table
from learngraph_kernel.store.writer import Batch


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is known of one download.

    Attributes:
        request: digest of the approved request.
        requested_url, final_url: normal forms; `redirects` are the URLs between and the final one, in order.
        addresses: those that were resolved and checked for the final URL.
        declared_type: from the Content-Type header; `detected_type` from the bytes.
        wire_bytes: received; `stored_bytes`: kept (a tree: of all its files).
        sha256: the artifact; for `git` the manifest, which names every file.
        commit: for `git`.
        approval: what allowed the request; `redirect_approvals` what allowed other hosts on the way.
        at: when it was stored.
    """

    id: str
    kind: Kind
    request: str
    requested_url: str
    final_url: str
    redirects: tuple[str, ...]
    addresses: tuple[str, ...]
    declared_type: str | None
    detected_type: str
    wire_bytes: int
    stored_bytes: int
    sha256: str
    commit: str | None
    approval: str
    redirect_approvals: tuple[str, ...]
    at: str

    def as_json(self) -> dict[str, Any]:
        """The receipt as it is stored and printed."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Receipt:
        """The inverse of `as_json`."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in body.items()
        }
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class _Insert:
    receipt: Receipt

    def __call__(self, batch: Batch) -> None:
        receipt = self.receipt
        row = {
            "id": receipt.id,
            "request": receipt.request,
            "sha256": receipt.sha256,
            "at": receipt.at,
            "body": canonical_json(receipt.as_json()).decode(),
        }
        batch.connection.execute(insert(table).values(row))


def record(store: Store, receipt: Receipt, *, actor: str) -> None:
    """Stores a receipt with its audit record and its message, in one transaction."""
    with store.unit_of_work(actor) as work:
        work.change(_Insert(receipt))
        work.audit("acquire.completed", receipt.id, {"url": receipt.final_url, "sha256": receipt.sha256})
        work.emit("acquisition.completed", receipt.id, receipt.as_json())


def receipt(store: Store, receipt_id: str) -> Receipt:
    """One receipt. Raises BadInput when there is none."""
    found = store.scalars(select(table.c.body).where(table.c.id == receipt_id))
    if not found:
        raise BadInput(f"there is no receipt {receipt_id}")
    return Receipt.from_json(json.loads(found[0]))


def receipts_of(store: Store, sha256: str) -> list[Receipt]:
    """The receipts of an artifact, oldest first."""
    query = select(table.c.body).where(table.c.sha256 == sha256).order_by(table.c.at, table.c.id)
    return [Receipt.from_json(json.loads(body)) for body in store.scalars(query)]


def receipts(store: Store, limit: int) -> list[Receipt]:
    """The latest receipts, newest first."""
    query = select(table.c.body).order_by(table.c.at.desc(), table.c.id).limit(limit)
    return [Receipt.from_json(json.loads(body)) for body in store.scalars(query)]
