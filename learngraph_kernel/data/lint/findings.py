"""What the lint says: a rule, how sure it is, the exact place, why, and a rewrite where one is safe.

`error` means the number is wrong whenever the data uses what the catalogue allows; `warning` means that it may well be
meant; `unknown` means that the catalogue does not say enough to tell. Unknown is never an accusation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "unknown"]

RULES: dict[str, str] = {
    "fan_out": "a join repeats the rows whose values are summarised",
    "chasm_trap": "two measures are summarised over one join that repeats the rows of both",
    "semi_additive": "a stock is added up over time",
    "ratio_added": "ratios are added up",
    "ratio_averaged": "ratios are averaged without their weights",
    "average_of_averages": "an average of averages weighs every group the same",
    "non_decomposable": "distinct counts and medians of groups do not combine into that of the whole",
    "missing_valid": "records that do not count are counted",
    "unknown_code": "a code that does not exist",
    "wrong_date": "not the table's business date",
    "relation_contradicted": "joined by other columns than the relation's",
    "outer_join_defeated": "a condition drops the rows that the outer join kept",
    "not_in_null": "NOT IN gives no row at all once the list holds a NULL",
    "integer_division": "a division of whole numbers drops what is after the point",
    "cross_join": "tables without a join condition: every row with every row",
    "time_zone": "times with and without a zone are compared",
    "unparsed": "not understood as SQL",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding in one statement.

    Attributes:
        rule: a key of `RULES`.
        line: from 1, in the text that was linted.
        start, end: characters of the place, `text[start:end]`.
        message: what is wrong here, why, and what to do.
        example: a small counter-example in words; None where the message says it.
        rewrite: the whole statement, right; None where no rewrite is safe.
    """

    rule: str
    severity: Severity
    line: int
    start: int
    end: int
    message: str
    example: str | None = None
    rewrite: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As `learngraph lint --json` lists it, without the file."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "line": self.line,
            "start": self.start,
            "end": self.end,
            "message": self.message,
            "example": self.example,
            "rewrite": self.rewrite,
        }
