"""The catalogue's text: what it says is kept, a slip is told with its place."""

from __future__ import annotations

import pytest

from learngraph_kernel.data.catalogue import CatalogueError, parse_catalogue

GOOD = """
tables:
  Orders:
    grain: [Order_ID]
    keys: [[number, year]]
    date: order_date
    valid: "status <> 9"
    title: {en: Orders, zh: 订单}
    columns:
      amount: {measure: additive, unit: CNY, state: confirmed, source: person}
      status: {measure: code, codes: {1: open, 9: void}}
relations:
  - {from: [orders.customer_id], to: [customers.customer_id], cardinality: many-to-one, state: inferred}
"""


def test_facts_are_read_and_names_compare_without_case() -> None:
    catalogue = parse_catalogue(GOOD)
    table = catalogue.table("ORDERS")
    assert table is not None and table.title["zh"] == "订单"
    assert table.unique() == {frozenset({"order_id"}), frozenset({"number", "year"})}
    status = table.column("STATUS")
    assert status is not None and status.codes == {"1": "open", "9": "void"}


def test_an_inferred_relation_tells_no_key() -> None:
    catalogue = parse_catalogue(GOOD)
    assert list(catalogue.between("orders", "customers")) == []
    sure = parse_catalogue(GOOD.replace("inferred", "verified"))
    assert [relation.cardinality for relation in sure.between("customers", "orders")] == ["one-to-many"]


@pytest.mark.parametrize(
    ("old", "new", "place", "hint"),
    [
        ("grain", "grian", "tables.Orders", "grain"),
        ("measure: additive", "measure: aditive", "columns.amount.measure", "additive"),
        ("many-to-one", "many-to-won", "relations[0].cardinality", "many-to-one"),
        ("[orders.customer_id]", "[customer_id]", "relations[0].from", "table.column"),
        ("state: confirmed", "state: sure", "columns.amount.state", "confirmed"),
        ("[Order_ID]", "[1]", "tables.Orders.grain", "names"),
    ],
)
def test_a_slip_is_told_with_its_place(old: str, new: str, place: str, hint: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        parse_catalogue(GOOD.replace(old, new))
    assert place in str(caught.value.where) and hint in str(caught.value)
