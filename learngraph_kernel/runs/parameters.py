"""Parameters: what a notebook declares, what the caller gave, and the one set of values a run starts with.

A notebook declares its parameters as a JSON Schema in `metadata.learngraph.parameters`; without one, the assignments of
the cell tagged `parameters` are the declaration, as in papermill. Whatever is unknown, missing or ill-typed is an error
before anything runs. Text from a command line has no type of its own: it takes the declared one when nothing is lost
(`07` stays text for a string, `2013` becomes an integer only where an integer is wanted).

Pure, and cheap to import: JSON Schema and papermill are loaded only by the functions that need them.
"""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import suggestion
from learngraph_kernel.runs.parameter_text import RawText, candidates


class ParameterError(BadInput):
    """A parameter is unknown, missing, ill-typed or badly declared; `details["problems"]` lists every one."""

    code = "parameter"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter.

    Attributes:
        schema: its JSON Schema; empty when the declaration is a tagged cell.
        default: only meaningful when `has_default`.
    """

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    title: str | None = None
    required: bool = False
    has_default: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """All parameters a notebook takes, in the order declared.

    Attributes:
        origin: `schema` (metadata) or `cell` (the cell tagged `parameters`).
        schema: the whole object schema; empty for `cell`.
        open: unknown names are allowed (`additionalProperties` says so in so many words).
    """

    parameters: Mapping[str, Parameter]
    origin: Literal["schema", "cell"]
    schema: Mapping[str, Any] = field(default_factory=dict)
    open: bool = False

    @property
    def titles(self) -> dict[str, str | None]:
        """Each parameter's title for people, by name."""
        return {name: item.title for name, item in self.parameters.items()}


NO_PARAMETERS = ParameterSpec({}, "cell")
"""A notebook that declares none."""


# ---------------------------------------------------------------------------------------------- what is declared


def declared(metadata: Mapping[str, Any], *, where: str = "metadata.learngraph.parameters") -> ParameterSpec | None:
    """The declaration in notebook metadata (`nb.metadata`), or None when there is none.

    Raises:
        ParameterError: it is not an object schema with usable parameter names.
    """
    schema = metadata.get("learngraph", {}).get("parameters")
    return None if schema is None else spec_from_schema(schema, where=where)


def spec_from_schema(schema: Any, *, where: str) -> ParameterSpec:
    """A JSON Schema of type object as a ParameterSpec. Raises ParameterError."""
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise ParameterError(
            "parameters must be declared as a JSON Schema of type object",
            where=where,
            remedy='write {"type": "object", "properties": {"week": {"type": "string"}}}',
        )
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not all(isinstance(item, Mapping) for item in properties.values()):
        raise ParameterError("`properties` must be an object of schemas", where=where)
    if not isinstance(required, Sequence) or isinstance(required, str):
        raise ParameterError("`required` must be a list of names", where=where)
    for name in required:
        if name not in properties:
            raise ParameterError(
                f"`required` names {name!r}, which is not declared", where=where, remedy=suggestion(name, properties)
            )
    parameters = {name: _parameter(name, body, name in required, where) for name, body in properties.items()}
    return ParameterSpec(parameters, "schema", schema, open=bool(schema.get("additionalProperties", False)))


def _parameter(name: str, schema: Mapping[str, Any], required: bool, where: str) -> Parameter:
    check_name(name, where=where)
    title = schema.get("title")
    return Parameter(
        name,
        schema,
        title=title if isinstance(title, str) else None,
        required=required,
        has_default="default" in schema,
        default=schema.get("default"),
    )


def check_name(name: Any, *, where: str | None) -> None:
    """Raises ParameterError unless `name` can stand on the left of an assignment."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ParameterError(
            f"{name!r} is not a usable parameter name",
            where=where,
            remedy="use letters, digits and _, not starting with a digit, and no Python keyword",
        )


def spec_from_cell(source: str) -> ParameterSpec:
    """What a cell tagged `parameters` declares: the names it assigns; literals are the defaults.

    A cell that is not Python declares nothing that can be read: the result has no parameters.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return NO_PARAMETERS
    found: dict[str, Parameter] = {}
    for node in tree.body:
        value = getattr(node, "value", None)
        for name in _assigned(node):
            # The last assignment counts; `x = x + 1` leaves a name that is known but has no literal default.
            has_default, default = _literal(value) if isinstance(node, ast.Assign | ast.AnnAssign) else (False, None)
            found[name] = Parameter(name, has_default=has_default, default=default)
    return ParameterSpec(found, "cell")


def _assigned(node: ast.stmt) -> list[str]:
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _literal(node: ast.expr | None) -> tuple[bool, Any]:
    if node is None:
        return False, None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None
    return _is_json(value), value


