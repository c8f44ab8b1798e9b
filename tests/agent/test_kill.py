"""`kill -9` during turns: every one goes on, no letter is sent twice, no event is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.agent.kills import until_done


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_turns_go_on_without_repeating_anything(tmp_path: Path, workspace: Path, seed: int) -> None:
    dice = random.Random(seed)
    seen = until_done(tmp_path / "home", workspace, dice, [dice.uniform(0.02, 1.2) for _ in range(4)])
    assert seen.faults() == []
