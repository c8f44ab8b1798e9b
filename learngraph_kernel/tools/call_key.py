"""What makes a call one call: the conversation, the turn, who called, and the id the model gave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Table

from learngraph_kernel.tools.values import ToolScope

MAX_CALL_ID = 200


@dataclass(frozen=True, slots=True)
class CallKey:
    """Models number their calls anew in each answer, and sub-agents theirs; the turn and the agent tell them apart."""

    session_id: str
    turn_id: str
    agent: str
    call_id: str

    @classmethod
    def of_call(cls, scope: ToolScope, call_id: str) -> CallKey:
        """The key of a call of this scope."""
        return cls(scope.session_id, scope.turn_id, scope.agent, call_id)

    def of(self, table: Table) -> tuple[ColumnElement[bool], ...]:
        """The conditions that pick its rows."""
        return (
            table.c.session_id == self.session_id,
            table.c.turn_id == self.turn_id,
            table.c.agent == self.agent,
            table.c.call_id == self.call_id,
        )

    def columns(self) -> dict[str, Any]:
        """Its columns."""
        return {
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "agent": self.agent,
            "call_id": self.call_id,
        }