def _is_json(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if value is None or isinstance(value, bool | int | str):
        return True
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    return isinstance(value, dict) and all(isinstance(k, str) and _is_json(v) for k, v in value.items())


def spec_of(nb: Mapping[str, Any], *, where: str | None = None) -> ParameterSpec | None:
    """What a notebook (nbformat 4) takes: its declared schema, else its `parameters` cell, else None.

    A `parameters` cell in another language cannot be read here; its spec is open and takes the names as given.
    """
    place = f"{where}: metadata.learngraph.parameters" if where else "metadata.learngraph.parameters"
    spec = declared(nb.get("metadata", {}), where=place)
    if spec is not None:
        return spec
    index = tagged(nb, "parameters")
    if index is None:
        return None
    source = cell_text(nb["cells"][index])
    if not is_python(nb):
        return ParameterSpec({}, "cell", open=True)  # its names are not known here
    return spec_from_cell(source)


# ---------------------------------------------------------------------------------------------- what is given


def bind(
    spec: ParameterSpec | None, given: Mapping[str, Any], *, raw: bool = False, where: str | None = None
) -> dict[str, Any]:
    """The values a run starts with: what was given, checked and typed, with defaults filled in.

    Args:
        spec: from `spec_of` or `declared`; None means that the notebook declares nothing.
        given: JSON values, or RawText for text whose type the declaration decides.
        raw: treat every plain string as RawText (for callers that only have text, such as a query string).
        where: the notebook, for messages.

    Returns:
        JSON values by name, in the order declared.

    Raises:
        ParameterError: everything that is unknown, missing or ill-typed, in one message.
    """
    if raw:
        given = {name: RawText(value) if isinstance(value, str) else value for name, value in given.items()}
    if spec is None:
        if given:
            raise ParameterError(
                f"the notebook takes no parameters, but {_names(given)} {'was' if len(given) == 1 else 'were'} given",
                where=where,
                remedy="declare them in metadata.learngraph.parameters or in a cell tagged `parameters`",
            )
        return {}
    if spec.origin == "schema":
        from learngraph_kernel.schemas import check_schema

        place = "metadata.learngraph.parameters"
        check_schema(spec.schema, where=f"{where}: {place}" if where else place)
    problems = [
        f"unknown parameter {name!r} ({suggestion(name, spec.parameters, kind='parameters')})"
        for name in given
        if name not in spec.parameters and not spec.open
    ]
    values: dict[str, Any] = {}
    for name, parameter in spec.parameters.items():
        if name in given:
            _take(spec, parameter, given[name], values, problems)
        elif parameter.has_default:
            _take(spec, parameter, parameter.default, values, problems, of="default of parameter")
        elif parameter.required:
            problems.append(f"missing parameter {name!r}{_hint(parameter)}")
    for name in sorted(set(given) - set(spec.parameters)) if spec.open else ():
        check_name(name, where=where)
        _take(spec, Parameter(name, _extra_schema(spec)), given[name], values, problems)
    if not problems and spec.origin == "schema":
        problems = _whole_problems(spec, values)
    if problems:
        raise ParameterError("; ".join(problems), where=where, remedy=_usage(spec), details={"problems": problems})
    return values


def _take(
    spec: ParameterSpec,
    parameter: Parameter,
    given: Any,
    values: dict[str, Any],
    problems: list[str],
    *,
    of: str = "parameter",
) -> None:
    """Puts the typed value into `values`, or says in `problems` why it cannot."""
    complaint = ""
    for candidate in candidates(given, parameter.schema):
        wrong = _wrong(candidate, parameter.schema, spec.schema)
        if not wrong:
            values[parameter.name] = _integral(candidate, parameter.schema)
            return
        complaint = complaint or wrong
    if isinstance(given, RawText):
        complaint = complaint or f"expected {_type_words(parameter.schema)}, got {given.text!r}"
    problems.append(f"{of} {parameter.name!r}: {complaint}")


def _wrong(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if not _is_json(value):
        return f"expected a JSON value, got {type(value).__name__} {value!r}"
    if not schema:
        return ""
    from learngraph_kernel.schemas import violations

    found = violations(value, schema, root=root)
    return "; ".join(str(item).removeprefix("$: ") for item in found)


def _whole_problems(spec: ParameterSpec, values: Mapping[str, Any]) -> list[str]:
    """Rules that tie parameters together (`dependentRequired`, `if`, `anyOf`, …)."""
    from learngraph_kernel.schemas import violations

    return [f"parameters together: {item}" for item in violations(dict(values), spec.schema)]


def _integral(value: Any, schema: Mapping[str, Any]) -> Any:
    """JSON Schema calls 5.0 an integer; the notebook gets 5."""
    if schema.get("type") == "integer" and isinstance(value, float):
        return int(value)
    return value


def _extra_schema(spec: ParameterSpec) -> Mapping[str, Any]:
    extra = spec.schema.get("additionalProperties")
    return extra if isinstance(extra, Mapping) else {}


def _type_words(schema: Mapping[str, Any]) -> str:
    types = schema.get("type", "a value")
    return types if isinstance(types, str) else " or ".join(types)


def _hint(parameter: Parameter) -> str:
    words = [parameter.title] if parameter.title else []
    if "type" in parameter.schema:
        words.append(_type_words(parameter.schema))
    return f" ({', '.join(words)})" if words else ""


def _usage(spec: ParameterSpec) -> str:
    if not spec.parameters:
        return "the notebook's `parameters` cell assigns no names"
    names = (f"{name}{' (required)' if item.required else ''}" for name, item in spec.parameters.items())
    return f"the notebook takes: {', '.join(names)}"


def _names(given: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in given)


# ---------------------------------------------------------------------------------------------- cells


def tagged(nb: Mapping[str, Any], tag: str) -> int | None:
    """The index of the first cell with a tag, or None."""
    for index, cell in enumerate(nb.get("cells", [])):
        if tag in cell.get("metadata", {}).get("tags", []):
            return index
    return None


def cell_text(cell: Mapping[str, Any]) -> str:
    """A cell's source; on disk it may be a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def is_python(nb: Mapping[str, Any]) -> bool:
    """Whether the notebook's cells are Python; a notebook that does not say counts as Python."""
    metadata = nb.get("metadata", {})
    kernel = metadata.get("kernelspec", {})
    language = metadata.get("language_info", {}).get("name") or kernel.get("language")
    if language:
        return str(language).lower() in ("python", "ipython")
    return str(kernel.get("name", "python")).startswith("python")
