"""Which columns of a result come from no table: certain ones are named, doubtful ones never."""

from __future__ import annotations

import pytest

from learngraph_kernel.data.constants import constant_columns

CASES = [
    ("select s.* from t, (values (7)) s(k)", ("k",), ("k",)),
    ("select t.* from t, (values (7)) s(k)", ("k",), ()),
    ("select * exclude (a) from t", ("b",), ()),
    ("select min(columns(*)) from t", ("b",), ()),
    ("select 45 as n", ("n",), ("n",)),
    ("select 45 as n, count(*) as k from flights", ("n", "k"), ("n",)),
    ("select 1+2*3 n, dep_delay d from flights", ("n", "d"), ("n",)),
    ("with x as (select 45 as n) select n, n*2 as m from x", ("n", "m"), ("n", "m")),
    ("select * from (select 45 as n, a from t) s", ("n", "a"), ("n",)),
    ("select * from (values (1,2)) v(a,b)", ("a", "b"), ("a", "b")),
    ("select * from t", ("a",), ()),
    ("select max(45) as n, sum(x) s from t", ("n", "s"), ("n",)),
    ("select n from t union all select 45", ("n",), ("n",)),
    ("select (select 45) as n", ("n",), ("n",)),
    ("select (select max(x) from t) as n", ("n",), ()),
    ("select case when x>5 then 1 else 0 end b from t", ("b",), ()),
    ("select 45 as n, n*2 as m from t", ("n", "m"), ("n", "m")),
    ("with recursive d(i) as (select 1 union all select i+1 from d where i<5) select i from d", ("i",), ("i",)),
    ("select i, count(t.x) c from range(10) r(i) left join t on t.x=i group by i", ("i", "c"), ("i",)),
    ("from t select 45 as n, x", ("n", "x"), ("n",)),
    ("select t.x, v.k from t, (values (7)) v(k)", ("x", "k"), ("k",)),
    ("select round(45.0,1) n, sum(45) s, count(*) c from t", ("n", "s", "c"), ("n", "s")),
    ("select exists(select 1 from t) e", ("e",), ()),
    ("select date '2024-01-01' d, 'x' s", ("d", "s"), ("d", "s")),
    ("select avg(x) over () a, row_number() over (order by x) r from t", ("a", "r"), ()),
    ("values (45)", ("col0",), ("col0",)),
    ("select count(*) c from (select 1 as x)", ("c",), ("c",)),
    ("select unnest([1,2]) as u", ("u",), ("u",)),
    ("select columns('x') from t", ("x",), ()),
    ("select coalesce(x, 0) c, x::int i, x is null b from t", ("c", "i", "b"), ()),
    ("table t", ("a",), ()),
    ("select a.x, b.y from a join b using (k)", ("x", "y"), ()),
    (
        "with w as (select k, count(*) n from t group by 1) select w.n, a.name from w join a using (k)",
        ("n", "name"),
        (),
    ),
]


@pytest.mark.parametrize(("sql", "names", "constant"), CASES, ids=[case[0] for case in CASES])
def test_a_column_is_constant_only_where_no_table_s_data_goes_in(
    sql: str, names: tuple[str, ...], constant: tuple[str, ...]
) -> None:
    assert constant_columns(sql, "duckdb", names) == constant


def test_it_reads_sqlite_as_well() -> None:
    assert constant_columns("select 45 as n, [net amount] from [my table]", "sqlite", ("n", "net amount")) == ("n",)
