"""JSON Schema checks, as data: what is wrong, where in the value, in words a person can act on.

Schemas come from notebooks, so nothing is ever fetched: a `$ref` outside the schema is an error. Importing `jsonschema`
takes about 0.8 s longer when the optional `rfc3987_syntax` is installed (it builds a grammar for URI formats, which
parameters and results do not use); it is kept out while jsonschema is imported for the first time.
"""

from __future__ import annotations

import re
import reprlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from learngraph_kernel.errors import BadInput

MAX_VIOLATIONS = 20


class SchemaInvalid(BadInput):
    """The schema itself is wrong."""

    code = "schema_invalid"


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    """One way in which a value breaks a schema.

    Attributes:
        path: where in the value: `$`, `$.rows[2].name`.
        rule: the schema keyword that failed (`type`, `enum`, `pattern`, …).
        expected: the rule in words.
        got: the value found there, shortened.
    """

    path: str
    rule: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, got {self.got}"


def check_schema(schema: Mapping[str, Any], *, where: str) -> None:
    """Raises SchemaInvalid when `schema` is not a valid JSON Schema (2020-12 unless `$schema` says otherwise)."""
    jsonschema = _jsonschema()
    cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        cls.check_schema(schema)
    except jsonschema.SchemaError as error:
        path = _path(error.absolute_path)
        raise SchemaInvalid(
            f"not a valid JSON Schema at {path}: {error.message}", where=where, remedy="correct the schema"
        ) from error


def violations(
    value: Any, schema: Mapping[str, Any], *, root: Mapping[str, Any] | None = None
) -> list[SchemaViolation]:
    """What `value` (JSON) breaks of `schema`, in the order of the value, at most 20. Empty when it is valid.

    `root` is the schema that `schema` is a part of, for its `#/…` references. `format` is checked for dates, times and
    UUIDs. Raises SchemaInvalid for a reference that cannot be resolved and for a pattern that is no regular expression.
    """
    jsonschema = _jsonschema()
    import referencing.exceptions

    root = schema if root is None else root
    cls = jsonschema.validators.validator_for(root, default=jsonschema.Draft202012Validator)
    checker = jsonschema.FormatChecker(formats=[f for f in _FORMATS if f in jsonschema.FormatChecker.checkers])
    # An explicit registry: the default one fetches references over the network.
    validator = cls(root, registry=referencing.Registry(), format_checker=checker).evolve(schema=schema)
    found: list[SchemaViolation] = []
    try:
        for error in sorted(validator.iter_errors(value), key=lambda e: [str(part) for part in e.absolute_path]):
            found.append(_violation(error))
            if len(found) == MAX_VIOLATIONS:
                break
    except referencing.exceptions.Unresolvable as error:
        raise SchemaInvalid(
            f"reference {error.ref!r} leads out of the schema", remedy="put the definition under $defs"
        ) from error
    except re.error as error:
        raise SchemaInvalid(f"a pattern is no regular expression: {error}", remedy="correct the pattern") from error
    return found


_FORMATS = ("date", "date-time", "time", "uuid", "duration")


def _violation(error: Any) -> SchemaViolation:
    return SchemaViolation(
        path=_path(error.absolute_path),
        rule=str(error.validator),
        expected=_expected(str(error.validator), error.validator_value, error),
        got=shown(error.instance),
    )


def _expected(rule: str, bound: Any, error: Any) -> str:
    phrases = {
        "minimum": "at least {}",
        "maximum": "at most {}",
        "exclusiveMinimum": "more than {}",
        "exclusiveMaximum": "less than {}",
        "multipleOf": "a multiple of {}",
        "pattern": "text matching {}",
        "format": "a valid {}",
        "const": "exactly {!r}",
        "minLength": "at least {} characters",
        "maxLength": "at most {} characters",
        "minItems": "at least {} items",
        "maxItems": "at most {} items",
    }
    if rule == "type":
        return " or ".join([bound] if isinstance(bound, str) else bound)
    if rule == "enum":
        return "one of " + ", ".join(shown(item) for item in bound)
    if rule in phrases:
        return phrases[rule].format(bound)
    return f"a value that keeps `{rule}` ({error.message})"


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80


def shown(value: Any) -> str:
    """A value for an error message: its JSON type and a shortened repr."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    text = _REPR.repr(value)
    if value is None:
        return "null"
    name = names.get(type(value))
    return f"{name} {text}" if name else text


def _path(parts: Any) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _jsonschema() -> ModuleType:
    slow = "rfc3987_syntax"
    keep_out = "jsonschema" not in sys.modules and slow not in sys.modules
    if keep_out:
        sys.modules[slow] = None  # type: ignore[assignment]
    try:
        import jsonschema
    finally:
        if keep_out:
            del sys.modules[slow]
    return jsonschema
