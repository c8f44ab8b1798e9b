"""Where Debian's archives are: asked of the machine, so that no host stands in this project or in its locks.

A lock names a package by its path, `debian/pool/…`. In front of it comes `LEARNGRAPH_DEBIAN_MIRROR`, or what the
machine's own apt uses; `LEARNGRAPH_DEBIAN_SNAPSHOT` may name an archive of all versions there ever were, for those that
a mirror has dropped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from learngraph_kernel.sandboxd.image.errors import FetchError

MIRROR = "LEARNGRAPH_DEBIAN_MIRROR"
SNAPSHOT = "LEARNGRAPH_DEBIAN_SNAPSHOT"
APT = Path("/etc/apt")

_ARCHIVE = re.compile(r"(?P<base>https?://\S+?)/debian/?(?=\s|$)")


def mirror(environ: Mapping[str, str] = os.environ, apt: Path = APT) -> str:
    """The address in front of `debian/…`, without a slash at its end.

    Args:
        environ: where a mirror may be named.
        apt: folder of apt's configuration.

    Raises:
        FetchError: neither names one.
    """
    chosen = environ.get(MIRROR)
    if chosen:
        return chosen.rstrip("/")
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.sources"))]
    files += sorted((apt / "sources.list.d").glob("*.list"))
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            match = None if line.lstrip().startswith("#") else _ARCHIVE.search(line)
            if match is not None:
                return match["base"]
    raise FetchError(
        "no Debian mirror is known", where=str(apt), remedy=f"set {MIRROR} to what comes before /debian in its address"
    )


def addresses(path: str, snapshot: str, environ: Mapping[str, str] = os.environ, apt: Path = APT) -> list[str]:
    """Where a package may be had, best first.

    Args:
        path: as the lock has it: `debian/pool/…`.
        snapshot: the time of the lock, `20261201T040000Z`; an archive of all versions answers with its state then.
        environ: where mirror and archive may be named.
        apt: folder of apt's configuration.

    Raises:
        FetchError: no mirror is known.
    """
    found = [f"{mirror(environ, apt)}/{path}"]
    archive = environ.get(SNAPSHOT)
    if archive:
        name, _, rest = path.partition("/")
        found.append(f"{archive.rstrip('/')}/{name}/{snapshot}/{rest}")
    return found
