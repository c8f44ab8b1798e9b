"""The tools of a runtime: strict at the door, in a stable order, each shown without what the platform sets.

Whether a tool is enabled is a matter of names and is decided here; whether a call may happen is a matter of effects and
is decided by the desk.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path

from learngraph_kernel.canonical import NotCanonical, canonical_json
from learngraph_kernel.naming import suggestion
from learngraph_kernel.tools.arguments import HIDDEN
from learngraph_kernel.tools.errors import ToolExists, ToolRefused
from learngraph_kernel.tools.schema_guard import guard_schema, property_names, without
from learngraph_kernel.tools.settings import ToolSettings
from learngraph_kernel.tools.values import Effect, Tool, ToolScope, ToolSpec

MAX_NAME = 128
MAX_DESCRIPTION = 8_000
MAX_FACTS_BYTES = 64 << 10
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered tool.

    Attributes:
        tool: the tool.
        shown: its spec as a model sees it.
        roles: who may have it: anybody with one of them; everybody when empty.
        enabled: whether it is on where the workspace says nothing.
        seconds: its own time limit for a call; None for the workspace's.
        workspace: the only one it is for; None for all.
    """

    tool: Tool
    shown: ToolSpec
    roles: frozenset[str]
    enabled: bool
    seconds: float | None
    workspace: Path | None = None

    def offered_to(self, scope: ToolScope, settings: ToolSettings) -> bool:
        """Whether this scope may see and call it."""
        name = self.tool.spec.name
        on = name in settings.enabled or (self.enabled and name not in settings.disabled)
        allowed = scope.allowed is None or name in scope.allowed
        here = self.workspace is None or self.workspace == scope.workspace
        return here and on and allowed and (not self.roles or bool(self.roles & scope.roles))


class Registry:
    """Tools by name."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Path | None, str], Entry] = {}

    def add(
        self,
        tool: Tool,
        *,
        roles: frozenset[str] = frozenset(),
        enabled: bool = True,
        seconds: float | None = None,
        workspace: Path | None = None,
    ) -> None:
        """Registers a tool.

        Args:
            tool: spec and handler.
            roles: only people with one of these roles get it; empty for everybody.
            enabled: False for a tool that a workspace has to switch on.
            seconds: its own time limit for a call.
            workspace: offer it there alone; two workspaces may have tools of one name.

        Raises:
            ToolExists: the name is taken.
            ToolRefused: the name, the schema or a declaration breaks the rules.
        """
        spec = tool.spec
        check_spec(spec)
        if (None, spec.name) in self._entries or (workspace, spec.name) in self._entries:
            raise ToolExists(f"there is a tool {spec.name!r} already", remedy="remove it first, or choose another name")
        shown = dataclasses.replace(spec, parameters=without(spec.parameters, spec.hidden))
        self._entries[workspace, spec.name] = Entry(tool, shown, roles, enabled, seconds, workspace)

    def remove(self, name: str, workspace: Path | None = None) -> None:
        """Takes a tool away; calls of it that wait for a person become stale. No error when it is not there."""
        self._entries.pop((workspace, name), None)

    def get(self, name: str, workspace: Path | None = None) -> Entry | None:
        """A registered tool of a workspace or of all, whoever asks."""
        return self._entries.get((workspace, name)) or self._entries.get((None, name))

    def entries(self) -> tuple[Entry, ...]:
        """All of them, by name."""
        return tuple(sorted(self._entries.values(), key=lambda entry: entry.tool.spec.name))

    def offered(self, scope: ToolScope, settings: ToolSettings) -> tuple[ToolSpec, ...]:
        """What a model of this scope sees, by name, so that prompts repeat and can be cached."""
        return tuple(entry.shown for entry in self.entries() if entry.offered_to(scope, settings))

    def found(self, name: str, scope: ToolScope, settings: ToolSettings) -> Entry | str:
        """The tool if the scope may call it; else the remedy, which names only tools that it may."""
        entry = self.get(name, scope.workspace)
        if entry is not None and entry.offered_to(scope, settings):
            return entry
        return suggestion(name, [spec.name for spec in self.offered(scope, settings)], kind="tools")


def check_spec(spec: ToolSpec) -> None:
    """Raises ToolRefused when a spec breaks the rules for tools."""
    if not _NAME.fullmatch(spec.name) or len(spec.name) > MAX_NAME:
        raise ToolRefused(
            f"{spec.name[:80]!r} is no name of a tool", remedy=f"[a-z][a-z0-9_]*, at most {MAX_NAME} characters"
        )
    if not spec.title.get("en"):
        raise ToolRefused("a tool has a title for people, in English at least", where=spec.name)
    if not 0 < len(spec.description) <= MAX_DESCRIPTION:
        raise ToolRefused(f"a description has 1 to {MAX_DESCRIPTION} characters", where=spec.name)
    if not all(isinstance(effect, Effect) for effect in spec.effects):
        raise ToolRefused("effects are members of Effect", where=spec.name)
    guard_schema(spec.parameters, where=spec.name)
    top = set(spec.parameters.get("properties", {}))
    if not spec.hidden <= top & HIDDEN.keys():
        raise ToolRefused(
            f"hidden arguments {sorted(spec.hidden - (top & HIDDEN.keys()))} are not ones that the platform sets",
            where=spec.name,
            remedy=f"declare them in the schema; the platform sets {', '.join(sorted(HIDDEN))}",
        )
    if not spec.redact <= set(property_names(spec.parameters)):
        raise ToolRefused("an argument to redact is not in the schema", where=spec.name, remedy="correct its name")
    try:
        facts = canonical_json(dict(spec.authorisation))
    except (NotCanonical, UnicodeEncodeError) as error:
        raise ToolRefused(f"its authorisation facts are not JSON: {error}", where=spec.name) from error
    if len(facts) > MAX_FACTS_BYTES:
        raise ToolRefused(f"more than {MAX_FACTS_BYTES} bytes of authorisation facts", where=spec.name)
