"""How a table is laid out: captions, header lines, label columns, section rows, and what is number but no fact.

Everything is judged from the cells alone, the way a person does: a lone text above the header is a caption, a line of
years is a header, a column of text names its rows, a column that counts 1, 2, 3 is no measurement.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from decimal import Decimal

from learngraph_kernel.evidence.audit.cells import CellNumber, parse_cell

MAX_HEADER_LINES = 5


class Layout:
    """One table's cells, as text and as numbers, and the questions of layout about them."""

    def __init__(self, rows: list[list[str]]) -> None:
        self.width = max((len(row) for row in rows), default=0)
        self.rows = [row + [""] * (self.width - len(row)) for row in rows]
        self.numbers = [[parse_cell(cell) for cell in row] for row in self.rows]

    def split(self) -> tuple[list[str], list[int], list[int]]:
        """Captions, header lines and body rows."""
        captions: list[str] = []
        header: list[int] = []
        line = 0
        while line < len(self.rows):
            row = self.rows[line]
            filled = [column for column, cell in enumerate(row) if cell]
            if not filled:
                line += 1
            elif (
                len(filled) == 1
                and self.width > 1
                and self.numbers[line][filled[0]] is None
                and (filled[0] == 0 or not header)
            ):
                if header and not self._more_header(line + 1, header):
                    break
                captions.append(row[filled[0]])
                line += 1
            elif self._is_header(line, header):
                header.append(line)
                line += 1
            else:
                break
        if line == len(self.rows) and header:  # nothing but text: no body
            return captions, header, []
        return captions, header, [r for r in range(line, len(self.rows)) if any(self.rows[r])]

    def _more_header(self, line: int, header: list[int]) -> bool:
        return line < len(self.rows) and self._is_header(line, header)

    def _is_header(self, line: int, header: list[int]) -> bool:
        if len(header) >= MAX_HEADER_LINES or not any(self.rows[line]):
            return False
        row, numbers = self.rows[line], self.numbers[line]
        values = [number for number in numbers if number is not None]
        if any(not _year_like(number) for number in values):
            return False
        if values and header and row[0] and all(self.rows[header[-1]][1:]):
            return False
        if values and not header:
            years = [number.value for number in values]
            return (
                numbers[0] is None
                and (len(set(years)) == len(years) or not row[0])
                and len(values) >= 1
                and self.width > 1
            )
        if header and not values:
            return self._header_goes_on(line, header)
        return True

    def _header_goes_on(self, line: int, header: list[int]) -> bool:
        """A second line of text is header if its corner is empty, or the line above spans columns."""
        above = self.rows[header[-1]]
        if not self.rows[line][0]:
            return True
        spanning = any(not cell for cell in above[1:]) or any(a and a == b for a, b in itertools.pairwise(above))
        missing = any(cell.lower() in {"n/a", "na", "-", "--", "—", "null", "none", "nan"} for cell in self.rows[line])
        return spanning and not missing

    def label_columns(self, header: list[int], body: list[int]) -> list[int]:
        """Columns that name their rows: mostly text, or keys such as years."""
        found = []
        for column in range(self.width):
            filled = [row for row in body if self.rows[row][column]]
            numeric = [row for row in filled if self.numbers[row][column] is not None]
            text = len(filled) - len(
                [row for row in filled if self.numbers[row][column] is not None or _no_value(self.rows[row][column])]
            )
            if (filled and text * 2 > len(filled) and len(numeric) * 2 < len(filled)) or self.is_key(
                column, header, body
            ):
                found.append(column)
        if len(found) == self.width and self.width > 1:
            found = found[:1]
        return found

    def is_key(self, column: int, header: list[int], body: list[int]) -> bool:
        """Years and other periods: labels although they are written in digits."""
        cells = [(self.rows[row][column], self.numbers[row][column]) for row in body if self.rows[row][column]]
        if not cells or self.width == 1:
            return False
        title = " ".join(self.rows[line][column] for line in header).strip()
        plain = all(number is not None and number.plain_integer for _, number in cells)
        if not plain:
            return False
        years = all(number is not None and _year_like(number) for _, number in cells)
        if years and (column == 0 or _YEAR_TITLE.search(title)):
            return not (column == 0 and title and not _YEAR_TITLE.search(title) and not _ascending(cells))
        return _PERIOD_TITLE.fullmatch(title) is not None and all(n is not None and n.value <= 366 for _, n in cells)

    def is_index(self, column: int, header: list[int], body: list[int]) -> bool:
        """Row numbers and identifiers."""
        title = " ".join(self.rows[line][column] for line in header).strip()
        if _ID_TITLE.fullmatch(title) and self.width > 1:
            return True
        values = [number for row in body if (number := self.numbers[row][column]) is not None]
        if column or len(values) < 3 or self.width == 1 or not all(number.plain_integer for number in values):
            return False
        first = values[0].value
        return first in (0, 1) and all(number.value == first + place for place, number in enumerate(values))

    def sections(self, body: list[int]) -> tuple[dict[int, str], list[int]]:
        """Rows in the body that hold one text and no number head the rows below them."""
        sections: dict[int, str] = {}
        kept: list[int] = []
        current = ""
        for row in body:
            filled = [cell for cell in self.rows[row] if cell]
            if self.width > 1 and len(filled) == 1 and self.rows[row][0] and self.numbers[row][0] is None:
                current = filled[0]
            else:
                kept.append(row)
                if current:
                    sections[row] = current
        return sections, kept

    @staticmethod
    def fill_right(row: list[str]) -> list[str]:
        """A merged header cell stands over the empty cells to its right."""
        filled: list[str] = []
        for column, cell in enumerate(row):
            filled.append(cell or (filled[-1] if column > 1 else ""))
        return filled

    def row_texts(self, row: int, label_columns: list[int], previous: list[str]) -> list[str]:
        """The labels of one row; an empty cell of a label column but the last repeats the one above."""
        texts = []
        for place, column in enumerate(label_columns):
            cell = self.rows[row][column]
            if not cell and place + 1 < len(label_columns):
                cell = previous[column]
            previous[column] = cell
            texts.append("" if place and self.numbers[row][column] is not None and not _period_column(cell) else cell)
        return texts


