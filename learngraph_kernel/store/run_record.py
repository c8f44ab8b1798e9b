"""One row of the table of runs, and how runs are named."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.chain import Head
from learngraph_kernel.store.clock import Clock, from_text, to_text, utcnow
from learngraph_kernel.store.process import ProcessIdentity

Status: TypeAlias = Literal["running", "waiting", "completed", "failed", "withheld", "cancelled", "interrupted"]
Tier: TypeAlias = Literal["formal", "degraded", "withheld"]
Origin: TypeAlias = Literal["notebook", "chat", "schedule", "app", "hook", "api", "back-fill", "rerun"]

_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "status": get_args(Status),
    "tier": get_args(Tier),
    "origin": get_args(Origin),
}
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_run_id(clock: Clock = utcnow, random: Callable[[int], int] = secrets.randbits) -> str:
    """A new run id: `r_` and a ULID (48 bits of milliseconds, 80 random bits), so that ids sort by time.

    Args:
        clock: the current time.
        random: gives a number of that many random bits.
    """
    milliseconds = int(clock().timestamp() * 1000)
    number = milliseconds << 80 | random(80)
    return "r_" + "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run without reading its ledger.

    Attributes:
        run_id: see `new_run_id`.
        status: as last recorded; see `observed_status`.
        formal: a formal run, as against an exploratory one.
        tier: issuance tier, None before it is decided.
        title: for people.
        notebook: path as given.
        workspace: folder of the workspace.
        parameters: JSON object.
        origin: what started it.
        parent: the run it reruns.
        isolation: e.g. `host`.
        actor: who started it, e.g. `user:ana`.
        started_at: aware, UTC.
        finished_at: aware, UTC.
        content_hash: 64 hex digits.
        seal: artifact of the envelope.
        process: the process that runs it.
        events: number of events in its ledger; filled in when read from the store.
        head: hash of the last event; filled in when read from the store.
    """

    run_id: str
    actor: str
    started_at: dt.datetime
    status: Status = "running"
    formal: bool = False
    tier: Tier | None = None
    title: str | None = None
    notebook: str | None = None
    workspace: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin = "notebook"
    parent: str | None = None
    isolation: str | None = None
    finished_at: dt.datetime | None = None
    content_hash: str | None = None
    seal: str | None = None
    process: ProcessIdentity | None = None
    events: int = 0
    head: str | None = None

    def alive(self) -> bool:
        """Whether the process that runs it is still there, on this machine."""
        return self.process is not None and self.process.alive()

    def observed_status(self) -> Status:
        """The status as it is now: a `running` run whose process is known to have died is `interrupted`."""
        died = self.process is not None and not self.process.alive()
        return "interrupted" if self.status == "running" and died else self.status

    def ledger_head(self) -> Head | None:
        """The last event when the record was read."""
        return None if self.head is None else Head(self.events, self.head)

    def as_json(self) -> dict[str, Any]:
        """The run's summary for programs; `status` is the observed one."""
        body = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return body | {
            "status": self.observed_status(),
            "parameters": dict(self.parameters),
            "started_at": to_text(self.started_at),
            "finished_at": None if self.finished_at is None else to_text(self.finished_at),
            "process": None if self.process is None else self.process.as_json(),
        }


COLUMNS = tuple(item.name for item in dataclasses.fields(RunRecord) if item.name not in {"events", "head"})
"""The fields that are columns of the table."""


def to_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a record as column values. Raises BadInput: an unknown field, or a value that is not allowed."""
    return {name: _to_column(name, value) for name, value in values.items()}


def _to_column(name: str, value: Any) -> Any:
    if name not in COLUMNS:
        raise BadInput(f"a run record has no field {name!r}", remedy=f"known: {', '.join(COLUMNS)}")
    if name in _ALLOWED and value is not None and value not in _ALLOWED[name]:
        raise BadInput(f"{value!r} is no {name} of a run", remedy=f"one of {', '.join(_ALLOWED[name])}")
    if name in {"started_at", "finished_at"} and value is not None:
        return to_text(value)
    if name == "parameters":
        return canonical_json(dict(value)).decode()
    if name == "process" and value is not None:
        return canonical_json(value.as_json()).decode()
    return value


def from_columns(row: Mapping[str, Any]) -> RunRecord:
    """A record from a row of the table with `events` and `head` beside it."""
    values = dict(row)
    values["started_at"] = from_text(values["started_at"])
    values["finished_at"] = None if values["finished_at"] is None else from_text(values["finished_at"])
    values["parameters"] = json.loads(values["parameters"])
    values["process"] = None if values["process"] is None else ProcessIdentity.from_json(json.loads(values["process"]))
    values["events"] = values["events"] or 0
    return RunRecord(**values)
