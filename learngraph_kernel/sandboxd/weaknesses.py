"""Known ways out of a container through the engine, and the versions in which each is closed.

Upstream's numbers come from the CVE records and release notes; Debian's from the changelogs of its packages, because
a distribution closes holes without raising upstream's number. A release of Debian that an entry does not name is
*unknown*, not safe. The list is what was known on `AS_OF`: an engine that passes is free of these, not of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

AS_OF = "2026-12-01"

NOT_FIXED = ""
"""In `debian`: Debian's changelog has no fix for that release."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """One known hole.

    Attributes:
        id: CVE number.
        component: `runc`, `engine` or `containerd`.
        summary: what it allows.
        fixed: upstream versions that close it, one a release branch.
        debian: Debian release → the first package version that closes it there; `NOT_FIXED` for none.
            Only where upstream's number does not settle it.
        escape: whether code in a container of ours could use it to get out; `strict` refuses only these.
        applies: how it stands with our containers, where that is not plain.
    """

    id: str
    component: Literal["runc", "engine", "containerd"]
    summary: str
    fixed: tuple[str, ...]
    debian: Mapping[str, str] = field(default_factory=dict)
    escape: bool = True
    applies: str = ""


_RUNC_2025 = ("1.2.8", "1.3.3", "1.4.0-rc.3")
_COPY = "sandboxd never uses the copy endpoints (`docker cp`, `…/archive`); nobody else may on a sandbox either"

WEAKNESSES: tuple[Weakness, ...] = (
    Weakness(
        "CVE-2019-5736",
        "runc",
        "a container overwrites the runc program of the host",
        ("1.0.0-rc7",),
    ),
    Weakness(
        "CVE-2021-30465",
        "runc",
        "a race between mounts and symbolic links reaches the host's files",
        ("1.0.0-rc95",),
    ),
    Weakness(
        "CVE-2023-27561",
        "runc",
        "a symbolic link in place of /proc undoes masked paths (CVE-2019-19921 again; with CVE-2023-28642)",
        ("1.1.5",),
    ),
    Weakness(
        "CVE-2024-21626",
        "runc",
        "a leaked file descriptor gives the host's files as a working directory",
        ("1.1.12", "1.2.0-rc.1"),
        {"12": "1.1.5+ds1-1+deb12u1"},
    ),
    Weakness(
        "CVE-2025-31133",
        "runc",
        "masked paths are redirected by a swapped /dev/null: writes to the host's /proc",
        _RUNC_2025,
        {"12": NOT_FIXED},
        applies="needs control of the container's /dev while it starts; ours start as uid 65532 on a read-only root",
    ),
    Weakness(
        "CVE-2025-52565",
        "runc",
        "the mount of /dev/console is redirected: writes to the host's /proc",
        _RUNC_2025,
        {"12": NOT_FIXED},
        applies="needs a container with a terminal; ours have none",
    ),
    Weakness(
        "CVE-2025-52881",
        "runc",
        "writes of runc to /proc are redirected by races between containers that share mounts",
        _RUNC_2025,
        {"12": NOT_FIXED},
        applies="needs mounts shared between containers that start at once; ours share none that is writable",
    ),
    Weakness(
        "CVE-2020-15257",
        "containerd",
        "the control socket can be reached from a container in the host's network",
        ("1.3.9", "1.4.3"),
        escape=False,
        applies="needs the host's network; ours have none",
    ),
    Weakness(
        "CVE-2024-25621",
        "containerd",
        "folders of containerd can be entered by every user of the host",
        ("1.7.29", "2.0.7", "2.1.5", "2.2.0"),
        {"12": "1.6.20~ds1-1+deb12u2"},
        escape=False,
    ),
    Weakness(
        "CVE-2024-40635",
        "containerd",
        "a user id beyond 32 bits in an image runs as root",
        ("1.6.38", "1.7.27", "2.0.4"),
        {"12": "1.6.20~ds1-1+deb12u2"},
        escape=False,
        applies="ours run as 65532 by the container's own setting",
    ),
    Weakness(
        "CVE-2024-41110",
        "engine",
        "an authorisation plugin is bypassed by a request without a body",
        ("23.0.15", "25.0.6", "26.1.5", "27.1.1"),
        {"12": "20.10.24+dfsg1-1+deb12u1"},
        escape=False,
        applies="only where an authorisation plugin is used",
    ),
    Weakness(
        "CVE-2026-41567",
        "engine",
        "copying an archive into a container runs a program of the container on the host",
        ("29.5.1",),
        {"12": NOT_FIXED},
        escape=False,
        applies=_COPY,
    ),
    Weakness(
        "CVE-2026-42306",
        "engine",
        "a race in `docker cp` redirects a mount to any path of the host (with CVE-2026-41568)",
        ("29.5.1",),
        {"12": NOT_FIXED},
        escape=False,
        applies=_COPY,
    ),
)
