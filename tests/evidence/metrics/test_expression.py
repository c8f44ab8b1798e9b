"""The expression language: what it takes, what it refuses and in which words."""

from __future__ import annotations

import ast
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learngraph_kernel.evidence.metrics import ExpressionError
from learngraph_kernel.evidence.metrics.arithmetic import evaluate, substituted
from learngraph_kernel.evidence.metrics.expression import parse_expression

NAMES = frozenset({"on_time", "flown", "x", "y", "准点"})


def parse(text):
    return parse_expression(text, NAMES, where="metrics/weekly.yaml:3: metric m")


def value(text, **values):
    found = {name: None if v is None else Decimal(str(v)) for name, v in values.items()}
    outcome = evaluate(parse(text), found)
    return outcome.trouble or outcome.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("-2 ** 2", "-4"),
        ("2 ** -2", "0.25"),
        ("+5", "5"),
        ("0.1 + 0.2", "0.3"),
        ("1e3", "1000"),
        ("1_000.50", "1000.50"),
        (".5 + 5.", "5.5"),
        ("12345678901234567890.12 * 3", "37037036703703703670.36"),
        ("1 / 3", "0." + "3" * 50),
        ("2 / 3", "0." + "6" * 49 + "7"),
        ("-7 // 2", "-4"),
        ("7 // -2", "-4"),
        ("-7 % 2", "1"),
        ("7 % -2", "-1"),
        ("7.5 % 2", "1.5"),
        ("9 ** 0.5", "3"),
        ("abs(-3)", "3"),
        ("min(3, 1, 2)", "1"),
        ("max(3, 1, 2)", "3"),
        ("round(2.5)", "2"),
        ("round(3.5)", "4"),
        ("round(2.345, 2)", "2.34"),
        ("round(1250, -2)", "1200"),
        ("round(1.5, 5)", "1.5"),
        ("sqrt(2) ** 2 - 2 < 1e-40 and 1 == 1.0", None),
        ("sqrt(9)", "3"),
        ("ln(1)", "0"),
        ("log10(1000)", "3"),
        ("exp(0)", "1"),
        ("clamp(15, 0, 10)", "10"),
        ("clamp(-1, 0, 10)", "0"),
        ("coalesce(None, None, 4)", "4"),
        ("if_null(None, 2) + 1", "3"),
        ("1 if 2 > 1 else 0", "1"),
        ("1 if 1 < 2 < 3 else 0", "1"),
        ("1 if 1 < 3 < 2 else 0", "0"),
        ("1 if not 1 == 2 and (2 != 2 or 3 >= 3) else 0", "1"),
        ("1 if 1 <= 1.00 else 0", "1"),
        ("None if 1 > 2 else 5", "5"),
        ("0 * -1", "0"),
        ("1 +\n  2", "3"),
    ],
)
def test_an_expression_comes_to(text, expected):
    if expected is None:  # a truth value is no number
        with pytest.raises(ExpressionError, match="a comparison is not a number"):
            parse(text)
    else:
        assert str(value(text)) == expected


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("1 / 0", "zero_division"),
        ("0 / 0", "zero_division"),
        ("1 // 0", "zero_division"),
        ("1 % 0", "zero_division"),
        ("0 ** -1", "zero_division"),
        ("0 ** 0", "domain"),
        ("(-8) ** 0.5", "domain"),
        ("sqrt(-1)", "domain"),
        ("ln(0)", "domain"),
        ("log10(-1)", "domain"),
        ("exp(100000)", "domain"),
        ("clamp(1, 3, 2)", "domain"),
        ("2 ** (50 + 51)", "domain"),
        ("(1e99 ** 100) ** 100", "domain"),
        ("1e50 // 1e-50", "domain"),
    ],
)
def test_what_has_no_value_says_so(text, trouble):
    assert value(text) == trouble


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + 1", None),
        ("coalesce(x, 7)", 7),
        ("if_null(x, 0) + 1", 1),
        ("-x", None),
        ("min(x, 1)", None),
        ("1 if x > 0 else 2", None),
        ("1 if x > 0 or 1 == 1 else 2", 1),
        ("1 if x > 0 and 1 == 2 else 2", 2),
        ("1 if not x > 0 else 2", None),
        ("1 / 0 if x == 0 else 3", None),
    ],
)
def test_a_null_spreads_as_in_sql(text, expected):
    assert value(text, x=None) == expected


