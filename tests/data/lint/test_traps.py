"""Each trap gives a wrong number on real rows, and is found: rule, severity, place. Rewrites give the right one."""

# ruff: noqa: E501  (a query reads best on one line)

from __future__ import annotations

from dataclasses import dataclass

import pytest

from learngraph_kernel.data.lint import lint
from tests.data.lint.shop import CATALOGUE, answer, shop


@dataclass(frozen=True)
class Trap:
    rule: str
    place: str
    sql: str
    truth: str
    severity: str = "error"
    rewritten: bool = False


V = "status <> 9"
TRAPS = [
    Trap("fan_out", "sum(o.amount)", f"select sum(o.amount) from orders o join items i on i.order_id = o.order_id where o.{V}",
         f"select sum(amount) from orders o where o.{V} and order_id in (select order_id from items)", rewritten=True),
    Trap("fan_out", "sum(amount)", f"select sum(amount) from orders o join items i using (order_id) where {V}",
         f"select sum(amount) from orders where {V} and order_id in (select order_id from items)"),
    Trap("fan_out", "avg(o.amount)", f"select avg(o.amount) from orders o join items i on i.order_id = o.order_id where o.{V}",
         f"select avg(amount) from orders where {V} and order_id in (select order_id from items)", rewritten=True),
    Trap("fan_out", "sum(o.amount)", f"select sum(o.amount) from orders o, items i where i.order_id = o.order_id and o.{V}",
         f"select sum(amount) from orders where {V} and order_id in (select order_id from items)"),
    Trap("fan_out", "sum(o.amount)", f"select i.product_id p, sum(o.amount) from orders o join items i on i.order_id = o.order_id "
         f"where o.{V} group by i.product_id", f"select p, sum(amount) from (select distinct i.product_id p, o.order_id, o.amount "
         f"from orders o join items i using (order_id) where {V}) group by p"),
    Trap("fan_out", "sum(c.credit)", f"select sum(c.credit) from customers c join orders o on o.customer_id = c.customer_id where o.{V}",
         f"select sum(credit) from customers where customer_id in (select customer_id from orders where {V})"),
    Trap("fan_out", "count(o.order_id)", f"select count(o.order_id) from orders o join items i on i.order_id = o.order_id where o.{V}",
         f"select count(*) from orders where {V} and order_id in (select order_id from items)", rewritten=True),
    Trap("fan_out", "sum(case when c.region = 'N' then o.amount else 0 end)",
         "select sum(case when c.region = 'N' then o.amount else 0 end) from orders o join customers c on c.customer_id = "
         f"o.customer_id join items i on i.order_id = o.order_id where o.{V}",
         f"select sum(amount) from orders o join customers c using (customer_id) where {V} and region = 'N' and order_id in "
         "(select order_id from items)", rewritten=True),
    Trap("fan_out", "sum(t.amount)", "select sum(t.amount) from (select o.amount, i.line_no from orders o join items i on "
         f"i.order_id = o.order_id where o.{V}) t", f"select sum(amount) from orders where {V} and order_id in (select order_id from items)"),
    Trap("fan_out", "sum(amount)", f"with t as (select o.* from orders o join payments p on p.order_id = o.order_id where o.{V}) "
         "select sum(amount) from t", f"select sum(amount) from orders where {V} and order_id in (select order_id from payments)"),
    Trap("fan_out", "sum(o.amount)", "select sum(o.amount) from orders o left join payments p on p.order_id = o.order_id and p.paid > 0 "
         f"where o.{V}", f"select sum(amount) from orders where {V}"),
    Trap("chasm_trap", "sum(i.qty)", "select sum(i.qty), sum(p.paid) from items i join payments p on p.order_id = i.order_id",
         "select (select sum(qty) from items), (select sum(paid) from payments)"),
    Trap("chasm_trap", "sum(p.paid)", "select o.order_id x, sum(i.qty), sum(p.paid) from orders o join items i on i.order_id = o.order_id "
         f"join payments p on p.order_id = o.order_id where o.{V} group by o.order_id",
         "select i.order_id, q, p from (select order_id, sum(qty) q from items group by 1) i join "
         "(select order_id, sum(paid) p from payments group by 1) using (order_id)"),
    Trap("semi_additive", "sum(units)", "select sum(units) from stock", "select sum(units) from stock where day = '2026-01-02'"),
    Trap("semi_additive", "sum(s.units)", "select s.product_id, sum(s.units) from stock s where s.day >= '2026-01-01' group by 1",
         "select product_id, units from stock where day = '2026-01-02'"),
    Trap("semi_additive", "sum(units)", "select date_trunc('month', day) m, sum(units) from stock group by 1",
         "select date '2026-01-01', sum(units) from stock where day = '2026-01-02'"),
    Trap("ratio_added", "sum(discount)", f"select sum(discount) from orders where {V}", f"select sum(amount * discount) / sum(amount) from orders where {V}"),
    Trap("ratio_averaged", "avg(o.discount)", f"select avg(o.discount) from orders o where o.{V}",
         f"select sum(amount * discount) / sum(amount) from orders where {V}"),
    Trap("average_of_averages", "avg(a)", f"select avg(a) from (select customer_id, avg(amount) a from orders where {V} group by customer_id)",
         f"select avg(amount) from orders where {V}"),
    Trap("average_of_averages", "avg(x.a)", f"with x as (select customer_id, round(avg(amount), 1) as a from orders where {V} group by 1) "
         "select avg(x.a) from x", f"select avg(amount) from orders where {V}"),
    Trap("non_decomposable", "sum(n)", "select sum(n) from (select order_id, count(distinct product_id) n from items group by 1)",
         "select count(distinct product_id) from items"),
    Trap("non_decomposable", "avg(m)", "select avg(m) from (select order_id, median(qty) m from items group by 1)", "select median(qty) from items"),
    Trap("missing_valid", "orders", "select sum(amount) from orders", f"select sum(amount) from orders where {V}", rewritten=True),
    Trap("missing_valid", "orders o", "select count(*) from orders o where o.amount > 100", f"select count(*) from orders where {V} and amount > 100", rewritten=True),
    Trap("missing_valid", "orders o", "select c.region r, sum(o.amount) from orders o join customers c on c.customer_id = o.customer_id group by c.region",
         f"select region, sum(amount) from orders join customers using (customer_id) where {V} group by 1", rewritten=True),
    Trap("unknown_code", "2", "select count(*) from orders where status = 2", "select count(*) from orders where status = 1"),
    Trap("unknown_code", "7", "select count(*) from orders where status in (7)", "select count(*) from orders where status = 1"),
    Trap("wrong_date", "ship_date", f"select sum(amount) from orders where {V} and ship_date >= date '2026-02-01'",
         f"select sum(amount) from orders where {V} and order_date >= date '2026-02-01'", "warning", rewritten=True),
    Trap("relation_contradicted", "o.order_id = c.customer_id", "select max(o.amount) from orders o join customers c on o.order_id = c.customer_id "
         f"where c.region = 'N' and {V}", f"select max(amount) from orders join customers using (customer_id) where region = 'N' and {V}"),
    Trap("outer_join_defeated", "o.status = 1", "select c.customer_id, sum(o.amount) from customers c left join orders o on o.customer_id = "
         "c.customer_id where o.status = 1 group by 1", "select c.customer_id, sum(o.amount) from customers c left join orders o on "
         "o.customer_id = c.customer_id and o.status = 1 group by 1", "warning"),
    Trap("not_in_null", "customer_id not in (select customer_id from orders)", "select count(*) from customers where customer_id not in "
         "(select customer_id from orders)", "select count(*) from customers c where not exists (select 1 from orders o where "
         "o.customer_id = c.customer_id)", "warning", rewritten=True),
    Trap("cross_join", "customers c", "select count(*) from items i, customers c", "select count(*) from items"),
]  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: f"{trap.rule}: {trap.sql[:60]}")
def test_a_trap_gives_a_wrong_number_and_is_found(trap: Trap) -> None:
    connection = shop()
    truth = answer(connection, trap.truth)
    assert answer(connection, trap.sql) != truth
    found = [finding for finding in lint(trap.sql, CATALOGUE) if finding.rule == trap.rule]
    placed = [finding for finding in found if trap.sql[finding.start : finding.end] == trap.place]
    assert len(placed) == 1, [(finding.rule, trap.sql[finding.start : finding.end]) for finding in found]
    assert placed[0].severity == trap.severity
    assert (placed[0].rewrite is not None) == trap.rewritten
    if placed[0].rewrite is not None:
        assert answer(connection, placed[0].rewrite) == truth


