"""Reading a table: header lines, label columns, sections, and what is no fact."""

from __future__ import annotations

from decimal import Decimal

from learngraph_kernel.evidence.audit.tables import Facts, read_tables

from .tables import COMPANY, MERGED, RANKED, UNIT_COLUMN, WEEKS


def values(facts: Facts) -> dict[str, tuple[Decimal, str | None]]:
    return {fact.ref.split("!")[1]: (fact.value, fact.unit) for fact in facts.facts}


def axes(facts: Facts) -> list[tuple[str, list[str]]]:
    return [(axis.kind, [label.text for label in axis.labels]) for axis in facts.axes[1:]]


def test_a_caption_scales_the_cells_but_not_percentages_and_people() -> None:
    found = values(read_tables(COMPANY))
    assert found["R3C4"] == (Decimal(150_000_000), "USD")
    assert found["R7C4"] == (Decimal("34.0"), "%")
    assert found["R8C4"] == (Decimal(900), None)


def test_a_header_of_years_gives_labels() -> None:
    assert ("header", ["2022", "2023", "2024"]) in axes(read_tables(COMPANY))


def test_two_header_lines_are_two_axes_and_merged_cells_reach_right() -> None:
    found = axes(read_tables(MERGED))
    assert ("header", ["Revenue", "Cost"]) in found
    assert ("header", ["2023", "2024"]) in found


def test_each_label_column_is_an_axis() -> None:
    assert axes(read_tables(WEEKS))[:2] == [("row", ["JFK", "LGA"]), ("row", ["2013-W06", "2013-W07"])]


def test_a_unit_column_states_the_units_of_its_rows() -> None:
    found = values(read_tables(UNIT_COLUMN))
    assert found["R2C3"] == (Decimal(210_400_000), "USD")
    assert found["R3C3"] == (Decimal("41.2"), "%")
    assert found["R4C3"] == (Decimal("5.6"), "day")
    assert found["R5C3"] == (Decimal(88_000), None)


def test_row_numbers_and_founding_years_are_no_measurements() -> None:
    found = values(read_tables(RANKED))
    assert "R2C1" not in found
    assert found["R2C4"] == (Decimal(37), None)


def test_a_column_of_years_gives_labels() -> None:
    facts = read_tables({"t": [["year", "flights"], ["2012", "320"], ["2013", "336"]]})
    assert [fact.ref for fact in facts.facts] == ["t!R2C2", "t!R3C2"]


def test_a_section_row_heads_the_rows_below_it() -> None:
    facts = read_tables({"t": [["", "a", "b"], ["Europe", "", ""], ["x", "5", "6"], ["Asia", "", ""], ["x", "7", "8"]]})
    assert ("section", ["Europe", "Asia"]) in axes(facts)


def test_a_fraction_column_is_one_only_if_its_header_says_rate() -> None:
    facts = read_tables({"t": [["a", "late rate", "weight"], ["x", "0.08", "0.5"], ["y", "0.09", "0.6"]]})
    assert [fact.unit for fact in facts.facts] == ["fraction", None, "fraction", None]


def test_the_references_count_rows_and_columns_as_given() -> None:
    facts = read_tables({"t": [["caption"], [], ["name", "n"], ["x", "17"]]})
    assert [fact.ref for fact in facts.facts] == ["t!R4C2"]


def test_tables_without_header_labels_or_numbers_are_read() -> None:
    assert [fact.ref for fact in read_tables({"t": [["x", "17"], ["y", "19"]]}).facts] == ["t!R1C2", "t!R2C2"]
    assert [fact.value for fact in read_tables({"t": [["17"], ["19"]]}).facts] == [17, 19]
    assert read_tables({"t": [], "u": [[]], "v": [["only", "text"]]}).facts == []