def test_a_null_counts_as_zero_only_where_arithmetic_meets_it():
    values = {"x": None, "y": Decimal(2)}
    assert evaluate(parse("coalesce(x, 5) + x + y"), values, null_is_zero=True).value == 7


def test_only_the_chosen_branch_is_evaluated():
    assert value("x / y if y != 0 else 0", x=1, y=0) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("{{ on_time }} / flown", "without braces"),
        ("{% set a = 1 %}", "belongs to templates"),
        ("[[m:flights]] / 2", "is a citation"),
        ("{x, y}", "sets are not available"),
        ("{'a': 1}", "dictionaries are not available"),
        ("[x, y]", "lists are not available"),
        ("(x, y)", "tuples are not available"),
        ("x | round(1)", "there are no filters"),
        ("x = 1", "write `==` to compare"),
        ("1 if x = 1 else 0", "write `==` to compare"),
        ("=x/y", "leave the `=` out"),
        ("round(x, ndigits=1)", "write `==` to compare"),
        ("x && y", "write `and`"),
        ("x || y", "write `or`"),
        ("x <> y", "write `!=`"),
        ("x ^ 2", r"write `\*\*`"),
        ("x & y", "bit operations"),
        ("x << 2", "bit operations"),
        ("~x", "is not arithmetic"),
        ("x × y", "write `*`"),
        ("（x）", "write `\\(`"),
        ("x # share", "put comments into `description`"),
        ("week.flown", "does not reach into values"),
        ("x.__class__", "does not reach into values"),
        ("x[0]", "does not reach into values"),
        ("lambda: x", "functions cannot be defined"),
        ("(lambda: x)()", "only named functions"),
        ("[a for a in x]", "is not arithmetic"),
        ("(a for a in x)", "is not arithmetic"),
        ("(z := 3)", "names cannot be assigned"),
        ("f'{x}'", "text is not available"),
        ("'text'", "text is not available"),
        ("b'x'", "text is not available"),
        ("...", "is not a decimal number"),
        ("True", "is not a decimal number"),
        ("0x10", "is not a decimal number"),
        ("2j", "is not a decimal number"),
        ("1e101", "is out of range"),
        ("1e999999999", "is out of range"),
        ("x in y", "a comparison is not a number"),
        ("1 if x is None else 2", "`in` and `is`"),
        ("1 if x else 2", "is not a condition"),
        ("(x > 1) * 5", "a comparison is not a number"),
        ("not x", "a comparison is not a number"),
        ("flwn / x", "did you mean 'flown'"),
        ("min", "`min` is a function"),
        ("rund(x)", "did you mean 'round'"),
        ("sum(x)", "aggregate in an input's binding"),
        ("eval(x)", "unknown function 'eval'"),
        ("__import__('os')", "unknown function"),
        ("abs()", "takes 1 arguments, not 0"),
        ("min(x)", "takes 2 to 20 arguments"),
        ("round(x, y)", "written whole number"),
        ("round(x, 1.5)", "written whole number"),
        ("round(x, 31)", "written whole number"),
        ("max(*x)", "takes 2 to 20"),
        ("max(*x, y)", "unpacking is not available"),
        ("9**9**9", "a power of a power"),
        ("x ** 101", "the exponent 101 is too large"),
        ("x ** -1e9", "too large"),
        ("x +", "cannot be read"),
        ("x) + (y", "cannot be read"),
        ("x; y", "cannot be read"),
        ("import os", "cannot be read"),
        ("x\0", "cannot be read|not text"),
        ("x + " * 600 + "x", "longer than"),
        ("+".join(["x"] * 450), "larger than"),
        ("(" * 150 + "x" + ")" * 150 + "+" + "-" * 70 + "x", "larger than|nested"),
        ("(" * 900 + "x" + ")" * 900, "nested|cannot be read"),
    ],
)
def test_what_is_not_arithmetic_is_refused_with_help(text, words):
    with pytest.raises(ExpressionError, match=words) as caught:
        parse(text)
    assert caught.value.where == "metrics/weekly.yaml:3: metric m"


def test_a_refusal_names_the_column_in_characters():
    with pytest.raises(ExpressionError, match="column 6 "):
        parse("准点 + nobody")


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("100 * on_time / flown", {"on_time": "5012", "flown": "6077"}, "100 * 5012 / 6077"),
        ("x-y", {"x": "1.10", "y": "-5"}, "1.10-(-5)"),
        ("准点 + x", {"准点": "3", "x": None}, "3 + null"),
        ("x * x", {"x": "1E+3"}, "1000 * 1000"),
        ("x", {"x": "1E-60"}, "1E-60"),
    ],
)
def test_the_substituted_expression_reads_like_the_card(text, values, expected):
    numbers = {name: None if v is None else Decimal(v) for name, v in values.items()}
    assert substituted(parse(text), numbers) == expected


