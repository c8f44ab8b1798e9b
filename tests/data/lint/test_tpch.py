"""The shapes of TPC-H's 22 queries, written from the public specification (revision 3): right, so nothing is accused."""

# ruff: noqa: E501  (one query a block)

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot

from learngraph_kernel.data.catalogue import Catalogue, ColumnFact, parse_catalogue
from learngraph_kernel.data.lint import lint

CATALOGUE = parse_catalogue("""
tables:
  region: {grain: [r_regionkey]}
  nation: {grain: [n_nationkey]}
  supplier: {grain: [s_suppkey]}
  customer: {grain: [c_custkey]}
  part: {grain: [p_partkey]}
  partsupp: {grain: [ps_partkey, ps_suppkey]}
  orders: {grain: [o_orderkey]}
  lineitem: {grain: [l_orderkey, l_linenumber]}
relations:
  - {from: [nation.n_regionkey], to: [region.r_regionkey], cardinality: many-to-one}
  - {from: [supplier.s_nationkey], to: [nation.n_nationkey], cardinality: many-to-one}
  - {from: [customer.c_nationkey], to: [nation.n_nationkey], cardinality: many-to-one}
  - {from: [partsupp.ps_partkey], to: [part.p_partkey], cardinality: many-to-one}
  - {from: [partsupp.ps_suppkey], to: [supplier.s_suppkey], cardinality: many-to-one}
  - {from: [orders.o_custkey], to: [customer.c_custkey], cardinality: many-to-one}
  - {from: [lineitem.l_orderkey], to: [orders.o_orderkey], cardinality: many-to-one}
  - {from: [lineitem.l_partkey, lineitem.l_suppkey], to: [partsupp.ps_partkey, partsupp.ps_suppkey], cardinality: many-to-one}
""")

COLUMNS = {
    "r": "region", "n": "nation", "s": "supplier", "c": "customer", "p": "part", "ps": "partsupp", "o": "orders", "l": "lineitem",
}  # fmt: skip

QUERIES = {
    1: """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice * (1 - l_discount)), avg(l_discount), count(*)
       from lineitem where l_shipdate <= date '1998-09-02' group by l_returnflag, l_linestatus order by 1, 2""",
    2: """select s_acctbal, s_name, n_name, p_partkey from part, supplier, partsupp, nation, region
       where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS'
       and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE'
       and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier, nation, region where p_partkey = ps_partkey
       and s_suppkey = ps_suppkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE')""",
    3: """select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate from customer, orders, lineitem
       where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey group by l_orderkey, o_orderdate""",
    4: """select o_orderpriority, count(*) from orders where o_orderdate >= date '1993-07-01' and exists
       (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate) group by o_orderpriority""",
    5: """select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue from customer, orders, lineitem, supplier, nation, region
       where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey
       and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA' group by n_name""",
    6: """select sum(l_extendedprice * l_discount) from lineitem where l_discount between 0.05 and 0.07 and l_quantity < 24""",
    7: """select supp_nation, cust_nation, l_year, sum(volume) from (select n1.n_name as supp_nation, n2.n_name as cust_nation,
       extract(year from l_shipdate) as l_year, l_extendedprice * (1 - l_discount) as volume
       from supplier, lineitem, orders, customer, nation n1, nation n2 where s_suppkey = l_suppkey and o_orderkey = l_orderkey
       and c_custkey = o_custkey and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
       and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY') or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))) as shipping
       group by supp_nation, cust_nation, l_year""",
    8: """select o_year, sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) from (
       select extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume, n2.n_name as nation
       from part, supplier, lineitem, orders, customer, nation n1, nation n2, region where p_partkey = l_partkey
       and s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey and c_nationkey = n1.n_nationkey
       and n1.n_regionkey = r_regionkey and r_name = 'AMERICA' and s_nationkey = n2.n_nationkey) as all_nations group by o_year""",
    9: """select nation, o_year, sum(amount) from (select n_name as nation, extract(year from o_orderdate) as o_year,
       l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount from part, supplier, lineitem, partsupp, orders,
       nation where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
       and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%') as profit group by nation, o_year""",
    10: """select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) from customer, orders, lineitem, nation
       where c_custkey = o_custkey and l_orderkey = o_orderkey and l_returnflag = 'R' and c_nationkey = n_nationkey
       group by c_custkey, c_name""",
    11: """select ps_partkey, sum(ps_supplycost * ps_availqty) from partsupp, supplier, nation where ps_suppkey = s_suppkey
       and s_nationkey = n_nationkey and n_name = 'GERMANY' group by ps_partkey having sum(ps_supplycost * ps_availqty) >
       (select sum(ps_supplycost * ps_availqty) * 0.0001 from partsupp, supplier, nation where ps_suppkey = s_suppkey
       and s_nationkey = n_nationkey and n_name = 'GERMANY')""",
    12: """select l_shipmode, sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end)
       from orders, lineitem where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') group by l_shipmode""",
    13: """select c_count, count(*) from (select c_custkey, count(o_orderkey) from customer left outer join orders on
       c_custkey = o_custkey and o_comment not like '%special%requests%' group by c_custkey) as c_orders (c_custkey, c_count)
       group by c_count""",
    14: """select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end) /
       sum(l_extendedprice * (1 - l_discount)) from lineitem, part where l_partkey = p_partkey""",
    15: """with revenue (supplier_no, total_revenue) as (select l_suppkey, sum(l_extendedprice * (1 - l_discount)) from lineitem
       group by l_suppkey) select s_suppkey, s_name, total_revenue from supplier, revenue where s_suppkey = supplier_no
       and total_revenue = (select max(total_revenue) from revenue)""",
    16: """select p_brand, p_type, p_size, count(distinct ps_suppkey) from partsupp, part where p_partkey = ps_partkey
       and p_brand <> 'Brand#45' and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Complaints%')
       group by p_brand, p_type, p_size""",
    17: """select sum(l_extendedprice) / 7.0 from lineitem, part where p_partkey = l_partkey and p_brand = 'Brand#23'
       and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)""",
    18: """select c_name, c_custkey, o_orderkey, sum(l_quantity) from customer, orders, lineitem where o_orderkey in
       (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 300) and c_custkey = o_custkey
       and o_orderkey = l_orderkey group by c_name, c_custkey, o_orderkey""",
    19: """select sum(l_extendedprice * (1 - l_discount)) from lineitem, part where (p_partkey = l_partkey and p_brand = 'Brand#12'
       and l_quantity >= 1) or (p_partkey = l_partkey and p_brand = 'Brand#23' and l_quantity >= 10)""",
    20: """select s_name, s_address from supplier, nation where s_suppkey in (select ps_suppkey from partsupp where ps_partkey in
       (select p_partkey from part where p_name like 'forest%') and ps_availqty > (select 0.5 * sum(l_quantity) from lineitem
       where l_partkey = ps_partkey and l_suppkey = ps_suppkey)) and s_nationkey = n_nationkey and n_name = 'CANADA'""",
    21: """select s_name, count(*) from supplier, lineitem l1, orders, nation where s_suppkey = l1.l_suppkey
       and o_orderkey = l1.l_orderkey and o_orderstatus = 'F' and exists (select * from lineitem l2 where
       l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey) and not exists (select * from lineitem l3 where
       l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey) and s_nationkey = n_nationkey group by s_name""",
    22: """select cntrycode, count(*), sum(c_acctbal) from (select substring(c_phone from 1 for 2) as cntrycode, c_acctbal
       from customer where c_acctbal > (select avg(c_acctbal) from customer where c_acctbal > 0.00) and not exists
       (select * from orders where o_custkey = c_custkey)) as custsale group by cntrycode""",
}  # fmt: skip


