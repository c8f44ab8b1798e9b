"""Short ways to write the closed schemas of arguments: every object closed, every text and list bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NAME_LENGTH = 200
PATH_LENGTH = 400
SOURCE_LENGTH = 60_000
"""Characters of one cell's source, one statement or one report."""


def closed(properties: Mapping[str, Any], *, required: Sequence[str] = ()) -> dict[str, Any]:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str, *, longest: int = NAME_LENGTH) -> dict[str, Any]:
    """A text that is not empty, of at most `longest` characters."""
    return {"type": "string", "description": description, "minLength": 1, "maxLength": longest}


def maybe_empty(description: str, *, longest: int) -> dict[str, Any]:
    """A text of at most `longest` characters."""
    return {"type": "string", "description": description, "maxLength": longest}


def choice(description: str, values: Sequence[str]) -> dict[str, Any]:
    """One of a few words."""
    return {"type": "string", "description": description, "enum": list(values)}


def whole(description: str, *, least: int, most: int, default: int | None = None) -> dict[str, Any]:
    """A whole number in a range."""
    body: dict[str, Any] = {"type": "integer", "description": description, "minimum": least, "maximum": most}
    return body if default is None else {**body, "default": default}


def several(items: Mapping[str, Any], description: str, *, most: int, least: int = 0) -> dict[str, Any]:
    """A list of at most `most` items."""
    return {
        "type": "array",
        "description": description,
        "items": dict(items),
        "minItems": least,
        "maxItems": most,
    }
