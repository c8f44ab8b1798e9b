"""`lg.metrics`: metric cards evaluated on the runtime's side."""

from __future__ import annotations

from typing import Any

from learngraph_kernel.broker.methods.base import BadCall, Method, text_argument
from learngraph_kernel.broker.state import RunState
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.canonical import encode_value
from learngraph_kernel.evidence.html.notebook import mimebundle_for_metrics
from learngraph_kernel.evidence.metrics import CardLibrary, card_hash, evaluate_set, library_of, read_card_texts
from learngraph_kernel.evidence.openings import metric_opening
from learngraph_kernel.evidence.values import MetricResult


class MetricsCall(Method):
    """Evaluates a set. The cards' own text is recorded too, so that a rerun evaluates what was evaluated then."""

    name = "metrics"

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        name, bindings = text_argument(arguments, "set"), arguments.get("bindings") or {}
        for logical, ref in bindings.items():
            if ref not in state.book.snapshots:
                raise BadCall(f"{logical!r} is bound to {ref!r}, which is no snapshot of this run")
        cards = state.cards or state.artifacts.put_json(read_card_texts(state.workspace.root / "metrics"))
        library = library_of(state.artifacts.read_json(cards))
        results = evaluate_set(
            library,
            name,
            bindings,
            book=state.book,
            pins=state.metric_pins.get(name, {}),
            rule=state.on_newer_metric,
            formal=state.formal,
        )
        return {"cards": cards, "metrics": [_recorded(result, library) for result in results]}

    def apply(self, state: RunState, arguments: dict[str, Any], result: Any) -> None:
        for body in result["metrics"]:
            metric = MetricResult.from_json(body)
            state.book.metrics[metric.name] = metric

    def present(self, state: RunState, result: Any) -> Any:
        results = [MetricResult.from_json(body) for body in result["metrics"]]
        return {
            "bundle": _bundle(results, state),
            "metrics": [
                {
                    "name": item.name,
                    "value": encode_value(item.value),
                    "unit": item.unit,
                    "state": item.state,
                    "reason": item.reason,
                    "bundle": _bundle([item], state),
                }
                for item in results
            ],
        }

    def artifacts(self, result: Any) -> list[str]:
        return [result["cards"]]


def _recorded(result: MetricResult, library: CardLibrary) -> dict[str, Any]:
    """A result with its card's hash: a card edited without a new version must show up in a comparison."""
    card = library.version(result.set, result.name, result.version)
    return {**result.as_json(), "card": None if card is None else card_hash(card)}


def _bundle(results: list[MetricResult], state: RunState) -> dict[str, Any]:
    openings = {item.name: metric_opening(item, state.book, state.language) for item in results}
    return mimebundle_for_metrics(results, openings, language=state.language, run=state.run_id)
