"""The first barrier: what a statement may say, decided before any engine sees it.

A statement is read by sqlglot and refused unless everything in it is on a list: one statement, of a reading kind, made
of known syntax nodes, calling known functions, over tables that are names (never files). Two readings back each other
up: the *tokens* decide which names are called (a name before a parenthesis), the *tree* decides what kind of thing is
asked for. What sqlglot cannot parse is refused. The engine is locked down as well (see `duckdb_engine`,
`sqlite_source`); neither barrier relies on the other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NoReturn

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from learngraph_kernel.data.guard_functions import BEFORE_PARENTHESIS, FUNCTIONS, TABLE_FUNCTIONS
from learngraph_kernel.data.guard_syntax import (
    CATALOGUES,
    FILE_SUFFIX,
    HIDDEN_TABLE_PREFIXES,
    NAMES_WITHOUT_CALL,
    READABLE_SYSTEM_TABLES,
    ROOTS,
    STATEMENT_WORDS,
    STRUCTURE,
    SYSTEM_SCHEMAS,
    TABLE_FUNCTION_NODES,
)
from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import did_you_mean, suggestion

MAX_CHARACTERS = 200_000
DECLARE = "declare its folder once, then name the table: learngraph source add NAME --kind folder --path FOLDER"
MAX_DEPTH = 120  # nested brackets; sqlglot recurses, and no person writes this

_WORD = re.compile(r"[^\W\d][\w$]*\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_BLANK = re.compile(r"(?:[ \t\r\n]|--[^\n]*|/\*(?:(?!/\*|\*/).)*\*/)*", re.DOTALL)
_TAIL = re.compile(_BLANK.pattern.replace("[ ", "[; "), re.DOTALL)
_CLOSING = {"'": "'", '"': '"', "`": "`", "[": "]"}
_LOOKALIKES = "‘’‚‛“”„‟′″＇＂｀；﹔；"
_STRINGS = frozenset(
    {TokenType.STRING, TokenType.HEREDOC_STRING, TokenType.RAW_STRING, TokenType.BYTE_STRING, TokenType.NATIONAL_STRING}
)
_NAMES = _STRINGS | {TokenType.IDENTIFIER}


class SqlRefused(BadInput):
    """The guard refused a statement; `where` is line:column of the offending token."""

    code = "sql_refused"


@dataclass(frozen=True, slots=True)
class GuardedStatement:
    """A statement the guard has let through.

    Attributes:
        sql: the statement as written, without a closing semicolon.
        hash: sha256 of dialect and statement.
        tables: tables it names, as written, in order of appearance, without its own CTEs.
        kind: `select`, `describe`, `summarize`, `pivot` or `explain`.
    """

    sql: str
    hash: str
    tables: tuple[str, ...]
    kind: str
    dialect: str


@lru_cache(maxsize=512)
def guard(sql: str, dialect: str) -> GuardedStatement:
    """Read a statement and let it through, or refuse it.

    Takes SQL text and `duckdb` or `sqlite`; returns the statement to hand to a source. Raises SqlRefused with the
    reason and the place (line:column). Results are cached, as parsing takes milliseconds.
    """
    if dialect not in FUNCTIONS:
        raise SqlRefused(f"no guard for the SQL dialect {dialect!r}", remedy=suggestion(dialect, FUNCTIONS))
    return _Reading(sql, dialect).statement()


class _Reading:
    """One statement being read; holds what the checks share."""

    def __init__(self, sql: str, dialect: str) -> None:
        self.sql = sql
        self.text = sql
        self.dialect = dialect

    def statement(self) -> GuardedStatement:
        self._check_characters()
        body, kind = self._body()
        self._check_tokens(body)
        tree = self._tree(body)
        root = type(tree).__name__
        if root not in ROOTS:
            said = root.upper() if body[0].token_type is TokenType.WITH else repr(body[0].text[:40])
            self.refuse(f"only reading statements are allowed, not {said}", body[0].start)
        self._check_calls(body, set(self._declared_names(tree)))
        self._check_tree(tree)
        text = self.sql[: body[-1].end + 1].lstrip()
        identity = hashlib.sha256(f"{self.dialect}\n{text}".encode()).hexdigest()
        return GuardedStatement(text, identity, tuple(self._tables(tree)), kind or ROOTS[root], self.dialect)

    def refuse(self, reason: str, offset: int, remedy: str | None = None) -> NoReturn:
        before = self.sql[:offset]
        line, column = before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
        raise SqlRefused(reason, where=f"{line}:{column}", remedy=remedy, details={"line": line, "column": column})

    # -- text and tokens

    def _check_characters(self) -> None:
        if len(self.sql) > MAX_CHARACTERS:
            self.refuse(f"the statement is longer than {MAX_CHARACTERS:,} characters", MAX_CHARACTERS)
        control = _CONTROL.search(self.sql)
        if control:
            self.refuse(f"control character {control[0]!r} in the statement", control.start())

    def _tokens(self) -> list[Token]:
        tokens = self._tokenize(self.text)
        while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
            tokens.pop()
        if not tokens:
            self.refuse("there is no statement", 0)
        for token in tokens:
            if token.token_type is TokenType.SEMICOLON:
                self.refuse("one statement only", token.start, "send the statements one by one")
        return tokens

    def _tokenize(self, text: str) -> list[Token]:
        try:
            return list(sqlglot.tokenize(text, read=self.dialect))
        except SqlglotError as error:
            self.refuse(f"cannot be read as {self.dialect} SQL: {_first_line(error)}", _token_offset(error, self.sql))

    def _body(self) -> tuple[list[Token], str | None]:
        """The tokens to parse, and `explain` if EXPLAIN was taken off: sqlglot does not look inside it."""
        first = self._tokenize(self.sql)[:1]
        if not first or first[0].token_type in _NAMES or first[0].text.upper() != "EXPLAIN":
            return self._tokens(), None
        word = first[0]
        self.text = self.sql[: word.start] + " " * (word.end + 1 - word.start) + self.sql[word.end + 1 :]
        tokens = self._tokens()
        if self.dialect == "sqlite" and [token.text.upper() for token in tokens[:2]] == ["QUERY", "PLAN"]:
            stop = tokens[1].end + 1
            self.text = " " * stop + self.text[stop:]
            tokens = tokens[2:] or self.refuse("EXPLAIN of nothing", word.start)
        if tokens[0].text.upper() in {"ANALYZE", "ANALYSE", "("}:
            self.refuse("EXPLAIN runs nothing here; its options are not allowed", tokens[0].start, "use plain EXPLAIN")
        return tokens, "explain"

    def _check_tokens(self, tokens: Sequence[Token]) -> None:
        depth, end = 0, 0
        for token in tokens:
            kind, source = token.token_type, self.sql[token.start : token.end + 1]
            self._check_gap(end, token.start)
            end = token.end + 1
            if kind in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE):
                depth += 1
                if depth > MAX_DEPTH:
                    self.refuse("brackets are nested too deeply", token.start)
            elif kind in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE):
                depth -= 1
            elif kind is TokenType.PLACEHOLDER or (kind is TokenType.PARAMETER and not self._is_absolute_value(source)):
                self.refuse("parameters are not bound here", token.start, "write the value into the statement")
            elif kind is TokenType.VAR and not _WORD.match(token.text):
                what = "look-alike quotation mark or semicolon" if set(token.text) & set(_LOOKALIKES) else "character"
                self.refuse(f"{what} in the name {token.text!r}", token.start, "quote such names with double quotes")
            elif not _ends_where_it_seems(source):
                self.refuse("a quotation that other parsers would end elsewhere", token.start)
            elif kind is TokenType.BYTE_STRING and "\\'" in source:
                # Engines and parsers disagree on where this string ends.
                self.refuse("\\' in an escape string", token.start, "write '' instead")
            elif kind is TokenType.HEREDOC_STRING and not source.startswith("$$"):
                self.refuse("tagged dollar quotes are not allowed", token.start, "use $$…$$ or '…'")
        self._check_gap(end, len(self.text), _TAIL)

    def _is_absolute_value(self, source: str) -> bool:
        return self.dialect == "duckdb" and source == "@"

    def _check_gap(self, start: int, stop: int, pattern: re.Pattern[str] = _BLANK) -> None:
        """Between tokens stand only plain spaces and comments that every parser ends at the same place."""
        rest = pattern.match(self.text, start, stop)
        end = rest.end() if rest else start
        if end < stop:
            self.refuse("neither space nor a plain comment", end, "don't nest comments; use ordinary spaces")

    def _check_calls(self, tokens: Sequence[Token], declared: set[int]) -> None:
        """Every name before a parenthesis is an allowed function, a word of the grammar, or a name being declared."""
        functions = FUNCTIONS[self.dialect] | TABLE_FUNCTIONS[self.dialect]
        for token, following in pairwise(tokens):
            if following.token_type is not TokenType.L_PAREN or token.start in declared:
                continue
            name = token.text.lower().strip()
            if token.token_type in _STRINGS:
                self.refuse("a string cannot be called", token.start)
            quoted = token.token_type is TokenType.IDENTIFIER
            if not quoted and not name[:1].isalpha() and not name.startswith("_"):
                continue  # an operator or bracket
            if name in functions or (not quoted and name.split()[-1] in BEFORE_PARENTHESIS):
                continue
            self.refuse(
                f"the function {token.text!r} is not allowed", token.start, did_you_mean(name, functions, cutoff=0.8)
            )

    # -- the tree

    def _tree(self, body: Sequence[Token]) -> exp.Expr:
        start = body[0].start
        try:
            trees = sqlglot.Dialect.get_or_raise(self.dialect).parser().parse(list(body), self.sql)
        except ParseError as error:
            self.refuse(f"cannot be read as {self.dialect} SQL: {_first_line(error)}", _parse_offset(error, self.sql))
        except SqlglotError as error:
            self.refuse(f"cannot be read as {self.dialect} SQL: {_first_line(error)}", start)
        except RecursionError:
            self.refuse("the statement is nested too deeply", start)
        if len(trees) != 1 or trees[0] is None:
            self.refuse("one statement only", start)
        return trees[0]

    def _check_tree(self, tree: exp.Expr) -> None:
        for node in tree.walk():
            name = type(node).__name__
            if name in NAMES_WITHOUT_CALL:
                self.refuse(f"{NAMES_WITHOUT_CALL[name]} is not allowed", _offset(node))
            if isinstance(node, exp.Placeholder):
                what = f":{node.name} has no value" if node.name else "a placeholder has no value"
                self.refuse(what, _offset(node), "give the value with the call, or write it into the statement")
            if name not in STRUCTURE and not isinstance(node, exp.Func):
                self.refuse(f"{name.upper()} is not allowed in a query", _offset(node))
            if isinstance(node, exp.Anonymous) and str(node.name).lower() not in (
                FUNCTIONS[self.dialect] | TABLE_FUNCTIONS[self.dialect]
            ):
                self.refuse(f"the function {node.name!r} is not allowed", _offset(node))
            if isinstance(node, exp.Table):
                self._check_table(node)
            elif isinstance(node, exp.Alias) and not _may_hold_alias(node.parent):
                # sqlglot sees a column with an alias in `(SHOW DATABASES)`, DuckDB a statement.
                self.refuse("two words that are no expression", _offset(node), "names are given in the SELECT list")
            elif isinstance(node, exp.TableAlias) and self._is_text(node.this):
                self.refuse("a table's alias is a name, not a text", _offset(node.this), "use double quotes")
            elif isinstance(node, exp.Describe | exp.Summarize) and not isinstance(node.this, exp.Query | exp.Table):
                self.refuse(f"{name.upper()} takes a table's name or a query", _offset(node))
            elif isinstance(node, exp.Select) and not node.expressions:
                self.refuse("nothing is selected", _offset(node))

    def _check_table(self, table: exp.Table) -> None:
        this = table.this
        if isinstance(this, exp.Func):
            named = isinstance(this, exp.Anonymous) and this.name.lower() in TABLE_FUNCTIONS[self.dialect]
            if not named and type(this).__name__ not in TABLE_FUNCTION_NODES:
                self.refuse("this function is not allowed in FROM", _offset(table), "name a table of the source")
            return
        if not isinstance(this, exp.Identifier):
            self.refuse("FROM takes a table's name", _offset(table))
        place = _offset(table)
        if this.name.lower() in STATEMENT_WORDS and not this.args.get("quoted"):
            # sqlglot sees a table with an alias in `FROM (SHOW TABLES)`, DuckDB a statement.
            self.refuse(f"{this.name.upper()} is not allowed in FROM", place, "a table of that name must be quoted")
        if self._is_text(this):
            self.refuse("a file cannot be read; FROM takes a table's name", place, DECLARE)
        parts = [part.name for part in table.parts]
        name, path = parts[-1].lower(), ".".join(parts)
        if FILE_SUFFIX.search(path) or any(mark in path for mark in ("/", "\\", "*", "?", "|")):
            self.refuse(f"{path!r} looks like a file; FROM takes a table's name", place, DECLARE)
        schemas = [part.lower() for part in parts[:-1]]
        if (*schemas[-1:], name) in READABLE_SYSTEM_TABLES[self.dialect] and len(schemas) <= 1:
            return
        if SYSTEM_SCHEMAS.intersection(schemas) or name.startswith(HIDDEN_TABLE_PREFIXES):
            self.refuse(f"the system table {path!r} is not readable", place, CATALOGUES[self.dialect])

    def _is_text(self, name: exp.Expr | None) -> bool:
        """Whether sqlglot took a string literal for a name."""
        return isinstance(name, exp.Identifier) and self.sql[_offset(name) : _offset(name) + 1] == "'"

    def _declared_names(self, tree: exp.Expr) -> Iterator[int]:
        """Where names stand that are declared with a column list: `WITH t(a, b)`, `FROM x AS t(a, b)`."""
        for alias in tree.find_all(exp.TableAlias):
            if alias.args.get("columns") and isinstance(alias.this, exp.Identifier):
                yield _offset(alias.this)

    def _tables(self, tree: exp.Expr) -> Iterator[str]:
        own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        seen = set()
        for table in tree.find_all(exp.Table, bfs=False):
            if not isinstance(table.this, exp.Identifier):
                continue
            path = ".".join(part.name for part in table.parts)
            if path.lower() not in own and path not in seen:
                seen.add(path)
                yield path


def _ends_where_it_seems(source: str) -> bool:
    """Whether a quoted token closes with its own quote and holds that quote only doubled."""
    closing = _CLOSING.get(source[0])
    if closing is None or len(source) == 1:
        return True  # not quoted: a word, a number, an operator, an opening bracket
    inner = source[1:-1]
    return source[-1] == closing and closing not in (inner if closing == "]" else inner.replace(closing * 2, ""))


def _offset(node: exp.Expr) -> int:
    """Where a node begins, as far as sqlglot says: its own place, else the first place known beneath or above it."""
    for candidate in (*node.walk(bfs=False), *_ancestors(node)):
        start: object = candidate.meta.get("start")
        if isinstance(start, int):
            return start
    return 0


def _may_hold_alias(parent: exp.Expr | None) -> bool:
    """Whether an expression may be given a name here: in SELECT, PIVOT, EXCLUDE/REPLACE, and PIVOT's `IN (… AS …)`."""
    if isinstance(parent, exp.In):
        return isinstance(parent.parent, exp.Pivot)
    return isinstance(parent, exp.Select | exp.Pivot | exp.Star)


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _first_line(error: Exception) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()[0]
    text = re.sub(r"\. Line \d+, Col: \d+\.?$", "", text)
    text = re.sub(r" (but got|missing for) <.*", "", text)
    near = error.errors[0].get("highlight") if isinstance(error, ParseError) and error.errors else None
    return f"{text} at {near!r}" if near else text


def _parse_offset(error: ParseError, sql: str) -> int:
    details: dict[str, Any] = error.errors[0] if error.errors else {}
    line, end_column = details.get("line"), details.get("col")
    if not isinstance(line, int) or not isinstance(end_column, int):
        return 0
    starts = [0, *(match.end() for match in re.finditer("\n", sql))]
    return max(0, starts[min(line, len(starts)) - 1] + end_column - len(details.get("highlight") or "x"))


def _token_offset(error: Exception, sql: str) -> int:
    match = re.search(r"from (\d+):(\d+)", str(error))
    if not match:
        return 0
    starts = [0, *(found.end() for found in re.finditer("\n", sql))]
    return min(len(sql), starts[min(int(match[1]), len(starts)) - 1] + max(0, int(match[2]) - 1))
