"""One conditional change in one transaction, with its audit record and its outbox message, and what came of it.

Who wins a race is only known inside the transaction, so audit and outbox rows of this package are written there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sqlalchemy import insert

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.schema import audit, outbox
from learngraph_kernel.store.writer import Batch

T = TypeVar("T")


def transact(store: Store, actor: str, work: Callable[[Batch], T]) -> T:
    """Does `work` in a unit of work and returns what it returned; what it raises undoes all of it. Blocks."""
    made: list[T] = []

    def step(batch: Batch) -> None:
        made.clear()  # a transaction may be tried again
        made.append(work(batch))

    with store.unit_of_work(actor) as unit:
        unit.change(step)
    return made[0]


def note(batch: Batch, actor: str, action: str, target: str, details: Mapping[str, Any]) -> None:
    """An audit record: who did what to what."""
    row = {"actor": actor, "action": action, "target": target, "details": canonical_json(dict(details)).decode()}
    batch.connection.execute(insert(audit).values(**row, at=to_text(batch.clock())))


def tell(batch: Batch, type: str, aggregate: str, payload: Mapping[str, Any]) -> None:
    """A message for whoever reads the outbox."""
    row = {"type": type, "aggregate": aggregate, "payload": canonical_json(dict(payload)).decode()}
    batch.connection.execute(insert(outbox).values(**row, at=to_text(batch.clock())))
