"""The conversation so far, as a model is told it: what was asked and answered, with where the answer came from."""

from __future__ import annotations

from collections.abc import Sequence

from learngraph_kernel.agent.values import ChatMessage, Part
from learngraph_kernel.models.messages import Message, assistant, user
from learngraph_kernel.tools.results import fenced

MOST_MESSAGES = 40
MOST_CHARACTERS = 60_000
ATTACHED = 20_000
"""Characters of an attachment that a model is shown."""


def conversation(branch: Sequence[ChatMessage]) -> list[Message]:
    """Earlier messages, oldest first; what is too far back is left out and that is said."""
    kept: list[Message] = []
    room = MOST_CHARACTERS
    for message in reversed(branch[-MOST_MESSAGES:]):
        said = _said(message)
        if said is None:
            continue
        room -= len(said.text)
        if room < 0:
            break
        kept.append(said)
    kept.reverse()
    if len(kept) < sum(_said(message) is not None for message in branch):
        kept.insert(0, user("[The conversation before this is left out; ask when something of it is needed.]"))
    return kept


def question(text: str, attachments: Sequence[tuple[str, str]]) -> Message:
    """What the user just said, with what they attached: (name, text) each, fenced, since others wrote it."""
    pieces = [text, *(fenced(content[:ATTACHED], said_by=f"the file {name}") for name, content in attachments)]
    return user("\n\n".join(pieces))


def last_run(branch: Sequence[ChatMessage]) -> tuple[str | None, str | None]:
    """(run, notebook) that the latest answer rested on."""
    for message in reversed(branch):
        for part in message.parts:
            if part.kind == "text" and part.data.get("run_id"):
                return str(part.data["run_id"]), part.data.get("notebook")
    return None, None


def _said(message: ChatMessage) -> Message | None:
    texts = [_text(part) for part in message.parts if part.kind == "text"]
    if not texts:
        return None
    return (user if message.role == "user" else assistant)("\n\n".join(texts))


def _text(part: Part) -> str:
    """What was shown; an answer's citations stay as written, so that the next one can cite the same."""
    text = str(part.data.get("text", ""))
    if part.data.get("run_id"):
        text += f"\n\n(from run {part.data['run_id']}, notebook {part.data.get('notebook') or 'none'})"
    return text
