"""What one cell of a run may use. Apart from the engine, so that a plan can be made without importing nbclient."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CellLimits:
    """What one cell may use.

    Attributes:
        seconds: wall time; None for no limit.
        output_bytes: text and rich output together.
    """

    seconds: float | None = 3600.0
    output_bytes: int = 32 * MIB
