"""Asking the person: a question with a form, answered in their own words; and a plan they can see.

Neither has an effect. Asking is an approval that can only be answered: the desk waits for a person, and what they say
is the result. Nothing they write there allows anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learngraph_kernel.tools.builtin.schemas import choice, closed, several, text
from learngraph_kernel.tools.values import CallContext, Effect, Tool, ToolResult, ToolSpec

READ = frozenset({Effect.READ})
_FIELD = closed(
    {
        "name": text("short name of the field", longest=60),
        "question": text("what is asked", longest=500),
        "kind": choice("kind of answer", ["text", "number", "date", "choice", "choices"]),
        "options": several(text("an option", longest=200), "of a choice", most=20),
    },
    required=["name", "question", "kind"],
)


def people_tools() -> tuple[Tool, ...]:
    """`ask_user` and `plan`."""
    return (
        Tool(
            ToolSpec(
                "ask_user",
                {"en": "Ask you", "zh": "询问您"},
                "Asks the user when the question cannot be answered without a choice of theirs: which of several "
                "sources, periods or definitions is meant; the answer is the result. Never ask what you can look up.",
                closed(
                    {
                        "title": text("what it is about", longest=200),
                        "fields": several(_FIELD, "what is asked", most=8, least=1),
                    },
                    required=["title", "fields"],
                ),
                READ,
                mode="ask",
                origin="untrusted",
            ),
            _not_answered,
        ),
        Tool(
            ToolSpec(
                "plan",
                {"en": "Plan", "zh": "计划"},
                "Shows the user the steps you are about to take. Use it for work of more than three steps.",
                closed(
                    {"steps": several(text("one step", longest=300), "the steps in order", most=20, least=1)},
                    required=["steps"],
                ),
                READ,
            ),
            _plan,
        ),
    )


async def _not_answered(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    """Allowed without an answer: the person has nothing to say to it."""
    return ToolResult("ok", {"answer": None, "note": "the user let it pass without an answer; choose what is usual"})


async def _plan(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    await context.emit("card", {"component": "plan", "data": {"steps": list(arguments["steps"])}})
    return ToolResult("ok", {"shown": True})
