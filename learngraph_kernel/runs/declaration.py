"""What a notebook promises about itself: `nb.metadata.learngraph`, read strictly.

A workflow's title, parameters, contract and metric pins stand in its metadata. A key that is misspelt there would
silently weaken the promise, so everything unknown or ill-typed is an error with its path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import suggestion
from learngraph_kernel.runs.parameters import ParameterSpec, spec_from_schema
from learngraph_kernel.schemas import shown
from learngraph_kernel.versions import is_version

if TYPE_CHECKING:
    from learngraph_kernel.evidence.metrics import Rule

ROOT = "metadata.learngraph"


class DeclarationError(BadInput):
    """The notebook's `learngraph` metadata is wrong."""

    code = "declaration"


@dataclass(frozen=True, slots=True)
class ContractDeclaration:
    """What a run must deliver to be issued.

    Attributes:
        required_metrics: names of metrics that must have a value.
        required_rows: snapshot reference → least number of rows.
        report: a report document is part of the result.
        output_schema: JSON Schema for what `lg.output` gives.
        uncited_outputs: whether numbers may reach the result without a citation.
    """

    required_metrics: tuple[str, ...] = ()
    required_rows: Mapping[str, int] = field(default_factory=dict)
    report: bool = False
    output_schema: Mapping[str, Any] | None = None
    uncited_outputs: Literal["refuse", "allow"] = "allow"

    def as_json(self) -> dict[str, Any]:
        """As declared, with defaults."""
        return {
            "required_metrics": list(self.required_metrics),
            "required_rows": dict(self.required_rows),
            "report": self.report,
            "output_schema": self.output_schema,
            "uncited_outputs": self.uncited_outputs,
        }


@dataclass(frozen=True, slots=True)
class Declaration:
    """The whole `nb.metadata.learngraph` block; every part is optional.

    Attributes:
        title: by language tag; a plain string is kept under the notebook's language.
        version: semantic version of the workflow.
        parameters: None when no schema is declared (the `parameters` cell may still name some).
        metrics: metric set → metric → pinned version.
        on_newer_metric: the rule when a pinned card has a newer version; there is no default.
        max_repairs: how often a report goes back for repair before the step fails.
    """

    title: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    language: Literal["en", "zh"] = "en"
    parameters: ParameterSpec | None = None
    contract: ContractDeclaration = field(default_factory=ContractDeclaration)
    metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    on_newer_metric: Rule | None = None
    max_repairs: int = 1
    governed: bool = False

    def titled(self, language: str | None = None) -> str | None:
        """The title in a language (default: the notebook's), else any title, else None."""
        return self.title.get(language or self.language) or next(iter(self.title.values()), None)


def read_declaration(nb: Mapping[str, Any], *, where: str | None = None) -> Declaration:
    """The declaration of a notebook (nbformat 4); all defaults when the notebook has none.

    Args:
        nb: a NotebookNode or the same as plain JSON.
        where: the notebook's path, for messages.

    Raises:
        DeclarationError: unknown key or wrong type, with its path and the closest known key.
        ParameterError: the parameter schema is not usable.
    """
    body = nb.get("metadata", {}).get("learngraph")
    if body is None:
        return Declaration()
    reader = _Reader(where)
    values = reader.fields(body, ROOT, _FIELDS)
    if isinstance(values.get("title"), str):
        values["title"] = {values.get("language", "en"): values["title"]}
    return Declaration(**values)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads JSON strictly; `path` says where in the metadata, `where` in which file."""

    where: str | None

    def wrong(self, path: str, expected: str, got: Any) -> DeclarationError:
        return DeclarationError(f"{path}: expected {expected}, got {shown(got)}", where=self.where)

    def fields(self, body: Any, path: str, known: Mapping[str, Callable[[_Reader, Any, str], Any]]) -> dict[str, Any]:
        if not isinstance(body, Mapping):
            raise self.wrong(path, "an object", body)
        for key in body:
            if key not in known:
                raise DeclarationError(
                    f"unknown key {key!r} in {path}", where=self.where, remedy=suggestion(key, known, kind="keys")
                )
        return {key: known[key](self, value, f"{path}.{key}") for key, value in body.items()}

    def of_type(self, value: Any, path: str, kind: type, words: str) -> Any:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(path, words, value)
        return value

    def text(self, value: Any, path: str) -> str:
        result: str = self.of_type(value, path, str, "a string")
        return result

    def flag(self, value: Any, path: str) -> bool:
        result: bool = self.of_type(value, path, bool, "true or false")
        return result

    def count(self, value: Any, path: str) -> int:
        result: int = self.of_type(value, path, int, "a whole number")
        if result < 0:
            raise self.wrong(path, "a whole number from 0 up", value)
        return result

    def mapping(self, value: Any, path: str, item: Callable[[Any, str], Any]) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.wrong(path, "an object", value)
        return {self.text(key, path): item(content, f"{path}.{key}") for key, content in value.items()}

    def texts(self, value: Any, path: str) -> tuple[str, ...]:
        if not isinstance(value, list | tuple):
            raise self.wrong(path, "a list of strings", value)
        return tuple(self.text(item, f"{path}[{index}]") for index, item in enumerate(value))

    def title(self, value: Any, path: str) -> str | dict[str, str]:
        return value if isinstance(value, str) else self.mapping(value, path, self.text)

    def version(self, value: Any, path: str) -> str:
        text = self.text(value, path)
        if not is_version(text):
            raise self.wrong(path, "a semantic version such as 1.0.0", value)
        return text

    def schema(self, value: Any, path: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.wrong(path, "a JSON Schema object", value)
        return value

    def parameters(self, value: Any, path: str) -> ParameterSpec:
        return spec_from_schema(value, where=f"{self.where}: {path}" if self.where else path)

    def contract(self, value: Any, path: str) -> ContractDeclaration:
        return ContractDeclaration(**self.fields(value, path, _CONTRACT_FIELDS))

    def rows(self, value: Any, path: str) -> dict[str, int]:
        return self.mapping(value, path, self.count)

    def pins(self, value: Any, path: str) -> dict[str, dict[str, str]]:
        return self.mapping(value, path, lambda item, place: self.mapping(item, place, self.version))


def _one_of(*allowed: str) -> Callable[[_Reader, Any, str], str]:
    def read(reader: _Reader, value: Any, path: str) -> str:
        if value not in allowed:
            raise reader.wrong(path, "one of " + ", ".join(allowed), value)
        return str(value)

    return read


_FIELDS: Mapping[str, Callable[[_Reader, Any, str], Any]] = {
    "title": _Reader.title,
    "version": _Reader.version,
    "language": _one_of("en", "zh"),
    "parameters": _Reader.parameters,
    "contract": _Reader.contract,
    "metrics": _Reader.pins,
    "on_newer_metric": _one_of("recompute", "dual", "incomparable"),
    "max_repairs": _Reader.count,
    "governed": _Reader.flag,
}

_CONTRACT_FIELDS: Mapping[str, Callable[[_Reader, Any, str], Any]] = {
    "required_metrics": _Reader.texts,
    "required_rows": _Reader.rows,
    "report": _Reader.flag,
    "output_schema": _Reader.schema,
    "uncited_outputs": _one_of("refuse", "allow"),
}
