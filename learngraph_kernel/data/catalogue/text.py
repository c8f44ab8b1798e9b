"""The text form: `catalog/SOURCE.yaml`, diffable, strict. A slip is told with its place and the nearest right word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml

from learngraph_kernel.data.catalogue.values import (
    Cardinality,
    Catalogue,
    ColumnFact,
    Measure,
    Origin,
    Relation,
    State,
    TableFact,
)
from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import suggestion

_TABLE = {"grain", "keys", "date", "valid", "dedupe", "title", "columns", "complete", "state", "source"}
_COLUMN = {"measure", "unit", "over", "codes", "type", "title", "masked", "state", "source"}
_RELATION = {"from", "to", "cardinality", "state", "source"}


class CatalogueError(BadInput):
    """The catalogue's text says something that is no fact about data."""

    code = "catalogue_invalid"


def load_catalogue(path: Path) -> Catalogue:
    """A catalogue from one file. Raises CatalogueError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogueError(f"the catalogue cannot be read: {error}", where=str(path)) from error
    return parse_catalogue(text, where=path.name)


def parse_catalogue(text: str, *, where: str = "catalogue") -> Catalogue:
    """A catalogue from its YAML. Raises CatalogueError naming the place."""
    try:
        body = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CatalogueError(f"not YAML: {error}", where=where) from error
    body = _mapping(body or {}, {"tables", "relations"}, where)
    tables = {
        str(name).casefold(): _table(str(name), facts, f"{where}: tables.{name}")
        for name, facts in _mapping(body.get("tables") or {}, None, f"{where}: tables").items()
    }
    relations = body.get("relations") or []
    if not isinstance(relations, list):
        raise CatalogueError("relations is not a list", where=where)
    read = tuple(_relation(facts, f"{where}: relations[{place}]") for place, facts in enumerate(relations))
    return Catalogue(tables, read)


def _table(name: str, facts: Any, where: str) -> TableFact:
    facts = _mapping(facts or {}, _TABLE, where)
    columns = {
        str(column).casefold(): _column(str(column), given, f"{where}.columns.{column}")
        for column, given in _mapping(facts.get("columns") or {}, None, f"{where}.columns").items()
    }
    keys = facts.get("keys") or []
    if not isinstance(keys, list):
        raise CatalogueError("keys is not a list of lists of columns", where=where)
    return TableFact(
        name,
        grain=_names(facts.get("grain"), f"{where}.grain"),
        keys=tuple(_names(key, f"{where}.keys") for key in keys),
        date=_text(facts.get("date"), f"{where}.date"),
        valid=_text(facts.get("valid"), f"{where}.valid"),
        dedupe=_text(facts.get("dedupe"), f"{where}.dedupe"),
        title=_titles(facts.get("title"), f"{where}.title"),
        columns=columns,
        complete=_flag(facts.get("complete"), f"{where}.complete"),
        state=_word(facts.get("state"), State, f"{where}.state"),
        source=_word(facts.get("source"), Origin, f"{where}.source"),
    )


def _column(name: str, facts: Any, where: str) -> ColumnFact:
    facts = _mapping(facts or {}, _COLUMN, where)
    return ColumnFact(
        name,
        measure=_word(facts.get("measure"), Measure, f"{where}.measure"),
        unit=_text(facts.get("unit"), f"{where}.unit"),
        over=_names(facts.get("over"), f"{where}.over"),
        codes={str(k): str(v) for k, v in _mapping(facts.get("codes") or {}, None, f"{where}.codes").items()},
        type=_text(facts.get("type"), f"{where}.type"),
        title=_titles(facts.get("title"), f"{where}.title"),
        masked=_flag(facts.get("masked"), f"{where}.masked"),
        state=_word(facts.get("state"), State, f"{where}.state"),
        source=_word(facts.get("source"), Origin, f"{where}.source"),
    )


def _relation(facts: Any, where: str) -> Relation:
    facts = _mapping(facts, _RELATION, where)
    left, left_columns = _end(facts.get("from"), f"{where}.from")
    right, right_columns = _end(facts.get("to"), f"{where}.to")
    if len(left_columns) != len(right_columns):
        raise CatalogueError("from and to name a different number of columns", where=where)
    cardinality = _word(facts.get("cardinality"), Cardinality, f"{where}.cardinality")
    if cardinality is None:
        raise CatalogueError("a relation needs its cardinality", where=where, remedy="e.g. many-to-one")
    return Relation(
        left,
        right,
        tuple(zip(left_columns, right_columns, strict=True)),
        cardinality,
        state=_word(facts.get("state"), State, f"{where}.state"),
        source=_word(facts.get("source"), Origin, f"{where}.source"),
    )


def _end(given: Any, where: str) -> tuple[str, tuple[str, ...]]:
    """`[orders.customer_id]` → table and columns; all of one table."""
    names = _names(given, where)
    if not names:
        raise CatalogueError("names no column", where=where, remedy="write [table.column]")
    split = [name.rpartition(".") for name in names]
    tables = {table.casefold() for table, _, _ in split}
    if len(tables) != 1 or "" in tables:
        raise CatalogueError(f"{list(names)} are not columns of one table", where=where, remedy="write [table.column]")
    return split[0][0], tuple(column for _, _, column in split)


def _mapping(given: Any, known: set[str] | None, where: str) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise CatalogueError("not a mapping", where=where)
    for key in given:
        if known is not None and key not in known:
            raise CatalogueError(f"unknown key {key!r}", where=where, remedy=suggestion(str(key), known, kind="keys"))
    return given


def _names(given: Any, where: str) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Sequence) or not all(isinstance(name, str) and name for name in given):
        raise CatalogueError("not a list of names", where=where)
    return tuple(given)


def _text(given: Any, where: str) -> str | None:
    if given is not None and not isinstance(given, str):
        raise CatalogueError(f"{given!r} is not a text", where=where)
    return given


def _flag(given: Any, where: str) -> bool:
    if given is not None and not isinstance(given, bool):
        raise CatalogueError(f"{given!r} is not true or false", where=where)
    return bool(given)


def _titles(given: Any, where: str) -> dict[str, str]:
    if isinstance(given, str):
        return {"en": given}
    return {str(language): str(text) for language, text in _mapping(given or {}, None, where).items()}


def _word(given: Any, words: Any, where: str) -> Any:
    known = get_args(words)
    if given is not None and given not in known:
        raise CatalogueError(f"unknown word {given!r}", where=where, remedy=suggestion(str(given), known, kind="words"))
    return given
