"""Where a run's code executes, as its ledger and its seal say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SandboxChoice = Literal["auto", "docker", "host"]
"""auto: the closed box if there is one, else the host; docker: the box or nothing; host: a kernel of this machine's."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """Attributes: kind: `host` or `docker`; image: the image's id (`sha256:…`), for `docker`."""

    kind: str = "host"
    image: str | None = None


HOST = Isolation()
