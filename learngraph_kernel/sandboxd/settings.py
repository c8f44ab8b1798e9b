"""Every figure of the sandbox in one place: defaults from the mission's reference, overridden by a TOML file.

The file has one table, `[sandbox]`; an unknown key or a value of the wrong kind is an error that names it, because a
guard rail that was misspelt is a guard rail that is off.
"""

from __future__ import annotations

import tempfile
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import suggestion

MIB = 1024 * 1024
GIB = 1024 * MIB


class BadSettings(BadInput):
    """The settings file cannot be used."""

    code = "bad_sandbox_settings"


@dataclass(frozen=True, slots=True)
class Settings:
    """What sandboxd goes by. Times are seconds, sizes bytes, shares parts of one.

    Attributes:
        state: folder of the database, the workspaces and the outputs.
        socket: where the API is served.
        admit: `owner` (same uid and root without a token) or `group` (whoever may open the socket, as their own uid).
        image: the pinned image id; None: the id in the image's lock file.
        image_mode: `auto` (pull, else build) or `prebuilt` (only the pinned image, else unavailable).
        image_registry: reference by digest that `pull` takes; None: there is no registry.
        runtime: `runc`, or `runsc` where gVisor is installed.
        strict: refuse to work on an engine with a known escape.
        egress: whether a person may open a way out at all.
        idle_end: the daemon ends when nothing ran and nobody called for so long; 0: it stays.
        kernel_roots: folders directly below which a kernel's folder may lie.
    """

    state: Path
    socket: Path
    admit: str = "owner"
    image: str | None = None
    image_mode: str = "auto"
    image_registry: str | None = None
    runtime: str = "runc"
    strict: bool = False
    egress: bool = True
    idle_end: float = 0.0

    container_idle: float = 180.0
    container_absolute: float = 1_800.0
    workspace_idle: float = 1_800.0
    workspace_absolute: float = 86_400.0
    command_seconds: float = 180.0
    kernel_absolute: float = 86_400.0
    kernel_lease: float = 600.0
    sweep_every: float = 5.0
    reconcile_every: float = 60.0
    start_seconds: float = 60.0

    active_per_user: int = 2
    active_total: int = 20
    memory_share: float = 0.70
    cpu_share: float = 0.80
    disk_kept: int = 20 * GIB
    retained_per_user: int = 10

    container_memory: int = 2 * GIB
    container_cpus: float = 2.0
    container_pids: int = 512
    workspace_bytes: int = 256 * MIB
    output_bytes: int = 5 * MIB
    upload_bytes: int = 64 * MIB
    approve_deletions: bool = False

    warm_kernels: int = 1
    warm_age: float = 1_800.0
    warm_memory: int = 4 * GIB

    fetch_containers: int = 4
    fetch_wait: float = 30.0
    fetch_seconds: float = 60.0
    fetch_idle: float = 600.0

    kernel_roots: tuple[Path, ...] = field(default_factory=lambda: (Path(tempfile.gettempdir()).resolve(),))

    @classmethod
    def under(cls, state: Path, **changes: Any) -> Settings:
        """Defaults with everything below one folder."""
        return replace(cls(state=state, socket=state / "sandboxd.sock"), **changes)

    @property
    def database(self) -> Path:
        return self.state / "sandboxd.db"

    @property
    def workspaces(self) -> Path:
        return self.state / "workspaces"

    @property
    def outputs(self) -> Path:
        return self.state / "outputs"

    @property
    def service_keys(self) -> Path:
        return self.state / "service-keys"


_CHOICES = {"admit": ("owner", "group"), "image_mode": ("auto", "prebuilt"), "runtime": ("runc", "runsc")}
_TEXT_OR_NONE = ("image", "image_registry")


def load_settings(path: Path, base: Settings) -> Settings:
    """`base` changed by the `[sandbox]` table of a TOML file.

    Raises:
        BadSettings: not TOML, an unknown key, a value of the wrong kind or out of range.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSettings(f"the settings cannot be read: {error}", where=path.name) from error
    unknown = set(document) - {"sandbox"}
    if unknown:
        raise BadSettings(f"unknown table {sorted(unknown)[0]!r}", where=path.name, remedy="there is only [sandbox]")
    known = {item.name for item in fields(Settings)}
    changes: dict[str, Any] = {}
    for name, value in document.get("sandbox", {}).items():
        if name not in known:
            raise BadSettings(f"unknown setting {name!r}", where=path.name, remedy=suggestion(name, known))
        changes[name] = _value(name, value, getattr(base, name), path.name)
    return replace(base, **changes)


def _value(name: str, given: Any, default: Any, where: str) -> Any:
    value: Any = given
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise BadSettings(f"{name} must be one of {', '.join(_CHOICES[name])}", where=where)
        return value
    if name == "kernel_roots":
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            raise BadSettings(f"{name} must be a list of folders", where=where)
        return tuple(Path(item).resolve() for item in value)
    wanted: Any = str if name in _TEXT_OR_NONE or isinstance(default, Path) else type(default)
    if wanted is float and type(value) is int:
        value = float(value)
    if not isinstance(value, wanted) or isinstance(value, bool) is not (wanted is bool):
        raise BadSettings(f"{name} must be a {wanted.__name__}", where=where)
    if wanted in (int, float) and value < 0:
        raise BadSettings(f"{name} must not be negative", where=where)
    if name.endswith("_share") and not 0 < float(value) <= 1:
        raise BadSettings(f"{name} must be above 0 and at most 1", where=where)
    return Path(value) if isinstance(default, Path) else value
