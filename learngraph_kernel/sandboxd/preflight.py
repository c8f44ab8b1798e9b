"""Whether the engine on this machine can be trusted with code that a model wrote, before anything is started on it.

Pure judgement first (`engine_findings`), then asking the machine. `python -m learngraph_kernel.sandboxd.preflight`
prints the checks as JSON for `learngraph doctor`, which must not come near the Docker socket itself.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from learngraph_kernel.errors import LearnGraphError, Unavailable
from learngraph_kernel.sandboxd.image.build import PREBUILT, present_image
from learngraph_kernel.sandboxd.image.docker_command import Docker
from learngraph_kernel.sandboxd.image.errors import EngineError
from learngraph_kernel.sandboxd.image.recipe import Recipe
from learngraph_kernel.sandboxd.versions import debian_key, upstream_key
from learngraph_kernel.sandboxd.weaknesses import AS_OF, NOT_FIXED, WEAKNESSES, Weakness

PACKAGES = {"runc": "runc", "engine": "docker.io", "containerd": "containerd"}
"""Debian's package of each component; Docker's own packages (docker-ce, containerd.io) follow upstream's numbers."""

_COMPONENTS = {"runc": "runc", "Engine": "engine", "containerd": "containerd"}


class WeakEngine(Unavailable):
    """`strict`, and the engine has a known way out, or one that cannot be ruled out."""

    code = "weak_engine"


@dataclass(frozen=True, slots=True)
class EngineFinding:
    """A weakness that the engine has, or may have.

    Attributes:
        weakness: which.
        version: of the component, as its package or the engine says.
        state: `vulnerable`, or `unknown` when only the distribution could tell.
    """

    weakness: Weakness
    version: str
    state: Literal["vulnerable", "unknown"]

    def __str__(self) -> str:
        note = f" ({self.weakness.applies})" if self.weakness.applies else ""
        return f"{self.weakness.id} in {self.weakness.component} {self.version}: {self.weakness.summary}{note}"


def engine_findings(
    version: Mapping[str, Any], packages: Mapping[str, str], release: tuple[str, str]
) -> list[EngineFinding]:
    """The known weaknesses of an engine.

    Args:
        version: the engine's `GET /version` (`Components` with `Name` and `Version`).
        packages: installed Debian packages and their versions; empty where there is no dpkg.
        release: `ID` and `VERSION_ID` of os-release, such as `("debian", "12")`.
    """
    upstream = {_COMPONENTS[c["Name"]]: c["Version"] for c in version["Components"] if c["Name"] in _COMPONENTS}
    found = [_judge(weakness, upstream.get(weakness.component), packages, release) for weakness in WEAKNESSES]
    return [finding for finding in found if finding is not None]


def _judge(
    weakness: Weakness, upstream: str | None, packages: Mapping[str, str], release: tuple[str, str]
) -> EngineFinding | None:
    package = packages.get(PACKAGES[weakness.component])
    system, number = release
    if package is None:
        # Docker's own packages, or a program put there by hand: upstream's number is the truth.
        if upstream is None:
            return EngineFinding(weakness, "of unknown version", "unknown")
        return None if _has_fix(upstream, weakness.fixed) else EngineFinding(weakness, upstream, "vulnerable")
    if system == "debian" and number in weakness.debian:
        fixed = weakness.debian[number]
        if fixed != NOT_FIXED and debian_key(package) >= debian_key(fixed):
            return None
        return EngineFinding(weakness, package, "vulnerable")
    if _has_fix(upstream or package, weakness.fixed):
        return None
    return EngineFinding(weakness, package, "unknown")  # the distribution may have closed it under an older number


def _has_fix(version: str, fixed: Iterable[str]) -> bool:
    """At or above the fix of its own branch, or of a later branch than any that needed one."""
    found = upstream_key(version)
    keys = sorted(upstream_key(item) for item in fixed)
    branch = [key for key in keys if key[0][:2] == found[0][:2]]  # type: ignore[index]
    return found >= (branch[-1] if branch else keys[-1])