RIGHT = [
    f"select sum(amount) from orders where {V}",
    f"select sum(i.qty) from orders o join items i on i.order_id = o.order_id where o.{V}",
    f"select c.region, sum(o.amount) from orders o join customers c using (customer_id) where {V} group by 1",
    f"select c.region, max(c.credit), count(distinct c.customer_id) from orders o join customers c using (customer_id) where {V} group by 1",
    "with i as (select order_id, sum(qty) q from items group by 1) select sum(o.amount), sum(i.q) from orders o "
    f"left join i on i.order_id = o.order_id where o.{V}",
    f"select i.order_id, i.line_no, sum(o.amount) from orders o join items i on i.order_id = o.order_id where {V} group by 1, 2",
    "select sum(o.amount) from orders o join (select * from (select *, row_number() over (partition by order_id order by "
    f"line_no) rn from items) where rn = 1) f on f.order_id = o.order_id where o.{V}",
    f"select sum(o.amount) from orders o where o.{V} and exists (select 1 from items i where i.order_id = o.order_id)",
    f"select sum(o.amount) from orders o where o.{V} and o.order_id in (select order_id from items)",
    f"select sum(o.amount) from orders o semi join items i on i.order_id = o.order_id where o.{V}",
    f"select sum(o.amount) from orders o join items i on i.order_id = o.order_id and i.line_no = 1 where o.{V}",
    f"select sum(o.amount) from orders o join (select distinct order_id from items) i on i.order_id = o.order_id where o.{V}",
    f"select sum(o.amount * i.qty) from orders o join items i on i.order_id = o.order_id where o.{V}",
    "select day, sum(units) from stock group by day",
    "select sum(units) from stock where day = (select max(day) from stock)",
    "select avg(units) from stock",
    f"select sum(amount * discount) / sum(amount) from orders where {V}",
    f"select avg(s) from (select customer_id, sum(amount) s from orders where {V} group by 1)",
    "select sum(n) from (select order_id, count(*) n from items group by 1)",
    "select status, sum(amount) from orders group by 1",
    "select sum(amount) filter (where status = 1) from orders",
    "select c.customer_id from customers c left join orders o on o.customer_id = c.customer_id where o.order_id is null",
    "select count(*) from items where order_id not in (select order_id from orders where customer_id = 2)",
    "select sum(qty) / (select count(*) from customers) from items",
    f"select count(*), a.s from items, (select sum(amount) s from orders where {V}) a group by 2",
    f"select sum(o.amount) from orders o join customers c on (o.customer_id = c.customer_id and c.region = 'N' and {V}) or "
    f"(o.customer_id = c.customer_id and c.region = 'S' and {V})",
    "select region, count(*) from customers cross join (values (1), (2)) v(x) group by 1",
]