UNIT_TITLE = re.compile(r"units?(?: of measure)?|单位|uom", re.I)
_YEAR_TITLE = re.compile(r"year|\bfy\b|season|date|period|年", re.I)
_PERIOD_TITLE = re.compile(
    r"(?:week|month|day|hour|quarter|weekday|wk|day of .*|week of .*"
    r"|周|周次|月|月份|日|日期|小时|季度|时段|hour of day)",
    re.I,
)
_ID_TITLE = re.compile(
    r"#|no\.?|nr\.?|rank(?:ing)?|id|.*[_ ]id|index|idx|row"
    r"|编号|序号|排名|行号|(?:.*)?(?:代码|编码)|zip(?: ?code)?|postcode"
    r"|unnamed: 0",
    re.I,
)


def _year_like(number: CellNumber) -> bool:
    return number.plain_integer and 1900 <= number.value <= 2100


def _ascending(cells: Sequence[tuple[str, CellNumber | None]]) -> bool:
    values = [number.value for _, number in cells if number is not None]
    steps = {b - a for a, b in itertools.pairwise(values)}
    return len(values) > 1 and (steps <= {Decimal(1)} or steps <= {Decimal(-1)})


def _no_value(cell: str) -> bool:
    return cell.strip().lower() in {
        "",
        "n/a",
        "na",
        "-",
        "--",
        "–",
        "—",
        "…",
        "...",
        "null",
        "none",
        "nan",
        "无",
        "不适用",
    }


def _period_column(cell: str) -> bool:
    return cell.isdigit()
