"""Habits from templates, spreadsheets, SQL and other languages, each caught before parsing with what to write here."""

from __future__ import annotations

import io
import tokenize

from learngraph_kernel.evidence.metrics.errors import ExpressionError

_FOREIGN = (
    ("{{", "`{{ }}` belongs to templates; write the input's name as it is, without braces"),
    ("}}", "`{{ }}` belongs to templates; write the input's name as it is, without braces"),
    ("{%", "`{% %}` belongs to templates; declare a further input instead of setting a variable"),
    ("[[", "`[[ ]]` is a citation; bind the value to an input and use the input's name"),
    ("&&", "write `and` for `&&`"),
    ("||", "write `or` for `||`"),
    ("<>", "write `!=` for `<>`"),
    ("^", "write `**` for a power"),
)
_LOOKALIKES = {
    "×": "*",
    "÷": "/",
    "−": "-",
    "–": "-",
    "（": "(",
    "）": ")",
    "，": ",",
    "＋": "+",
    "％": "%",
    "≥": ">=",
    "≤": "<=",
}


def explain_foreign_syntax(source: str, where: str) -> None:
    """Habits from templates, spreadsheets and SQL, each with what to write here."""
    if not source:
        raise ExpressionError("the expression is empty", where=where, remedy="write arithmetic over the inputs")
    for character, plain in _LOOKALIKES.items():
        if character in source:
            column = source.index(character) + 1
            raise ExpressionError(
                f"`{character}` at column {column} is not an operator", where=where, remedy=f"write `{plain}`"
            )
    for mark, remedy in _FOREIGN:
        if mark in source:
            raise ExpressionError(f"`{mark}` at column {source.index(mark) + 1}", where=where, remedy=remedy)
    if source.startswith("="):
        raise ExpressionError("an expression does not start with `=`", where=where, remedy="leave the `=` out")
    for token in _tokens(source):
        column = token.start[1] + 1
        if token.string == "=":
            raise ExpressionError(f"`=` at column {column} assigns", where=where, remedy="write `==` to compare")
        if token.string == "|":
            raise ExpressionError(
                f"`|` at column {column}: there are no filters",
                where=where,
                remedy="call the function: round(x, 1), if_null(x, 0)",
            )
        if token.type == tokenize.COMMENT:
            raise ExpressionError(f"`#` at column {column}", where=where, remedy="put comments into `description`")


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            found.append(token)
    except (tokenize.TokenError, SyntaxError):
        pass  # the parser says it better
    return found
