"""Watching one command: the quota before, during and after it, and deletions undone when it has ended.

One walk every 100 ms serves both. The watch never spends more than half of its time walking: in a very full workspace
the pauses grow. One command at a time in a workspace; the watch owns the thread and gives it back in `finish`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from learngraph_kernel.sandboxd.quota import QuotaExceeded, exceeded, unlinked_bytes
from learngraph_kernel.sandboxd.restore import Authorise, DeletionGuard, RestoreReport, nothing_allowed
from learngraph_kernel.sandboxd.scan import Limits, Scan, Usage, scan
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder

INTERVAL = 0.1


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen of a command.

    Attributes:
        usage: afterwards, with deletions undone.
        exceeded: the limit it broke, if any; then it was to be killed.
        restored: what became of deleted files.
        first_missing: seconds from the start until a deletion was first noticed; None when none was while it ran.
        walks: how often the workspace was walked while it ran.
        after: the last walk, for `Storage.import_changes`.
    """

    usage: Usage
    exceeded: QuotaExceeded | None
    restored: RestoreReport
    first_missing: float | None
    walks: int
    after: Scan


class CommandWatch:
    """`begin` before the command starts, `finish` after it has ended."""

    def __init__(
        self,
        folder: WorkspaceFolder,
        limits: Limits,
        *,
        on_exceeded: Callable[[QuotaExceeded], None],
        on_missing: Callable[[list[str]], None] | None = None,
        pids: Callable[[], Iterable[int]] = tuple,
        interval: float = INTERVAL,
    ) -> None:
        """Takes the workspace and what to do.

        Args:
            on_exceeded: called once, from the watch's thread, to kill the command.
            on_missing: called once, likewise, when protected files are first found missing.
            pids: the command's processes as the host numbers them; their deleted open files count as well.
            interval: seconds between two walks.
        """
        self.guard = DeletionGuard(folder)
        self._folder = folder
        self._limits = limits
        self._on_exceeded = on_exceeded
        self._on_missing = on_missing
        self._pids = pids
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="learngraph-watch", daemon=True)
        self._exceeded: QuotaExceeded | None = None
        self._failure: BaseException | None = None
        self._first_missing: float | None = None
        self._walks = 0
        self._device = os.fstat(folder.files_fd).st_dev

    def begin(self) -> None:
        """Protects the files and starts watching. Raises QuotaExceeded: the workspace is too full to start."""
        before = scan(self._folder.files_fd, self._limits)
        broken = exceeded(before, self._limits)
        if broken is not None:
            raise broken
        self.guard.arm(before)
        self._thread.start()

    def finish(self, authorise: Authorise = nothing_allowed) -> Watched:
        """Stops watching and undoes deletions. Raises what made the watch itself fail."""
        self._ended.set()
        self._thread.join()
        restored = self.guard.restore(authorise)
        after = scan(self._folder.files_fd)
        if self._exceeded is None:
            self._exceeded = exceeded(after, self._limits)
        if self._failure is not None:
            raise self._failure
        return Watched(after.usage, self._exceeded, restored, self._first_missing, self._walks, after)

    def _run(self) -> None:
        try:
            self._watch()
        except BaseException as error:  # noqa: BLE001  handed to `finish`; a command without a watch must not go on
            self._failure = error
            self._on_exceeded(QuotaExceeded("unreadable", self._limits, Usage(0, 0, 0, 0)))

    def _watch(self) -> None:
        started = time.monotonic()
        pause = self._interval
        while not self._ended.wait(pause):
            began = time.monotonic()
            now = scan(self._folder.files_fd, self._limits)
            self._walks += 1
            broken = exceeded(now, self._limits, unlinked=unlinked_bytes(self._pids(), self._device))
            if broken is not None:
                self._exceeded = broken
                self._on_exceeded(broken)
                return
            if self._first_missing is None and (missing := self.guard.missing(now)):
                self._first_missing = time.monotonic() - started
                if self._on_missing is not None:
                    self._on_missing(missing)
            spent = time.monotonic() - began
            pause = max(self._interval - spent, spent)
