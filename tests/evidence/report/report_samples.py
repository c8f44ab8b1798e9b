"""A small run to write reports about: a weekly summary of invented flights, in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from learngraph_kernel.evidence.values import (
    Book,
    Column,
    InputRecord,
    MetricInput,
    MetricResult,
    Passage,
    SnapshotInfo,
    Value,
)


class ListSnapshot:
    """A snapshot whose rows are a list."""

    def __init__(
        self, ref: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Value, ...]], **info: Any
    ) -> None:
        self._rows = list(rows)
        self._names = [name for name, _ in columns]
        self.info = SnapshotInfo(
            ref=ref,
            source=info.get("source", "flights"),
            sql=info.get("sql", f"select * from {ref}"),
            artifact=info.get("artifact", (ref.lower() * 32).ljust(64, "0")[:64]),
            columns=tuple(Column(name, type_) for name, type_ in columns),
            row_count=len(self._rows),
            truncated=info.get("truncated"),
            derived_from=tuple(info.get("derived_from", ())),
        )

    def cell(self, row: int, column: str) -> Value:
        return self._rows[row][self._names.index(column)]

    def column(self, name: str) -> list[Value]:
        at = self._names.index(name)
        return [row[at] for row in self._rows]

    def rows(self, start: int, stop: int) -> Iterator[tuple[Value, ...]]:
        return iter(self._rows[start:stop])


def metric(name: str, value: str | None, **changes: Any) -> MetricResult:
    """A metric result with sensible defaults."""
    facts: dict[str, Any] = {
        "name": name,
        "version": "1.0.0",
        "title": {"en": name.replace("_", " ").capitalize()},
        "value": None if value is None else Decimal(value),
        "unit": None,
        "precision": None,
        "state": "ok" if value is not None else "missing",
        "reason": None if value is not None else "the input n is null",
        "required": False,
        "expression": "n",
        "substituted": str(value),
        "inputs": (MetricInput("n", "cell(week.r0.flights)", ("Q1.r0.flights",), 1903),),
    }
    return MetricResult(**{**facts, **changes})


WEEK_SQL = """-- one row: the week as a whole
with week as (
  select * from flights
  where origin = 'JFK' and flight_date between date '2013-02-11' and date '2013-02-17'
)
select count(*) as flights,
       count(*) filter (where arr_delay <= 15) as on_time,
       count(arr_delay) as flown,
       round(avg(arr_delay), 2) as mean_delay,
       sum(fare) as revenue
from week"""

CARRIER_SQL = """select carrier, count(*) as flights, round(100.0 * avg((arr_delay <= 15)::int), 1) as on_time_share
from flights where origin = 'JFK' group by carrier order by flights desc"""


def book(**changes: Any) -> Book:
    """The run's book; keyword arguments replace its parts."""
    week = ListSnapshot(
        "Q1",
        [
            ("flights", "int64"),
            ("on_time", "int64"),
            ("flown", "int64"),
            ("mean_delay", "double"),
            ("revenue", "decimal128(18, 2)"),
        ],
        [(1903, 1488, 1811, 6.42, Decimal("1234567.80"))],
        sql=WEEK_SQL,
    )
    carriers = ListSnapshot(
        "Q2",
        [("carrier", "string"), ("flights", "int64"), ("on_time_share", "double")],
        [
            ("B6", 780, 79.1),
            ("DL", 391, 85.9),
            ("9E", 275, 74.5),
            ("AA", 268, 86.2),
            ("MQ", 139, None),
            ("US", 56, 88.9),
        ],
        sql=CARRIER_SQL,
    )
    parts: dict[str, Any] = {
        "run_id": "r_01JAZ3Q4W9V7K2M5X8N6T0P1RB",
        "inputs": {
            "week": InputRecord("week", "2013-W07", "Week"),
            "airport": InputRecord("airport", "JFK", "Airport"),
        },
        "snapshots": {"Q1": week, "Q2": carriers},
        "metrics": {item.name: item for item in _metrics()},
        "passages": {
            "K1": Passage(
                "K1",
                "Operations log, 13 February.\nSnow closed two runways until noon; carriers consolidated\n"
                "short-haul rotations and published a recovery schedule the same evening.",
                "operations-log.pdf",
                "p. 4",
            )
        },
        "tables": {"flights": ("flight_date", "origin", "carrier", "arr_delay", "fare"), "airports": ("faa", "name")},
    }
    return Book(**{**parts, **changes})


