"""A runtime that is killed at random moments until its turn is done, and what is left then."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.agent.world import call, say, script, turns

LETTERS = [f"letter {number}" for number in range(1, 7)]


def rules() -> list[dict[str, object]]:
    """Six letters in four answers, two of them by two calls at once, and then the answer."""
    return turns(
        call("send", what=LETTERS[0]),
        [call("send", what=LETTERS[1]), call("send", what=LETTERS[2])],
        call("send", what=LETTERS[3]),
        [call("send", what=LETTERS[4]), call("send", what=LETTERS[5])],
        say("All sent."),
    )


@dataclass
class Seen:
    """What came of one conversation.

    Attributes:
        kills: how often it was killed.
        sent: how often each letter was sent.
        status: how the turn ended.
        gaps: events that are missing.
        unknown: calls of which only a person can find out whether they happened.
    """

    kills: int = 0
    sent: Counter[str] = field(default_factory=Counter)
    status: str = ""
    gaps: list[int] = field(default_factory=list)
    unknown: int = 0

    def faults(self) -> list[str]:
        """What must not be."""
        twice = [f"{letter}: sent {count} times" for letter, count in self.sent.items() if count > 1]
        lost = [letter for letter in LETTERS if letter not in self.sent]
        # A letter may be unsent only when its call is told as unknown: then a person finds out, nobody sends again.
        missing = [] if len(lost) <= self.unknown else [f"not sent and not told: {lost}"]
        end = [] if self.status == "completed" else [f"ended as {self.status!r}"]
        return [*twice, *missing, *end, *[f"event {seq} is missing" for seq in self.gaps]]


def until_done(home: Path, workspace: Path, dice: random.Random, moments: Sequence[float]) -> Seen:
    """Kills the runtime after each of these times (seconds after its session was there), then lets it finish."""
    script(workspace, rules())
    toml = workspace / "learngraph.toml"
    seen, session = Seen(), ""
    assert "[tools]" in toml.read_text()
    for moment in [*moments, None]:
        words = [sys.executable, "-m", "tests.agent.killed_turn", str(home), str(workspace), session]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None and child.stderr is not None
        session = child.stdout.readline().strip()
        assert session, child.stderr.read()
        if moment is not None:
            timer = threading.Timer(moment, child.kill)
            timer.start()
        rest, errors = child.communicate(timeout=120)
        if moment is not None:
            timer.cancel()
        if "done" in rest:
            seen.status = rest.split("done ")[1].strip()
            break
        assert child.returncode == -9, errors[-2000:]
        seen.kills += 1
    sent = workspace / "sent"
    seen.sent.update(sent.read_text().splitlines() if sent.exists() else [])
    with sqlite3.connect(home / "learngraph.db") as connection:
        rows = connection.execute(
            "select seq, type, data from session_events where session_id = ? order by seq", (session,)
        ).fetchall()
    numbers = [row[0] for row in rows]
    seen.gaps = sorted(set(range(1, len(numbers) + 1)) - set(numbers))
    results = {json.loads(data)["call_id"]: json.loads(data) for _, kind, data in rows if kind == "tool_result"}
    codes = [result["data"].get("code") for result in results.values() if isinstance(result["data"], dict)]
    seen.unknown = sum(code == "outcome_unknown" for code in codes)
    return seen
