"""The bar "kill -9 of the server at 100 random moments during turns": nothing twice, nothing lost, every turn goes on.

    python benchmarks/turn_kills.py [--kills 100] [--seed 1]

Each conversation sends six letters (each an approval and a line in a file) and is killed up to five times at random
moments, then resumed as a person would. Prints a JSON summary; exit code 1 if a letter was sent twice, or is missing
without being told as unknown, if an event is missing, or if a turn did not end.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.agent.kills import until_done


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice, began = random.Random(options.seed), time.monotonic()
    kills = conversations = unknown = 0
    faults: list[str] = []
    while kills < options.kills:
        folder = Path(tempfile.mkdtemp(prefix="lg-kills-"))
        workspace = folder / "workspace"
        workspace.mkdir()
        (workspace / "learngraph.toml").write_text("")
        seen = until_done(folder / "home", workspace, dice, [dice.uniform(0.02, 1.2) for _ in range(5)])
        kills += seen.kills
        conversations += 1
        unknown += seen.unknown
        faults += [f"{folder}: {fault}" for fault in seen.faults()]
    result = {"kills": kills, "conversations": conversations, "told as unknown": unknown, "faults": faults}
    print(json.dumps(result | {"seconds": round(time.monotonic() - began)}, indent=2))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
