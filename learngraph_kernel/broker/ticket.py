"""Execution tickets: what one kernel may ask for, and until when.

A ticket is made by the runtime for one run and one kernel; the kernel holds only its secret and cannot widen it. The
broker compares secrets in constant time and looks everything else up on its own side.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from learngraph_kernel.errors import LearnGraphError


class TicketRefused(LearnGraphError):
    """The ticket does not allow this."""

    code = "ticket_refused"


@dataclass(frozen=True, slots=True)
class Ticket:
    """A grant for one run.

    Attributes:
        secret: what the kernel presents; at least 128 bits of randomness.
        run_id: the only run it is good for.
        sources: names of the sources it may query; None for every source of the workspace.
        max_calls: calls it may make in all.
        expires_at: on the runtime's monotonic clock, in seconds.
    """

    secret: str
    run_id: str
    sources: frozenset[str] | None
    max_calls: int
    expires_at: float

    def check_secret(self, presented: str, now: float) -> None:
        """Refuses a wrong or expired secret."""
        if not hmac.compare_digest(self.secret.encode(), presented.encode()):
            raise TicketRefused("this ticket is not for this run", remedy="start the notebook through LearnGraph again")
        if now >= self.expires_at:
            raise TicketRefused(
                "the ticket has expired", remedy="raise `seconds` under [runs] in learngraph.toml and resume the run"
            )

    def check_source(self, name: str) -> None:
        """Refuses a source that the ticket does not name."""
        if self.sources is not None and name not in self.sources:
            allowed = ", ".join(sorted(self.sources)) or "none"
            raise TicketRefused(f"source {name!r} is not on this run's ticket (allowed: {allowed})")

    def check_budget(self, calls: int) -> None:
        """Refuses once `calls` calls were made."""
        if calls >= self.max_calls:
            raise TicketRefused(
                f"the run has used its {self.max_calls} calls", remedy="raise `calls` under [runs] in learngraph.toml"
            )