@pytest.mark.parametrize("sql", RIGHT)
def test_a_right_query_is_not_accused(sql: str) -> None:
    shop().execute(sql)
    assert [finding for finding in lint(sql, CATALOGUE) if finding.severity == "error"] == []


def test_unknown_is_unknown_and_no_accusation() -> None:
    sql = f"select sum(o.amount) from orders o join mystery m on m.order_id = o.order_id where o.{V}"
    assert [(finding.rule, finding.severity) for finding in lint(sql, CATALOGUE)] == [("fan_out", "unknown")]


@pytest.mark.parametrize(
    ("dialect", "severities"), [("postgres", ["error"]), ("sqlite", ["error"]), ("duckdb", []), ("mysql", [])]
)
def test_whole_number_division_is_an_error_where_it_drops_the_rest(dialect: str, severities: list[str]) -> None:
    sql = f"select count(case when amount > 100 then 1 end) / count(*) from orders where {V}"
    found = lint(sql, CATALOGUE, dialect=dialect)
    assert [finding.severity for finding in found if finding.rule == "integer_division"] == severities
    assert all("CAST(" in str(finding.rewrite) for finding in found)


def test_what_is_no_sql_is_told_as_such() -> None:
    assert [(finding.rule, finding.severity) for finding in lint("select from where (", CATALOGUE)] == [
        ("unparsed", "unknown")
    ]


def test_places_are_those_of_the_whole_text() -> None:
    sql = "select 1;\n\nselect sum(units)\nfrom stock;"
    (finding,) = lint(sql, CATALOGUE)
    assert (finding.line, sql[finding.start : finding.end]) == (3, "sum(units)")
