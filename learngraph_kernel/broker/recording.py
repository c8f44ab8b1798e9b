"""Recorded calls: what makes a run durable and replayable.

The identity of a call is (cell, position in the cell, hash of method and arguments). A call is written to the ledger
before it happens and its answer before the kernel sees it, so that a resumed run gets every answer it already had and
asks only what it had not asked yet. A replay that asks something else at a recorded position has diverged, and stops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.store.artifacts import ArtifactStore
from learngraph_kernel.store.ledger import Event

INLINE_BYTES = 16 * 1024
"""Arguments and results at least this long are stored as artifacts."""


class ReplayDiverged(LearnGraphError):
    """The replay asked for something else than the ledger holds."""

    code = "replay_diverged"


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that the ledger holds, with its answer or its error."""

    cell: str
    position: int
    method: str
    arguments_hash: str
    result: Any = None
    error: dict[str, Any] | None = None


@dataclass(slots=True)
class Recording:
    """The answered calls of an earlier attempt (resume) or an earlier run (rerun)."""

    calls: dict[tuple[str, int], RecordedCall] = field(default_factory=dict)

    @classmethod
    def from_events(cls, events: Iterable[Event], artifacts: ArtifactStore) -> Recording:
        """Reads the answered calls out of a ledger.

        A failure is an answer like any other: the notebook may have caught it and gone on. Only the last call before a
        cell raised may be what stopped the run; once that is mended the call must happen again.
        """
        calls: dict[tuple[str, int], RecordedCall] = {}
        latest: tuple[str, int] | None = None
        for event in events:
            data = event.data
            if event.type in ("call.completed", "call.failed"):
                latest = (data["cell"], data["position"])
                calls[latest] = RecordedCall(
                    cell=data["cell"],
                    position=data["position"],
                    method=data["method"],
                    arguments_hash=data["arguments_hash"],
                    result=load_inline(data.get("result"), artifacts),
                    error=data.get("error"),
                )
            elif latest in calls and _raised(event, latest) and calls[latest].error is not None:
                del calls[latest]
        return cls(calls)

    def find(self, cell: str, position: int, method: str, arguments_hash: str) -> RecordedCall | None:
        """The recorded call at a position, or None when the ledger has none there.

        Raises:
            ReplayDiverged: another call was recorded at that position.
        """
        call = self.calls.get((cell, position))
        if call is None:
            return None
        if call.method != method or call.arguments_hash != arguments_hash:
            asked = f"{method} with other arguments" if call.method == method else method
            raise ReplayDiverged(
                f"replay diverged at cell {cell}: call {position} was {call.method}, the replay asked for {asked}",
                where=f"cell {cell}",
                remedy="the cell depends on something that is not recorded (a clock, a random number, a file); start a "
                "new run with `learngraph run`",
            )
        return call

    def check_finished(self, cell: str, made: int) -> None:
        """A cell that ended must have made every call that the ledger holds for it.

        Raises:
            ReplayDiverged: it made fewer.
        """
        recorded = sum(1 for key in self.calls if key[0] == cell)
        if made < recorded:
            raise ReplayDiverged(
                f"replay diverged at cell {cell}: the ledger holds {recorded} calls, the replay made {made}",
                where=f"cell {cell}",
                remedy="start a new run with `learngraph run`",
            )


def _raised(event: Event, call: tuple[str, int]) -> bool:
    """Whether this says that the call's cell ended with an exception, as against a kernel that died or a time limit."""
    return (
        event.type == "cell.failed" and event.data["cell"] == call[0] and event.data["error"]["code"] == "cell_failed"
    )


def store_inline(value: Any, artifacts: ArtifactStore) -> tuple[Any, list[str]]:
    """A JSON value as it goes into an event: itself, or a reference to an artifact when it is long."""
    from learngraph_kernel.canonical import canonical_json

    data = canonical_json(value)
    if len(data) < INLINE_BYTES:
        return value, []
    sha256 = artifacts.put(data)
    return {"$artifact": sha256}, [sha256]


def load_inline(value: Any, artifacts: ArtifactStore) -> Any:
    """The inverse of `store_inline`."""
    if isinstance(value, dict) and set(value) == {"$artifact"}:
        return artifacts.read_json(value["$artifact"])
    return value
