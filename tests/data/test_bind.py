"""Parameters in statements: what is a mark and what is not, and that a value stays a value of its own type."""

from __future__ import annotations

import datetime as dt
import sqlite3
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from learngraph_kernel.data.bind import BindError, bind
from learngraph_kernel.data.guard import guard

UTC8 = dt.timezone(dt.timedelta(hours=8))
EVIL = [
    "'; drop table t; --",
    "' or '1'='1",
    "''",
    "\\'",
    "\\",
    "a'||'b",
    "$$ end $$",
    "/* ' */",
    "-- '",
    ":n",
    "a:b::int",
    "？；‘’“”",
    "名字'",
    "e'\\x41'",
    "line\nbreak'\t",
    "\u202e'\u200b",
    "%_",
    '"quoted"',
    "`tick`",
    "[x]",
    "🙂'",
]

MARKS = [
    # statement, parameters, expected
    ("select :n", {"n": 1}, "select 1"),
    ("select :n as n, :n + 1", {"n": 1}, "select 1 as n, 1 + 1"),
    ("select :n1, :n", {"n": 1, "n1": 2}, "select 2, 1"),
    ("select a from t where a=:n", {"n": 1}, "select a from t where a=1"),
    ("select a from t where a>=:n", {"n": 1}, "select a from t where a>=1"),
    ("select a from t where a<>:n", {"n": 1}, "select a from t where a<>1"),
    ("select a||:s", {"s": "x"}, "select a||'x'"),
    ("select a->>:k", {"k": "$.x"}, "select a->>'$.x'"),
    ("select a->:k", {"k": "x"}, "select a->'x'"),
    ("select a%:n", {"n": 3}, "select a%3"),
    ("select f(:n,:m)", {"n": 1, "m": 2}, "select f(1,2)"),
    ("select (:n)", {"n": 1}, "select (1)"),
    ("select a in :ids", {"ids": [1, 2]}, "select a in (1, 2)"),
    ("select a in :ids", {"ids": (1,)}, "select a in (1)"),
    ("select a in (:n, :m)", {"n": 1, "m": 2}, "select a in (1, 2)"),
    ("select a like :s escape :e", {"s": "x%", "e": "!"}, "select a like 'x%' escape '!'"),
    ("select a between :n and :m", {"n": 1, "m": 2}, "select a between 1 and 2"),
    ("select case when a then :n else :m end", {"n": 1, "m": 2}, "select case when a then 1 else 2 end"),
    ("select a from t limit :n offset :m", {"n": 1, "m": 2}, "select a from t limit 1 offset 2"),
    ("select not :b", {"b": True}, "select not TRUE"),
    ("select :d::date", {"d": "2013-02-11"}, "select '2013-02-11'::date"),
    ("select a::int, :n", {"n": 1}, "select a::int, 1"),
    ("select t at time zone :z", {"z": "UTC"}, "select t at time zone 'UTC'"),
    ("select interval :n day", {"n": 3}, "select interval 3 day"),
    ("select date :d", {"d": "2013-02-11"}, "select date '2013-02-11'"),
    ("select l[:n] + :m", {"m": 1}, "select l[:n] + 1"),
    ("select l[1:n], :m", {"m": 1}, "select l[1:n], 1"),
    ("select l[1 :n], :m", {"m": 1}, "select l[1 :n], 1"),
    ("select f(x)[1:n], :m", {"m": 1}, "select f(x)[1:n], 1"),
    ("select l[1: :n]", {"n": 2}, "select l[1: 2]"),
    ("select l[(:n):3]", {"n": 2}, "select l[(2):3]"),
    ("select [:n, 2]", {"n": 1}, "select [1, 2]"),
    ("select [2, :n]", {"n": 1}, "select [2, 1]"),
    ("select {'a':x, 'b': :n}", {"n": 1}, "select {'a':x, 'b': 1}"),
    ("select {'a' :x, 'b': :n}", {"n": 1}, "select {'a' :x, 'b': 1}"),
    ("select x:n, :n", {"n": 1}, "select x:n, 1"),
    ("select ':n', :n", {"n": 1}, "select ':n', 1"),
    ("select 'it''s :n', :n", {"n": 1}, "select 'it''s :n', 1"),
    ('select ":n", :n', {"n": 1}, 'select ":n", 1'),
    ("select /* :n */ :n -- :n", {"n": 1}, "select /* :n */ 1 -- :n"),
    ("select $$ :n $$, :n", {"n": 1}, "select $$ :n $$, 1"),
    ("select '12:n', '2013-02-11 10:n'", {}, "select '12:n', '2013-02-11 10:n'"),
    ("select :order order by :n", {"order": 1, "n": 2}, "select 1 order by 2"),
    ("select :order by", {"order": 1}, "select 1 by"),
    ("select :from", {"from": 1}, "select 1"),
    ("select :名", {"名": "值"}, "select '值'"),
    ("select :é", {"é": 1}, "select 1"),
    ("select :_n", {"_n": 1}, "select 1"),
    ("select 10 -:n", {"n": -5}, "select 10 -(-5)"),
    ("select 10 - :n", {"n": Decimal("-5.50")}, "select 10 - (-5.50)"),
    ("select a\n,:n\n", {"n": 1}, "select a\n,1\n"),
    ("select :x", {"x": None}, "select NULL"),
    ("select :x", {"x": 1e-05}, "select CAST('1e-05' AS DOUBLE)"),
    ("select :x", {"x": Decimal("1.10")}, "select 1.10"),
    ("select :x", {"x": Decimal("1E+3")}, "select 1000"),
    ("select :x", {"x": 2**70}, f"select {2**70}"),
    ("select :x", {"x": dt.date(2013, 2, 11)}, "select DATE '2013-02-11'"),
    ("select :x", {"x": dt.datetime(2013, 2, 11, 1, 2, 3)}, "select TIMESTAMP '2013-02-11 01:02:03'"),
    ("select :x", {"x": dt.datetime(2013, 2, 11, 1, tzinfo=UTC8)}, "select TIMESTAMPTZ '2013-02-11 01:00:00+08:00'"),
    *[("select :s", {"s": text}, "select '" + text.replace("'", "''") + "'") for text in EVIL],
]


