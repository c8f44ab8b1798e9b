"""A third party's schema made fit for the guard: closed and bounded, never laxer in what reaches anybody unasked.

Servers rarely close their objects or bound their texts. What such a schema says beyond types and bounds (`pattern`,
`not`, `if`, and `anyOf` beside an object's own properties, which closed branches would contradict) is left to the
server, which checks for itself. What cannot be bounded (a schema that contains itself) stays as it is, and the guard
refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learngraph_kernel.tools.schema_guard import KEYWORDS, MAX_DEPTH, MAX_ITEMS, MAX_STRING

STRING = 20_000
ITEMS = 1_000
_SCALARS = ("string", "integer", "number", "boolean", "null")
_LISTS = ("anyOf", "oneOf", "allOf")


def tightened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with every object closed, every string and array bounded, and only keywords that the guard knows.

    Args:
        schema: as a third party gave it; `definitions` of older drafts become `$defs`.

    Returns:
        A new schema. It may still be refused by the guard: register it to know.
    """
    definitions = {**_mapping(schema.get("definitions")), **_mapping(schema.get("$defs"))}
    tight = _tight({**schema, "type": "object"}, 0)
    if definitions:
        tight["$defs"] = {name: _tight(part, 1) for name, part in definitions.items()}
    return tight


def _tight(schema: Any, depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return {"type": list(_SCALARS), "maxLength": STRING}
    kept = {key: value for key, value in schema.items() if key in KEYWORDS and key != "additionalProperties"}
    if isinstance(kept.get("$ref"), str):
        kept["$ref"] = kept["$ref"].replace("#/definitions/", "#/$defs/", 1)
    if "properties" in kept:
        kept = {key: value for key, value in kept.items() if key not in _LISTS}
        kept.setdefault("type", "object")
    if not kept.keys() & {"type", "enum", "const", "$ref", *_LISTS}:
        kept["type"] = list(_SCALARS)
    stated = kept.get("type", [])
    types = [stated] if isinstance(stated, str) else stated
    if "object" in types:
        kept |= _object(kept, depth)
    if "array" in types:
        kept["items"] = _tight(kept.get("items"), depth + 1)
        kept["maxItems"] = _at_most(kept.get("maxItems"), ITEMS, MAX_ITEMS)
    if "string" in types:
        kept["maxLength"] = _at_most(kept.get("maxLength"), STRING, MAX_STRING)
    for keyword in _LISTS:
        if isinstance(kept.get(keyword), list):
            kept[keyword] = [_tight(part, depth + 1) for part in kept[keyword]]
    return kept


def _object(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    required = [name for name in schema.get("required", ()) if isinstance(name, str)]
    named = {**dict.fromkeys(required, True), **_mapping(schema.get("properties"))}
    properties = {name: _tight(part, depth + 1) for name, part in named.items() if part is not False}
    return {
        "properties": properties,
        "required": [name for name in required if name in properties],
        "additionalProperties": False,
    }


def _at_most(given: Any, usual: int, most: int) -> int:
    return min(given, most) if isinstance(given, int) and not isinstance(given, bool) else usual


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
