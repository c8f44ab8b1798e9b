"""What a check is, what it finds, and running them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from learngraph_kernel.errors import LearnGraphError

State: TypeAlias = Literal["ok", "warning", "failed", "unavailable"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found.

    Attributes:
        name: the component.
        state: `unavailable` is a capability that is not there and that nothing declared needs.
        detail: one sentence or figure.
        remedy: what to do; None when nothing is wrong.
    """

    name: str
    state: State
    detail: str
    remedy: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "state": self.state, "detail": self.detail, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is examined.

    Attributes:
        home: the folder of runtime data.
        start: where the workspace is looked for, upwards.
        environ: environment variables.
        deep: also what takes long: re-hash artifacts, start a kernel, import the engine.
    """

    home: Path
    start: Path
    environ: Mapping[str, str]
    deep: bool = False


Check: TypeAlias = Callable[[Surroundings], Iterable[CheckResult]]


def diagnose(around: Surroundings, checks: Sequence[tuple[str, Check]] | None = None) -> list[CheckResult]:
    """The results of all checks, in order.

    Args:
        around: what is examined.
        checks: name → check; default: all of them.
    """
    if checks is None:
        from learngraph_kernel.doctor.registry import CHECKS

        checks = CHECKS
    return [result for name, check in checks for result in _isolated(name, check, around)]


def _isolated(name: str, check: Check, around: Surroundings) -> list[CheckResult]:
    """One check's results so far, with whatever it raises as a last, failed one."""
    results: list[CheckResult] = []
    try:
        results.extend(check(around))
    except LearnGraphError as error:
        results.append(failed(name, error))
    except Exception as error:  # noqa: BLE001  (a broken component may raise anything; it must not hide the others)
        reason = f"the check broke: {type(error).__name__}: {error}"
        remedy = 'pip install --force-reinstall "learngraph", and report this message if it stays'
        results.append(CheckResult(name, "failed", reason, remedy))
    return results


def failed(name: str, error: LearnGraphError, state: State = "failed") -> CheckResult:
    """An error as a result."""
    detail = error.what if error.where is None else f"{error.where}: {error.what}"
    return CheckResult(name, state, detail, error.remedy)
