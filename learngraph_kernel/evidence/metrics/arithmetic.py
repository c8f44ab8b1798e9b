"""Evaluating a checked expression with exact decimals.

Decimal arithmetic with 50 significant digits, rounding half to even: `+ - *` are exact up to 50 digits, `/`, `**` and
the functions are rounded once in the 50th digit. `//` and `%` follow Python (towards minus infinity). `round(x, n)`
rounds half to even. A null spreads through whatever uses it, as in SQL, except through `coalesce` and `if_null`; a
comparison with a null is neither true nor false, and a condition that is neither makes the result null.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from learngraph_kernel.evidence.metrics.tree import (
    MAX_EXPONENT,
    Binary,
    Call,
    Comparison,
    Conditional,
    Expression,
    Logic,
    Name,
    Negative,
    Node,
    Not,
    Number,
    Truth,
    round_digits,
)

PRECISION = 50
ZERO = Decimal(0)


def context() -> decimal.Context:
    """The decimal context of every evaluation. Numbers beyond 1e±9999 are errors, not infinities or zeros."""
    return decimal.Context(
        prec=PRECISION,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=-9999,
        Emax=9999,
        capitals=1,
        clamp=0,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow, decimal.Underflow],
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an expression came to.

    Attributes:
        value: None when there is `trouble`, or when the result is null.
        trouble: `zero_division`, `domain` (a root of a negative number, out of range, …) or None.
        detail: the part of the expression that caused it, and why.
    """

    value: Decimal | None
    trouble: Literal["zero_division", "domain"] | None = None
    detail: str = ""


