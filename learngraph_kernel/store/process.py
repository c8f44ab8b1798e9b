"""Which process is running a run, said so that a later process can tell whether it is still there.

A pid alone is reused; a pid with its start time and the boot it belongs to is not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of one boot of a machine.

    Attributes:
        pid: process id.
        started: kernel clock ticks between boot and its start; None where the system does not tell.
        boot: the id of the boot; None where the system does not tell.
    """

    pid: int
    started: int | None = None
    boot: str | None = None

    @classmethod
    def current(cls) -> ProcessIdentity:
        """This process."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        """The process that has this pid now."""
        return cls(pid, _started(pid), _boot())

    def alive(self) -> bool:
        """Whether that very process still runs on this machine."""
        if self.boot != _boot():
            return False
        if self.boot is not None:
            return self.started is not None and _started(self.pid) == self.started
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def as_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "started": self.started, "boot": self.boot}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ProcessIdentity:
        return cls(body["pid"], body["started"], body["boot"])


def _started(pid: int) -> int | None:
    """Start time in clock ticks since boot; None when there is no such process (or it is a zombie) or no /proc."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the command name before it may hold anything
    state, started = fields[0], fields[19]  # proc(5): fields 3 and 22
    return None if state in "ZX" else int(started)


def _boot() -> str | None:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
