"""What may be spent, and what was: one ledger of model calls, whoever makes them and however often a turn is resumed.

```toml
[budget.session]              # in learngraph.toml, or in budget.toml of the home (an administrator's); both hold
tokens = 2_000_000
USD = 2
[budget.user]                 # one person, a day (UTC)
USD = 10
[budget.day]                  # everybody of this home, a day (UTC)
CNY = 200
```

A call is *reserved* with an estimate of its tokens before it is made and *settled* with what it used, so that calls
made at the same time see one another. Its row is named by (turn, agent, step): a step that runs again after a crash
takes its own row over instead of paying twice.
"""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal, InvalidOperation
from typing import Any, Literal, TypeAlias, cast, get_args

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.dialects.sqlite import insert as upsert

from learngraph_kernel.errors import BadInput, Unavailable
from learngraph_kernel.models.events import Cost, Usage
from learngraph_kernel.models.prices import CURRENCIES
from learngraph_kernel.naming import suggestion
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.schema import model_usage as table
from learngraph_kernel.store.writer import Batch

Span: TypeAlias = Literal["turn", "session", "user", "day"]
UNITS = ("tokens", *CURRENCIES)
BILLION = Decimal(1_000_000_000)
FILE = "budget.toml"
ENDS: Mapping[Span, str] = {
    "turn": "ask again in a new message",
    "session": "begin a new conversation, or raise [budget.session]",
    "user": "wait until 00:00 UTC, or raise [budget.user]",
    "day": "wait until 00:00 UTC, or raise [budget.day]",
}


class BadBudget(BadInput):
    """`[budget]` is not one."""

    code = "bad_budget"


class BudgetExhausted(Unavailable):
    """Nothing is left of a budget; `details` has `span`, `unit`, `used`, `limit`."""

    code = "budget_exhausted"


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit: of tokens, or of money in one currency, within a span."""

    span: Span
    unit: str
    most: Decimal


@dataclass(frozen=True, slots=True)
class Standing:
    """How much of a bound is used, reservations included."""

    bound: Bound
    used: Decimal

    @property
    def share(self) -> float:
        return float(self.used / self.bound.most) if self.bound.most else 1.0

    def as_json(self) -> dict[str, Any]:
        bound = self.bound
        return {
            "span": bound.span,
            "unit": bound.unit,
            "used": format(self.used, "f"),
            "limit": format(bound.most, "f"),
        }


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One model call: its place, and whose it is."""

    turn_id: str
    agent: str
    step: int
    session_id: str
    owner: str
    model: str


def parse_budget(body: Any, *, where: str) -> list[Bound]:
    """The bounds of a `budget` table. Raises BadBudget, naming the place."""
    if not isinstance(body, Mapping):
        raise BadBudget("`budget` is not a table", where=where, remedy="[budget.session], [budget.user], [budget.day]")
    bounds = []
    for span, limits in body.items():
        if span not in get_args(Span):
            remedy = suggestion(span, get_args(Span), kind="budgets")
            raise BadBudget(f"there is no budget {span!r}", where=where, remedy=remedy)
        if not isinstance(limits, Mapping):
            raise BadBudget(f"`budget.{span}` is not a table", where=where, remedy="give tokens = … or USD = …")
        for unit, most in limits.items():
            if unit not in UNITS:
                remedy = f"one of {', '.join(UNITS)}"
                raise BadBudget(f"there is no unit {unit!r}", where=f"{where} [budget.{span}]", remedy=remedy)
            bounds.append(Bound(cast(Span, span), unit, _amount(most, f"{where} [budget.{span}] {unit}")))
    return bounds


def _amount(value: Any, where: str) -> Decimal:
    try:
        amount = Decimal("NaN") if isinstance(value, bool) else Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise BadBudget(f"{value!r} is no amount", where=where, remedy="give a number that is not negative")
    return amount


def home_bounds(home: Home) -> list[Bound]:
    """What holds for everybody of this home. Raises BadBudget."""
    path = home.root / FILE
    if not path.exists():
        return []
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadBudget(f"cannot be read: {error}", where=str(path), remedy="correct the file") from error
    return parse_budget(body.get("budget", {}), where=str(path))


