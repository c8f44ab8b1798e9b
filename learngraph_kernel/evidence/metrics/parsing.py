"""From YAML to metric cards, strictly: every message has the file, the line and the metric.

A misspelt key, a key written twice or a version read as a float would change what a number means without anyone
noticing, so each is an error. Pure: text in, cards out.
"""

from __future__ import annotations

import reprlib
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import yaml

from learngraph_kernel.evidence.metrics.bindings import parse_binding
from learngraph_kernel.evidence.metrics.card import CardInput, MetricCard
from learngraph_kernel.evidence.metrics.errors import CardError
from learngraph_kernel.evidence.metrics.expression import parse_expression
from learngraph_kernel.evidence.metrics.tree import FUNCTIONS
from learngraph_kernel.naming import suggestion
from learngraph_kernel.versions import is_version

MAX_CHARACTERS = 1_000_000
MAX_DISPLAY_DIGITS = 30


class _Lines(dict[Any, Any]):
    """A YAML mapping that knows the line of each key."""

    line: int
    lines: Mapping[Any, int]


class _Loader(yaml.SafeLoader):
    """SafeLoader that keeps lines, refuses a key written twice, and reads dates as text."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # PyYAML's own shape
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> _Lines:
    lines: dict[Any, int] = {}
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            raise yaml.constructor.ConstructorError(None, None, "`<<` merges are not read here", key_node.start_mark)
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool | None):
            raise yaml.constructor.ConstructorError(None, None, "a key must be plain text", key_node.start_mark)
        if key in lines:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} stands twice", key_node.start_mark)
        lines[key] = key_node.start_mark.line + 1
    result = _Lines(loader.construct_mapping(node, deep=True))
    result.line, result.lines = node.start_mark.line + 1, lines
    return result


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def parse_cards(text: str, origin: str) -> list[MetricCard]:
    """The cards of one file.

    Args:
        text: the YAML.
        origin: the file's path as messages should show it; its stem names the set unless the file does.

    Raises:
        CardError: with file, line, metric and remedy.
    """
    body = _load(text, origin)
    if not isinstance(body, _Lines):
        raise CardError("the file is not a mapping", where=origin, remedy="start with `metrics:` and a list of cards")
    _known_keys(body, ("set", "metrics"), origin, "the file")
    name = body.get("set", PurePath(origin).stem)
    if not isinstance(name, str) or not name:
        raise CardError(
            "`set` must be a name", where=f"{origin}:{body.lines['set']}", remedy="write `set: flights_weekly`"
        )
    items = body.get("metrics")
    if not isinstance(items, list) or not items:
        raise CardError(
            "`metrics` must be a list of cards", where=origin, remedy="write `metrics:` and `- name: …` below it"
        )
    return [_card(item, name, origin, index) for index, item in enumerate(items)]


def _load(text: str, origin: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise CardError(
            f"the file is longer than {MAX_CHARACTERS} characters", where=origin, remedy="split it into sets"
        )
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{origin}:{mark.line + 1}" if mark else origin
        raise CardError(
            f"not valid YAML: {error.problem}", where=place, remedy="quote texts that start with % or {"
        ) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CardError(f"not valid YAML: {error}", where=origin, remedy="save the file as plain UTF-8 YAML") from error


def _known_keys(body: _Lines, known: tuple[str, ...], origin: str, what: str) -> None:
    for key in body:
        if key not in known:
            raise CardError(
                f"unknown key {key!r} in {what}",
                where=f"{origin}:{body.lines[key]}",
                remedy=suggestion(str(key), known, kind="keys"),
            )


def _card(body: Any, set_name: str, origin: str, index: int) -> MetricCard:
    if not isinstance(body, _Lines):
        raise CardError(f"metric number {index + 1} is not a mapping", where=origin, remedy="write `- name: …`")
    named = body.get("name")
    label = f"metric {named}" if isinstance(named, str) else f"metric number {index + 1}"
    _known_keys(body, (*_FIELDS, "inputs", "expression"), origin, label)
    for key in ("name", "version", "expression"):
        if key not in body:
            raise CardError(f"`{key}` is missing", where=f"{origin}:{body.line}: {label}", remedy=f"add `{key}: …`")
    values = {}
    for key, read in _FIELDS.items():
        if key in body:
            values[key] = read(body[key], f"{origin}:{body.lines[key]}: {label}", key)
    values.setdefault("title", {"en": values["name"]})
    inputs = _inputs(body, origin, label)
    place = f"{origin}:{body.lines['expression']}: {label}"
    text = _text(body["expression"], place, "expression")
    expression = parse_expression(text, {item.name for item in inputs}, where=place)
    return MetricCard(set=set_name, inputs=inputs, expression=expression, origin=f"{origin}:{body.line}", **values)


def _inputs(body: _Lines, origin: str, label: str) -> tuple[CardInput, ...]:
    if "inputs" not in body:
        return ()
    given = body["inputs"]
    if not isinstance(given, _Lines):
        place = f"{origin}:{body.lines['inputs']}: {label}"
        raise _wrong(place, "inputs", "a mapping such as {flown: sum(week.flown)}", given)
    found = []
    for name, text in given.items():
        place = f"{origin}:{given.lines[name]}: {label}, input {name}"
        usable = isinstance(name, str) and name.isidentifier() and unicodedata.normalize("NFKC", name) == name
        if not usable or name in FUNCTIONS or name in ("None", "and", "or", "not", "if", "else", "in", "is"):
            raise CardError(
                f"{name!r} cannot name an input", where=place, remedy="use a word that is no function or keyword"
            )
        found.append(
            CardInput(name, _text(text, place, "binding"), parse_binding(_text(text, place, "binding"), where=place))
        )
    return tuple(found)


# ---------------------------------------------------------------------------------------------- fields


def _wrong(place: str, key: str, expected: str, got: Any) -> CardError:
    return CardError(f"`{key}`: expected {expected}, got {reprlib.repr(got)}", where=place)


def _text(value: Any, place: str, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(place, key, "text", value)
    return value


def _name(value: Any, place: str, key: str) -> str:
    if not isinstance(value, str) or not value.isidentifier():
        raise _wrong(place, key, "a name of letters, digits and _", value)
    return value


def _version(value: Any, place: str, key: str) -> str:
    if not isinstance(value, str) or not is_version(value):
        raise _wrong(place, key, "a semantic version with three parts, such as 1.0.0", value)
    return value


def _title(value: Any, place: str, key: str) -> dict[str, str]:
    if isinstance(value, str):
        return {"en": value}
    if (
        not isinstance(value, dict)
        or not value
        or not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items())
    ):
        raise _wrong(place, key, "text, or texts by language such as {en: Flights, zh: 航班}", value)
    return dict(value)


def _unit(value: Any, place: str, key: str) -> str | None:
    return None if value is None else _text(value, place, key)


def _precision(value: Any, place: str, key: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_DISPLAY_DIGITS:
        raise _wrong(place, key, f"a whole number from 0 to {MAX_DISPLAY_DIGITS}", value)
    return value


def _flag(value: Any, place: str, key: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(place, key, "true or false", value)
    return value


def _one_of(*allowed: str) -> Callable[[Any, str, str], Any]:
    def read(value: Any, place: str, key: str) -> str:
        if value not in allowed:
            raise _wrong(place, key, "one of " + ", ".join(allowed), value)
        return str(value)

    return read


_FIELDS: dict[str, Callable[[Any, str, str], Any]] = {
    "name": _name,
    "version": _version,
    "title": _title,
    "unit": _unit,
    "precision": _precision,
    "additivity": _one_of("sum", "semi-additive", "ratio", "none"),
    "required": _flag,
    "on_null": _one_of("missing", "zero", "error"),
    "on_zero_division": _one_of("missing", "zero", "error"),
    "exact": _flag,
    "description": _text,
}
