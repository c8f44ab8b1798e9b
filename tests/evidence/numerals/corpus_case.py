"""Reading the corpus files: one line a case, as their first line explains."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from learngraph_kernel.evidence.numerals import Numeral

HEDGES = {"~about", "~over", "~under", "~at_least", "~at_most"}


@dataclass(frozen=True)
class Case:
    place: str
    text: str
    expected: tuple[str, ...]


def load(path: Path) -> list[Case]:
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line.startswith("# "):
            continue
        text, _, expected = line.partition("\t")
        items = tuple(item.strip() for item in expected.split(" ; ")) if expected.strip() else ()
        cases.append(Case(f"{path.stem}:{number}", text.replace("\\n", "\n"), items))
    return cases


def disagreements(expected: tuple[str, ...], numerals: list[Numeral]) -> list[str]:
    """What differs between the expected items and the numerals read, in words; empty when nothing does."""
    if len(expected) != len(numerals):
        return [f"{len(numerals)} numbers read, {len(expected)} expected"]
    return [
        problem for item, numeral in zip(expected, numerals, strict=True) for problem in _differences(item, numeral)
    ]


def _differences(item: str, numeral: Numeral) -> list[str]:
    if item.startswith("!"):
        right = not numeral.conclusion and numeral.reason == item[1:]
        return [] if right else [f"{numeral.text!r}: {numeral.reason or 'a conclusion'}, expected {item}"]
    if not numeral.conclusion or numeral.value is None or numeral.low is None or numeral.high is None:
        return [f"{numeral.text!r}: {numeral.reason}, expected {item}"]
    value, unit, *rest = item.split()
    wanted: dict[str, object] = {"unit": None if unit == "-" else unit, "direction": None, "hedge": None}
    problems = []
    for word in rest:
        if word in {"up", "down"}:
            wanted["direction"] = word
        elif word in HEDGES:
            wanted["hedge"] = word[1:]
        else:
            low, _, high = word.partition("..")
            tolerance = Decimal("0.001")
            if abs(numeral.low - Decimal(low)) > tolerance or abs(numeral.high - Decimal(high)) > tolerance:
                problems.append(f"{numeral.text!r}: [{numeral.low}, {numeral.high}], expected {word}")
    if abs(numeral.value - Decimal(value)) > Decimal("0.00001"):
        problems.append(f"{numeral.text!r}: value {numeral.value}, expected {value}")
    for name, right in wanted.items():
        if getattr(numeral, name) != right:
            problems.append(f"{numeral.text!r}: {name} {getattr(numeral, name)}, expected {right}")
    return problems
