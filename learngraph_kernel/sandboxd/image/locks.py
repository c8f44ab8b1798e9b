"""The two lock files: which Debian packages and which wheels, each by the SHA-256 of its one file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from learngraph_kernel.sandboxd.image.errors import LockError

_PACKAGE = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9+.-]*) (?P<version>\S+) (?P<sha256>[0-9a-f]{64}) (?P<path>[a-z-]+/pool/\S+\.deb)"
)
_WHEEL = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Pinned:
    """One package: exactly one file.

    Attributes:
        path: where a Debian mirror has it, `debian/pool/…`; empty for a wheel, which pip finds.
    """

    name: str
    version: str
    sha256: str
    path: str = ""

    def as_requirement(self) -> str:
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"

    def as_package(self) -> str:
        return f"{self.name} {self.version} {self.sha256} {self.path}"


def read_packages(text: str, *, where: str) -> tuple[Pinned, ...]:
    """`packages.lock`: `name version sha256 path` a line. Raises LockError naming the line."""
    return _read(text, _PACKAGE, where)


def snapshot_time(text: str, *, where: str) -> str:
    """When `packages.lock` was made, as Debian's archive writes times. Raises LockError when it does not say."""
    match = re.search(r"^# snapshot (\d{8}T\d{6}Z)$", text, re.MULTILINE)
    if match is None:
        raise LockError(
            "does not say when it was made", where=where, remedy="make the lock anew with `make image-lock`"
        )
    return match[1]


def read_requirements(text: str, *, where: str) -> tuple[Pinned, ...]:
    """`requirements.lock`: pip's format with exactly one hash a requirement. Raises LockError naming the line."""
    return _read(text, _WHEEL, where)


def _read(text: str, pattern: re.Pattern[str], where: str) -> tuple[Pinned, ...]:
    found: dict[str, Pinned] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = pattern.fullmatch(stripped)
        if match is None or match["name"] in found:
            problem = "cannot be read" if match is None else f"names {match['name']} a second time"
            raise LockError(problem, where=f"{where}:{number}", remedy="make the lock anew with `make image-lock`")
        found[match["name"]] = Pinned(**match.groupdict())
    if not found:
        raise LockError("is empty", where=where, remedy="make the lock anew with `make image-lock`")
    return tuple(found.values())
