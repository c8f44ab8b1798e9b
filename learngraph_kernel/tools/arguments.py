"""The exact arguments of a call: checked, completed by the platform, fixed as bytes with a hash, and shown redacted.

The canonical text is the one truth: its hash is what a person decides over, and what a handler gets is read from it
again, so nothing that shares memory with the caller can change between the decision and the effect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from learngraph_kernel.canonical import NotCanonical, canonical_json, sha256_hex
from learngraph_kernel.schemas import SchemaViolation, violations
from learngraph_kernel.tools.errors import BadArguments
from learngraph_kernel.tools.redaction import MASK, Redactor
from learngraph_kernel.tools.schema_guard import without
from learngraph_kernel.tools.values import ToolScope, ToolSpec

HIDDEN: Mapping[str, str] = {
    "chat_session_id": "session_id",
    "session_id": "session_id",
    "turn_id": "turn_id",
    "owner": "owner",
}
"""Arguments that the platform sets, and the attribute of the scope each comes from."""


@dataclass(frozen=True, slots=True)
class ExactArguments:
    """What would be done.

    Attributes:
        text: canonical JSON of all arguments, hidden ones included.
        hash: sha256 of it.
        shown: JSON, redacted, without hidden arguments.
    """

    text: str
    hash: str
    shown: Mapping[str, Any]

    @property
    def value(self) -> dict[str, Any]:
        """The arguments, read anew."""
        read: dict[str, Any] = json.loads(self.text)
        return read


def exact_arguments(
    spec: ToolSpec, arguments: Mapping[str, Any], scope: ToolScope, redactor: Redactor
) -> ExactArguments:
    """What a model gave, checked against what it was shown, with the platform's own arguments added.

    Raises:
        BadArguments: with `problems` in its details: `path`, `expected`, `got`.
    """
    hidden = {name: getattr(scope, HIDDEN[name]) for name in sorted(spec.hidden)}
    return _fixed(spec, arguments, hidden, redactor)


def edited_arguments(
    spec: ToolSpec, before: ExactArguments, arguments: Mapping[str, Any], redactor: Redactor
) -> ExactArguments:
    """What a person made of arguments that were shown to them. What they left masked stays what it was.

    Raises:
        BadArguments: the edited arguments break the schema.
    """
    exact = before.value
    hidden = {name: exact[name] for name in sorted(spec.hidden)}
    restored = _unmasked(arguments, before.shown, exact)
    if MASK in str(restored) and MASK not in before.text:
        problem = {"path": "$", "expected": "a masked value left in its place, or a new value", "got": MASK}
        raise _bad(spec, [problem])
    return _fixed(spec, restored, hidden, redactor)


def _fixed(
    spec: ToolSpec, arguments: Mapping[str, Any], hidden: Mapping[str, Any], redactor: Redactor
) -> ExactArguments:
    if not isinstance(arguments, Mapping):  # a model can write anything
        raise _bad(spec, [{"path": "$", "expected": "object", "got": type(arguments).__name__}])
    try:
        canonical_json(dict(arguments))
    except (NotCanonical, UnicodeEncodeError, RecursionError) as error:
        problem = {"path": "$", "expected": "plain JSON (whole numbers up to 2^53)", "got": str(error)[:200]}
        raise _bad(spec, [problem]) from error
    found = violations(dict(arguments), without(spec.parameters, spec.hidden))
    if found:
        raise _bad(spec, [_problem(violation, spec.redact, redactor) for violation in found])
    full = {**arguments, **hidden}
    broken = violations(full, spec.parameters)
    if broken:
        raise _bad(spec, [_problem(violation, spec.redact, redactor) for violation in broken])
    text = canonical_json(full).decode()
    return ExactArguments(text, sha256_hex(text.encode()), redactor.value(dict(arguments), spec.redact))


def _problem(violation: SchemaViolation, secret: frozenset[str], redactor: Redactor) -> dict[str, Any]:
    named = any(f".{name}" in violation.path for name in secret)
    # An object's repr holds its members, so a secret could be in what was got anywhere above it.
    hides = named or (bool(secret) and violation.got.startswith(("object", "array")))
    return {
        "path": violation.path,
        "expected": redactor.text(violation.expected),
        "got": MASK if hides else redactor.text(violation.got),
    }


def _bad(spec: ToolSpec, problems: list[dict[str, Any]]) -> BadArguments:
    first = problems[0]
    return BadArguments(
        f"{first['path']}: expected {first['expected']}, got {first['got']}"
        + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""),
        where=spec.name,
        remedy="call it again with arguments that fit its schema",
        details={"problems": problems},
    )


def _unmasked(edited: Any, shown: Any, exact: Any) -> Any:
    """The edited value with what was shown masked, and left as shown, put back."""
    if isinstance(edited, Mapping) and isinstance(shown, Mapping) and isinstance(exact, Mapping):
        kept = {key: item for key, item in exact.items() if key in shown}
        return {key: _unmasked(item, shown[key], kept[key]) if key in kept else item for key, item in edited.items()}
    if isinstance(edited, list) and isinstance(shown, list) and isinstance(exact, list) and len(edited) == len(shown):
        return [_unmasked(*items) for items in zip(edited, shown, exact, strict=True)]
    return exact if edited == shown and MASK in str(shown) else edited
