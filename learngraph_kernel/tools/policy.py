"""May this call happen? A pure function of its effects and of what people have set, never of a tool's name.

Nothing here takes a text: what a document or a tool result says cannot reach it, so it cannot raise authority.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from learngraph_kernel.canonical import digest
from learngraph_kernel.tools.settings import HOST_CODE, SETTINGS, Setting
from learngraph_kernel.tools.values import Effect, Mode, ToolSpec

Answer: TypeAlias = Literal["allow", "ask", "refuse"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What policy says.

    Attributes:
        answer: what to do.
        reason: `allowed`, `granted`, `needs_approval`, `unattended` or `not_allowed`.
        may_always: whether a person who is asked may also give a standing grant.
    """

    answer: Answer
    reason: str
    may_always: bool = False


def mode_of(
    effects: frozenset[Effect],
    *,
    third_party: bool,
    mode: Mode | None,
    modes: Mapping[str, Setting],
    isolated: bool,
) -> Setting:
    """How calls with these effects are approved.

    Args:
        effects: everything a call may do.
        third_party: the effects are a claim by somebody else: then nothing is allowed without a person's word, be it a
            grant or the workspace's own setting for this tool.
        mode: a setting for exactly this tool; with a third party it replaces what the effects say, with the platform's
            own tools it can only be stricter. `never` for an effect holds against both.
        modes: the workspace's setting for every effect.
        isolated: code runs in the closed box.

    Returns:
        The strictest setting that applies.
    """
    names = [HOST_CODE if effect is Effect.RUN_CODE and not isolated else effect.value for effect in effects]
    by_effects = _strictest([modes[name] for name in names])
    if by_effects == "never":
        return "never"
    if third_party:
        return mode or _strictest([by_effects, "gated"])
    return _strictest([by_effects, mode or "always"])


def rule(mode: Setting, *, granted: bool, unattended: bool) -> Ruling:
    """What happens to one call.

    Args:
        mode: from `mode_of`.
        granted: a standing grant holds for exactly this authorisation; counts with `gated` only.
        unattended: nobody can be asked.
    """
    if mode == "never":
        return Ruling("refuse", "not_allowed")
    if mode == "always":
        return Ruling("allow", "allowed")
    if mode == "gated" and granted:
        return Ruling("allow", "granted")
    if unattended:
        return Ruling("refuse", "unattended")
    return Ruling("ask", "needs_approval", may_always=mode == "gated")


def is_third_party(spec: ToolSpec) -> bool:
    """Whether somebody else's code stands behind a tool: it carries facts that its authorisation is bound to."""
    return bool(spec.authorisation)


def authorisation_hash(spec: ToolSpec, *, owner: str, workspace: Path, isolated: bool) -> str:
    """What a standing grant is bound to: everything a tool is and says, for whom, where, and whether in the box."""
    facts: dict[str, Any] = {
        "tool": spec.name,
        "title": dict(spec.title),
        "description": spec.description,
        "version": spec.version,
        "parameters": spec.parameters,
        "effects": sorted(spec.effects),
        "origin": spec.origin,
        "hidden": sorted(spec.hidden),
        "redact": sorted(spec.redact),
        "authorisation": dict(spec.authorisation),
        "mode": spec.mode,
        "owner": owner,
        "workspace": str(workspace),
        "isolated": isolated if Effect.RUN_CODE in spec.effects else None,
    }
    return digest(facts)


def _strictest(settings: list[Setting]) -> Setting:
    return max(settings, key=SETTINGS.index, default="always")
