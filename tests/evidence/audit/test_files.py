"""Facts and texts from real files, good and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from learngraph_kernel.evidence.audit.files import AuditInput, Rows, read_facts, read_text

ROWS = [["airport", "flights"], ["JFK", "6077"], ["LGA", "5200"]]


def silent(message: str) -> None:
    raise AssertionError(f"unexpected notice: {message}")


def read_one(path: Path) -> Rows:
    (rows,) = read_facts([path], silent).values()
    return rows


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_csv_is_read_whatever_its_separator(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "f.csv"
    path.write_text("\n".join(separator.join(row) for row in ROWS))
    assert read_one(path) == ROWS


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes("\ufeffairport,flights\nJFK,6077\nLGA,5200\n".encode())
    assert read_one(path) == ROWS


def test_parquet_is_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"airport": ["JFK", "LGA"], "flights": [6077.0, None]})
    parquet.write_table(table, tmp_path / "f.parquet")
    assert read_one(tmp_path / "f.parquet") == [["airport", "flights"], ["JFK", "6077"], ["LGA", ""]]


def test_each_sheet_of_a_workbook_is_a_table_and_percent_formats_are_seen(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "rates"
    sheet.append(["airport", "late"])
    sheet.append(["JFK", 0.081])
    sheet["B2"].number_format = "0.0%"
    book.create_sheet("more").append(["x", 5])
    book.save(tmp_path / "f.xlsx")
    tables = read_facts([tmp_path / "f.xlsx"], silent)
    assert tables == {"f.xlsx[rates]": [["airport", "late"], ["JFK", "8.1%"]], "f.xlsx[more]": [["x", "5"]]}


@pytest.mark.parametrize(
    "body",
    [
        [["airport", "flights"], ["JFK", 6077], ["LGA", 5200]],
        [{"airport": "JFK", "flights": 6077}, {"airport": "LGA", "flights": 5200}],
        {"airport": ["JFK", "LGA"], "flights": [6077, 5200]},
        {"columns": ["airport", "flights"], "rows": [["JFK", 6077], ["LGA", 5200]], "row_count": 2},
        {"columns": [{"name": "airport"}, {"name": "flights"}], "rows": [["JFK", 6077], ["LGA", 5200]]},
    ],
)
def test_every_usual_json_table_is_read(tmp_path: Path, body: object) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps(body))
    assert read_one(path) == ROWS


def test_json_numbers_keep_the_digits_they_were_written_with(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('[{"a": 8.10, "b": null}]')
    assert read_one(path) == [["a", "b"], ["8.10", ""]]


def test_an_object_of_tables_gives_them_all(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps({"one": ROWS, "two": ROWS}))
    assert set(read_facts([path], silent)) == {"f.json[one]", "f.json[two]"}


def test_json_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"airport": "JFK", "flights": 6077}\n{"airport": "LGA", "flights": 5200}\n')
    assert read_one(path) == ROWS


def test_two_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "f.csv")
        paths[-1].write_text("x,5\n")
    assert len(read_facts(paths, silent)) == 2


def test_gb18030_is_read_and_said(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes("北京销售额为1200万元。".encode("gb18030"))
    notices: list[str] = []
    assert read_text(path, notices.append) == "北京销售额为1200万元。"
    assert "GB18030" in notices[0]


BAD = [
    ("missing.csv", None, "no such file"),
    ("empty.csv", b"", "empty"),
    ("blank.csv", b",,\n,,\n", "every cell is empty"),
    ("bytes.csv", b"caf\xe9 \xff,1\n", "not UTF-8"),
    ("binary.csv", b"a\x00b,1\n", "binary"),
    ("f.xlsx", b"not a workbook", "no XLSX"),
    ("f.xls", b"\xd0\xcf", "old .xls"),
    ("f.parquet", b"PAR1 but no", "no Parquet"),
    ("f.json", b"{not json", "no JSON"),
    ("f.json", b'"text"', "no table"),
    ("f.json", b'[{"a": [{"b": 1}]}]', "no table"),
    ("f.jsonl", b'{"a": 1}\nnope\n', "line 2"),
    ("f.pdf", b"%PDF", "unknown kind"),
]


@pytest.mark.parametrize(("name", "data", "message"), BAD)
def test_a_file_that_is_no_table_is_named_with_a_remedy(
    tmp_path: Path, name: str, data: bytes | None, message: str
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(AuditInput, match=message) as caught:
        read_facts([tmp_path / name], lambda _: None)
    assert name in str(caught.value.where)
    assert caught.value.remedy


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(AuditInput, match="folder"):
        read_facts([tmp_path], silent)


OBJECTS = '[{"airport": "JFK", "flights": 6077}, {"airport": "LGA", "flights": 5200}]'
SPELLINGS = {
    "pandas split": '{"columns": ["airport", "flights"], "index": [0, 1], "data": [["JFK", 6077], ["LGA", 5200]]}',
    "pandas table": '{"schema": {"fields": []}, "data": ' + OBJECTS + "}",
    "lines": '{"airport": "JFK", "flights": 6077}\n{"airport": "LGA", "flights": 5200}\n',
    "beside a title": '{"title": "Flights", "rows": ' + OBJECTS + "}",
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=list(SPELLINGS))
def test_the_ways_that_other_programs_write_a_table_as_json_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "f.json"
    path.write_text(text)
    assert read_one(path) == ROWS


def test_objects_inside_a_row_become_columns(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('[{"airport": "JFK", "delay": {"mean": 14.2, "p95": 80}}]')
    assert read_one(path) == [["airport", "delay.mean", "delay.p95"], ["JFK", "14.2", "80"]]


def test_json_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("[" * 200_000 + "]" * 200_000)
    with pytest.raises(AuditInput, match="nested too deeply"):
        read_facts([path], silent)


def test_the_currency_of_a_cell_s_format_is_seen(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row, (value, number_format) in enumerate([(120, '"$"#,##0'), (-5.5, "[$€-407]#,##0.0"), (7, "#,##0")], 1):
        book.active.cell(row, 1, value).number_format = number_format
    book.save(tmp_path / "f.xlsx")
    assert read_one(tmp_path / "f.xlsx") == [["$120"], ["-€5.5"], ["7"]]
