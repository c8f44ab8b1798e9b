"""From rows of strings to facts: which cells hold numbers, what they mean, and which labels stand over them.

A table is read the way a person reads it: captions (a lone cell above the header), header lines, label columns, section
rows, and the block of numbers. Every label column and every header line is an *axis*; a fact knows its label on each.
Years, row numbers and identifiers are labels, not facts. Units and scales come from the cell itself, else from its
row's labels, its header, its section, the captions or the table's name, in this order.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from learngraph_kernel.evidence.audit.cells import CellNumber, parse_cell
from learngraph_kernel.evidence.audit.labels import (
    Axis,
    Label,
    is_total,
    names_a_change,
    names_a_fall,
    names_an_outflow,
    period_and_rest,
    period_of,
)
from learngraph_kernel.evidence.audit.units import FRACTION, MONEY, PROPORTIONS, Declared, declared

MAX_HEADER_LINES = 5


@dataclass(frozen=True, slots=True)
class Fact:
    """One number of a table.

    Attributes:
        index: position in `Facts.facts`.
        ref: `table!R3C2`, rows and columns counted from 1 in the rows as given.
        table: index of its table.
        value: in base units (scales applied), exact.
        number: the same as a float, for derivations.
        step: what one unit of the last written digit is worth.
        unit: canonical, `fraction` for a rate written as a fraction, or None.
        labels: label id on each axis of its table, -1 where it has none.
        total: a label says that it is a total.
        falls: a label names a fall.
        outflow: a label names money that goes out, so that prose may leave out a minus.
        changes: it may be a change: a label says so, or its column holds a negative number.
    """

    index: int
    ref: str
    table: int
    row: int
    column: int
    value: Decimal
    number: float
    step: Decimal
    unit: str | None
    labels: tuple[int, ...]
    total: bool
    falls: bool
    changes: bool
    outflow: bool


@dataclass(slots=True)
class Table:
    """The reading of one table: its axes (in the order of `Fact.labels`), its facts, and the facts of each label."""

    index: int
    name: str
    axes: list[Axis] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    by_label: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    headers: frozenset[str] = frozenset()


@dataclass(slots=True)
class Facts:
    """All tables of an audit."""

    tables: list[Table] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    labels: dict[int, Label] = field(default_factory=dict)
    axes: list[Axis] = field(default_factory=list)
    table_axis: Axis = field(default_factory=lambda: Axis(0, -1, "table"))


def read_tables(tables: Mapping[str, Sequence[Sequence[str]]]) -> Facts:
    """Read tables into facts.

    Takes rows of strings by table name. Returns all facts with their axes and labels.
    """
    facts = Facts()
    facts.axes.append(facts.table_axis)
    for name, rows in tables.items():
        _Reader(facts, name, [[str(cell).strip() for cell in row] for row in rows]).read()
    return facts


class _Reader:
    """Reads one table into `facts`."""

    def __init__(self, facts: Facts, name: str, rows: list[list[str]]) -> None:
        self.facts = facts
        self.name = name
        self.width = max((len(row) for row in rows), default=0)
        self.rows = [row + [""] * (self.width - len(row)) for row in rows]
        self.numbers = [[parse_cell(cell) for cell in row] for row in self.rows]
        self.table = Table(len(facts.tables), name)
        self.signed: set[int] = set()
        facts.tables.append(self.table)

    def read(self) -> None:
        captions, header, body = self._split()
        label_columns = self._label_columns(header, body)
        sections, body = self._sections(body)
        headers = [self._fill_right(self.rows[line]) for line in header]
        self.table.headers = frozenset(text for line in headers for text in line if text)
        title = " ".join([re.sub(r"\.\w{2,5}$", "", self.name), *captions])
        self._name_table(title)
        columns = [
            column
            for column in range(self.width)
            if column not in label_columns or (column and label_columns and column != label_columns[0])
        ]
        columns = [
            column
            for column in columns
            if any(self.numbers[row][column] is not None for row in body)
            and not (self._is_index(column, header, body) or self._is_key(column, header, body))
        ]
        unit_columns = {
            column for column in label_columns if any(_UNIT_TITLE.fullmatch(line[column]) for line in headers)
        }
        row_axes = {column: self._axis("row") for column in label_columns if column not in unit_columns}
        for column, axis in row_axes.items():
            axis.title = " ".join(line[column] for line in headers)
            axis.ref = self._range(body[0], column, body[-1], column) if body else ""
        header_axes = [self._axis("header") for _ in headers]
        for axis, line in zip(header_axes, header, strict=True):
            axis.ref = self._range(line, min(columns, default=0), line, self.width - 1)
        section_axis = self._axis("section") if sections else None
        context = _Context(self, [declared(caption) for caption in captions] + [declared(self.name, name=True)])
        said = {
            column: _merge(declared(line[column]) for line in reversed(headers) if line[column]) for column in columns
        }
        fractions = {column: self._fraction_column(column, body, said[column]) for column in columns}
        self.signed = {
            column
            for column in columns
            if any(number.value < 0 for row in body if (number := self.numbers[row][column]) is not None)
        }
        heads = {
            column: [self._label(axis, line[column]) for axis, line in zip(header_axes, headers, strict=True)]
            for column in columns
        }
        previous = [""] * self.width
        section = ""
        for row in body:
            section = sections.get(row, section)
            texts = self._row_texts(row, label_columns, previous)
            row_said = _merge(
                declared(text, name=column not in unit_columns)
                for column, text in zip(reversed(label_columns), reversed(texts), strict=True)
                if text
            )
            labels = [
                self._label(row_axes[column], text)
                for column, text in zip(label_columns, texts, strict=True)
                if column in row_axes
            ]
            for column in columns:
                number = self.numbers[row][column]
                if number is None:
                    continue
                own = labels + heads[column]
                if section_axis is not None:
                    own.append(self._label(section_axis, section))
                unit, factor = context.unit_and_scale(
                    number, row_said, said[column], declared(section, name=True), fractions[column]
                )
                self._fact(row, column, number, unit, factor, own)
        self._finish_axes()

    def _range(self, row: int, column: int, last_row: int, last_column: int) -> str:
        return f"{self.name}!R{row + 1}C{column + 1}:R{last_row + 1}C{last_column + 1}"

    # --- layout

    def _split(self) -> tuple[list[str], list[int], list[int]]:
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

    def _label_columns(self, header: list[int], body: list[int]) -> list[int]:
        found = []
        for column in range(self.width):
            filled = [row for row in body if self.rows[row][column]]
            numeric = [row for row in filled if self.numbers[row][column] is not None]
            text = len(filled) - len(
                [row for row in filled if self.numbers[row][column] is not None or _no_value(self.rows[row][column])]
            )
            if (filled and text * 2 > len(filled) and len(numeric) * 2 < len(filled)) or self._is_key(
                column, header, body
            ):
                found.append(column)
        if len(found) == self.width and self.width > 1:
            found = found[:1]
        return found

    def _is_key(self, column: int, header: list[int], body: list[int]) -> bool:
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

    def _is_index(self, column: int, header: list[int], body: list[int]) -> bool:
        """Row numbers and identifiers."""
        title = " ".join(self.rows[line][column] for line in header).strip()
        if _ID_TITLE.fullmatch(title) and self.width > 1:
            return True
        values = [number for row in body if (number := self.numbers[row][column]) is not None]
        if column or len(values) < 3 or self.width == 1 or not all(number.plain_integer for number in values):
            return False
        first = values[0].value
        return first in (0, 1) and all(number.value == first + place for place, number in enumerate(values))

    def _sections(self, body: list[int]) -> tuple[dict[int, str], list[int]]:
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
    def _fill_right(row: list[str]) -> list[str]:
        """A merged header cell stands over the empty cells to its right."""
        filled: list[str] = []
        for column, cell in enumerate(row):
            filled.append(cell or (filled[-1] if column > 1 else ""))
        return filled

    def _row_texts(self, row: int, label_columns: list[int], previous: list[str]) -> list[str]:
        texts = []
        for place, column in enumerate(label_columns):
            cell = self.rows[row][column]
            if not cell and place + 1 < len(label_columns):
                cell = previous[column]
            previous[column] = cell
            texts.append("" if place and self.numbers[row][column] is not None and not _period_column(cell) else cell)
        return texts

    def _fraction_column(self, column: int, body: list[int], said: Declared) -> str | None:
        """What a column of rates is written in: `fraction`, `%`, or None when it does not say."""
        if not said.rate:
            return None
        values = [abs(n.value) for row in body if (n := self.numbers[row][column]) is not None and n.unit is None]
        if not values:
            return None
        if max(values) <= 1:
            return FRACTION if said.unit is None or said.loose_percent else None
        return "%" if max(values) <= 100 and said.unit is None else None

    # --- facts

    def _axis(self, kind: str) -> Axis:
        axis = Axis(len(self.facts.axes), self.table.index, kind)
        self.facts.axes.append(axis)
        self.table.axes.append(axis)
        return axis

    def _name_table(self, title: str) -> None:
        """Each table has one label of its own on the axis of tables, at its own index, even if two have one title."""
        self._new_label(self.facts.table_axis, title)

    def _label(self, axis: Axis, text: str) -> int:
        if not text:
            return -1
        label = axis.by_text.get(text) or self._new_label(axis, text)
        return label.id

    def _new_label(self, axis: Axis, text: str) -> Label:
        label = Label(
            id=len(self.facts.labels),
            axis=axis.id,
            text=text,
            period=period_of(text),
            total=is_total(text),
            falls=names_a_fall(text),
            changes=names_a_change(text),
            outflow=names_an_outflow(text),
        )
        axis.by_text[text] = label
        axis.labels.append(label)
        self.facts.labels[label.id] = label
        return label

    def _fact(
        self, row: int, column: int, number: CellNumber, unit: str | None, factor: Decimal, labels: list[int]
    ) -> None:
        known = [self.facts.labels[label] for label in labels if label >= 0]
        value, step = (number.value, number.step) if factor == 1 else (number.value * factor, number.step * factor)
        fact = Fact(
            index=len(self.facts.facts),
            ref=f"{self.name}!R{row + 1}C{column + 1}",
            table=self.table.index,
            row=row,
            column=column,
            value=value,
            number=float(value),
            step=step,
            unit=unit,
            labels=tuple(labels),
            total=any(label.total for label in known),
            falls=any(label.falls for label in known),
            outflow=any(label.outflow for label in known),
            changes=column in self.signed or any(label.changes for label in known),
        )
        self.facts.facts.append(fact)
        self.table.facts.append(fact)
        for label in labels:
            if label >= 0:
                self.table.by_label[label].add(fact.index)

    def _finish_axes(self) -> None:
        periods = 0
        for axis in self.table.axes:
            members = [label for label in axis.labels if not label.total]
            times = _times(members)
            axis.ordered = times is not None
            if times is not None:
                periods += axis.kind == "header"
                members = sorted(members, key=lambda label: times[label.id])
            axis.rank = {label.id: place for place, label in enumerate(members)}
        headers_are_periods = periods > 0
        for axis in self.table.axes:
            if headers_are_periods:
                axis.measure = axis.kind == "row" and not axis.ordered
            else:
                axis.measure = axis.kind == "header" and not axis.ordered and not _one_set(axis)


class _Context:
    """Resolves a cell's unit and scale from everything that stands over it."""

    def __init__(self, reader: _Reader, captions: Sequence[Declared]) -> None:
        self.captions = _merge(captions)

    def unit_and_scale(
        self, number: CellNumber, row: Declared, header: Declared, section: Declared, column_rate: str | None
    ) -> tuple[str | None, Decimal]:
        said = [row, header] if row.count or header.count else [row, header, section, self.captions]
        if row.count or header.count:
            said += [Declared(scale=s.scale) for s in (section, self.captions) if s.unit not in MONEY]
        unit = number.unit
        if unit is None and row.unit is None and column_rate is not None:
            unit = column_rate
        if unit is None and row.rate and row.unit is None:
            unit = FRACTION if abs(number.value) <= 1 else "%"
        if unit is None:
            unit = next((each.unit for each in said if each.unit is not None), None)
        if unit in PROPORTIONS or number.scaled:
            return unit, Decimal(1)
        scale = next((each.scale for each in said if each.scale is not None), Decimal(1))
        return unit, scale


