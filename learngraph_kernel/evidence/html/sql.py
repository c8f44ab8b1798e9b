"""SQL with its words told apart: pygments reads it (IPython brings it along), the dress colours it."""

from __future__ import annotations

from functools import lru_cache

from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]
from pygments.token import Comment, Keyword, Name, Number, String  # type: ignore[import-untyped]

from learngraph_kernel.evidence.html import escape
from learngraph_kernel.evidence.html.dress import Dress

LONGEST_HIGHLIGHTED = 20_000
_ROLES = (
    (Comment, "sql-comment"),
    (Keyword, "sql-word"),
    (String, "sql-text"),
    (Number, "sql-number"),
    (Name.Builtin, "sql-word"),
)


@lru_cache(maxsize=256)  # one statement stands behind many numbers
def highlight(sql: str, dress: Dress) -> str:
    """The statement as HTML for a `pre`."""
    if len(sql) > LONGEST_HIGHLIGHTED:
        return escape.text(sql)
    pieces = []
    for kind, word in SqlLexer(stripnl=False, ensurenl=False).get_tokens(sql):
        role = next((role for token, role in _ROLES if kind in token), None)
        written = escape.text(word)
        pieces.append(f"<span{dress(role)}>{written}</span>" if role else written)
    return "".join(pieces)
