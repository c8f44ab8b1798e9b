"""Which JSON Schemas a tool may have: closed objects, bounded strings and arrays, nothing fetched, nothing recursive.

A list of what is allowed, not of what is forbidden: a keyword that is not named here is refused, because a validator
that knows it could use it to let something through. So whatever passes such a schema has a bounded size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from learngraph_kernel.canonical import NotCanonical, canonical_json
from learngraph_kernel.schemas import SchemaInvalid, check_schema
from learngraph_kernel.tools.errors import ToolRefused

MAX_SCHEMA_BYTES = 64 << 10
MAX_DEPTH = 16
MAX_NODES = 1_000
MAX_STRING = 1_000_000
MAX_ITEMS = 10_000
MAX_ENUM_BYTES = 16 << 10
DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "format", "$comment"})
_RULES = frozenset({
    "type", "enum", "const", "properties", "required", "additionalProperties", "minProperties", "maxProperties",
    "items", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "anyOf", "oneOf", "allOf", "$ref",
})  # fmt: skip
KEYWORDS = _RULES | _ANNOTATIONS
"""What any schema inside may say; `$schema` and `$defs` stand at the top alone."""
_ONLY_AT_THE_TOP = frozenset({"$schema", "$defs"})
_BRANCHES = ("anyOf", "oneOf", "allOf")


def guard_schema(schema: Mapping[str, Any], *, where: str) -> None:
    """Checks the schema of a tool's arguments.

    Args:
        schema: JSON Schema 2020-12.
        where: the tool, for the message.

    Raises:
        ToolRefused: it is not closed and bounded at every level; the message names the place in the schema.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise _refused("$", "arguments are an object", where)
    if schema.get("$schema", DIALECT) != DIALECT:  # first: it decides what the rest means
        raise _refused("$.$schema", "only draft 2020-12", where)
    try:
        size = len(canonical_json(schema))
        if size > MAX_SCHEMA_BYTES:
            raise _refused("$", f"{size} bytes are more than {MAX_SCHEMA_BYTES}", where)
        check_schema(schema, where=where)
    except (NotCanonical, SchemaInvalid, UnicodeEncodeError, RecursionError) as error:
        raise _refused("$", f"not a valid JSON Schema: {error}", where) from error
    _Guard(schema.get("$defs", {}), where).check(schema, "$", 0, ())


def without(schema: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """The schema that a model sees: without the arguments that the platform sets."""
    shown = dict(schema)
    shown["properties"] = {key: value for key, value in schema.get("properties", {}).items() if key not in names}
    if "required" in schema:
        shown["required"] = [name for name in schema["required"] if name not in names]
    return shown


def property_names(schema: Any) -> Iterator[str]:
    """The names of all properties anywhere in a schema."""
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            yield from properties
        for part in schema.values():
            yield from property_names(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from property_names(part)


@dataclass(slots=True)
class _Guard:
    definitions: Mapping[str, Any]
    where: str
    nodes: int = field(default=0)

    def check(self, schema: Any, path: str, depth: int, followed: tuple[str, ...]) -> None:
        self.nodes += 1
        if not isinstance(schema, Mapping):
            raise self._no(path, "a schema that is just true or false bounds nothing")
        if depth > MAX_DEPTH:
            raise self._no(path, f"deeper than {MAX_DEPTH} levels")
        if self.nodes > MAX_NODES:
            raise self._no(path, f"more than {MAX_NODES} parts")
        allowed = KEYWORDS | (_ONLY_AT_THE_TOP if path == "$" else frozenset())
        for keyword in schema:
            if keyword not in allowed:
                raise self._no(path, f"the keyword `{keyword}` is not allowed")
        self._bounded(schema, path)
        for place, part, via in self._parts(schema, path, followed):
            self.check(part, place, depth + 1, via)

    def _bounded(self, schema: Mapping[str, Any], path: str) -> None:
        if "enum" in schema or "const" in schema:
            listed = schema.get("enum", [schema.get("const")])
            if len(canonical_json(listed)) > MAX_ENUM_BYTES:
                raise self._no(path, f"listed values of more than {MAX_ENUM_BYTES} bytes")
        types = self._types(schema, path)
        if "object" in types:
            self._object(schema, path)
        if "enum" in schema or "const" in schema:
            return
        if not types and not any(keyword in schema for keyword in ("$ref", *_BRANCHES)):
            raise self._no(path, "says no type, so anything would pass")
        if "string" in types:
            self._at_most(schema, "maxLength", MAX_STRING, path)
        if "array" in types:
            self._at_most(schema, "maxItems", MAX_ITEMS, path)
            if "items" not in schema:
                raise self._no(path, "an array says what its items are")

    def _types(self, schema: Mapping[str, Any], path: str) -> frozenset[str]:
        stated = schema.get("type", [])
        types = frozenset([stated] if isinstance(stated, str) else stated)
        if not types <= _TYPES:
            raise self._no(path, f"unknown type {sorted(types - _TYPES)}")
        return types

    def _object(self, schema: Mapping[str, Any], path: str) -> None:
        if schema.get("additionalProperties") is not False:
            raise self._no(path, "an object is closed: `additionalProperties: false`")
        unknown = set(schema.get("required", ())) - set(schema.get("properties", {}))
        if unknown:
            raise self._no(path, f"requires {sorted(unknown)}, which it does not have")

    def _at_most(self, schema: Mapping[str, Any], keyword: str, most: int, path: str) -> None:
        bound = schema.get(keyword)
        if bound is None or bound > most:
            raise self._no(path, f"needs `{keyword}` of at most {most}")

    def _parts(
        self, schema: Mapping[str, Any], path: str, followed: tuple[str, ...]
    ) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
        """Every schema inside, with its place and the references that led there."""
        for name, part in schema.get("properties", {}).items():
            yield f"{path}.properties.{name}", part, followed
        if "items" in schema:
            yield f"{path}.items", schema["items"], followed
        for keyword in _BRANCHES:
            for index, part in enumerate(schema.get(keyword, ())):
                yield f"{path}.{keyword}[{index}]", part, followed
        for name, part in schema.get("$defs", {}).items() if path == "$" else ():
            yield f"{path}.$defs.{name}", part, followed
        if "$ref" in schema:
            yield self._target(schema["$ref"], path, followed)

    def _target(self, reference: str, path: str, followed: tuple[str, ...]) -> tuple[str, Any, tuple[str, ...]]:
        name = reference.removeprefix("#/$defs/")
        if name == reference or name not in self.definitions:
            raise self._no(path, f"`$ref` leads to {reference[:80]!r}, not to a name under this schema's $defs")
        if name in followed:
            raise self._no(path, f"`$ref` to {name!r} goes round in a circle, so nothing bounds its depth")
        return f"{path}.$ref({name})", self.definitions[name], (*followed, name)

    def _no(self, path: str, what: str) -> ToolRefused:
        return _refused(path, what, self.where)


def _refused(path: str, what: str, where: str) -> ToolRefused:
    return ToolRefused(
        f"the schema of its arguments is refused at {path}: {what}",
        where=where,
        remedy="close every object, give strings maxLength or enum and arrays maxItems and items",
        details={"path": path},
    )
