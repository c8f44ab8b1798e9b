"""The budgets of a turn's model calls: asked before each, told after each. One ledger for all agents and attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from learngraph_kernel.accounts.budgets import Bound, Budgets, ModelCall, Standing
from learngraph_kernel.agent.turn.limits import WARN_AT, WIND_DOWN_AT
from learngraph_kernel.models.events import Cost, Usage
from learngraph_kernel.tools.values import ToolScope

KINDS = ("input", "cached", "cache_creation", "output")


@dataclass(frozen=True)
class Spending:
    """The budgets that hold for one agent of one turn."""

    budgets: Budgets
    bounds: Sequence[Bound]
    scope: ToolScope
    model: str

    def _call(self, step: int) -> ModelCall:
        scope = self.scope
        return ModelCall(scope.turn_id, scope.agent, step, scope.session_id, scope.owner, self.model)

    async def before(self, step: int, tokens: int) -> list[Standing]:
        """Reserves a call of so many tokens. Raises BudgetExhausted."""
        return await asyncio.to_thread(self.budgets.reserve, self._call(step), self.bounds, tokens)

    async def after(self, step: int, recorded: Mapping[str, Any]) -> None:
        """Settles a call with what its `usage` event says."""
        usage = (
            Usage(**{kind: int(recorded[kind]) for kind in KINDS if kind in recorded}) if "input" in recorded else None
        )
        costs = [Cost(Decimal(amount), currency) for currency, amount in recorded.get("cost", {}).items()]
        await asyncio.to_thread(self.budgets.settle, self._call(step), usage, costs[0] if costs else None)

    async def failed(self, step: int) -> None:
        """Takes a reservation back."""
        await asyncio.to_thread(self.budgets.release, self._call(step))


def nearest(standings: Sequence[Standing]) -> Standing | None:
    """The bound that is closest to its end; None without any."""
    return max(standings, key=lambda standing: standing.share, default=None)


def winds_down(standings: Sequence[Standing]) -> bool:
    """Whether so little is left that the next answer should be the last."""
    return any(standing.share >= WIND_DOWN_AT for standing in standings)


def warning(standings: Sequence[Standing]) -> str | None:
    """What to tell the person when a budget is nearly used up."""
    near = nearest(standings)
    if near is None or near.share < WARN_AT:
        return None
    bound = near.bound
    return f"{near.used:f} of {bound.most:f} {bound.unit} of the budget `{bound.span}` are used."
