"""What a run's events say about its seal: which files belong to it, how it began and how it ended.

One pass over the events (a run may have a million) yields `Records`; the seal's predicate and the names of the sealed
files follow from it alone, so that sealing, exporting and verifying can't disagree about what belongs to a run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.errors import LearnGraphError

LEDGER = "ledger.jsonl"
AFTER_SEAL = "after_seal.jsonl"
ENVELOPE = "seal.dsse.json"
KEY = "key.pub"
CONTENT = "content.json"
NOTEBOOK = "notebook.ipynb"
REPORT = "report.json"
REPORT_HTML = "report.html"
RESULT = "result.json"
ARTIFACTS = "artifacts/"

UNSEALED = frozenset({ENVELOPE, KEY, AFTER_SEAL})
"""Files the statement cannot list: they are made from it, or after it."""

NAMED_FILES: Mapping[str, str] = {
    CONTENT: "content",
    NOTEBOOK: "notebook",
    REPORT: "report",
    REPORT_HTML: "report_html",
    RESULT: "result",
}
"""Files with a name of their own → the key of the closing event's data that holds their artifact."""

CLOSING = frozenset({"run.completed", "run.failed", "run.cancelled"})


_SHA256 = re.compile(r"[0-9a-f]{64}")


class NotFinished(LearnGraphError):
    """Only a run that has ended can be sealed."""

    code = "run_not_finished"


@dataclass(slots=True)
class Records:
    """The facts one pass over the sealed part of a ledger gathers.

    Attributes:
        started: the `run.started` event.
        closing: the last event, when it ends the run.
        count: number of events.
        head: hash of the last event.
        artifacts: sha256 of every artifact the events name → seq of the first event that names it.
    """

    started: Mapping[str, Any] | None = None
    closing: Mapping[str, Any] | None = None
    count: int = 0
    head: str = "0" * 64
    artifacts: dict[str, int] = field(default_factory=dict)

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes the next event in."""
        self.count += 1
        self.head = event["hash"]
        if event["type"] == "run.started" and self.started is None:
            self.started = event
        self.closing = event if event["type"] in CLOSING else None
        for sha in artifacts_named(event):
            self.artifacts.setdefault(sha, event["seq"])

    def named_files(self) -> dict[str, str]:
        """File name → sha256 as the closing event gives it, for the files the run has."""
        data = self.closing["data"] if self.closing else {}
        return {name: data[key] for name, key in NAMED_FILES.items() if data.get(key)}

    def file_digests(self) -> dict[str, str]:
        """Every sealed file but the ledger → its sha256."""
        return {**self.named_files(), **{ARTIFACTS + sha: sha for sha in sorted(self.artifacts)}}

    def predicate(self) -> dict[str, Any]:
        """The predicate of the run's seal. Raises NotFinished."""
        if self.started is None or self.closing is None:
            raise NotFinished(
                "the run has not ended, so it cannot be sealed",
                where=self.started["run"] if self.started else None,
                remedy="finish it with: learngraph resume RUN",
            )
        begin, end = self.started["data"], self.closing["data"]
        return {
            "run": self.started["run"],
            "content": end.get("content"),
            "ledger": {"events": self.count, "head": self.head},
            "started": self.started["at"],
            "finished": self.closing["at"],
            "actor": self.started["actor"],
            "tier": end.get("tier"),
            "status": end.get("status") or str(self.closing["type"]).removeprefix("run."),
            "isolation": begin.get("isolation"),
            "image": begin.get("image"),
            "environment": begin.get("environment"),
        }


def gather(events: Iterable[Mapping[str, Any]], into: Records) -> Iterator[bytes]:
    """The events as the lines of `ledger.jsonl`, while `into` takes note of them."""
    for event in events:
        into.add(event)
        yield canonical_json(event) + b"\n"


def gather_digest(events: Iterable[Mapping[str, Any]]) -> tuple[Records, str]:
    """The records, and the sha256 that `ledger.jsonl` has."""
    records, hasher = Records(), hashlib.sha256()
    for line in gather(events, records):
        hasher.update(line)
    return records, hasher.hexdigest()


def artifacts_named(event: Mapping[str, Any]) -> Iterator[str]:
    """sha256 of the artifacts an event names that lie under `artifacts/` in the folder.

    Those of `NAMED_FILES` have names of their own; hashes that name no artifact (`arguments_hash`, code hashes) are not
    meant. Named are `run.started`'s `source`, `cell.completed`'s `outputs`, every `artifacts` list, and every
    `{"$artifact": sha256}` wherever it stands. What is no SHA-256 names nothing: names become paths when a run is
    exported, and a ledger may come from a stranger.
    """
    return (sha for sha in _candidates(event) if isinstance(sha, str) and _SHA256.fullmatch(sha))


def _candidates(event: Mapping[str, Any]) -> Iterator[Any]:
    data = event["data"]
    if event["type"] == "run.started" and data.get("source"):
        yield data["source"]
    elif event["type"] == "cell.completed" and data.get("outputs"):
        yield data["outputs"]
    yield from data.get("artifacts") or ()
    yield from _references(data)


def _references(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        if set(value) == {"$artifact"}:
            yield value["$artifact"]
        else:
            for item in value.values():
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
