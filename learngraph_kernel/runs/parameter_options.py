"""The command line's parameter options, with papermill's meaning and papermill's precedence.

`-b` base64 YAML, then `-f` YAML files, then `-y` YAML text, then `-p name value`, then `-r name text`: later wins.
YAML dates stay text, as in papermill. This is the one place of the parameters that reads files.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from learngraph_kernel.runs.parameter_text import RawText
from learngraph_kernel.runs.parameters import ParameterError


def collect(
    *,
    base64_yaml: Iterable[str] = (),
    files: Iterable[Path] = (),
    yaml_texts: Iterable[str] = (),
    pairs: Iterable[tuple[str, str]] = (),
    raw_pairs: Iterable[tuple[str, str]] = (),
) -> dict[str, Any]:
    """What the options give, ready for `parameters.bind`.

    Raises:
        ParameterError: a file that cannot be read, or YAML that is not a mapping of names; says which option.
    """
    given: dict[str, Any] = {}
    for index, encoded in enumerate(base64_yaml, start=1):
        given.update(_yaml_mapping(_decoded(encoded, index), f"-b number {index}"))
    for path in files:
        given.update(_yaml_mapping(_read(path), f"-f {path}"))
    for index, text in enumerate(yaml_texts, start=1):
        given.update(_yaml_mapping(text, f"-y number {index}"))
    given.update({name: RawText(text) for name, text in pairs})
    given.update(dict(raw_pairs))
    return given


def _decoded(encoded: str, index: int) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ParameterError(f"not base64 of UTF-8 text: {error}", where=f"-b number {index}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(
            f"the parameter file cannot be read: {error}", where=f"-f {path}", remedy="give a readable UTF-8 YAML file"
        ) from error


def _yaml_mapping(text: str, where: str) -> dict[str, Any]:
    import yaml

    class _NoDates(yaml.SafeLoader):
        """Dates stay text: a parameter is a JSON value."""

    _NoDates.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        body = yaml.load(text, Loader=_NoDates)
    except yaml.YAMLError as error:
        raise ParameterError(f"not valid YAML: {error}", where=where) from error
    if body is None:
        return {}
    if not isinstance(body, dict) or not all(isinstance(name, str) for name in body):
        raise ParameterError("the YAML is not a mapping of parameter names to values", where=where)
    return body
