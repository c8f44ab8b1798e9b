"""The tree of a checked expression: a handful of frozen node types, and the bounds that keep evaluation small.

A `Node` is a number or null, a `Truth` is a comparison or a combination of comparisons; the two never mix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

MAX_LENGTH = 2_000
MAX_NODES = 400
MAX_DEPTH = 60
MAX_LITERAL_EXPONENT = 100
MAX_EXPONENT = 100
MAX_ROUND_DIGITS = 30

FUNCTIONS: dict[str, tuple[int, int]] = {
    "abs": (1, 1),
    "min": (2, 20),
    "max": (2, 20),
    "round": (1, 2),
    "sqrt": (1, 1),
    "ln": (1, 1),
    "log10": (1, 1),
    "exp": (1, 1),
    "coalesce": (1, 20),
    "if_null": (2, 2),
    "clamp": (3, 3),
}
"""Name → least and greatest number of arguments."""

BinaryOperator: TypeAlias = Literal["+", "-", "*", "/", "//", "%", "**"]
CompareOperator: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Number:
    value: Decimal | None  # None is the null literal, written None


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    operator: BinaryOperator
    left: Node
    right: Node
    source: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Node, ...]
    source: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: Truth
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Comparison:
    operands: tuple[Node, ...]
    operators: tuple[CompareOperator, ...]


@dataclass(frozen=True, slots=True)
class Logic:
    operator: Literal["and", "or"]
    operands: tuple[Truth, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Truth


Node: TypeAlias = Number | Name | Negative | Binary | Call | Conditional
Truth: TypeAlias = Comparison | Logic | Not


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression.

    Attributes:
        text: as written on the card.
        names: the inputs it uses, in order of first use.
        uses: start and end of each use of a name in `text`, in code points, in order.
    """

    text: str
    root: Node
    names: tuple[str, ...]
    uses: tuple[tuple[int, int, str], ...]
    divides: bool


def whole_number(node: Node) -> int | None:
    """The value of a written whole number within the digits round() accepts."""
    sign, literal = (-1, node.operand) if isinstance(node, Negative) else (1, node)
    if not isinstance(literal, Number) or literal.value is None or literal.value != literal.value.to_integral_value():
        return None
    return sign * int(literal.value) if literal.value <= MAX_ROUND_DIGITS else None


def round_digits(call: Call) -> int:
    """The digits a checked round() call asks for."""
    return (whole_number(call.arguments[1]) or 0) if len(call.arguments) == 2 else 0
