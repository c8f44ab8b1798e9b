"""Text from a command line, and the typed values it may stand for.

Text has no type of its own. It takes the declared one when nothing is lost on the way; where nothing is declared it is
read exactly as papermill reads `-p name text`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class RawText:
    """A value typed on a command line (`-p name value`): text whose type the declaration decides."""

    text: str


def candidates(given: Any, schema: Mapping[str, Any]) -> list[Any]:
    """The values that `given` may stand for, best first; none when its text cannot be any of the declared types."""
    if not isinstance(given, RawText):
        return [given]
    text, types = given.text, schema.get("type")
    if types is None:
        members = [item for item in schema.get("enum", []) if text in (item, json.dumps(item))]
        return members or ([resolve_text(text), text] if schema else [resolve_text(text)])
    wanted = [types] if isinstance(types, str) else list(types)
    readers = [("null", _as_null), ("boolean", _as_bool), ("integer", _as_int), ("number", _as_float)]
    found = [value for kind, read in readers if kind in wanted for value in read(text)]
    if "string" in wanted:
        # Beside a string, another type only wins where it writes the very same text: `07` is not 7.
        found = [value for value in found if str(value) == text or json.dumps(value) == text]
        found.append(text)
    if {"array", "object"} & set(wanted):
        found += _as_json(text)
    return found


def _as_null(text: str) -> list[Any]:
    return [None] if text in ("None", "null") else []


def _as_bool(text: str) -> list[Any]:
    return [text in ("True", "true")] if text in ("True", "true", "False", "false") else []


def _as_int(text: str) -> list[Any]:
    return [int(text.partition(".")[0])] if re.fullmatch(r"[+-]?[0-9]{1,4000}(\.0+)?", text) else []


def _as_float(text: str) -> list[Any]:
    if re.fullmatch(r"[+-]?[0-9]{1,15}", text):
        return [int(text)]
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", text):
        return []
    value = float(text)
    # A float that is not the number typed would be a silent change.
    return [value] if math.isfinite(value) and Decimal(repr(value)) == Decimal(text) else []


def _as_json(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except ValueError:
        return []


def resolve_text(text: str) -> bool | int | float | str | None:
    """What papermill makes of `-p name text`: True, False, None, an int, a float, else the text itself."""
    constants: dict[str, bool | None] = {"True": True, "False": False, "None": None}
    if text in constants:
        return constants[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