def refuse_weak(findings: Iterable[EngineFinding]) -> None:
    """`strict`: Raises WeakEngine if one of the findings is a way out of our containers."""
    ways_out = [finding for finding in findings if finding.weakness.escape]
    if ways_out:
        raise WeakEngine(
            "; ".join(map(str, ways_out)),
            where="docker engine",
            remedy="upgrade the engine (Debian: apt-get update && apt-get install runc containerd docker.io; a runc "
            "with the fix may need a newer Debian or Docker's own packages), use gVisor (runsc), or set strict = false",
            details={"weaknesses": [finding.weakness.id for finding in ways_out]},
        )


def installed_packages() -> dict[str, str]:
    """The engine's Debian packages that are installed, with their versions; empty without dpkg."""
    command = ["dpkg-query", "--show", "--showformat=${Package} ${Version} ${db:Status-Status}\n", *PACKAGES.values()]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return {}
    fields = (line.split(" ") for line in done.stdout.splitlines())
    return {name: version for name, version, state in fields if state == "installed"}


def os_release(path: Path = Path("/etc/os-release")) -> tuple[str, str]:
    """`ID` and `VERSION_ID` of this system; empty where they are not given."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return ("", "")
    values = dict(re.findall(r'^([A-Z_]+)="?(.*?)"?$', text, re.MULTILINE))
    return (values.get("ID", ""), values.get("VERSION_ID", ""))


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor about the sandbox; the same words as `doctor.report.CheckResult`."""

    name: str
    state: Literal["ok", "warning", "failed", "unavailable"]
    detail: str
    remedy: str | None = None


def checks(docker: Docker | None = None) -> list[Check]:
    """Engine, its known weaknesses, and the image: everything a run in the sandbox needs of this machine."""
    engine = docker or Docker()
    try:
        server = engine.version().get("Server") or {}
    except EngineError as error:
        return [Check("docker engine", "unavailable", f"not reachable: {error.what}", error.remedy)]
    results = [Check("docker engine", "ok", f"{server['Version']}, API {server['ApiVersion']}")]
    results.append(_weakness_check(engine_findings(server, installed_packages(), os_release())))
    results.append(_image_check(engine))
    return results


def _weakness_check(findings: list[EngineFinding]) -> Check:
    if not findings:
        return Check("docker weaknesses", "ok", f"none of {len(WEAKNESSES)} known ones (as of {AS_OF})")
    try:
        refuse_weak(findings)
    except WeakEngine as error:
        ways_out = [finding for finding in findings if finding.weakness.escape]
        where = ", ".join(sorted({f"{finding.weakness.component} {finding.version}" for finding in ways_out}))
        names = ", ".join(f"{finding.weakness.id} ({finding.state})" for finding in ways_out)
        return Check("docker weaknesses", "warning", f"{where}: {names}; `strict` refuses it", error.remedy)
    return Check(
        "docker weaknesses", "ok", "none that opens our containers; " + "; ".join(f.weakness.id for f in findings)
    )


def _image_check(engine: Docker) -> Check:
    prebuilt = os.environ.get(PREBUILT)
    try:
        if prebuilt:
            return Check("sandbox image", "ok", f"{engine.inspect_image(prebuilt)['Id']} (prebuilt: {prebuilt})")
        image = present_image(Recipe.load(), engine)
    except EngineError:
        return Check("sandbox image", "unavailable", f"{prebuilt} is not in the engine", f"docker pull {prebuilt}")
    except LearnGraphError as error:
        return Check("sandbox image", "unavailable", error.what, error.remedy)
    if image is None:
        return Check("sandbox image", "unavailable", "not in the engine", "learngraph sandbox build")
    return Check("sandbox image", "ok", image.id)


if __name__ == "__main__":
    json.dump([asdict(check) for check in checks()], sys.stdout)