def with_columns() -> Catalogue:
    """The catalogue with every column that the queries name, by its prefix; so a name says whose it is."""
    named: dict[str, dict[str, ColumnFact]] = {table: {} for table in COLUMNS.values()}
    for sql in (*QUERIES.values(), *WRONG):
        for column in sqlglot.parse_one(sql, dialect="postgres").find_all(sqlglot.exp.Column):
            prefix, _, rest = column.name.partition("_")
            if rest and prefix in COLUMNS and rest not in ("year", "count"):
                named[COLUMNS[prefix]][column.name] = ColumnFact(column.name)
    tables = {
        name: replace(fact, columns={**named[name], **{key: ColumnFact(key) for key in fact.grain}}, complete=True)
        for name, fact in CATALOGUE.tables.items()
    }
    return Catalogue(tables, CATALOGUE.relations)


WRONG = {
    "select sum(o_totalprice) from orders, lineitem where o_orderkey = l_orderkey": ["fan_out"],
    "select count(c_custkey) from customer join orders on c_custkey = o_custkey": ["fan_out"],
    "select sum(ps_availqty) from partsupp join lineitem on l_partkey = ps_partkey": ["fan_out"],
    "select sum(s_acctbal), sum(c_acctbal) from supplier join customer on s_nationkey = c_nationkey": ["chasm_trap"]
    * 2,
    "select count(*) from part, supplier": ["cross_join"],
}
FULL = with_columns()


@pytest.mark.parametrize("number", QUERIES)
@pytest.mark.parametrize("catalogue", [CATALOGUE, FULL], ids=["keys alone", "with columns"])
def test_a_tpc_h_query_is_not_accused(number: int, catalogue: Catalogue) -> None:
    sql = QUERIES[number]
    found = lint(sql, catalogue, dialect="postgres")
    assert [(f.rule, sql[f.start : f.end]) for f in found if f.severity == "error"] == []


@pytest.mark.parametrize("sql", WRONG)
def test_the_same_catalogue_finds_what_is_wrong(sql: str) -> None:
    found = lint(sql, FULL, dialect="postgres")
    assert [f.rule for f in found if f.severity == "error"] == WRONG[sql]
