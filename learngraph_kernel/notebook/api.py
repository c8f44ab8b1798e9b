"""The functions of `lg`; each is one recorded call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from learngraph_kernel.canonical import decode_value
from learngraph_kernel.notebook.client import client
from learngraph_kernel.notebook.handles import Answer, Metric, Metrics, Report, Shown, Snapshot, Verdict
from learngraph_kernel.notebook.position import where_am_i

if TYPE_CHECKING:
    from pathlib import Path


def _call(method: str, **params: Any) -> Any:
    return client.call(method, **params, at=where_am_i())


def input(name: str) -> Any:
    """The value of a run parameter; cite it as `[[i:name]]`.

    Outside a run nobody has bound parameters: there it is the notebook's own variable of that name, as the cell tagged
    `parameters` (or papermill) has set it.

    Raises:
        CallRefused: the notebook declares no such parameter (the closest name is in the message).
    """
    return decode_value(client.call("input", name=name, at=where_am_i(variable=name))["value"])


def query(source: str, sql: str, **parameters: Any) -> Snapshot:
    """Runs a read-only query and stores its result as the next snapshot (`Q1`, `Q2`, …).

    Args:
        source: a source declared in learngraph.toml.
        sql: one SELECT (or WITH, set operation, DESCRIBE, SUMMARIZE); `:name` stands for a parameter.
        parameters: values for the `:name` marks: None, bool, int, float, Decimal, str, date, datetime.

    Raises:
        CallRefused: `sql_refused`, `unknown_source`, `query_failed`, `query_timeout`, …
    """
    return Snapshot(_call("query", source=source, sql=sql, parameters=parameters))


def acquired(name: str, file: str | None = None) -> Path:
    """The path of something that was taken in from outside (`learngraph sandbox acquire … --as NAME`), read-only.

    Args:
        name: as in learngraph.toml.
        file: of a repository, the file's path in it.

    Returns: a file that has exactly the pinned bytes; its name is their hash, so give a reader its format.

    Raises:
        CallRefused: `unknown_acquired`, `acquired_missing`, or a repository without a file's name.
    """
    from pathlib import Path

    return Path(_call("acquired", name=name, file=file)["path"])


def cell(ref: str) -> Any:
    """The value of one snapshot cell, by reference: `lg.cell("Q1.r0.flights")`."""
    return decode_value(_call("cell", ref=ref)["value"])


def metrics(set: str, bindings: Mapping[str, Snapshot | str] | None = None) -> Metrics:
    """Evaluates the metric cards of a set on the runtime's side.

    Args:
        set: name of a file (or its `set:`) under `metrics/`.
        bindings: which snapshot each name used in the cards stands for, e.g. `{"week": week_snapshot}`.
    """
    refs = {name: item.ref if isinstance(item, Snapshot) else item for name, item in (bindings or {}).items()}
    return Metrics(_call("metrics", set=set, bindings=refs))


def ask(question: str, *, context: Sequence[Any] = (), schema: Mapping[str, Any] | None = None) -> Answer:
    """Asks the configured model.

    Args:
        question: what to do.
        context: handles or plain values the model may see; handles are passed by reference and summarised by the
        runtime.
        schema: JSON Schema of the answer; the parsed value is then in `.value`.
    """
    return Answer(_call("ask", question=question, context=[_as_context(item) for item in context], schema=schema))


def validate(value: Any, schema: Mapping[str, Any]) -> Verdict:
    """Checks a JSON value against a JSON Schema."""
    return Verdict(_call("validate", value=value, schema=schema))


def report(text: str | Answer) -> Report:
    """Makes a report document from Markdown with citations.

    Raises:
        CallRefused: in a formal run, when a number is bare or a citation does not resolve; `details` lists them all.
    """
    if isinstance(text, Answer):
        return Report(_call("report", text=text.text, answer=text.ref))
    return Report(_call("report", text=text, answer=None))


def output(**fields: Any) -> None:
    """Sets the run's result. Metrics stay references; bare numbers count as uncited."""
    _call("output", fields={name: _as_output(value) for name, value in fields.items()})


def card(component: str, data: Mapping[str, Any]) -> Shown:
    """A static card: data shown by a component, never markup or script."""
    return Shown(_call("card", component=component, data=data)["bundle"])


def log(message: str, **fields: Any) -> None:
    """Writes a line to the run's ledger."""
    _call("log", message=message, fields=fields)


def _as_context(item: Any) -> Any:
    return {"ref": item.ref} if isinstance(item, Snapshot | Metric | Answer) else {"value": item}


def _as_output(value: Any) -> Any:
    if isinstance(value, Metric | Snapshot):
        return {"ref": value.ref}
    if isinstance(value, Mapping):
        return {"object": {name: _as_output(item) for name, item in value.items()}}
    if isinstance(value, list | tuple):
        return {"array": [_as_output(item) for item in value]}
    return {"value": value}
