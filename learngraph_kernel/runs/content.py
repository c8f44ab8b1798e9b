"""The content document: what a run *is*, without when, where and by whom it was run.

It is computed from the run's own records (ledger events, the executed notebook, the report, the result) by
`content_of_run`, once by the engine before it seals and once more by `verify` from the exported files, so that the two
can't drift apart. Its canonical bytes hash to the `content` hash that `rerun` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from learngraph_kernel.canonical import digest, sha256_hex
from learngraph_kernel.runs.injection import INJECTED
from learngraph_kernel.runs.outputs import OWN_RUN, canonical_outputs, joined

__all__ = [
    "FORMAT",
    "ContentRecords",
    "canonical_outputs",
    "code_entries",
    "content_document",
    "content_hash",
    "content_of_run",
    "explain_difference",
    "input_entries",
    "metric_entries",
    "output_entries",
    "run_free_digest",
]

FORMAT = "learngraph-content-v1"

_ERROR_MARKS = frozenset({"papermill-error-cell-tag"})  # cells papermill adds to a failed notebook
_SNAPSHOT_METHODS = frozenset({"query", "merge"})
_METRIC_METHODS = frozenset({"metrics"})

ReadJson = Callable[[str], Any]
"""sha256 of a JSON artifact → its value."""


def content_document(
    *,
    code: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, Any],
    inputs: Sequence[Mapping[str, Any]],
    metrics: Sequence[Mapping[str, Any]],
    image: str | None,
    outputs: Sequence[Mapping[str, Any]],
    report: str | None,
    result: str | None,
) -> dict[str, Any]:
    """The content document from its parts (formats: docs/architecture.md); values are tagged JSON."""
    return {
        "format": FORMAT,
        "code": [dict(item) for item in code],
        "parameters": dict(parameters),
        "inputs": [dict(item) for item in inputs],
        "metrics": [dict(item) for item in metrics],
        "image": image,
        "outputs": [dict(item) for item in outputs],
        "report": report,
        "result": result,
    }


def content_hash(document: Mapping[str, Any]) -> str:
    """The `content` hash: SHA-256 of the document's canonical bytes."""
    return digest(document)


def content_of_run(
    events: Iterable[Mapping[str, Any]],
    notebook: Mapping[str, Any] | None,
    *,
    report: bytes | None,
    result: bytes | None,
    read_json: ReadJson,
) -> dict[str, Any]:
    """The content document of a run, from its records alone.

    Args:
        events: the run's ledger events as JSON, in order (those after the seal are passed over).
        notebook: the executed notebook as nbformat 4 JSON, or None when the run has none.
        report: bytes of the report document.
        result: bytes of the result.
        read_json: reads a JSON artifact, for answers too large to stand in their event.
    """
    gathered = ContentRecords(read_json)
    for event in events:
        gathered.add(event)
    return gathered.document(notebook, report=report, result=result)


@dataclass(slots=True)
class ContentRecords:
    """`content_of_run` one event at a time, for whoever is reading the ledger anyway."""

    read_json: ReadJson
    run_id: str | None = None
    started: Mapping[str, Any] = field(default_factory=dict)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes the next event in; those after the seal are passed over."""
        if event["after_seal"]:
            return
        if event["type"] == "run.started":
            self.run_id, self.started = event["run"], event["data"]
        elif event["type"] == "call.completed":
            self.inputs += input_entries(event["data"], self.read_json)
            self.metrics += metric_entries(event["data"], self.read_json)

    def document(
        self, notebook: Mapping[str, Any] | None, *, report: bytes | None, result: bytes | None
    ) -> dict[str, Any]:
        """The content document; the arguments are those of `content_of_run`."""
        return content_document(
            code=code_entries(notebook or {}),
            parameters=self.started.get("parameters") or {},
            inputs=self.inputs,
            metrics=self.metrics,
            image=self.started.get("image"),
            outputs=output_entries(notebook or {}, run_id=self.run_id),
            report=None if report is None else run_free_digest(report, self.run_id),
            result=None if result is None else run_free_digest(result, self.run_id),
        )


def run_free_digest(data: bytes, run_id: str | None) -> str:
    """SHA-256 of bytes in which the run's own id is replaced: a report names its run in every opening."""
    return sha256_hex(data.replace(run_id.encode(), OWN_RUN.encode()) if run_id else data)


def code_entries(notebook: Mapping[str, Any]) -> list[dict[str, str]]:
    """One entry a cell: id, type, SHA-256 of its source."""
    return [
        {"id": name, "type": str(cell.get("cell_type")), "sha256": sha256_hex(_utf8(joined(cell.get("source", ""))))}
        for name, cell in _named_cells(notebook)
    ]


def output_entries(notebook: Mapping[str, Any], *, run_id: str | None = None) -> list[dict[str, str]]:
    """One entry a code cell: id, SHA-256 of its canonical outputs."""
    return [
        {"cell": name, "sha256": digest(canonical_outputs(cell, run_id=run_id))}
        for name, cell in _named_cells(notebook)
        if cell.get("cell_type") == "code"
    ]


