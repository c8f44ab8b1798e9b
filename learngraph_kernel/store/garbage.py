"""Which artifacts nothing refers to any more, and removing them.

Soundness before thrift: anything that looks like a name counts as a reference. Referred to is what is named by an
event's data, by any text in any table, or by a JSON artifact that is itself referred to (a content document, a report
document, a notebook). Nothing younger than the grace period goes, nor anything stored since the oldest run that is
running now began: its owner may be about to name it. Removing looks again at both, so that a crash or a run that
starts in the middle leaves nothing wrong.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import String, select

from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.artifacts import CHUNK, ArtifactStore
from learngraph_kernel.store.chain import possible_names
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.errors import ArtifactMissing
from learngraph_kernel.store.schema import event_artifacts, events, metadata

GRACE = dt.timedelta(hours=24)
# A name and what may stand before it that matters: 64 digits and a six-character escape, rounded up.
_OVERLAP = 80
_JSON_STARTS = (b"{", b"[", b'"')


@dataclass(frozen=True, slots=True)
class Candidate:
    """An artifact that nothing refers to; `size` in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What would go.

    Attributes:
        candidates: sorted by name.
        temporaries: files that killed writers left, with their sizes in bytes.
        before: only what was stored before this moment goes.
        kept: number of artifacts that stay.
        young: how many of those stay only because of their age.
    """

    candidates: tuple[Candidate, ...]
    temporaries: Mapping[Path, int]
    before: dt.datetime
    kept: int
    young: int

    @property
    def bytes(self) -> int:
        """What removing all of it frees."""
        return sum(candidate.size for candidate in self.candidates) + sum(self.temporaries.values())


@dataclass(frozen=True, slots=True)
class Collected:
    """What went: names of artifacts, and bytes including those of temporary files."""

    removed: tuple[str, ...]
    bytes: int


def garbage(store: Store, *, grace: dt.timedelta = GRACE) -> Plan:
    """Finds the artifacts that nothing refers to; removes nothing.

    Args:
        store: the store.
        grace: what was stored more recently stays.

    Raises:
        BadInput: a negative grace period.
        ArtifactCorrupt: a document that may name others is damaged, so it cannot be said what it names.
    """
    if grace < dt.timedelta(0):
        raise BadInput("the grace period is negative", remedy="give a number of hours from 0 up")
    before = _before(store, grace)
    needed = _closure(store.artifacts, _named_in_tables(store))
    candidates: list[Candidate] = []
    kept = young = 0
    for sha256 in store.artifacts.iterate():
        try:
            old = store.artifacts.stored_at(sha256) < before.timestamp()
            size = store.artifacts.size(sha256)
        except ArtifactMissing:
            continue  # another collector was faster
        if old and sha256 not in needed:
            candidates.append(Candidate(sha256, size))
        else:
            kept += 1
            young += sha256 not in needed
    candidates.sort(key=lambda item: item.sha256)
    temporaries = store.artifacts.stale_temporaries(before.timestamp())
    return Plan(tuple(candidates), temporaries, before, kept, young)


def collect(store: Store, plan: Plan, *, actor: str) -> Collected:
    """Removes what a plan names, except what has been stored or named again since.

    Args:
        store: the store the plan was made from.
        plan: from `garbage`.
        actor: who, for the audit record.
    """
    named = _named_in_tables(store)
    before = plan.before.timestamp()
    removed: list[str] = []
    freed = 0
    for file, size in plan.temporaries.items():
        file.unlink(missing_ok=True)
        freed += size
    for candidate in plan.candidates:
        if candidate.sha256 in named:
            continue
        if store.artifacts.remove_if_older(candidate.sha256, before):
            removed.append(candidate.sha256)
            freed += candidate.size
    if removed:
        with store.unit_of_work(actor) as work:
            work.audit("gc", "artifacts", {"removed": len(removed), "bytes": freed})
    return Collected(tuple(removed), freed)


def _before(store: Store, grace: dt.timedelta) -> dt.datetime:
    started = [run.started_at for run in store.runs(status="running")]
    return min([store.clock() - grace, *started])


def _named_in_tables(store: Store) -> set[str]:
    names = set(store.scalars(select(event_artifacts.c.sha256).distinct()))
    for table in metadata.sorted_tables:
        if table in (events, event_artifacts):
            continue  # the one is indexed by the other
        texts = [column for column in table.columns if isinstance(column.type, String)]
        for column in texts:
            names.update(_in_texts(store.scalars(select(column).where(column.is_not(None)))))
    return names


def _in_texts(texts: Iterable[Any]) -> Iterator[str]:
    for text in texts:
        yield from possible_names(str(text).encode())


def _closure(artifacts: ArtifactStore, names: set[str]) -> set[str]:
    """The names, and every artifact that is named, directly or not, by a JSON artifact among them."""
    needed = {name for name in names if name in artifacts}
    waiting = list(needed)
    while waiting:
        for name in _named_in_artifact(artifacts, waiting.pop()):
            if name not in needed and name in artifacts:
                needed.add(name)
                waiting.append(name)
    return needed


def _named_in_artifact(artifacts: ArtifactStore, sha256: str) -> set[str]:
    names: set[str] = set()
    with artifacts.open(sha256) as stream:
        window = stream.read(CHUNK)
        if not window.lstrip().startswith(_JSON_STARTS):
            return names
        while window:
            names.update(possible_names(window))
            chunk = stream.read(CHUNK)
            if not chunk:
                return names
            window = window[-_OVERLAP:] + chunk
    return names
