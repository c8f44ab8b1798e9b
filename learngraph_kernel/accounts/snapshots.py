"""Capability snapshots that a probe took, kept per endpoint and model.

The key is a fingerprint of everything that decides what the endpoint answers with: adapter, model, address, and how the
key is sent. Change one, and the old snapshot is no longer found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, select

from learngraph_kernel.canonical import canonical_json, digest
from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.config import ModelConfig
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.schema import capability_snapshots as table
from learngraph_kernel.store.writer import Batch


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a probe found.

    Attributes:
        capabilities: what may be sent.
        seen: each question that was put to the endpoint → `accepted`, `refused`, or why it could not be told.
        probed_at: RFC 3339.
    """

    capabilities: Capabilities
    seen: Mapping[str, str]
    probed_at: str

    def as_json(self) -> dict[str, Any]:
        return {"capabilities": self.capabilities.as_json(), "seen": dict(self.seen), "probed_at": self.probed_at}


def endpoint_fingerprint(config: ModelConfig) -> str:
    """The sha256 that names an endpoint and model."""
    facts = {"adapter": config.adapter, "model": config.model, "base_url": config.base_url, "auth": config.auth_style}
    return digest(facts)


class Snapshots:
    """The snapshots of one home."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, config: ModelConfig) -> Snapshot | None:
        """The latest; None when this endpoint was never probed."""
        rows = self._store.rows(select(table).where(table.c.fingerprint == endpoint_fingerprint(config)))
        if not rows:
            return None
        body = json.loads(rows[0]["body"])
        return Snapshot(Capabilities.from_json(body["capabilities"]), body["seen"], rows[0]["probed_at"])

    def keep(self, config: ModelConfig, capabilities: Capabilities, seen: Mapping[str, str], *, actor: str) -> Snapshot:
        """Stores what a probe found, in the place of the one before."""
        fingerprint = endpoint_fingerprint(config)
        made: list[str] = []
        body = canonical_json({"capabilities": capabilities.as_json(), "seen": dict(seen)}).decode()

        def work(batch: Batch) -> None:
            at = to_text(batch.clock())
            batch.connection.execute(delete(table).where(table.c.fingerprint == fingerprint))
            batch.connection.execute(
                table.insert().values(fingerprint=fingerprint, model=config.model or "", body=body, probed_at=at)
            )
            made[:] = [at]

        with self._store.unit_of_work(actor) as unit:
            unit.change(work)
            unit.audit("model.probed", config.name, {"fingerprint": fingerprint})
        return Snapshot(capabilities, seen, made[0])
