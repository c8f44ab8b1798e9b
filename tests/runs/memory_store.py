"""A store in memory with the interface that sealing needs: events and artifacts as the real one gives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from learngraph_kernel.canonical import canonical_json, digest, sha256_hex

NO_EVENT = "0" * 64


@dataclass(frozen=True)
class MemoryEvent:
    run: str
    seq: int
    type: str
    at: str
    actor: str
    after_seal: bool
    data: dict[str, Any]
    prev: str
    hash: str

    def as_json(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass
class MemoryLedger:
    runs: dict[str, list[MemoryEvent]] = field(default_factory=dict)

    def append(self, run_id: str, type: str, data: Any, *, actor: str, after_seal: bool = False) -> MemoryEvent:
        events = self.runs.setdefault(run_id, [])
        body = {
            "run": run_id,
            "seq": len(events) + 1,
            "type": type,
            "at": f"2026-12-01T03:00:{len(events):02d}.000000Z",
            "actor": actor,
            "after_seal": after_seal,
            "data": data,
            "prev": events[-1].hash if events else NO_EVENT,
        }
        events.append(MemoryEvent(**body, hash=digest(body)))
        return events[-1]

    def events(self, run_id: str, *, after: int = 0, types: Any = None) -> Iterator[MemoryEvent]:
        for event in self.runs.get(run_id, []):
            if event.seq > after and (types is None or event.type in types):
                yield event


@dataclass
class MemoryArtifacts:
    held: dict[str, bytes] = field(default_factory=dict)

    def put(self, data: bytes) -> str:
        sha = sha256_hex(data)
        self.held[sha] = data
        return sha

    def put_json(self, value: Any) -> str:
        return self.put(canonical_json(value))

    def read(self, sha: str) -> bytes:
        return self.held[sha]

    def __contains__(self, sha: str) -> bool:
        return sha in self.held


@dataclass
class MemoryStore:
    artifacts: MemoryArtifacts = field(default_factory=MemoryArtifacts)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    notes: list[tuple[Any, ...]] = field(default_factory=list)

    @contextmanager
    def unit_of_work(self, actor: str) -> Iterator[Any]:
        yield _Work(self, actor)


@dataclass
class _Work:
    store: MemoryStore
    actor: str

    def update_run(self, run_id: str, **changes: Any) -> None:
        self.store.notes.append(("update_run", run_id, changes))

    def audit(self, action: str, target: str, details: Any) -> None:
        self.store.notes.append(("audit", action, target))

    def emit(self, type: str, aggregate: str, payload: Any) -> None:
        self.store.notes.append(("emit", type, aggregate))
