"""How a run ended, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from learngraph_kernel.errors import ExitCode, LearnGraphError

EXIT_CODES: dict[str, ExitCode] = {
    "completed": ExitCode.COMPLETED,
    "waiting": ExitCode.WAITING,
    "withheld": ExitCode.WITHHELD,
    "failed": ExitCode.FAILED,
    "cancelled": ExitCode.FAILED,
}


class Cancelled(LearnGraphError):
    """A person or the system stopped the run."""

    code = "cancelled"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The end of one attempt.

    Attributes:
        status: completed, waiting, failed, withheld or cancelled.
        tier: formal, degraded or withheld; None for an exploratory or a failed run.
        seal: artifact of the envelope; None for a run that did not get that far.
        notebook: path of the executed notebook.
        report: path of the HTML report, if there is a report document.
        result: what `lg.output` gave (tagged JSON).
        violations: numbers and names without evidence.
        missing: what a degraded report lacks; reasons: why it is not formal.
        error: what stopped a failed run.
    """

    run_id: str
    status: str
    tier: str | None = None
    content_hash: str | None = None
    seal: str | None = None
    isolation: str = "host"
    notebook: str | None = None
    report: str | None = None
    result: Any = None
    violations: list[dict[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    error: dict[str, Any] | None = None

    @property
    def exit_code(self) -> ExitCode:
        return EXIT_CODES[self.status]

    def as_json(self) -> dict[str, Any]:
        """What `learngraph run --json` prints."""
        body: dict[str, Any] = {
            "run_id": self.run_id,
            "status": self.status,
            "tier": self.tier,
            "content_hash": self.content_hash,
            "seal": self.seal,
            "isolation": self.isolation,
            "notebook": self.notebook,
            "report": self.report,
            "result": self.result,
            "violations": self.violations,
            "missing": self.missing,
            "reasons": self.reasons,
        }
        if self.error is not None:
            body["error"] = self.error
        return body
