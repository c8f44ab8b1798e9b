"""Is the store whole? Findings for `learngraph doctor`, each with its place and its remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, select

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.store.artifacts import ArtifactStore
from learngraph_kernel.store.errors import ArtifactCorrupt, ArtifactMissing
from learngraph_kernel.store.schema import event_artifacts, runs
from learngraph_kernel.store.sqlite import corrupt, translated


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        code: stable, e.g. `store_corrupt`, `artifact_missing`.
        what: one sentence.
        where: file or run.
        remedy: what to do.
    """

    code: str
    what: str
    where: str | None
    remedy: str | None

    @classmethod
    def of(cls, error: LearnGraphError, where: str | None = None) -> Finding:
        """An error as a finding."""
        return cls(error.code, error.what, where or error.where, error.remedy)


def check_database(engine: Engine, path: Path) -> list[Finding]:
    """Damaged pages and broken references between tables."""
    try:
        with translated(path), engine.connect() as connection:
            damage = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check(20)")]
            broken = [row[0] for row in connection.exec_driver_sql("PRAGMA foreign_key_check")]
    except LearnGraphError as error:
        return [Finding.of(error)]
    findings = [Finding.of(corrupt(path, detail)) for detail in damage if detail != "ok"]
    findings += [
        Finding.of(corrupt(path, f"{broken.count(table)} rows of {table} refer to rows that are not there"))
        for table in sorted(set(broken))
    ]
    return findings


def check_artifacts(engine: Engine, path: Path, artifacts: ArtifactStore, *, rehash: bool) -> Iterator[Finding]:
    """Artifacts that were there when an event or a run named them, and are missing or damaged now.

    Args:
        engine: of the database.
        path: of the database.
        artifacts: the artifacts.
        rehash: hash each one again; otherwise only look whether it is there.
    """
    try:
        named = _named_by(engine, path)
    except LearnGraphError as error:
        yield Finding.of(error)
        return
    for sha256, run_id in named.items():
        try:
            if rehash:
                artifacts.verify(sha256)
            else:
                artifacts.path(sha256)
        except ArtifactMissing as error:
            yield Finding.of(error, f"run {run_id}")
        except ArtifactCorrupt as error:
            yield Finding.of(error)


def _named_by(engine: Engine, path: Path) -> dict[str, str]:
    """Each artifact that must be there, with one run that names it."""
    names = select(event_artifacts.c.sha256, event_artifacts.c.run_id).where(event_artifacts.c.present)
    seals = select(runs.c.seal, runs.c.run_id).where(runs.c.seal.is_not(None))
    with translated(path), engine.connect() as connection:
        found = {str(sha256): str(run_id) for sha256, run_id in connection.execute(names)}
        found |= {str(sha256): str(run_id) for sha256, run_id in connection.execute(seals)}
    return found
