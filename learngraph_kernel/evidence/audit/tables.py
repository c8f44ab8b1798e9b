"""From rows of strings to facts: which cells hold numbers, what they mean, and which labels stand over them.

A table is read the way a person reads it: captions (a lone cell above the header), header lines, label columns, section
rows, and the block of numbers. Every label column and every header line is an *axis*; a fact knows its label on each.
Years, row numbers and identifiers are labels, not facts. Units and scales come from the cell itself, else from its
row's labels, its header, its section, the captions or the table's name, in this order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from learngraph_kernel.evidence.audit.cells import CellNumber
from learngraph_kernel.evidence.audit.labels import (
    Axis,
    Label,
    is_total,
    names_a_change,
    names_a_fall,
    names_an_outflow,
)
from learngraph_kernel.evidence.audit.layout import UNIT_TITLE, Layout
from learngraph_kernel.evidence.audit.units import FRACTION, MONEY, PROPORTIONS, Declared, declared
from learngraph_kernel.evidence.audit.words import period_and_rest, period_of


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
        self.layout = Layout(rows)
        self.width, self.rows, self.numbers = self.layout.width, self.layout.rows, self.layout.numbers
        self.table = Table(len(facts.tables), name)
        facts.tables.append(self.table)

    def read(self) -> None:
        """Lay the table out, name its axes, and take every number of its body as a fact."""
        layout = self.layout
        captions, header, body = layout.split()
        label_columns = layout.label_columns(header, body)
        sections, body = layout.sections(body)
        headers = [layout.fill_right(self.rows[line]) for line in header]
        columns = self._fact_columns(label_columns, header, body)
        self.table.headers = frozenset(text for line in headers for text in line if text)
        self._name_table(" ".join([re.sub(r"\.\w{2,5}$", "", self.name), *captions]))
        unit_columns = {
            column for column in label_columns if any(UNIT_TITLE.fullmatch(line[column]) for line in headers)
        }
        row_axes = {column: self._axis("row") for column in label_columns if column not in unit_columns}
        for column, axis in row_axes.items():
            axis.title = " ".join(line[column] for line in headers)
            axis.ref = self._range(body[0], column, body[-1], column) if body else ""
        header_axes = [self._axis("header") for _ in headers]
        for axis, line in zip(header_axes, header, strict=True):
            axis.ref = self._range(line, min(columns, default=0), line, self.width - 1)
        section_axis = self._axis("section") if sections else None
        heads = [self._head(column, headers, header_axes, body) for column in columns]
        corner = [_of_table(line[column]) for line in headers for column in label_columns if column not in unit_columns]
        captioned = _merge([*corner, *(declared(caption) for caption in captions), declared(self.name, name=True)])
        previous = [""] * self.width
        section = ""
        for row in body:
            section = sections.get(row, section)
            texts = dict(zip(label_columns, layout.row_texts(row, label_columns, previous), strict=True))
            named = [column for column in reversed(label_columns) if texts[column]]
            said = _merge(declared(texts[column], name=column not in unit_columns) for column in named)
            labels = [self._label(axis, texts[column]) for column, axis in row_axes.items()]
            under = [self._label(section_axis, section)] if section_axis is not None else []
            around = [declared(section, name=True), captioned]
            for head in heads:
                number = self.numbers[row][head.column]
                if number is not None:
                    unit, factor = _unit_and_scale(number, said, head, around)
                    self._fact(row, head, number, unit, factor, [*labels, *head.labels, *under])
        self._finish_axes()

    def _fact_columns(self, label_columns: list[int], header: list[int], body: list[int]) -> list[int]:
        """Columns with measurements; a text column may hold some, but not the first that names the rows."""
        return [
            column
            for column in range(self.width)
            if (column not in label_columns or column not in (0, label_columns[0]))
            and any(self.numbers[row][column] is not None for row in body)
            and not self.layout.is_index(column, header, body)
            and not self.layout.is_key(column, header, body)
        ]

    def _head(self, column: int, headers: list[list[str]], axes: list[Axis], body: list[int]) -> _Head:
        said = _merge(declared(line[column]) for line in reversed(headers) if line[column])
        numbers = [number for row in body if (number := self.numbers[row][column]) is not None]
        labels = [self._label(axis, line[column]) for axis, line in zip(axes, headers, strict=True)]
        return _Head(column, labels, said, _written_rate(numbers, said), any(number.value < 0 for number in numbers))

    def _range(self, row: int, column: int, last_row: int, last_column: int) -> str:
        return f"{self.name}!R{row + 1}C{column + 1}:R{last_row + 1}C{last_column + 1}"

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
        self, row: int, head: _Head, number: CellNumber, unit: str | None, factor: Decimal, labels: list[int]
    ) -> None:
        known = [self.facts.labels[label] for label in labels if label >= 0]
        value, step = (number.value, number.step) if factor == 1 else (number.value * factor, number.step * factor)
        fact = Fact(
            index=len(self.facts.facts),
            ref=f"{self.name}!R{row + 1}C{head.column + 1}",
            table=self.table.index,
            row=row,
            column=head.column,
            value=value,
            number=float(value),
            step=step,
            unit=unit,
            labels=tuple(labels),
            total=any(label.total for label in known),
            falls=any(label.falls for label in known),
            outflow=any(label.outflow for label in known),
            changes=head.signed or any(label.changes for label in known),
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
            if times is None and axis.kind == "header":  # periods, and a column that says the change between them
                members = [label for label in members if not label.changes]
                times = _times(members) if len(members) > 1 else None
                members = members if times is not None else [label for label in axis.labels if not label.total]
            axis.ordered = times is not None
            if times is not None:
                periods += axis.kind == "header"
                members = sorted(members, key=lambda label: times[label.id])
            axis.rank = {label.id: place for place, label in enumerate(members)}
        headers_are_periods = periods > 0
        single = all(len(axis.labels) <= 1 for axis in self.table.axes if axis.kind == "header")
        for axis in self.table.axes:
            if axis.kind == "row":
                axis.measure = (headers_are_periods or single) and not axis.ordered and not _names_things(axis)
            elif not headers_are_periods:
                axis.measure = axis.kind == "header" and not axis.ordered and not _one_set(axis)


@dataclass(frozen=True, slots=True)
class _Head:
    """What stands over one column: its labels, what they state, how its rates are written, whether it has negatives."""

    column: int
    labels: list[int]
    said: Declared
    rate: str | None
    signed: bool


def _written_rate(numbers: Sequence[CellNumber], said: Declared) -> str | None:
    """What a column of rates is written in: `fraction`, `%`, or None when it does not say."""
    values = [abs(number.value) for number in numbers if number.unit is None]
    if not said.rate or not values:
        return None
    if max(values) <= 1:
        return FRACTION if said.unit is None or said.loose_percent else None
    return "%" if max(values) <= 100 and said.unit is None else None


def _unit_and_scale(
    number: CellNumber, row: Declared, head: _Head, around: Sequence[Declared]
) -> tuple[str | None, Decimal]:
    """A cell's unit and factor from everything that stands over it; a count takes no currency from a caption."""
    said = [row, head.said, *around]
    if row.count or head.said.count:
        said = [row, head.said, *(Declared(scale=each.scale) for each in around if each.unit not in MONEY)]
    unit = number.unit
    if unit is None and row.unit is None and head.rate is not None:
        unit = head.rate
    if unit is None and row.rate and row.unit is None:
        unit = FRACTION if abs(number.value) <= 1 else "%"
    if unit is None:
        unit = next((each.unit for each in said if each.unit is not None), None)
    if unit in PROPORTIONS or number.scaled:
        return unit, Decimal(1)
    return unit, next((each.scale for each in said if each.scale is not None), Decimal(1))


