"""The calls that need nothing but the run's own state."""

from __future__ import annotations

import html
import json
import re
from decimal import Decimal
from typing import Any

from learngraph_kernel.broker.methods.base import BadCall, Method, text_argument
from learngraph_kernel.broker.state import RunState
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.canonical import JSON_SAFE_INTEGER, decode_value, encode_value
from learngraph_kernel.naming import suggestion
from learngraph_kernel.schemas import check_schema, violations

COMPONENT_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{1,119}$")
MAX_CARD_BYTES = 64 * 1024


class InputCall(Method):
    """`lg.input(name)`: a run parameter."""

    name = "input"

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        name = text_argument(arguments, "name")
        record = state.book.inputs.get(name)
        if record is None:
            raise BadCall(
                f"the run has no parameter {name!r}", remedy=suggestion(name, state.book.inputs, kind="parameters")
            )
        return {"value": encode_value(record.value)}


class ValidateCall(Method):
    """`lg.validate(value, schema)`: a JSON Schema check with every error and its path."""

    name = "validate"

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        schema = arguments.get("schema")
        if not isinstance(schema, dict):
            raise BadCall("the schema must be an object")
        check_schema(schema, where="lg.validate")
        found = violations(arguments.get("value"), schema)
        errors = [{"path": item.path, "message": f"expected {item.expected}, got {item.got}"} for item in found]
        return {"valid": not errors, "errors": errors}


class LogCall(Method):
    """`lg.log(message, **fields)`: a line in the ledger (the call's own record is the line)."""

    name = "log"

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        text_argument(arguments, "message")
        return {}


class OutputCall(Method):
    """`lg.output(**fields)`: the run's result as plain values, with the references they were given by beside them."""

    name = "output"

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        if state.output is not None:
            raise BadCall("lg.output was called twice", remedy="give all fields in one call")
        references: dict[str, str] = {}
        fields = arguments.get("fields") or {}
        values = {name: _resolve(item, state, name, references) for name, item in fields.items()}
        return {"values": values, "references": references}

    def apply(self, state: RunState, arguments: dict[str, Any], result: Any) -> None:
        state.output = result

    def present(self, state: RunState, result: Any) -> Any:
        return {}


def _resolve(item: dict[str, Any], state: RunState, path: str, references: dict[str, str]) -> Any:
    """An output field as `api._as_output` wrapped it."""
    if "object" in item:
        return {name: _resolve(part, state, f"{path}.{name}", references) for name, part in item["object"].items()}
    if "array" in item:
        return [_resolve(part, state, f"{path}[{n}]", references) for n, part in enumerate(item["array"])]
    if "ref" in item:
        references[path] = item["ref"]
        return _referenced(item["ref"], state)
    return item["value"]


def _referenced(ref: str, state: RunState) -> Any:
    metric = state.book.metrics.get(ref.removeprefix("m:"))
    if metric is not None:
        return None if metric.value is None else json_number(metric.value)
    snapshot = state.book.snapshots.get(ref)
    if snapshot is None:
        raise BadCall(f"output refers to {ref!r}, which this run does not have")
    return {"artifact": snapshot.info.artifact, "row_count": snapshot.info.row_count}


def json_number(value: Decimal) -> int | float:
    """A decimal as the JSON number nearest to it; whole numbers stay whole where JSON can hold them exactly."""
    whole = value.to_integral_value()
    return int(whole) if whole == value and abs(whole) <= JSON_SAFE_INTEGER else float(value)


class CardCall(Method):
    """`lg.card(component, data)`: a static card."""

    name = "card"

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        component, data = text_argument(arguments, "component"), arguments.get("data")
        if not COMPONENT_ID.match(component):
            raise BadCall(
                f"{component!r} is no component id", remedy="letters, digits, '.', '_' and '-', 2 to 120 of them"
            )
        if not isinstance(data, dict):
            raise BadCall("a card's data must be an object")
        if len(json.dumps(data).encode()) > MAX_CARD_BYTES:
            raise BadCall(f"a card's data may have {MAX_CARD_BYTES // 1024} KB at most")
        return {"component": component, "data": data}

    def present(self, state: RunState, result: Any) -> Any:
        component, data = result["component"], result["data"]
        text = json.dumps(data, ensure_ascii=False, indent=2, sort_keys=True)
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(str(key))}</th><td>{html.escape(_shown(value))}</td></tr>'
            for key, value in data.items()
        )
        return {
            "bundle": {
                "application/vnd.learngraph.card+json": {"component": component, "data": data},
                "text/html": f"<table><caption>{html.escape(component)}</caption>{rows}</table>",
                "text/plain": f"{component}\n{text}",
            }
        }


def _shown(value: Any) -> str:
    plain = decode_value(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(plain, dict | list) else str(plain)