class _Trouble(Exception):
    def __init__(self, kind: Literal["zero_division", "domain"], detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


def evaluate(expression: Expression, values: Mapping[str, Decimal | None], *, null_is_zero: bool = False) -> Outcome:
    """The value of an expression.

    Args:
        values: by input name; None is null. Must hold every name the expression uses.
        null_is_zero: a null counts as 0 wherever arithmetic meets it (not inside `coalesce` and `if_null`).
    """
    machine = _Machine(values, null_is_zero)
    try:
        result = machine.operand(expression.root)
        if result is not None:
            result = machine.context.plus(result)
    except _Trouble as trouble:
        return Outcome(None, trouble.kind, trouble.detail)
    except decimal.DecimalException as error:
        return Outcome(None, "domain", f"the result is out of range ({type(error).__name__})")
    return Outcome(None if result is None else plain(result))


def plain(value: Decimal) -> Decimal:
    """The same number without exponent above zero and without a negative zero: `1E+2` → `100`, `-0` → `0`."""
    if value == 0:
        value = value.copy_abs()
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and 0 < exponent <= 100:
        return value.quantize(Decimal(1), context=decimal.Context(prec=PRECISION + 101))
    return value


class _Machine:
    def __init__(self, values: Mapping[str, Decimal | None], null_is_zero: bool) -> None:
        self.values = values
        self.null_is_zero = null_is_zero
        self.context = context()

    def operand(self, node: Node) -> Decimal | None:
        """A number as arithmetic sees it."""
        value = self.number(node)
        return ZERO if value is None and self.null_is_zero else value

    def number(self, node: Node) -> Decimal | None:
        match node:
            case Number(value):
                return value
            case Name(name):
                return self.values[name]
            case Negative(inner):
                value = self.operand(inner)
                return None if value is None else self.context.minus(value)
            case Binary():
                return self.binary(node)
            case Call():
                return self.call(node)
            case Conditional(condition, then, otherwise):
                holds = self.truth(condition)
                return None if holds is None else self.number(then if holds else otherwise)

    def binary(self, node: Binary) -> Decimal | None:
        left, right = self.operand(node.left), self.operand(node.right)
        if left is None or right is None:
            return None
        try:
            return self.apply(node, left, right)
        except (decimal.InvalidOperation, decimal.Overflow, decimal.Underflow) as error:
            raise _Trouble("domain", f"`{node.source}` has no value within range") from error

    def apply(self, node: Binary, left: Decimal, right: Decimal) -> Decimal:
        match node.operator:
            case "+":
                return self.context.add(left, right)
            case "-":
                return self.context.subtract(left, right)
            case "*":
                return self.context.multiply(left, right)
            case "**":
                return self.power(node, left, right)
        if right == 0:
            raise _Trouble("zero_division", f"`{node.source}` divides by zero")
        if node.operator == "/":
            return self.context.divide(left, right)
        quotient, remainder = self.context.divmod(left, right)
        if remainder != 0 and (remainder < 0) != (right < 0):
            # Decimal truncates; Python's // and % go towards minus infinity.
            quotient, remainder = self.context.subtract(quotient, Decimal(1)), self.context.add(remainder, right)
        return quotient if node.operator == "//" else remainder

    def power(self, node: Binary, base: Decimal, exponent: Decimal) -> Decimal:
        if exponent.copy_abs() > MAX_EXPONENT:
            raise _Trouble("domain", f"`{node.source}` raises to {exponent}, beyond ±{MAX_EXPONENT}")
        if base == 0 and exponent < 0:
            raise _Trouble("zero_division", f"`{node.source}` divides by zero")
        # A root comes padded with zeros to 50 digits: 9 ** 0.5 is 3, not 3.000…
        return self.context.normalize(self.context.power(base, exponent))

    def call(self, node: Call) -> Decimal | None:
        if node.function in ("coalesce", "if_null"):
            return next((value for value in map(self.number, node.arguments) if value is not None), None)
        digits = round_digits(node)
        arguments = node.arguments[:1] if node.function == "round" else node.arguments
        values = [self.operand(argument) for argument in arguments]
        numbers = [value for value in values if value is not None]
        if len(numbers) < len(values):
            return None
        try:
            if node.function == "round":
                return self.rounded(numbers[0], digits)
            return _FUNCTIONS[node.function](self.context, numbers)
        except (decimal.DecimalException, ValueError) as error:
            shown = ", ".join(str(number) for number in numbers)
            raise _Trouble("domain", f"{node.function}({shown}) has no value") from error

    def rounded(self, value: Decimal, digits: int) -> Decimal:
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and exponent >= -digits:
            return value
        return value.quantize(Decimal((0, (1,), -digits)), context=self.context)

    def truth(self, node: Truth) -> bool | None:
        match node:
            case Comparison(operands, operators):
                return self.comparison(operands, operators)
            case Not(inner):
                holds = self.truth(inner)
                return None if holds is None else not holds
            case Logic(operator, parts):
                # Three-valued, as in SQL: a decided operand wins over an undecided one.
                decisive = operator == "or"
                undecided = False
                for part in parts:
                    holds = self.truth(part)
                    if holds is decisive:
                        return decisive
                    undecided = undecided or holds is None
                return None if undecided else not decisive

    def comparison(self, operands: tuple[Node, ...], operators: tuple[str, ...]) -> bool | None:
        left = self.operand(operands[0])
        for operator, node in zip(operators, operands[1:], strict=True):
            right = self.operand(node)
            if left is None or right is None:
                return None
            if not _COMPARISONS[operator](left, right):
                return False
            left = right
        return True


_COMPARISONS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _positive(value: Decimal) -> Decimal:
    if value <= 0:
        raise ValueError("logarithm of a number that is not positive")
    return value


def _clamp(context: decimal.Context, numbers: list[Decimal]) -> Decimal:
    value, low, high = numbers
    if low > high:
        raise ValueError("the lower bound is above the upper one")
    return min(max(value, low), high)


_FUNCTIONS: dict[str, Callable[[decimal.Context, list[Decimal]], Decimal]] = {
    "abs": lambda context, numbers: context.abs(numbers[0]),
    "min": lambda context, numbers: min(numbers),
    "max": lambda context, numbers: max(numbers),
    "sqrt": lambda context, numbers: context.sqrt(numbers[0]),
    "ln": lambda context, numbers: context.ln(_positive(numbers[0])),
    "log10": lambda context, numbers: context.log10(_positive(numbers[0])),
    "exp": lambda context, numbers: context.exp(numbers[0]),
    "clamp": _clamp,
}


def substituted(expression: Expression, values: Mapping[str, Decimal | None]) -> str:
    """The expression with the input values put in: `100 * on_time / flown` → `100 * 5012 / 6077`."""
    parts: list[str] = []
    done = 0
    for start, end, name in expression.uses:
        parts += [expression.text[done:start], shown(values[name])]
        done = end
    return "".join([*parts, expression.text[done:]])


def shown(value: Decimal | None) -> str:
    """A value inside a substituted expression: plain digits, negatives in parentheses, `null` for none."""
    if value is None:
        return "null"
    text = format(value, "f") if -40 <= value.adjusted() <= 40 else str(value)
    return f"({text})" if value < 0 else text
