"""What an endpoint is known to understand: the snapshot that decides which fields of a request are sent.

The rule is that a field nobody has seen accepted is not sent. The defaults are what any OpenAI-compatible endpoint
takes; a probe (or a person, in learngraph.toml) widens them. The persisted form is JSON.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from learngraph_kernel.models.errors import ModelMisconfigured
from learngraph_kernel.naming import suggestion

ThinkingSwitch: TypeAlias = Literal["none", "switchable", "required"]
StructuredOutput: TypeAlias = Literal["none", "json_object", "json_schema"]
OutputLimitField: TypeAlias = Literal["none", "max_tokens", "max_completion_tokens"]

FORMAT = "learngraph-capabilities-v1"

_CHOICES: dict[str, tuple[str, ...]] = {
    "thinking": get_args(ThinkingSwitch),
    "structured_output": get_args(StructuredOutput),
    "output_limit": get_args(OutputLimitField),
}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One endpoint's snapshot.

    Attributes:
        tools: takes tool definitions.
        vision: takes images.
        temperature: takes `temperature`.
        stream_usage: reports tokens at the end of a stream when asked to.
        thinking: `none` (never mention it), `switchable` (an effort may be sent), `required` (always thinks).
        structured_output: the strongest form of response format it takes.
        output_limit: the field that limits the output, or `none`.
        context_window, max_output_tokens: in tokens; None when unknown.
    """

    tools: bool = True
    vision: bool = False
    temperature: bool = True
    stream_usage: bool = True
    thinking: ThinkingSwitch = "none"
    structured_output: StructuredOutput = "none"
    output_limit: OutputLimitField = "max_tokens"
    context_window: int | None = None
    max_output_tokens: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The persisted form."""
        return {"format": FORMAT, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any], *, where: str = "capabilities") -> Capabilities:
        """A snapshot from its JSON or from a table in learngraph.toml (there without `format`).

        Raises:
            ModelMisconfigured: an unknown key, a wrong type or another format, each named.
        """
        if body.get("format", FORMAT) != FORMAT:
            raise ModelMisconfigured(
                f"unknown format {body['format']!r}", where=where, remedy=f"this version reads {FORMAT}"
            )
        values = {key: value for key, value in body.items() if key != "format"}
        for key, value in values.items():
            _check(key, value, where)
        return cls(**values)


def _check(key: str, value: Any, where: str) -> None:
    fields = {field.name: field for field in dataclasses.fields(Capabilities)}
    if key not in fields:
        remedy = suggestion(key, fields, kind="capabilities")
        raise ModelMisconfigured(f"unknown capability {key!r}", where=where, remedy=remedy)
    if key in _CHOICES:
        fine = value in _CHOICES[key]
        expected = "one of " + ", ".join(_CHOICES[key])
    elif isinstance(fields[key].default, bool):
        fine, expected = isinstance(value, bool), "true or false"
    else:
        fine = value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)
        expected = "a number of tokens above 0"
    if not fine:
        raise ModelMisconfigured(f"capability {key!r} is {value!r}", where=where, remedy=f"give {expected}")
