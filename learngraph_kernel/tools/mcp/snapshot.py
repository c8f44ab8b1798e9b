"""Everything an MCP server says about itself, as one immutable value with a hash.

A grant is bound to it: another name, version, tool, schema, description, annotation, resource or prompt is another
snapshot, and what was allowed for the old one is allowed no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from learngraph_kernel.canonical import digest


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as the server describes it; all of it a stranger's word."""

    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    annotations: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "schema": dict(self.schema),
            "annotations": dict(self.annotations),
        }


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a server offers at one moment.

    Attributes:
        identity: name and version it gives itself, protocol version, instructions.
        resources, prompts: as listed.
    """

    identity: Mapping[str, Any]
    tools: tuple[McpTool, ...]
    resources: tuple[Mapping[str, Any], ...] = ()
    prompts: tuple[Mapping[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "identity": dict(self.identity),
            "tools": [tool.as_json() for tool in self.tools],
            "resources": [dict(item) for item in self.resources],
            "prompts": [dict(item) for item in self.prompts],
        }

    @property
    def sha256(self) -> str:
        """Of all it says, whatever the order it lists things in."""
        body = self.as_json()
        for key, name in (("tools", "name"), ("resources", "uri"), ("prompts", "name")):
            body[key] = sorted(body[key], key=lambda item: str(item.get(name)))
        return digest(body)

    def differences(self, other: Snapshot) -> list[str]:
        """What is not the same in another snapshot, one line each."""
        lines = [] if dict(self.identity) == dict(other.identity) else ["the server's identity"]
        mine, theirs = ({tool.name: tool for tool in side.tools} for side in (self, other))
        lines += [f"tool {name} is gone" for name in mine if name not in theirs]
        lines += [f"tool {name} is new" for name in theirs if name not in mine]
        lines += [f"tool {name} changed" for name, tool in mine.items() if name in theirs and theirs[name] != tool]
        if self.resources != other.resources:
            lines.append("its resources")
        return [*lines, "its prompts"] if self.prompts != other.prompts else lines
