"""SQL in files: `.sql` as it is, and what Python code and notebooks send (`lg.query("source", "…")`, `%%sql`)."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from learngraph_kernel.errors import BadInput


class FileNotLinted(BadInput):
    """The file cannot be read, or holds nothing that could be linted."""

    code = "file_not_linted"


@dataclass(frozen=True, slots=True)
class Passage:
    """SQL found in a file.

    Attributes:
        text: the statement as it is sent.
        source: the source it is sent to; None in a `.sql` file.
        cell: id of the notebook cell; None elsewhere.
        start, line: where it begins in the file (in a notebook: in the cell); None when the text is not verbatim there.
    """

    text: str
    source: str | None
    cell: str | None
    start: int | None
    line: int


def passages(path: Path) -> list[Passage]:
    """The SQL of a `.sql`, `.py` or `.ipynb` file. Raises FileNotLinted."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileNotLinted(f"the file cannot be read: {error}", where=str(path)) from error
    match path.suffix:
        case ".sql":
            return [Passage(text, None, None, 0, 1)]
        case ".py":
            return list(_calls(text, None, str(path)))
        case ".ipynb":
            return list(_cells(text, str(path)))
    raise FileNotLinted("not a file with SQL in it", where=str(path), remedy="give .sql, .py or .ipynb files")


def _cells(text: str, where: str) -> Iterator[Passage]:
    try:
        cells = json.loads(text)["cells"]
        code = [(cell.get("id"), "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise FileNotLinted("not a notebook", where=where) from error
    for cell, source in code:
        if source.startswith("%%sql"):
            head, _, body = source.partition("\n")
            words = head.split()
            yield Passage(body, words[1] if len(words) > 1 else None, cell, len(head) + 1, 2)
        else:
            yield from _calls(source, cell, f"{where}, cell {cell}")


def _calls(text: str, cell: str | None, where: str) -> Iterator[Passage]:
    kept = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in text.split("\n"))
    try:
        tree = ast.parse(kept)
    except SyntaxError as error:
        raise FileNotLinted(f"not Python: {error.msg}", where=f"{where}, line {error.lineno}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "query":
            words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if len(words) >= 2 and len(node.args) >= 2 and isinstance(node.args[1], ast.Constant):
                place = text.find(words[1])
                line = node.args[1].lineno if place < 0 else text.count("\n", 0, place) + 1
                yield Passage(words[1], words[0], cell, None if place < 0 else place, line)