class Budgets:
    """The ledger of one home. Its methods block."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def reserve(self, call: ModelCall, bounds: Sequence[Bound], tokens: int) -> list[Standing]:
        """Before a call is made.

        Args:
            tokens: what it will take at least, as far as known.

        Returns: how each bound stands, this call included.

        Raises:
            BudgetExhausted: something is used up already; nothing was reserved.
        """
        found: list[Standing] = []

        def work(batch: Batch) -> None:
            now = batch.clock()
            batch.connection.execute(delete(table).where(_is(call), table.c.settled.is_(False)))
            found[:] = [Standing(bound, _used(batch.connection, bound, call, now)) for bound in bounds]
            for standing in found:
                if standing.used >= standing.bound.most:
                    raise _exhausted(standing)
            row = _row(call, to_text(now)) | {"settled": False, "tokens": tokens, "currency": None, "billionths": 0}
            batch.connection.execute(upsert(table).values(**row).on_conflict_do_nothing())
            found[:] = [Standing(bound, _used(batch.connection, bound, call, now)) for bound in bounds]

        with self._store.unit_of_work(call.owner) as unit:
            unit.change(work)
        return found

    def settle(self, call: ModelCall, usage: Usage | None, cost: Cost | None) -> None:
        """After a call: what it really used. Doing it again changes nothing. Unknown usage keeps the estimate."""
        values: dict[str, Any] = {"settled": True}
        if usage is not None:
            values["tokens"] = usage.input + usage.cached + usage.cache_creation + usage.output
        if cost is not None:
            amount = (cost.amount * BILLION).to_integral_value(ROUND_UP)
            values |= {"currency": cost.currency, "billionths": int(amount)}

        def work(batch: Batch) -> None:
            fresh = {"tokens": 0, "currency": None, "billionths": 0} | _row(call, to_text(batch.clock())) | values
            made = upsert(table).values(**fresh)
            unsettled = table.c.settled.is_(False)
            change = made.on_conflict_do_update(index_elements=KEY, set_=values, where=unsettled)
            batch.connection.execute(change)

        with self._store.unit_of_work(call.owner) as unit:
            unit.change(work)

    def release(self, call: ModelCall) -> None:
        """After a call that failed before anything came: its estimate counts no more."""

        def work(batch: Batch) -> None:
            batch.connection.execute(delete(table).where(_is(call), table.c.settled.is_(False)))

        with self._store.unit_of_work(call.owner) as unit:
            unit.change(work)

    def standing(self, call: ModelCall, bounds: Sequence[Bound], now: dt.datetime) -> list[Standing]:
        """How the bounds stand for whoever would make this call now."""
        rows = [(bound, self._store.rows(_query(bound, call, now))[0]["used"]) for bound in bounds]
        return [Standing(bound, _scaled(bound, used)) for bound, used in rows]


KEY = ["turn_id", "agent", "step"]


def _is(call: ModelCall) -> ColumnElement[bool]:
    return (table.c.turn_id == call.turn_id) & (table.c.agent == call.agent) & (table.c.step == call.step)


def _row(call: ModelCall, at: str) -> dict[str, Any]:
    return {name: getattr(call, name) for name in ModelCall.__slots__} | {"at": at}


def _query(bound: Bound, call: ModelCall, now: dt.datetime) -> Any:
    today = now.strftime("%Y-%m-%d")
    within: Mapping[Span, ColumnElement[bool]] = {
        "turn": table.c.turn_id == call.turn_id,
        "session": table.c.session_id == call.session_id,
        "user": (table.c.owner == call.owner) & (table.c.at >= today),
        "day": table.c.at >= today,
    }
    if bound.unit == "tokens":
        return select(func.coalesce(func.sum(table.c.tokens), 0).label("used")).where(within[bound.span])
    money = func.coalesce(func.sum(table.c.billionths), 0)
    return select(money.label("used")).where(within[bound.span], table.c.currency == bound.unit)


def _used(connection: Any, bound: Bound, call: ModelCall, now: dt.datetime) -> Decimal:
    return _scaled(bound, connection.execute(_query(bound, call, now)).scalar_one())


def _scaled(bound: Bound, used: int) -> Decimal:
    return Decimal(used) if bound.unit == "tokens" else (Decimal(used) / BILLION).normalize()


def _exhausted(standing: Standing) -> BudgetExhausted:
    bound = standing.bound
    whose = {"turn": "this turn", "session": "this conversation", "user": "your day", "day": "today, everybody's"}
    return BudgetExhausted(
        f"the budget of {whose[bound.span]} is used up: {standing.used:f} of {bound.most:f} {bound.unit}",
        where=f"[budget.{bound.span}]",
        remedy=ENDS[bound.span],
        details=standing.as_json(),
    )
