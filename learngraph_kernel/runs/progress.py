"""Live progress of a run: a bar in a terminal, one line a cell anywhere else."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from learngraph_kernel.errors import LearnGraphError


class Lines:
    """One line per cell; what logs and CI want."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._number = 0
        self._total = 0

    def cell_started(self, cell: Any, index: int, total: int) -> None:
        self._number, self._total = self._number + 1, total

    def cell_completed(self, cell: Any, index: int, seconds: float) -> None:
        self._write(f"cell {self._number}/{self._total}  {cell.id}  {seconds:.2f} s")

    def cell_failed(self, cell: Any, index: int, error: LearnGraphError) -> None:
        self._write(f"cell {self._number}/{self._total}  {cell.id}  failed: {error.what}")

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class Bar:
    """A progress bar on a terminal."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._bar: Any = None

    def cell_started(self, cell: Any, index: int, total: int) -> None:
        from tqdm import tqdm

        if self._bar is None:
            self._bar = tqdm(total=total, unit="cell", file=self._stream, leave=True)
        self._bar.set_postfix_str(cell.id)

    def cell_completed(self, cell: Any, index: int, seconds: float) -> None:
        self._bar.update(1)
        if self._bar.n == self._bar.total:
            self._bar.close()

    def cell_failed(self, cell: Any, index: int, error: LearnGraphError) -> None:
        self._bar.close()


class Silent:
    """For `--json` and for embedding."""

    def cell_started(self, cell: Any, index: int, total: int) -> None:
        """Says nothing."""

    def cell_completed(self, cell: Any, index: int, seconds: float) -> None:
        """Says nothing."""

    def cell_failed(self, cell: Any, index: int, error: LearnGraphError) -> None:
        """Says nothing."""


def progress_for(stream: TextIO, *, quiet: bool) -> Lines | Bar | Silent:
    """What fits a stream."""
    if quiet:
        return Silent()
    return Bar(stream) if stream.isatty() else Lines(stream)