@pytest.mark.parametrize(("sql", "parameters", "expected"), MARKS)
def test_marks_are_replaced_and_the_rest_is_kept_to_the_letter(
    sql: str, parameters: dict[str, Any], expected: str
) -> None:
    assert bind(sql, parameters, "duckdb") == expected


REFUSED = [
    ("select :n", {"m": 1}, "duckdb", ":n, which was not given"),
    ("select 1", {"m": 1}, "duckdb", "no :m"),
    ("select ':m'", {"m": 1}, "duckdb", "no :m"),
    ("select l[1:m]", {"m": 1}, "duckdb", "no :m"),
    ("select :m'abc'", {"m": "x"}, "duckdb", "runs into"),
    ("select :m.5", {"m": 1}, "duckdb", "runs into"),
    ('select :m"a"', {"m": 1}, "duckdb", "runs into"),
    ("select a in :m", {"m": []}, "duckdb", "empty list"),
    ("select :m", {"m": float("nan")}, "duckdb", "no SQL form"),
    ("select :m", {"m": Decimal("Infinity")}, "duckdb", "no SQL form"),
    ("select :m", {"m": b"x"}, "duckdb", "no SQL form"),
    ("select :m", {"m": "a\x00b"}, "duckdb", "NUL"),
    ("select :m", {"m": Decimal("1" * 38 + ".5")}, "duckdb", "digits"),
    ("select :m", {"m": 2**63}, "sqlite", "64 bits"),
    ("select :m", {"m": Decimal("1234567890123456.78")}, "sqlite", "digits"),
]


@pytest.mark.parametrize(("sql", "parameters", "dialect", "reason"), REFUSED)
def test_what_cannot_be_bound_is_refused_with_the_reason(
    sql: str, parameters: dict[str, Any], dialect: str, reason: str
) -> None:
    with pytest.raises(BindError, match=reason):
        bind(sql, parameters, dialect)


def test_a_mistyped_mark_is_told_the_nearest_value() -> None:
    with pytest.raises(BindError) as refusal:
        bind("select :mnth", {"month": 1}, "duckdb")
    assert refusal.value.remedy == "did you mean 'month'?"


VALUES = [
    None,
    True,
    -7,
    2**62,
    0.1,
    -1e-300,
    Decimal("1.10"),
    Decimal("-0.05"),
    dt.date(2013, 2, 11),
    dt.datetime(2013, 2, 11, 1, 2, 3, 400),
    dt.datetime(2013, 2, 11, 1, 2, 3, tzinfo=UTC8),
    *EVIL,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_duckdb_gives_back_the_value_that_was_bound(value: Any) -> None:
    statement = guard(bind("select :x as x", {"x": value}, "duckdb"), "duckdb")
    with duckdb.connect() as connection:
        (answer,) = connection.execute(statement.sql).fetchone() or ()
    assert answer == value
    assert type(answer) is type(value)


SQLITE_FORMS = {
    True: 1,
    Decimal("1.10"): 1.1,
    Decimal("-0.05"): -0.05,
    dt.date(2013, 2, 11): "2013-02-11",
    dt.datetime(2013, 2, 11, 1, 2, 3, 400): "2013-02-11 01:02:03.000400",
    dt.datetime(2013, 2, 11, 1, 2, 3, tzinfo=UTC8): "2013-02-11 01:02:03+08:00",
}


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_sqlite_gives_back_the_value_in_the_form_it_stores(value: Any) -> None:
    statement = guard(bind("select :x as x", {"x": value}, "sqlite"), "sqlite")
    connection = sqlite3.connect(":memory:")
    (answer,) = connection.execute(statement.sql).fetchone()
    connection.close()
    expected = SQLITE_FORMS.get(value, value)
    assert answer == expected
    assert type(answer) is type(expected)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("text", EVIL)
def test_a_text_stays_one_literal_whatever_it_holds(dialect: str, text: str) -> None:
    bound = guard(bind("select count(*) as n from orders where region = :s", {"s": text}, dialect), dialect)
    assert bound.tables == ("orders",)
    assert bound.kind == "select"


def test_a_negative_value_after_a_minus_does_not_become_a_comment() -> None:
    with duckdb.connect() as connection:
        answer = connection.execute(bind("select 10 -:n + 1", {"n": -5}, "duckdb")).fetchone()
    assert answer == (16,)
