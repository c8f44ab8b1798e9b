"""The layers of what a model is told before the conversation: each has a name and a hash that go on record.

`core` are the rules, `style` how to speak, `context` what this person may use here. Style never changes facts,
permissions or a format the user asked for; the core rules say so after it as well as before.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from learngraph_kernel.canonical import sha256_hex
from learngraph_kernel.errors import BadInput
from learngraph_kernel.models.messages import Message, system
from learngraph_kernel.naming import suggestion

STYLES: Mapping[str, str] = {
    "default": "Speak plainly. Lead with the answer, then what it rests on.",
    "professional": "Speak formally and precisely, as in a report to a board.",
    "friendly": "Speak warmly and simply, as to a colleague.",
    "candid": "Speak frankly. Say at once what is weak about the data or the question.",
    "efficient": "Be as short as the answer allows. No introduction, no closing.",
    "exploratory": "Name what else could be looked at, and why it might matter.",
    "quirky": "A light, playful tone is welcome where the matter allows it.",
    "cynical": "A dry, sceptical tone is welcome where the matter allows it.",
}
TRAITS: Mapping[str, tuple[str, str]] = {
    "length": ("shorter", "longer"),
    "formality": ("less formal", "more formal"),
    "warmth": ("cooler", "warmer"),
    "detail": ("fewer details", "more details"),
    "directness": ("more tentative", "more direct"),
}
"""Trait → what −2 and +2 ask for."""
_KEPT = "Style changes no fact, no permission and no format that the user asked for."


class BadStyle(BadInput):
    """A style or a trait that there is not."""

    code = "bad_style"


@dataclass(frozen=True, slots=True)
class Layer:
    """One system message. Attributes: id: `core`, `style`, `context`, …; text: what it says."""

    id: str
    text: str

    @property
    def sha256(self) -> str:
        """Of its text."""
        return sha256_hex(self.text.encode())

    def as_json(self) -> dict[str, str]:
        """As the record of a turn keeps it."""
        return {"id": self.id, "sha256": self.sha256}


def core_layer() -> Layer:
    """The rules of the house."""
    return Layer("core", resources.files("learngraph_kernel.agent.prompts").joinpath("core.md").read_text("utf-8"))


def style_layer(settings: Mapping[str, Any]) -> Layer:
    """How to speak.

    Args:
        settings: `style` (a name of `STYLES`) and `traits` (trait → whole number from −2 to 2), both optional.

    Raises:
        BadStyle: naming what is unknown.
    """
    name, traits = settings.get("style", "default"), settings.get("traits", {})
    if name not in STYLES:
        raise BadStyle(f"there is no style {name!r}", remedy=suggestion(str(name), STYLES, kind="styles"))
    wishes = []
    for trait, amount in sorted(dict(traits).items()):
        if trait not in TRAITS:
            raise BadStyle(f"there is no trait {trait!r}", remedy=suggestion(trait, TRAITS, kind="traits"))
        if isinstance(amount, bool) or amount not in (-2, -1, 0, 1, 2):
            raise BadStyle(f"trait {trait!r} is {amount!r}", remedy="give a whole number from -2 to 2")
        if amount:
            much = "much " if abs(amount) == 2 else ""
            wishes.append(f"{much}{TRAITS[trait][amount > 0]}")
    wish = f" Than you would by yourself: {', '.join(wishes)}." if wishes else ""
    return Layer("style", f"{STYLES[name]}{wish} {_KEPT}")


def context_layer(today: dt.date, sources: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> Layer:
    """What this person may use in this workspace: an overview; details come by looking.

    Args:
        today: the date where the user is.
        sources: `{"name", "kind", "tables"}` or `{"name", "reason"}` each.
        metrics: names of metric sets.
    """
    lines = [f"Today is {today.isoformat()}.", "Sources:"]
    for source in sources:
        if "reason" in source:
            lines.append(f"- {source['name']}: unavailable, {source['reason']}")
        else:
            lines.append(f"- {source['name']} ({source['kind']}, {source['tables']} tables)")
    lines += ["- none is declared"] if not sources else []
    lines.append(f"Metric sets: {', '.join(metrics) if metrics else 'none'}.")
    return Layer("context", "\n".join(lines))


def messages_of(layers: Sequence[Layer]) -> list[Message]:
    """The layers as system messages."""
    return [system(layer.text) for layer in layers]
