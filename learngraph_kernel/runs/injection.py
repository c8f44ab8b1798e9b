"""Putting parameter values into a notebook, the way papermill does, so that two equal runs get equal notebooks.

Papermill gives the injected cell a random id; here it is derived from the values, because cell ids are part of the
identity of recorded calls and of the content hash. Python assignments are written here; other languages go through
papermill's translators, loaded only then.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from learngraph_kernel.canonical import canonical_json, encode_value, sha256_hex
from learngraph_kernel.runs.parameters import ParameterError, cell_text, check_name, is_python, tagged

INJECTED = "injected-parameters"


def inject(nb: Any, parameters: Mapping[str, Any]) -> Any:
    """A copy of a notebook with its parameter values assigned in a cell tagged `injected-parameters`.

    The cell replaces an earlier injected one, else follows the cell tagged `parameters`, else comes first. Without
    parameters no cell is added. `metadata.papermill.parameters` holds the values either way.

    Args:
        nb: a NotebookNode, nbformat 4.
        parameters: JSON values by name, from `bind`.

    Raises:
        ParameterError: a name is no identifier, or the kernel's language has no translator.
    """
    nb = with_cell_ids(nb)
    metadata = nb["metadata"].setdefault("papermill", type(nb["metadata"])())
    metadata["parameters"] = copy.deepcopy(dict(parameters))
    if not parameters:
        return nb
    for name in parameters:
        check_name(name, where=None)
    node = type(nb["metadata"])
    cell = node(
        cell_type="code",
        execution_count=None,
        id=injected_id(parameters),
        metadata=node(tags=[INJECTED]),
        outputs=[],
        source=assignments(nb, parameters),
    )
    injected, declared = tagged(nb, INJECTED), tagged(nb, "parameters")
    if injected is not None:
        nb["cells"][injected] = cell
    else:
        nb["cells"].insert(0 if declared is None else declared + 1, cell)
    return nb


def injected_id(parameters: Mapping[str, Any]) -> str:
    """The id of the injected cell: the first 16 hex digits of the SHA-256 over the values' canonical JSON."""
    return sha256_hex(canonical_json(encode_value(dict(parameters))))[:16]


def assignments(nb: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The source of the injected cell, in the notebook's language."""
    if is_python(nb):
        return "".join(["# Parameters\n", *(f"{name} = {value!r}\n" for name, value in parameters.items())])
    from papermill.exceptions import PapermillException
    from papermill.translators import translate_parameters

    metadata = nb["metadata"]
    kernel = metadata.get("kernelspec", {})
    language = metadata.get("language_info", {}).get("name") or kernel.get("language")
    try:
        return str(translate_parameters(kernel.get("name"), language, dict(parameters), "Parameters"))
    except (PapermillException, NotImplementedError) as error:
        raise ParameterError(
            f"parameters cannot be written for the kernel {kernel.get('name')!r} ({language}): {error}",
            remedy="use a kernel whose language papermill can write, or read the values with `lg.input`",
        ) from error


def with_cell_ids(nb: Any) -> Any:
    """A copy in nbformat 4.5 whose every cell has an id; missing ids come from the cell's place and source."""
    nb = copy.deepcopy(nb)
    for index, cell in enumerate(nb["cells"]):
        if "id" not in cell:
            cell["id"] = sha256_hex(f"{index}\n{cell['cell_type']}\n{cell_text(cell)}".encode())[:16]
    nb["nbformat_minor"] = max(5, nb.get("nbformat_minor", 0))
    return nb
