"""Putting parameter values into a statement, so that the recorded SQL shows what was really asked.

`:name` marks are found by the SQL tokenizer, never by search and replace, so that a mark inside a string or a
comment stays what it is; the rest of the statement is kept to the letter. Values become SQL literals of their own type.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sqlglot import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from learngraph_kernel.errors import BadInput


class BindError(BadInput):
    """A parameter is missing, unused, or of a type that has no literal."""

    code = "bind_error"


def bind(sql: str, parameters: Mapping[str, Any], dialect: str) -> str:
    """The statement with every mark replaced by its value.

    Args:
        sql: one statement with `:name` marks.
        parameters: a value for each mark: None, bool, int, float, Decimal, str, date, datetime, or a list of these.
        dialect: sqlglot dialect name.

    Raises:
        BindError: a mark without a value, a value without a mark, or a value with no SQL form.
    """
    if not parameters:
        return sql
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    except TokenError:
        # The guard will say where the statement is broken; its message is better than ours would be.
        return sql
    used: set[str] = set()
    pieces: list[str] = []
    position = 0
    for mark, name in _marks(tokens, sql):
        if name not in parameters:
            raise BindError(f"the statement asks for :{name}, which was not given", where=f"line {mark.line}")
        pieces += [sql[position : mark.start], literal(parameters[name])]
        position = mark.start + 1 + len(name)
        used.add(name)
    unused = sorted(set(parameters) - used)
    if unused:
        raise BindError(f"the statement has no :{unused[0]}", remedy="write :name where the value belongs")
    return "".join(pieces) + sql[position:]


def _marks(tokens: list[Token], sql: str) -> list[tuple[Token, str]]:
    """The colons that stand directly before a name, with the name."""
    found: list[tuple[Token, str]] = []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.token_type is not TokenType.COLON:
            continue
        if after is None or after.start != token.end + 1 or not sql[after.start].isidentifier():
            continue
        if before is not None and before.end + 1 == token.start and before.token_type not in _MAY_TOUCH:
            continue  # a slice or a cast: list[1:n], col::type
        found.append((token, sql[after.start : after.end + 1]))
    return found


_MAY_TOUCH = {
    TokenType.L_PAREN,
    TokenType.COMMA,
    TokenType.EQ,
    TokenType.NEQ,
    TokenType.LT,
    TokenType.LTE,
    TokenType.GT,
    TokenType.GTE,
    TokenType.PLUS,
    TokenType.DASH,
    TokenType.STAR,
    TokenType.SLASH,
}


def literal(value: Any) -> str:
    """A Python value as a SQL literal that keeps its type. Raises BindError."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, float) and math.isfinite(value):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, str):
        if "\x00" in value:
            raise BindError("a text parameter contains a NUL character")
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, list | tuple) and value:
        return "(" + ", ".join(literal(item) for item in value) + ")"
    raise BindError(f"a parameter of type {type(value).__name__} has no SQL form")
