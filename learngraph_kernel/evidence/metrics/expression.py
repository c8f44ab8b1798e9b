"""The expression language of metric cards: Python's arithmetic syntax, and nothing else of Python.

Python's own parser reads the text; every node that is not on the allow-list is refused with its place, and what is left
becomes a small tree of our own, so nothing is ever compiled or looked up. Numbers are taken from the source text as
exact decimals. A truth value (a comparison) and a number are told apart here, so that evaluation cannot meet a wrong
kind; size, depth and exponents are bounded, so that it cannot run away.
"""

from __future__ import annotations

import ast
import re
from decimal import Decimal

from learngraph_kernel.evidence.metrics.errors import ExpressionError
from learngraph_kernel.evidence.metrics.foreign import explain_foreign_syntax
from learngraph_kernel.evidence.metrics.tree import (
    FUNCTIONS,
    MAX_DEPTH,
    MAX_EXPONENT,
    MAX_LENGTH,
    MAX_LITERAL_EXPONENT,
    MAX_NODES,
    Binary,
    BinaryOperator,
    Call,
    CompareOperator,
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
    whole_number,
)
from learngraph_kernel.naming import suggestion


def parse_expression(text: str, inputs: frozenset[str] | set[str], *, where: str) -> Expression:
    """Checks an expression against the inputs a card declares.

    Args:
        text: the expression.
        inputs: the names it may use.
        where: file and metric, for messages.

    Raises:
        ExpressionError: anything that is not arithmetic over the inputs, with its column.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression is longer than {MAX_LENGTH} characters", where=where)
    # One line, so that a place is one number; a space for a line break leaves every offset as it was.
    source = re.sub(r"[\r\n\t]", " ", text).strip()
    explain_foreign_syntax(source, where)
    try:
        tree = ast.parse(source, mode="eval")
    except SyntaxError as error:
        raise ExpressionError(
            f"cannot be read as an expression at column {error.offset or 1}: {error.msg}",
            where=where,
            remedy="write arithmetic such as 100 * on_time / flown",
        ) from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise ExpressionError("the expression is too deeply nested or not text", where=where) from error
    return _Reader(source, inputs, where).read(tree)


_BINARY: dict[type[ast.operator], BinaryOperator] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARE: dict[type[ast.cmpop], CompareOperator] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Set: ("sets are not available", "compare one by one, with `or`"),
    ast.Dict: ("dictionaries are not available", "write arithmetic over the inputs"),
    ast.List: ("lists are not available", "write arithmetic over the inputs"),
    ast.Tuple: ("tuples are not available", "a metric is one number; write a second card for a second number"),
    ast.Attribute: ("`.` does not reach into values", "bind the cell to an input: cell(week.r0.flown)"),
    ast.Subscript: ("`[ ]` does not reach into values", "bind the cell to an input: cell(week.r0.flown)"),
    ast.Lambda: ("functions cannot be defined", "write a further card and use metric(name)"),
    ast.NamedExpr: ("names cannot be assigned", "write a further card and use metric(name)"),
    ast.JoinedStr: ("text is not available", "a metric is a number"),
    ast.Await: ("`await` is not available", "write arithmetic over the inputs"),
    ast.Starred: ("`*` unpacking is not available", "write the arguments one by one"),
}


class _Reader:
    """Turns Python's tree into ours, counting nodes and depth on the way."""

    def __init__(self, source: str, inputs: frozenset[str] | set[str], where: str) -> None:
        self.source = source
        self.utf8 = source.encode()
        self.inputs = inputs
        self.where = where
        self.nodes = 0
        self.divides = False
        self.uses: list[tuple[int, int, str]] = []

    def read(self, tree: ast.Expression) -> Expression:
        root = self.number(tree.body, 0)
        uses = tuple(sorted(self.uses))
        names = tuple(dict.fromkeys(name for _, _, name in uses))
        return Expression(self.source, root, names, uses, self.divides)

    # -- places ------------------------------------------------------------------------------------------

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Start and end in code points; Python counts UTF-8 bytes."""
        start, end = self.utf8[: node.col_offset], self.utf8[: node.end_col_offset]
        return len(start.decode()), len(end.decode())

    def segment(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.source[start:end]

    def refused(self, node: ast.expr, what: str, remedy: str | None = None) -> ExpressionError:
        column = self.span(node)[0] + 1
        return ExpressionError(f"{what} (column {column} of the expression)", where=self.where, remedy=remedy)

    def enter(self, node: ast.expr, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise self.refused(
                node,
                f"the expression is larger than {MAX_NODES} parts or nested deeper than {MAX_DEPTH}",
                "split it into several cards and use metric(name)",
            )

    # -- numbers -----------------------------------------------------------------------------------------

    def number(self, node: ast.expr, depth: int) -> Node:
        self.enter(node, depth)
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Name():
                return self.name(node)
            case ast.UnaryOp(op=ast.USub()):
                return Negative(self.number(node.operand, depth + 1))
            case ast.UnaryOp(op=ast.UAdd()):
                return self.number(node.operand, depth + 1)
            case ast.BinOp():
                return self.binary(node, depth)
            case ast.Call():
                return self.call(node, depth)
            case ast.IfExp():
                condition = self.truth(node.test, depth + 1)
                return Conditional(condition, self.number(node.body, depth + 1), self.number(node.orelse, depth + 1))
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                raise self.refused(node, "a comparison is not a number", "write `1 if … else 0` to count it")
        what, remedy = _REFUSED.get(type(node), (f"`{self.segment(node)[:40]}` is not arithmetic", None))
        raise self.refused(
            node, what, remedy or "allowed are + - * / // % **, comparisons, `x if … else y`, and functions"
        )

    def constant(self, node: ast.Constant) -> Number:
        if node.value is None:
            return Number(None)
        if isinstance(node.value, str | bytes):
            raise self.refused(
                node, "text is not available", "a metric is a number; write an input's name without quotes"
            )
        text = self.segment(node).replace("_", "")
        if not re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?", text):
            raise self.refused(
                node, f"`{text[:40]}` is not a decimal number", "write digits, a point and an exponent at most"
            )
        value = Decimal(text)
        if abs(value.adjusted()) > MAX_LITERAL_EXPONENT or len(value.as_tuple().digits) > MAX_LITERAL_EXPONENT:
            raise self.refused(node, f"`{text[:40]}` is out of range", f"keep numbers within 1e±{MAX_LITERAL_EXPONENT}")
        return Number(value)

    def name(self, node: ast.Name) -> Name:
        if node.id in FUNCTIONS:
            low, _ = FUNCTIONS[node.id]
            arguments = ", ".join("xyz"[:low])
            raise self.refused(node, f"`{node.id}` is a function", f"call it: {node.id}({arguments})")
        if node.id not in self.inputs:
            raise self.refused(node, f"unknown name {node.id!r}", suggestion(node.id, self.inputs, kind="inputs"))
        start, end = self.span(node)
        self.uses.append((start, end, node.id))
        return Name(node.id)

    def binary(self, node: ast.BinOp, depth: int) -> Binary:
        operator = _BINARY.get(type(node.op))
        if operator is None:
            raise self.refused(node, "bit operations are not available", "use + - * / // % ** and `and`, `or`, `not`")
        left, right = self.number(node.left, depth + 1), self.number(node.right, depth + 1)
        self.divides = self.divides or operator in ("/", "//")
        if operator == "**":
            self.check_exponent(node, right)
        return Binary(operator, left, right, self.segment(node))

    def check_exponent(self, node: ast.BinOp, exponent: Node) -> None:
        literal = exponent.operand if isinstance(exponent, Negative) else exponent
        if isinstance(literal, Binary) and literal.operator == "**":
            raise self.refused(node, "a power of a power", "write parentheses: (a ** b) ** c")
        if isinstance(literal, Number) and literal.value is not None and literal.value.copy_abs() > MAX_EXPONENT:
            raise self.refused(node, f"the exponent {literal.value} is too large", f"at most {MAX_EXPONENT} either way")

    def call(self, node: ast.Call, depth: int) -> Call:
        if not isinstance(node.func, ast.Name):
            raise self.refused(node, "only named functions can be called", f"functions: {', '.join(FUNCTIONS)}")
        function = node.func.id
        if function not in FUNCTIONS:
            remedy = suggestion(function, FUNCTIONS, kind="functions")
            if function in ("sum", "mean", "count"):
                remedy = f"aggregate in an input's binding: {function}(week.flown)"
            raise self.refused(node, f"unknown function {function!r}", remedy)
        if node.keywords:
            raise self.refused(node, f"{function}() takes no named arguments", "give the values in order")
        low, high = FUNCTIONS[function]
        if not low <= len(node.args) <= high:
            expected = str(low) if low == high else f"{low} to {high}"
            raise self.refused(node, f"{function}() takes {expected} arguments, not {len(node.args)}")
        arguments = tuple(self.number(argument, depth + 1) for argument in node.args)
        if function == "round" and len(arguments) == 2 and whole_number(arguments[1]) is None:
            raise self.refused(node, "the digits of round() must be a written whole number", "round(x, 2)")
        return Call(function, arguments, self.segment(node))

    # -- truth values ------------------------------------------------------------------------------------

    def truth(self, node: ast.expr, depth: int) -> Truth:
        self.enter(node, depth)
        match node:
            case ast.Compare():
                operators = tuple(self.comparison(node, operator) for operator in node.ops)
                operands = [self.number(operand, depth + 1) for operand in (node.left, *node.comparators)]
                return Comparison(tuple(operands), operators)
            case ast.BoolOp():
                operands_ = tuple(self.truth(operand, depth + 1) for operand in node.values)
                return Logic("and" if isinstance(node.op, ast.And) else "or", operands_)
            case ast.UnaryOp(op=ast.Not()):
                return Not(self.truth(node.operand, depth + 1))
        raise self.refused(node, f"`{self.segment(node)[:40]}` is not a condition", "compare it: x != 0, a >= b")

    def comparison(self, node: ast.Compare, operator: ast.cmpop) -> CompareOperator:
        known = _COMPARE.get(type(operator))
        if known is None:
            raise self.refused(node, "`in` and `is` are not available", "use == != < <= > >=; if_null(x, 0) for a null")
        return known
