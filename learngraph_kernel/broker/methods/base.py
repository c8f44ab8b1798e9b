"""The shape of a call, and the checks on arguments that all calls share."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from learngraph_kernel.broker.state import RunState
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.errors import BadInput

Effect = Literal["read", "model", "outside-write"]


class BadCall(BadInput):
    """The arguments of a call are not what it takes."""

    code = "bad_call"


class Method:
    """One call a kernel may make; subclasses override what they need.

    Attributes:
        name: as in `lg.<name>`.
        effect: what it does to the world.
        external: its answer comes from outside (a source, a model), so a rerun takes it from the record.
    """

    name: ClassVar[str]
    effect: ClassVar[Effect] = "read"
    external: ClassVar[bool] = False

    def effect_of(self, arguments: dict[str, Any]) -> Effect:
        """What this call does to the world, where that depends on its arguments."""
        return self.effect

    def asks_outside(self, arguments: dict[str, Any]) -> bool:
        """Whether the answer of this call comes from outside, where that depends on its arguments."""
        return self.external

    def again(self, state: RunState, arguments: dict[str, Any], recorded: Any) -> Any:
        """The result in a rerun of a call that asked outside; by default what the original run got."""
        return recorded

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        """Does the work; returns an encoded JSON result."""
        raise BadCall(f"{self.name} cannot be called")

    def apply(self, state: RunState, arguments: dict[str, Any], result: Any) -> None:
        """Puts a result into the run's state."""

    def present(self, state: RunState, result: Any) -> Any:
        """The answer for the kernel; by default the result itself."""
        return result

    def artifacts(self, result: Any) -> list[str]:
        """The artifacts a result rests on."""
        return []


def text_argument(arguments: dict[str, Any], name: str) -> str:
    """A required text argument. Raises BadCall."""
    value = arguments.get(name)
    if not isinstance(value, str):
        raise BadCall(f"argument {name!r} must be a text")
    if not value:
        raise BadCall(f"argument {name!r} is empty", remedy="give it a text")
    return value
