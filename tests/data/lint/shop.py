"""A small shop: its catalogue, and data that shows each wrong number."""

# ruff: noqa: E501  (rows of a table)

from __future__ import annotations

from typing import Any

import duckdb

from learngraph_kernel.data.catalogue import parse_catalogue

CATALOGUE = parse_catalogue("""
tables:
  orders:
    grain: [order_id]
    date: order_date
    valid: "status <> 9"
    columns:
      amount: {measure: additive, unit: CNY, state: confirmed, source: person}
      discount: {measure: ratio}
      status: {measure: code, codes: {1: open, 9: void}, type: integer}
      customer_id: {type: integer}
      order_date: {type: date}
      ship_date: {type: date}
  items:
    grain: [order_id, line_no]
    columns: {qty: {measure: additive, type: integer}, product_id: {}}
  payments:
    grain: [payment_id]
    columns: {paid: {measure: additive}, order_id: {}}
  customers:
    grain: [customer_id]
    columns: {region: {}, credit: {measure: additive}}
  stock:
    grain: [product_id, day]
    date: day
    columns: {units: {measure: semi-additive, over: [day]}}
relations:
  - {from: [orders.customer_id], to: [customers.customer_id], cardinality: many-to-one, state: verified}
  - {from: [items.order_id], to: [orders.order_id], cardinality: many-to-one}
""")

_DATA = """
create table customers(customer_id int, region text, credit int);
insert into customers values (1, 'N', 50), (2, 'N', 70), (3, 'S', 90);
create table orders(order_id int, customer_id int, amount int, discount double, status int, order_date date, ship_date date);
insert into orders values (1, 1, 100, 0.5, 1, '2026-01-01', '2026-02-01'), (2, 1, 200, 0.1, 1, '2026-01-02', '2026-02-02'),
  (3, 2, 400, 0.2, 1, '2026-02-03', '2026-02-04'), (4, 2, 800, 0.0, 9, '2026-02-05', '2026-02-06'),
  (5, null, 1600, 0.3, 1, '2026-02-07', '2026-03-01');
create table items(order_id int, line_no int, qty int, product_id int);
insert into items values (1, 1, 1, 7), (1, 2, 2, 8), (2, 1, 4, 7), (3, 1, 8, 7), (3, 2, 16, 9), (3, 3, 32, 7);
create table payments(payment_id int, order_id int, paid int);
insert into payments values (1, 1, 60), (2, 1, 40), (3, 2, 200), (4, 3, 400);
create table stock(product_id int, day date, units int);
insert into stock values (7, '2026-01-01', 10), (7, '2026-01-02', 12), (8, '2026-01-01', 5), (8, '2026-01-02', 5);
"""


def shop() -> duckdb.DuckDBPyConnection:
    """A fresh database of the shop."""
    connection = duckdb.connect()
    connection.execute(_DATA)
    return connection


def answer(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query, in an order that does not depend on the engine."""
    return sorted(connection.execute(sql).fetchall(), key=repr)
