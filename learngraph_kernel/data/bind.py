"""Putting parameter values into a statement, so that the recorded SQL shows what was really asked.

`:name` marks are found by the SQL tokenizer, never by search and replace, so that a mark inside a string or a
comment stays what it is; the rest of the statement is kept to the letter. Values become SQL literals of their own type.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from sqlglot import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import suggestion


class BindError(BadInput):
    """A parameter is missing, unused, or of a type that has no literal."""

    code = "bind_error"


def bind(sql: str, parameters: Mapping[str, Any], dialect: str) -> str:
    """The statement with every mark replaced by its value.

    Args:
        sql: one statement with `:name` marks.
        parameters: a value for each mark: None, bool, int, float, Decimal, str, date, datetime, or a list of these
            (for `IN :name`).
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
    for start, name in _marks(tokens, sql):
        line = f"line {sql.count(chr(10), 0, start) + 1}"
        end = start + 1 + len(name)
        if name not in parameters:
            raise BindError(
                f"the statement asks for :{name}, which was not given",
                where=line,
                remedy=suggestion(name, parameters, kind="values"),
            )
        if sql[end : end + 1] in _RUNS_ON:
            raise BindError(
                f"the mark :{name} runs into what follows it", where=line, remedy="put a space between them"
            )
        pieces += [sql[position:start], literal(parameters[name], dialect)]
        position = end
        used.add(name)
    unused = sorted(set(parameters) - used)
    if unused:
        raise BindError(
            f"the statement has no :{unused[0]}",
            remedy="write :name where the value belongs, after a space; in a string, a slice or a struct it is no mark",
        )
    return "".join(pieces) + sql[position:]


_NAME = re.compile(r"[^\W\d]\w*")
_RUNS_ON = frozenset("'\"$.")


def _marks(tokens: list[Token], sql: str) -> Iterator[tuple[int, str]]:
    """Where a colon stands directly before a name and an expression may begin, with the name.

    After the end of an expression a colon means something else: a slice (`list[1:n]`), a struct's value (`{'a':x}`), an
    alias (`a: 1`).
    """
    slices: list[bool] = []  # for each open bracket: whether it takes an element out of something
    before: Token | None = None
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.COLON:
            name = _NAME.match(sql, token.end + 1)
            if name is not None and not _ends_expression(before, token, in_slice=bool(slices) and slices[-1]):
                yield token.start, name.group()
        elif kind in _OPENING:
            slices.append(kind is TokenType.L_BRACKET and before is not None and before.token_type in _ENDS)
        elif kind in _CLOSING and slices:
            slices.pop()
        before = token


def _ends_expression(before: Token | None, colon: Token, *, in_slice: bool) -> bool:
    if before is None:
        return False
    if before.token_type is TokenType.L_BRACKET:
        return in_slice  # `list[:n]`, as against the first element of `[:n, 2]`
    if before.token_type is TokenType.VAR:
        return before.end + 1 == colon.start or before.text.upper() not in _OPERATORS
    touches = before.end + 1 == colon.start
    return before.token_type in _ENDS or (touches and before.text[-1:].isalnum())


_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_ENDS = {
    *_CLOSING,
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.HEREDOC_STRING,
    TokenType.BYTE_STRING,
    TokenType.HEX_STRING,
    TokenType.NATIONAL_STRING,
    TokenType.PLACEHOLDER,
}
_OPERATORS = {"ZONE", "GLOB", "MATCH", "REGEXP", "TO"}
"""Words that the tokenizer takes for names and that an expression may follow."""

DUCKDB_DIGITS = 38
SQLITE_INTEGER = range(-(2**63), 2**63)


def literal(value: Any, dialect: str) -> str:
    """A Python value as a SQL literal that keeps its type, or as text where the engine has no such type.

    Raises:
        BindError: it has no SQL form, or the engine would change it.
    """
    if isinstance(value, list | tuple):
        if not value:
            raise BindError("an empty list has no SQL form", remedy="leave the condition out instead")
        return "(" + ", ".join(literal(item, dialect) for item in value) + ")"
    text = _scalar(value, dialect)
    return f"({text})" if text.startswith("-") else text  # `x -:n` must not become the comment `x --5`


def _scalar(value: Any, dialect: str) -> str:
    sqlite = dialect == "sqlite"
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        if sqlite and value not in SQLITE_INTEGER:
            raise BindError(f"{value} does not fit into SQLite's 64 bits, it would become a float")
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return _decimal(value, sqlite=sqlite)
    if isinstance(value, float) and math.isfinite(value):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dt.datetime):
        moment = value.isoformat(sep=" ")
        # TIMESTAMP would read the same text and drop the offset.
        return f"'{moment}'" if sqlite else f"{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'} '{moment}'"
    if isinstance(value, dt.date):
        return f"'{value.isoformat()}'" if sqlite else f"DATE '{value.isoformat()}'"
    raise BindError(f"a parameter of type {type(value).__name__} has no SQL form")


def _text(value: str) -> str:
    if "\x00" in value:
        raise BindError("a text parameter contains a NUL character")
    return "'" + value.replace("'", "''") + "'"


def _decimal(value: Decimal, *, sqlite: bool) -> str:
    text = f"{value:f}"
    if sqlite and Decimal(repr(float(value))) != value:
        raise BindError(f"{text} has more digits than SQLite's floats keep", remedy="round it first")
    if sum(character.isdigit() for character in text) > DUCKDB_DIGITS:
        raise BindError(
            f"{text} has more than {DUCKDB_DIGITS} digits, it would become a float", remedy="round it first"
        )
    return text if "." in text else f"{text}.0" if sqlite else text
