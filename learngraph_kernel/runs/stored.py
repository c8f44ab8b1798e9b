"""A run's sealed files straight from the store, without copying: what `verify RUN` and `export RUN` read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.errors import BadInput
from learngraph_kernel.runs.folder import Opener, RunParts, opens, streams
from learngraph_kernel.runs.records import AFTER_SEAL, ENVELOPE, KEY, LEDGER, Records

if TYPE_CHECKING:
    from learngraph_kernel.store.database import Store


class NotSealed(BadInput):
    """The run has no seal, so there is nothing to verify or export."""

    code = "not_sealed"


def parts_of_run(store: Store, run_id: str) -> RunParts:
    """The sealed files of a run in the store.

    Which files they are is taken from the ledger; an artifact that is missing is left out and `verify` names it.

    Raises:
        UnknownRun: there is no such run.
        NotSealed: it has not been sealed (it is running, waiting, or was interrupted).
    """
    record = store.run(run_id)
    seals = list(store.ledger.events(run_id, types=["run.sealed"]))
    if not seals:
        raise NotSealed(
            f"the run is not sealed (status {record.observed_status()})",
            where=run_id,
            remedy="finish it with: learngraph resume RUN",
        )
    records = Records()
    for event in store.ledger.events(run_id):
        if not event.after_seal:
            records.add(event.as_json())
    # The record's seal wins: when two processes sealed at once, both left an event.
    seal = next((event.data for event in seals if event.data["envelope"] == record.seal), seals[0].data)
    files: dict[str, Opener] = {
        LEDGER: streams(lambda: _lines(store, run_id, after_seal=False)),
        AFTER_SEAL: streams(lambda: _lines(store, run_id, after_seal=True, after=records.count)),
    }
    named = {ENVELOPE: record.seal or seal["envelope"], KEY: seal["key"], **records.file_digests()}
    for name, sha in named.items():
        if sha in store.artifacts:
            files[name] = opens(store.artifacts.path(sha))
    return RunParts(run_id, files)


def _lines(store: Store, run_id: str, *, after_seal: bool, after: int = 0) -> Iterator[bytes]:
    for event in store.ledger.events(run_id, after=after):
        if event.after_seal is after_seal:
            yield canonical_json(event.as_json()) + b"\n"
