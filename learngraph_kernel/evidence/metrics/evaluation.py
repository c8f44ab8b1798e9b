"""Evaluating a set of metric cards against one run's book, under its version pins.

A set is evaluated in a *world*: one version of each metric. Without pins there is one world, the newest versions. Where
a pinned card has a newer version, the workflow's rule decides: `recompute` uses the new one, `dual` evaluates both
worlds, `incomparable` gives no value. What depends on such a metric is affected in the same way. There is no default
rule: a formal run stops. Only an exploratory run may go on without one, with the pinned version, and says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from decimal import Decimal
from typing import Literal, TypeAlias

from learngraph_kernel.evidence.metrics.arithmetic import Outcome, evaluate, substituted
from learngraph_kernel.evidence.metrics.card import CardLibrary, MetricCard, evaluation_order
from learngraph_kernel.evidence.metrics.errors import BindingError, CardError, MetricFailed, MetricVersionConflict
from learngraph_kernel.evidence.metrics.inputs import Reading, Surroundings, read_input
from learngraph_kernel.evidence.values import Book, MetricResult
from learngraph_kernel.naming import suggestion
from learngraph_kernel.versions import precedence

Rule: TypeAlias = Literal["recompute", "dual", "incomparable"]
World: TypeAlias = Mapping[str, MetricCard]


def evaluate_set(
    library: CardLibrary,
    name: str,
    bindings: Mapping[str, str],
    *,
    book: Book,
    pins: Mapping[str, str] | None = None,
    rule: Rule | None = None,
    formal: bool = False,
) -> list[MetricResult]:
    """All metrics of a set, in the order of the file.

    Args:
        name: the set.
        bindings: logical snapshot name → snapshot of this run, `{"week": "Q1"}`; a card may also name `Q1` itself.
        book: the run's inputs and snapshots; it is read, never changed.
        pins: metric → version the workflow was made for.
        rule: what a newer version of a pinned card means; None is no answer.
        formal: a conflict without a rule stops.

    Raises:
        CardError: unknown set, unknown pinned metric or version.
        MetricVersionConflict: a pinned card has a newer version and the run is formal and has no rule.
        BindingError: an input leads to no value (TruncatedInput, InexactInput).
        MetricFailed: a null or a division by zero, where the card says `error`.
    """
    pins = pins or {}
    newest = library.newest(name)
    _check_bindings(library, name, bindings)
    conflicts = _conflicts(library, name, newest, pins)
    if conflicts and rule is None:
        if formal:
            raise _conflict_error(name, conflicts, pins)
        pinned = _pinned_world(library, name, newest, pins)
        notes = {
            metric: f"pinned to version {pins[metric]}; version {card.version} exists"
            for metric, card in conflicts.items()
        }
        return _in_file_order(newest, _evaluate(pinned, bindings, book, notes=notes))
    if not conflicts or rule == "recompute":
        return _in_file_order(newest, _evaluate(newest, bindings, book))
    affected = _affected(newest, set(conflicts))
    if rule == "incomparable":
        blocked = {metric: _why_incomparable(metric, conflicts, pins, newest[metric]) for metric in affected}
        return _in_file_order(newest, _evaluate(newest, bindings, book, blocked=blocked))
    new = _evaluate(newest, bindings, book)
    old = _evaluate(_pinned_world(library, name, newest, pins), bindings, book)
    both = {
        metric: dataclasses.replace(result, also=old[metric]) if metric in affected else result
        for metric, result in new.items()
    }
    return _in_file_order(newest, both)


# ---------------------------------------------------------------------------------------------- versions


def _conflicts(library: CardLibrary, name: str, newest: World, pins: Mapping[str, str]) -> dict[str, MetricCard]:
    """Pinned metrics that have a newer version, with that version."""
    found = {}
    for metric, version in pins.items():
        if metric not in newest:
            raise CardError(
                f"the pinned metric {metric!r} is not in the set {name!r}",
                where="metrics",
                remedy=suggestion(metric, newest, kind="metrics"),
            )
        card = newest[metric]
        if precedence(card.version) > precedence(version):
            found[metric] = card
        elif card.version != version:
            _version(library, name, metric, version)
    return found


def _version(library: CardLibrary, name: str, metric: str, version: str) -> MetricCard:
    card = library.version(name, metric, version)
    if card is None:
        known = ", ".join(c.version for c in library.cards(name) if c.name == metric)
        raise CardError(
            f"metric {metric!r} is pinned to version {version}, which does not exist",
            where=f"metric set {name}",
            remedy=f"keep the old version in the file, or pin one of: {known}",
        )
    return card


def _pinned_world(library: CardLibrary, name: str, newest: World, pins: Mapping[str, str]) -> World:
    return {**newest, **{metric: _version(library, name, metric, version) for metric, version in pins.items()}}


def _conflict_error(name: str, conflicts: World, pins: Mapping[str, str]) -> MetricVersionConflict:
    pairs = "; ".join(f"{metric}: pinned {pins[metric]}, newest {card.version}" for metric, card in conflicts.items())
    return MetricVersionConflict(
        f"pinned metrics have newer versions ({pairs})",
        where=f"metric set {name}",
        remedy="state on_newer_metric in the notebook's metadata: recompute, dual or incomparable",
        details={
            m: {"pinned": pins[m], "newest": card.version, "origin": card.origin} for m, card in conflicts.items()
        },
    )


def _affected(world: World, roots: set[str]) -> set[str]:
    """The metrics in conflict and everything that depends on them."""
    found = set(roots)
    for metric in evaluation_order(world):
        if found & set(world[metric].depends_on):
            found.add(metric)
    return found


def _why_incomparable(metric: str, conflicts: World, pins: Mapping[str, str], card: MetricCard) -> str:
    if metric in conflicts:
        return f"version {card.version} is not comparable with the pinned version {pins[metric]}"
    return "depends on a metric whose versions are not comparable"


def _in_file_order(newest: World, results: Mapping[str, MetricResult]) -> list[MetricResult]:
    return [results[metric] for metric in newest]


def _check_bindings(library: CardLibrary, name: str, bindings: Mapping[str, str]) -> None:
    known = {snapshot for card in library.cards(name) for snapshot in card.snapshots}
    for logical in bindings:
        if logical not in known:
            raise BindingError(
                f"{logical!r} is bound, but no metric of the set {name!r} reads it",
                where=f"metric set {name}",
                remedy=suggestion(logical, known, kind="snapshot names"),
            )


# ---------------------------------------------------------------------------------------------- one world


def _evaluate(
    world: World,
    bindings: Mapping[str, str],
    book: Book,
    *,
    notes: Mapping[str, str] | None = None,
    blocked: Mapping[str, str] | None = None,
) -> dict[str, MetricResult]:
    """Every metric of a world, each after those it depends on.

    `notes` are kept as the reason of a metric that has a value; `blocked` metrics are not evaluated.
    """
    results: dict[str, MetricResult] = {}
    for metric in evaluation_order(world):
        card = world[metric]
        if blocked and metric in blocked:
            results[metric] = _result(card, None, "incomparable", blocked[metric], "", ())
            continue
        result = evaluate_card(card, Surroundings(book, bindings, results))
        note = (notes or {}).get(metric)
        if note is not None:
            reason = note if result.reason is None else f"{result.reason}; {note}"
            result = dataclasses.replace(result, reason=reason)
        results[metric] = result
    return results


def evaluate_card(card: MetricCard, around: Surroundings) -> MetricResult:
    """One card; `around.results` must hold the metrics it depends on. Raises as `evaluate_set`."""
    readings = tuple(read_input(card, item, around) for item in card.inputs)
    numbers = {reading.record.name: reading.number for reading in readings}
    outcome = evaluate(card.expression, numbers, null_is_zero=card.on_null == "zero")
    _stop_where_the_card_says_so(card, outcome, numbers, readings)
    value, reason = outcome.value, None
    if value is None and outcome.trouble == "zero_division" and card.on_zero_division == "zero":
        value, reason = Decimal(0), f"{outcome.detail}; the card says 0"
    elif value is None:
        reason = outcome.detail or _why_null(card, readings)
    state: Literal["ok", "missing"] = "missing" if value is None else "ok"
    return _result(card, value, state, reason, substituted(card.expression, numbers), readings)


def _stop_where_the_card_says_so(
    card: MetricCard, outcome: Outcome, numbers: Mapping[str, Decimal | None], readings: tuple[Reading, ...]
) -> None:
    filled = substituted(card.expression, numbers)
    if outcome.trouble == "zero_division" and card.on_zero_division == "error":
        raise MetricFailed(
            f"{outcome.detail}: {filled}",
            where=card.place,
            remedy="check the data, or let the card say on_zero_division: missing",
        )
    if outcome.trouble is None and outcome.value is None and card.on_null == "error":
        raise MetricFailed(
            f"{_why_null(card, readings)}: {filled}",
            where=card.place,
            remedy="check the data, or let the card say on_null: missing",
        )


def _why_null(card: MetricCard, readings: tuple[Reading, ...]) -> str:
    notes = [
        f"input {item.record.name}: {item.note}"
        for item in readings
        if item.note is not None and item.record.name in card.expression.names
    ]
    return "; ".join(notes) or "the expression gives null"


def _result(
    card: MetricCard,
    value: Decimal | None,
    state: Literal["ok", "missing", "incomparable"],
    reason: str | None,
    filled: str,
    readings: tuple[Reading, ...],
) -> MetricResult:
    return MetricResult(
        name=card.name,
        version=card.version,
        title=card.title,
        value=value,
        unit=card.unit,
        precision=card.precision,
        state=state,
        reason=reason,
        required=card.required,
        expression=card.expression.text,
        substituted=filled,
        inputs=tuple(reading.record for reading in readings),
        set=card.set,
        additivity=card.additivity,
    )
