"""`[tools]` in learngraph.toml: which tools are on, and how calls with an effect are approved.

```toml
[tools]
disabled = ["sandbox_exec"]
enabled = ["mcp__tickets__create"]   # those that are off unless a workspace wants them
seconds = 600                        # longest call
characters = 12000                   # of a result that a model is shown; the rest is an artifact
network = "gated"                    # any effect: always, gated, ask, never
outside-write = "ask"
run-code-on-host = "gated"           # run-code where there is no closed box
```

`always` happens without asking, `gated` asks unless there is a standing grant, `ask` asks every time, `never` refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from learngraph_kernel.data.workspace import BadWorkspace, load_workspace
from learngraph_kernel.naming import suggestion
from learngraph_kernel.tools.values import Effect, Mode

Setting: TypeAlias = Mode | Literal["never"]
HOST_CODE = "run-code-on-host"
SETTINGS: tuple[Setting, ...] = ("always", "gated", "ask", "never")
"""From the laxest to the strictest."""

DEFAULTS: Mapping[str, Setting] = {
    Effect.READ: "always",
    Effect.WRITE_NOTEBOOK: "always",
    Effect.RUN_CODE: "always",
    Effect.WRITE_WORKSPACE: "always",
    Effect.DELETE: "gated",
    Effect.NETWORK: "gated",
    Effect.OUTSIDE_WRITE: "gated",
    HOST_CODE: "gated",
}
_NUMBERS = ("seconds", "characters")
_LISTS = ("disabled", "enabled")


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What a workspace says about tools.

    Attributes:
        modes: effect (or `run-code-on-host`) → setting, complete.
        disabled, enabled: names of tools.
        seconds: the longest a call may take.
        characters: the most of a result that a model is shown.
    """

    modes: Mapping[str, Setting] = field(default_factory=lambda: dict(DEFAULTS))
    disabled: frozenset[str] = frozenset()
    enabled: frozenset[str] = frozenset()
    seconds: float = 600.0
    characters: int = 12_000


def tool_settings(workspace: Path) -> ToolSettings:
    """The settings of a workspace's learngraph.toml as it is now. Raises BadWorkspace."""
    loaded = load_workspace(workspace)
    return parse_tools(loaded.tools, where=str(loaded.file or workspace))


def parse_tools(table: Mapping[str, Any], *, where: str) -> ToolSettings:
    """The `[tools]` table. Raises BadWorkspace naming the key."""
    modes = dict(DEFAULTS)
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in DEFAULTS:
            modes[key] = _setting(key, value, where)
        elif key in _LISTS:
            found[key] = _names(key, value, where)
        elif key in _NUMBERS:
            found[key] = _number(key, value, where)
        else:
            known = [*_LISTS, *_NUMBERS, *map(str, DEFAULTS)]
            raise BadWorkspace(f"[tools] has no key {key!r}", where=where, remedy=suggestion(key, known, kind="keys"))
    return ToolSettings(modes, **found)


def _setting(key: str, value: Any, where: str) -> Setting:
    for setting in SETTINGS:
        if setting == value:
            return setting
    raise BadWorkspace(f"[tools] {key} is not {value!r}", where=where, remedy=f"one of {', '.join(SETTINGS)}")


def _names(key: str, value: Any, where: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise BadWorkspace(f"[tools] {key} must be a list of names", where=where, remedy=f'{key} = ["sandbox_exec"]')
    return frozenset(value)


def _number(key: str, value: Any, where: str) -> float | int:
    whole = key == "characters"
    right = isinstance(value, int) if whole else isinstance(value, int | float)
    if not right or isinstance(value, bool) or value <= 0 or (whole and value < 500):
        raise BadWorkspace(
            f"[tools] {key} must be a {'whole number of at least 500' if whole else 'positive number'}", where=where
        )
    number: float | int = value
    return number
