"""Where a node stands in the text. sqlglot keeps the places of names and literals; the rest follows from the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import Token, TokenType, exp


@dataclass(slots=True)
class Places:
    """The tokens of one text, to find the span of any node of its trees."""

    text: str
    tokens: Sequence[Token]
    _index: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._index = {token.start: place for place, token in enumerate(self.tokens)}

    def span(self, node: exp.Expr) -> tuple[int, int]:
        """Characters [start, end) from the node's first to its last known place; calls include their brackets."""
        spans = [self._own(part) for part in node.walk() if "start" in part.meta]
        if not spans:
            return (0, len(self.text)) if node.parent is None else self.span(node.parent)
        start, end = min(start for start, _ in spans), max(end for _, end in spans)
        return start, self._balanced(start, end)

    def line(self, start: int) -> int:
        """The line of a character, from 1."""
        return self.text.count("\n", 0, start) + 1

    def _balanced(self, start: int, end: int) -> int:
        """The end, moved behind the brackets that were opened since the start."""
        depth = 0
        for token in self.tokens:
            if token.start < start:
                continue
            if token.start >= end and depth <= 0:
                break
            if token.token_type == TokenType.L_PAREN:
                depth += 1
            elif token.token_type == TokenType.R_PAREN:
                depth -= 1
                end = max(end, int(token.end) + 1)
        return end

    def _own(self, part: exp.Expr) -> tuple[int, int]:
        start, end = int(part.meta["start"]), int(part.meta["end"]) + 1
        if isinstance(part, exp.Func) and start in self._index:
            end = self._closing(self._index[start]) or end
        return start, end

    def _closing(self, place: int) -> int | None:
        """The end of the bracket that opens after a token."""
        depth = 0
        for token in self.tokens[place + 1 :]:
            if token.token_type == TokenType.L_PAREN:
                depth += 1
            elif token.token_type == TokenType.R_PAREN:
                depth -= 1
                if depth == 0:
                    return int(token.end) + 1
            elif depth == 0:
                return None
        return None