def _metrics() -> list[MetricResult]:
    flown = MetricInput("flown", "cell(week.r0.flown)", ("Q1.r0.flown",), 1811)
    return [
        metric("flights", "1903", title={"en": "Flights", "zh": "航班数"}, unit="flights", precision=0, required=True),
        metric(
            "on_time_rate",
            "82.164550",
            version="1.1.0",
            title={"en": "On-time rate", "zh": "准点率"},
            unit="%",
            precision=1,
            expression="100 * on_time / flown",
            substituted="100 * 1488 / 1811",
            inputs=(MetricInput("on_time", "cell(week.r0.on_time)", ("Q1.r0.on_time",), 1488), flown),
            required=True,
            additivity="ratio",
        ),
        metric(
            "revenue",
            "1234567.80",
            title={"en": "Ticket revenue", "zh": "票务收入"},
            unit="CNY",
            precision=2,
            expression="total",
            substituted="1234567.80",
            inputs=(MetricInput("total", "cell(week.r0.revenue)", ("Q1.r0.revenue",), Decimal("1234567.80")),),
        ),
        metric(
            "carrier_mean",
            "318.166666666666666666666666667",
            title={"en": "Flights per carrier", "zh": "每家航司航班数"},
            precision=1,
            expression="total / carriers",
            substituted="1909 / 6",
            inputs=(
                MetricInput("total", "sum(carriers.flights)", ("Q2.flights",), 1909),
                MetricInput("carriers", "count(carriers.carrier)", ("Q2.carrier",), 6),
            ),
        ),
        metric(
            "weather_share",
            None,
            title={"en": "Share of delays with bad weather", "zh": "天气延误占比"},
            unit="%",
            precision=1,
            reason="no weather record covers these hours",
            required=True,
        ),
    ]


ENGLISH = """# JFK in week [[i:week]]

[[m:flights]] flights left **[[i:airport]]** this week, and [[m:on_time_rate]] of those that flew were on time.
Ticket revenue came to [[m:revenue]] ([[m:revenue|M|.2]]), about [[m:carrier_mean]] flights for each carrier.

## Who flew

[[table:Q2 cols=carrier,flights,on_time_share rows=0-4]]

The busiest carrier, [[v:Q2.r0.carrier]], flew [[v:Q2.r0.flights]] times with an on-time share of
[[v:Q2.r0.on_time_share]] %; [[v:Q2.r1.carrier]] did better at [[v:Q2.r1.on_time_share]] %. Both come from
[[c:flights.arr_delay]] in [[t:flights]], beside `flights.carrier`.

- The operations log explains Wednesday: [[q:K1|Snow closed two runways until noon]].
- Weather explains [[m:weather_share]] of the delays.

See the [method](https://example.org/method) for definitions. [[see:m:on_time_rate,Q2]]
"""

CHINESE = """# [[i:airport]] 航班周报：[[i:week]]

本周共有 [[m:flights]] 个航班从 **[[i:airport]]** 出发，准点率为 [[m:on_time_rate]]。票务收入 [[m:revenue|万]]，
平均每家航司 [[m:carrier_mean]] 个航班。

## 各航司情况

[[table:Q2 cols=carrier,flights,on_time_share rows=0-4]]

航班最多的是 [[v:Q2.r0.carrier]]，共 [[v:Q2.r0.flights]] 班；[[v:Q2.r1.carrier]] 的准点情况更好。数据来自
[[t:flights]] 表的 [[c:flights.arr_delay]] 列。

- 运行日志记载：[[q:K1|Snow closed two runways until noon]]。
- 天气因素占延误的 [[m:weather_share]]。
"""