def _merge(parts: Iterable[Declared]) -> Declared:
    """The nearest statement wins; earlier parts are nearer."""
    unit: str | None = None
    scale: Decimal | None = None
    rate = loose = count = False
    for part in parts:
        if unit is None and part.unit is not None:
            unit, loose = part.unit, part.loose_percent
        scale = part.scale if scale is None else scale
        rate = rate or part.rate
        count = count or part.count
    return Declared(unit, scale, rate, loose, count)


_YEAR_TITLE = re.compile(r"year|\bfy\b|season|date|period|年", re.I)
_UNIT_TITLE = re.compile(r"units?(?: of measure)?|单位|uom", re.I)
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


def _times(members: list[Label]) -> dict[int, tuple[int, ...]] | None:
    """When each label is, if all are periods, bare or in the same words; None otherwise."""
    found = {label.id: period_and_rest(label.text) for label in members}
    times = {label: time for label, (time, _) in found.items() if time is not None}
    alike = len({rest for _, rest in found.values()}) == 1
    return times if members and alike and len(times) == len(members) == len(set(times.values())) else None


def _one_set(axis: Axis) -> bool:
    """Whether header labels are members of one set (JFK, LGA, Total), not different quantities."""
    members = [label for label in axis.labels if label.id in axis.rank]
    return len(members) > 1 and (
        len(members) < len(axis.labels) or all(re.fullmatch(r"[A-Z]{2,4}", label.text) for label in members)
    )


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