DECIMALS = st.decimals(min_value=-(10**9), max_value=10**9, places=4)


@given(DECIMALS, DECIMALS, DECIMALS)
def test_sums_differences_and_products_are_exact(a, b, c):
    expression = parse_expression("a * b + c - a", {"a", "b", "c"}, where="t")
    exact = Fraction(a) * Fraction(b) + Fraction(c) - Fraction(a)
    assert Fraction(evaluate(expression, {"a": a, "b": b, "c": c}).value) == exact


@given(DECIMALS, DECIMALS.filter(lambda d: d != 0))
def test_a_quotient_is_right_to_fifty_digits(a, b):
    found = evaluate(parse("x / y"), {"x": a, "y": b}).value
    exact = Fraction(a) / Fraction(b)
    assert abs(Fraction(found) - exact) <= abs(exact) * Fraction(1, 10**49)


@given(DECIMALS, DECIMALS.filter(lambda d: d != 0))
def test_floor_division_and_remainder_are_pythons(a, b):
    exact = Fraction(a) // Fraction(b), Fraction(a) % Fraction(b)
    assert (value("x // y", x=a, y=b), value("x % y", x=a, y=b)) == exact


@given(DECIMALS, st.integers(-4, 6))
def test_rounding_is_half_to_even(a, digits):
    assert Fraction(value(f"round(x, {digits})", x=a)) == round(Fraction(a), digits)


# -- the sandbox: whatever Python can write, only arithmetic comes through ------------------------------------

LEAVES = st.sampled_from(
    ["x", "y", "1", "0.5", "1e9", "None", "True", "'s'", "open", "__import__", "__builtins__", "abs", "f'{x}'", "..."]
)


def grow(parts):
    return st.one_of(
        st.tuples(parts, st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "@", "|", ">>"]), parts).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(parts, st.sampled_from(["<", "==", "in", "is", "and", "or"]), parts).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(parts, st.sampled_from(["__class__", "real", "f_globals"])).map(lambda t: f"{t[0]}.{t[1]}"),
        st.tuples(parts, parts).map(lambda t: f"{t[0]}[{t[1]}]"),
        st.tuples(parts, st.lists(parts, max_size=3)).map(lambda t: f"{t[0]}({', '.join(t[1])})"),
        st.tuples(
            st.sampled_from(["abs", "max", "round", "exp", "sqrt", "coalesce", "eval"]), st.lists(parts, max_size=3)
        ).map(lambda t: f"{t[0]}({', '.join(t[1])})"),
        st.tuples(parts, parts, parts).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        parts.map(lambda p: f"(lambda: {p})()"),
        parts.map(lambda p: f"[{p} for x in y]"),
        parts.map(lambda p: f"{{{p}}}"),
        parts.map(lambda p: f"-{p}"),
        parts.map(lambda p: f"(z := {p})"),
    )


ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.Name, ast.Constant,
    ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip
CALLABLE = {"abs", "max", "round", "exp", "sqrt", "coalesce"}


@settings(max_examples=400, deadline=None)
@given(st.recursive(LEAVES, grow, max_leaves=12))
def test_no_python_gets_through_and_evaluation_always_ends(text):
    try:
        expression = parse(text)
    except ExpressionError:
        return
    nodes = list(ast.walk(ast.parse(text, mode="eval")))
    assert all(isinstance(node, ALLOWED) for node in nodes)
    called = {node.func.id for node in nodes if isinstance(node, ast.Call)}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert called <= CALLABLE
    assert names - called <= {"x", "y"}
    outcome = evaluate(expression, {"x": Decimal(3), "y": Decimal("0.5")})
    assert outcome.value is None or (outcome.value.is_finite() and len(outcome.value.as_tuple().digits) <= 200)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="xy0123456789.+-*/%()<>=! {}[]|,'\"#:;\\\n\t准_eE", max_size=40))
def test_any_text_is_either_an_expression_or_an_expression_error(text):
    try:
        expression = parse(text)
    except ExpressionError:
        return
    evaluate(expression, {"x": Decimal(1), "y": Decimal(0)})
