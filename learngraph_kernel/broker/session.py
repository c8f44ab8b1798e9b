"""One run as its broker sees it: who calls, from which cell, and what was answered.

The engine says which cell runs; the kernel cannot. Calls of one run are answered one at a time, in the order they
arrive, which is what makes positions meaningful.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Any

from learngraph_kernel.broker.methods import METHODS, Method, method_named
from learngraph_kernel.broker.recording import RecordedCall, Recording, store_inline
from learngraph_kernel.broker.state import RunState
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.store.ledger import Ledger

_log = logging.getLogger(__name__)


class UnknownMethod(BadInput):
    """The kernel asked for something the broker does not offer."""

    code = "unknown_method"


class BrokerFault(LearnGraphError):
    """An error that nobody foresaw; its details stay in the runtime's log."""

    code = "broker_fault"

    def __init__(self, method: str) -> None:
        super().__init__(f"the broker failed on {method}", remedy="the runtime's log has the trace; report it")


class BetweenCells(LearnGraphError):
    """A call arrived while no cell was running."""

    code = "no_cell"


@dataclass(frozen=True, slots=True)
class Identity:
    """Where a call stands in the run."""

    cell: str
    position: int
    method: str
    arguments_hash: str

    def as_json(self) -> dict[str, Any]:
        return {
            "cell": self.cell,
            "position": self.position,
            "method": self.method,
            "arguments_hash": self.arguments_hash,
        }


class RunSession:
    """Answers the calls of one run.

    Args:
        state: the run's evidence so far.
        ledger: where calls are recorded.
        ticket: what the kernel may do.
        actor: who the calls are made for.
        recording: answers that must not happen again (resume), or external answers to reuse (rerun).
        externals_only: True for a rerun: only answers from outside (queries, models) are taken from the recording,
            everything else is computed again.
    """

    def __init__(
        self,
        state: RunState,
        ledger: Ledger,
        ticket: Ticket,
        *,
        actor: str,
        recording: Recording | None = None,
        externals_only: bool = False,
    ) -> None:
        self.state = state
        self.ticket = ticket
        self._ledger = ledger
        self._actor = actor
        self._recording = recording
        self._externals_only = externals_only
        self._lock = threading.Lock()
        self._cell: str | None = None
        self._position = 0
        self._calls = 0
        self.divergence: LearnGraphError | None = None

    def begin_cell(self, cell: str) -> None:
        """A cell starts; its calls count from 0."""
        with self._lock:
            self._cell, self._position = cell, 0

    def end_cell(self) -> None:
        """The cell ended. Raises ReplayDiverged when it made fewer calls than recorded."""
        with self._lock:
            cell, made = self._cell, self._position
            self._cell = None
        if cell is not None and self._recording is not None and not self._externals_only:
            self._recording.check_finished(cell, made)

    def close(self) -> None:
        """No call is taken any more; one that is being answered is not waited for."""
        self._cell = None

    def call(self, name: str, params: dict[str, Any]) -> Any:
        """Answers one call; blocks until the answer is durable. Arguments and answer are encoded values.

        Raises:
            LearnGraphError: refused or failed; recorded as `call.failed`.
        """
        if name not in METHODS:
            raise UnknownMethod(f"the broker has no method {name!r}", remedy=f"it has: {', '.join(METHODS)}")
        method = method_named(name)
        arguments = {key: value for key, value in params.items() if key != "at"}
        with self._lock:
            self.ticket.check_budget(self._calls)
            identity = self._identify(name, arguments)
            self._calls += 1
            return self._answer(method, identity, arguments)

    def _identify(self, name: str, arguments: dict[str, Any]) -> Identity:
        if self._cell is None:
            raise BetweenCells(f"{name} was called while no cell was running", remedy="call it from a cell")
        identity = Identity(self._cell, self._position, name, digest({"method": name, "arguments": arguments}))
        self._position += 1
        return identity

    def _answer(self, method: Method, identity: Identity, arguments: dict[str, Any]) -> Any:
        recorded = self._recorded(method, identity, arguments)
        replayed = recorded is not None and not self._externals_only
        if recorded is not None and recorded.error is not None:
            raise self._failed_before(method.effect_of(arguments), identity, recorded.error, replayed=replayed)
        if replayed:
            assert recorded is not None
            result = recorded.result
        else:
            result = self._perform(method, identity, arguments, None if recorded is None else recorded.result)
        method.apply(self.state, arguments, result)
        return method.present(self.state, result)

    def _failed_before(
        self, effect: str, identity: Identity, error: dict[str, Any], *, replayed: bool
    ) -> RecordedFailure:
        """A failure that is on record; a rerun has a ledger of its own and writes it there too."""
        if not replayed:
            where = identity.as_json()
            self._submit("call.started", {**where, "effect": effect})
            self._append("call.failed", {**where, "error": error, "from_record": True})
        return RecordedFailure(error)

    def _recorded(self, method: Method, identity: Identity, arguments: dict[str, Any]) -> RecordedCall | None:
        if self._recording is None or (self._externals_only and not method.asks_outside(arguments)):
            return None
        try:
            return self._recording.find(identity.cell, identity.position, identity.method, identity.arguments_hash)
        except LearnGraphError as error:
            self.divergence = error
            raise

    def _perform(self, method: Method, identity: Identity, arguments: dict[str, Any], known: Any) -> Any:
        where = identity.as_json()
        # A read that never got its answer may simply happen again; anything else must be known to have been tried.
        effect = method.effect_of(arguments)
        record = self._submit if effect == "read" else self._append
        record("call.started", {**where, "effect": effect})
        try:
            if known is None and self._externals_only and method.asks_outside(arguments):
                self.divergence = NotRecorded(identity)
                raise self.divergence
            if known is None:
                result = method.perform(self.state, self.ticket, arguments)
            else:
                result = method.again(self.state, arguments, known)
        except LearnGraphError as error:
            self._append("call.failed", {**where, "error": error.as_json()})
            raise
        except Exception as error:
            # The notebook may catch it and go on, so it is an answer that a replay must give again.
            _log.exception("the broker failed on %s", identity.method)
            fault = BrokerFault(identity.method)
            self._append("call.failed", {**where, "error": fault.as_json()})
            raise fault from error
        artifacts = self.state.artifacts
        stored_arguments, argument_artifacts = store_inline(arguments, artifacts)
        stored_result, result_artifacts = store_inline(result, artifacts)
        named = sorted({*argument_artifacts, *result_artifacts, *method.artifacts(result)})
        body = {**where, "arguments": stored_arguments, "result": stored_result, "artifacts": named}
        self._append("call.completed", body if known is None else {**body, "from_record": True})
        return result

    def _append(self, kind: str, data: dict[str, Any]) -> None:
        self._ledger.append(self.state.run_id, kind, data, actor=self._actor)

    def _submit(self, kind: str, data: dict[str, Any]) -> None:
        self._ledger.submit(self.state.run_id, kind, data, actor=self._actor)


class NotRecorded(LearnGraphError):
    """A rerun asked for something from outside that the original run never recorded."""

    code = "not_recorded"

    def __init__(self, identity: Identity) -> None:
        super().__init__(
            f"{identity.method} (call {identity.position}) was not recorded by the original run",
            where=f"cell {identity.cell}",
            remedy="a rerun uses recorded inputs alone; use `learngraph run` to ask the sources again",
        )


class RecordedFailure(LearnGraphError):
    """A failure the ledger holds, raised again on replay as it was."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(
            body["reason"], where=body.get("place"), remedy=body.get("remedy"), details=body.get("details")
        )
        self.code = body["code"]  # type: ignore[misc]