def _named_cells(notebook: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    named = []
    for index, cell in enumerate(notebook.get("cells") or ()):
        tags = set((cell.get("metadata") or {}).get("tags") or ())
        if tags & _ERROR_MARKS:
            continue
        # The injected cell's id is random under papermill, so its tag stands for it; nbformat before 4.5 has no ids, so
        # there the place does.
        named.append((INJECTED if INJECTED in tags else str(cell.get("id", f"#{index}")), cell))
    return named


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def input_entries(call: Mapping[str, Any], read_json: ReadJson) -> list[dict[str, Any]]:
    """What a completed call brought in.

    A `query` or `merge` answers with its snapshot's record (`SnapshotInfo`), an `acquired` with what it gave.
    """
    if call.get("method") == "acquired":
        given = _resolved(call.get("result"), read_json)
        name = f"acquired/{given['name']}" + (f"/{given['file']}" if given["file"] else "")
        return [{"ref": name, "source": given["url"], "sql": None, "artifact": given["content"]}]
    if call.get("method") not in _SNAPSHOT_METHODS:
        return []
    info = _resolved(call.get("result"), read_json)
    info = info.get("snapshot", info)
    return [{key: info[key] for key in ("ref", "source", "sql", "artifact")}]


def metric_entries(call: Mapping[str, Any], read_json: ReadJson) -> list[dict[str, Any]]:
    """The evaluations of a completed `metrics` call: `{"metrics": [{"set", "name", "version", "value", "state", …}]}`.

    Under the `dual` rule the pinned evaluation (`also`) follows the newer one.
    """
    if call.get("method") not in _METRIC_METHODS:
        return []
    entries = []
    for item in _resolved(call.get("result"), read_json)["metrics"]:
        evaluation: Mapping[str, Any] | None = item
        while evaluation:
            entry = {key: evaluation[key] for key in ("set", "name", "version", "state")}
            entries.append({**entry, "value": _plain(evaluation["value"]), "card": evaluation.get("card")})
            evaluation = evaluation.get("also")
    return entries


def _resolved(value: Any, read_json: ReadJson) -> Any:
    if isinstance(value, Mapping) and set(value) == {"$artifact"}:
        return read_json(value["$artifact"])
    return value


def _plain(value: Any) -> str | None:
    """A decimal as its digits; tagged or not."""
    if isinstance(value, Mapping):
        (value,) = value.values()
    return None if value is None else str(value)


def explain_difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """What differs between two content documents, one line each, in the reader's words; empty when they agree."""
    lines: list[str] = []
    lines += _listed("cell", a["code"], b["code"], _label("id"), {"sha256": "code", "type": "type"})
    lines += _mapping("parameter", a["parameters"], b["parameters"])
    facets = {"source": "source", "sql": "SQL", "artifact": "snapshot"}
    lines += _listed("input", a["inputs"], b["inputs"], _label("ref"), facets)
    facets = {"version": "version", "value": "value", "state": "state", "card": "card"}
    lines += _listed("metric", a["metrics"], b["metrics"], _label("set", "name"), facets)
    # A cell that only one run has was named above; its output says nothing more.
    named = {cell["id"] for cell in a["code"]} ^ {cell["id"] for cell in b["code"]}
    left, right = ([item for item in side["outputs"] if item["cell"] not in named] for side in (a, b))
    lines += _listed("cell", left, right, _label("cell"), {"sha256": "output"})
    for key in ("format", "image", "report", "result"):
        if a[key] != b[key]:
            lines.append(f"{key}: {_short(a[key])} ≠ {_short(b[key])}")
    return lines


Label = Callable[[Mapping[str, Any]], str]


def _label(*keys: str) -> Label:
    return lambda item: "/".join(str(item[key]) for key in keys if item.get(key))


def _listed(
    noun: str, a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]], label: Label, facets: Mapping[str, str]
) -> list[str]:
    left, right = _labelled(a, label), _labelled(b, label)
    lines = [f"{noun} {name}: only in the first" for name in left if name not in right]
    lines += [f"{noun} {name}: only in the second" for name in right if name not in left]
    lines += [
        f"{noun} {name}: {words} {_short(item.get(facet))} ≠ {_short(right[name].get(facet))}"
        for name, item in left.items()
        if name in right
        for facet, words in facets.items()
        if item.get(facet) != right[name].get(facet)
    ]
    if not lines and list(left) != list(right):
        lines.append(f"{noun}s: in another order")
    return lines


def _labelled(items: Sequence[Mapping[str, Any]], label: Label) -> dict[str, Mapping[str, Any]]:
    """Items by name; the second evaluation of one metric is `name (2)`."""
    named: dict[str, Mapping[str, Any]] = {}
    seen: dict[str, int] = {}
    for item in items:
        name = label(item)
        seen[name] = seen.get(name, 0) + 1
        named[name if seen[name] == 1 else f"{name} ({seen[name]})"] = item
    return named


def _mapping(noun: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    absent = object()
    return [
        f"{noun} {name}: {_side(a, name)} ≠ {_side(b, name)}"
        for name in sorted({*a, *b})
        if a.get(name, absent) != b.get(name, absent)
    ]


def _side(values: Mapping[str, Any], name: str) -> str:
    return _short(values[name]) if name in values else "(not given)"


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    if len(text) == 64 and all(digit in "0123456789abcdef" for digit in text):
        return text[:12]
    return text if len(text) <= 80 else text[:77] + "…"
