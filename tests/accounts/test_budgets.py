"""The ledger of model calls: bounds over turns, sessions, people and days; one budget however often a step runs."""

from __future__ import annotations

import datetime as dt
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.accounts.budgets import (
    BadBudget,
    Bound,
    BudgetExhausted,
    Budgets,
    ModelCall,
    home_bounds,
    parse_budget,
)
from learngraph_kernel.models.events import Cost, Usage
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home


def made(
    turn: str = "n1", step: int = 1, *, agent: str = "", session: str = "s1", owner: str = "user:ana"
) -> ModelCall:
    return ModelCall(turn, agent, step, session, owner, "m")


def bounds(**limits: Any) -> list[Bound]:
    return parse_budget(limits, where="test")


def spend(budgets: Budgets, call: ModelCall, tokens: int, usd: str | None = None) -> None:
    budgets.reserve(call, [], 0)
    budgets.settle(call, Usage(input=tokens), None if usd is None else Cost(Decimal(usd), "USD"))


@pytest.mark.parametrize(
    ("span", "call", "counts"),
    [
        ("turn", made(step=2), True), ("turn", made(step=2, agent="helper"), True), ("turn", made("n2"), False),
        ("session", made("n2"), True), ("session", made("n2", session="s2"), False),
        ("user", made("n2", session="s2"), True), ("user", made("n2", session="s2", owner="user:bo"), False),
        ("day", made("n2", session="s2", owner="user:bo"), True),
    ],
)  # fmt: skip
def test_a_bound_counts_what_lies_in_its_span(store: Store, span: str, call: ModelCall, counts: bool) -> None:
    budgets = Budgets(store)
    spend(budgets, made(), 1_000)
    (standing,) = budgets.reserve(call, bounds(**{span: {"tokens": 5_000}}), 500)
    assert standing.used == (1_500 if counts else 500)


def test_what_is_used_up_is_told_with_its_numbers_and_when_it_ends(store: Store) -> None:
    budgets = Budgets(store)
    spend(budgets, made(), 10, "1.50")
    with pytest.raises(BudgetExhausted) as caught:
        budgets.reserve(made(step=2), bounds(session={"USD": 1.5}), 0)
    assert caught.value.details == {"span": "session", "unit": "USD", "used": "1.5", "limit": "1.5"}
    assert "new conversation" in (caught.value.remedy or "")
    budgets.reserve(made("n2", session="s2"), bounds(session={"USD": 1.5}), 0)


def test_a_step_that_runs_again_is_counted_once(store: Store) -> None:
    budgets, limits = Budgets(store), bounds(turn={"tokens": 1_000})
    budgets.reserve(made(), limits, 700)
    (again,) = budgets.reserve(made(), limits, 700)  # after a crash: the same step takes its own place
    assert again.used == 700
    for _ in range(2):
        budgets.settle(made(), Usage(input=300, output=50), None)
    (next_step,) = budgets.reserve(made(step=2), limits, 0)
    assert next_step.used == 350


def test_a_call_that_failed_counts_no_more_and_one_without_usage_keeps_its_estimate(store: Store) -> None:
    budgets, limits = Budgets(store), bounds(turn={"tokens": 1_000})
    budgets.reserve(made(), limits, 400)
    budgets.release(made())
    budgets.reserve(made(step=2), limits, 300)
    budgets.settle(made(step=2), None, None)
    (standing,) = budgets.reserve(made(step=3), limits, 0)
    assert standing.used == 300


def test_calls_made_at_once_see_one_another(store: Store) -> None:
    budgets, limits = Budgets(store), bounds(day={"tokens": 1_000})
    refused: list[str] = []

    def reserve(number: int) -> None:
        try:
            budgets.reserve(made(f"n{number}", session=f"s{number}"), limits, 250)
        except BudgetExhausted as error:
            refused.append(error.code)

    threads = [threading.Thread(target=reserve, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 8


def test_money_is_exact_and_currencies_are_kept_apart(store: Store) -> None:
    budgets = Budgets(store)
    for step in range(1, 11):
        spend(budgets, made(step=step), 1, "0.000000150")
    (usd, cny) = budgets.reserve(made(step=11), bounds(session={"USD": 1, "CNY": 1}), 0)
    assert (usd.used, cny.used) == (Decimal("0.0000015"), 0)


def test_a_new_day_begins_at_midnight_utc(home: Path) -> None:
    now = [dt.datetime(2026, 12, 1, 23, 59, tzinfo=dt.UTC)]
    with Store.open(Home(home), clock=lambda: now[0]) as store:
        budgets, limits = Budgets(store), bounds(user={"tokens": 100})
        spend(budgets, made(), 100)
        with pytest.raises(BudgetExhausted):
            budgets.reserve(made(step=2), limits, 0)
        now[0] += dt.timedelta(minutes=2)
        (standing,) = budgets.reserve(made(step=2), limits, 0)
        assert standing.used == 0


def test_budgets_hold_after_a_restart(place: Home) -> None:
    with Store.open(place) as store:
        spend(Budgets(store), made(), 900)
    with Store.open(place) as store, pytest.raises(BudgetExhausted):
        Budgets(store).reserve(made(step=2), bounds(session={"tokens": 900}), 0)


@pytest.mark.parametrize(
    "body",
    [
        [], {"week": {"tokens": 1}}, {"day": 5}, {"day": {"GBP": 1}}, {"day": {"USD": -1}}, {"day": {"USD": True}},
        {"day": {"USD": "much"}}, {"day": {"tokens": float("nan")}}, {"day": {"tokens": float("inf")}},
    ],
)  # fmt: skip
def test_a_budget_that_is_none_is_refused_with_its_place(body: Any) -> None:
    with pytest.raises(BadBudget) as caught:
        parse_budget(body, where="learngraph.toml")
    assert "learngraph.toml" in str(caught.value) and caught.value.remedy


def test_the_home_has_a_budget_of_its_own(place: Home) -> None:
    assert home_bounds(place) == []
    (place.root / "budget.toml").write_text("[budget.day]\nCNY = 200\n")
    assert home_bounds(place) == [Bound("day", "CNY", Decimal(200))]
    (place.root / "budget.toml").write_text("[budget")
    with pytest.raises(BadBudget):
        home_bounds(place)
