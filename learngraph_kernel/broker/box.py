"""Where a run's kernel is, and what a runtime must know of one in the closed box."""

from __future__ import annotations

import json
import os
import shutil
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from learngraph_kernel.errors import LearnGraphError


@dataclass(frozen=True, slots=True)
class Isolation:
    """Where code executes, as ledger and seal say it.

    Attributes: kind: `host` or `docker`; image: the image's id (`sha256:…`), for `docker`.
    """

    kind: str = "host"
    image: str | None = None


HOST = Isolation()

BOX_VARIABLE = "LEARNGRAPH_BOX"
"""Environment variable of an embedded runtime whose caller is in the box: a `Box` as JSON."""


@dataclass(frozen=True, slots=True)
class Box:
    """Attributes: listener: inherited descriptor of the broker's socket; image: id; granted: the read-only folder."""

    listener: int
    image: str
    granted: str

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Box:
        return cls(**json.loads(text))


def admit(path: Path) -> None:
    """Lets whom the folder's ACL names connect to a socket that was just bound; `bind` takes the umask off (unix(7)).

    The folder is the container's as well, so the name is opened without following it and must be our socket.
    """
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise LearnGraphError("the broker's socket was replaced", where=str(path), remedy="restart the kernel")
        os.chmod(f"/proc/self/fd/{descriptor}", 0o660)  # the group's bits are the ACL's mask (acl(5))
    finally:
        os.close(descriptor)


def link_into(granted: Path | str, path: Path) -> Path:
    """Puts a file into the folder that the container sees read-only: a link, or a copy across file systems.

    Args:
        granted: the folder, which the container cannot write.
        path: a file whose name says its content (an artifact): one that is there already is the same.
    """
    target = Path(granted) / path.name
    if target.exists():
        return target
    try:
        os.link(path, target)
    except OSError:  # another file system, or one without links
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        shutil.copyfile(path, part)
        part.chmod(0o440)  # the group's bits are the mask of the folder's ACL, which names the container's uid
        part.replace(target)
    return target