def _of_table(corner: str) -> Declared:
    """What the header over the labels says about the whole table: "US$ in thousands", "项目（万元）"; else nothing."""
    said = declared(corner)
    whole = said.unit in MONEY or (said.scale is not None and said.unit is None)
    return Declared(unit=said.unit, scale=said.scale) if whole else Declared()


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


_GENERIC_TITLE = re.compile(
    r"metrics?|measures?|items?|line items?|accounts?|kpis?|indicators?|variables?|names?|fields?|quantity|statistics?"
    r"|指标|项目|科目|名称|类别",
    re.I,
)
_PLAIN_TOTAL = re.compile(r"(?:grand )?totals?|all|overall|sum|合计|总计|小计|总和|全部", re.I)


def _times(members: list[Label]) -> dict[int, tuple[int, ...]] | None:
    """When each label is, if all are periods, bare or in the same words; None otherwise."""
    found = {label.id: period_and_rest(label.text) for label in members}
    times = {label: time for label, (time, _) in found.items() if time is not None}
    alike = len({rest for _, rest in found.values()}) == 1
    return times if members and alike and len(times) == len(members) == len(set(times.values())) else None


def _names_things(axis: Axis) -> bool:
    """Whether a label column lists members of one set (products, airlines), not quantities (revenue, margin)."""
    return (bool(axis.title) and not _GENERIC_TITLE.fullmatch(axis.title.strip())) or any(
        _PLAIN_TOTAL.fullmatch(label.text) for label in axis.labels
    )


def _one_set(axis: Axis) -> bool:
    """Whether header labels are members of one set (JFK, LGA, Total), not different quantities."""
    members = [label for label in axis.labels if label.id in axis.rank]
    return len(members) > 1 and (
        len(members) < len(axis.labels) or all(re.fullmatch(r"[A-Z]{2,4}", label.text) for label in members)
    )
