"""The bars of the session log: 100 streams of 50 tokens/s, and a session of 10,000 messages.

    python benchmarks/session_log.py [--streams 100] [--seconds 10] [--messages 10000]

Streams: each writes a token every 20 ms, and is followed by a reader of its own; the latency is from the call of
`delta` to the reader's hands, on disk in between. Lost or reordered tokens are counted. Opening: session, shown branch
and last events, from a store that was just opened. Prints a JSON summary; exit code 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from learngraph_kernel.agent.sessions import SessionStore
from learngraph_kernel.agent.values import EventType, Part
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home

TOKENS_A_SECOND = 50
LATENCY_BAR_MS, OPENING_BAR_MS = 100, 300


async def streams(folder: Path, count: int, seconds: float) -> dict[str, Any]:
    with Store.open(Home(folder)) as store:
        log = SessionStore(store)
        sessions = [await log.create("user:ana", folder, settings={}) for _ in range(count)]
        tokens = int(seconds * TOKENS_A_SECOND)
        latencies: list[float] = []
        wrong = 0

        async def write(session_id: str, offset: float) -> None:
            begin = time.monotonic() + offset
            for number in range(tokens):
                await asyncio.sleep(max(begin + number / TOKENS_A_SECOND - time.monotonic(), 0))
                log.delta(session_id, EventType.TEXT_DELTA, {"step": 1, "text": f"{number}:{time.monotonic():.6f} "})
            await log.append(session_id, EventType.COMPLETED, {})

        async def read(session_id: str) -> None:
            nonlocal wrong
            expected, seq = 0, 0
            async for event in log.follow(session_id):
                if event is None:
                    continue
                now, seq = time.monotonic(), seq + 1
                wrong += event.seq != seq
                if event.type is EventType.COMPLETED:
                    wrong += tokens - expected
                    return
                for token in event.data["text"].split():
                    number, _, sent = token.partition(":")
                    wrong += int(number) != expected
                    expected += 1
                    latencies.append(now - float(sent))

        work = [read(session.id) for session in sessions]
        work += [write(session.id, n / count / TOKENS_A_SECOND) for n, session in enumerate(sessions)]
        await asyncio.gather(*work)
        await log.close()
    latencies.sort()
    return {
        "streams": count,
        "tokens": len(latencies),
        "lost or reordered": wrong,
        "latency p50 ms": round(1e3 * latencies[len(latencies) // 2], 1),
        "latency p95 ms": round(1e3 * latencies[int(len(latencies) * 0.95)], 1),
    }


async def opening(folder: Path, messages: int) -> dict[str, Any]:
    with Store.open(Home(folder)) as store:
        log = SessionStore(store)
        session = await log.create("user:ana", folder, settings={})
        parent: str | None = None
        started = {"model": "m", "limits": {}, "layers": [], "unattended": False}
        for number in range(messages // 2):
            parts = [Part("text", {"text": f"question {number} " + "x" * 200})]
            _, answer = await log.begin_turn(session.id, f"n_{number}", parts, parent, started)
            said = [Part("text", {"text": "an answer " + "y" * 800})]
            await log.close_message(answer, said, "completed", EventType.COMPLETED, {"text": "an answer"})
            parent = answer.id
        await log.close()
    times = []
    for _ in range(5):
        with Store.open(Home(folder)) as store:
            log = SessionStore(store)
            began = time.perf_counter()
            shown = await log.session(session.id, "user:ana")
            branch = await log.branch(shown.id)
            last = await log.events(shown.id, after=3 * messages // 2 - 50)
            times.append(time.perf_counter() - began)
            assert len(branch) == messages and last
            await log.close()
    return {"messages": messages, "opening ms": round(1e3 * sorted(times)[2], 1)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--messages", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(streams(Path(folder) / "streams", options.streams, options.seconds))
        result |= asyncio.run(opening(Path(folder) / "opening", options.messages))
    print(json.dumps(result, indent=2))
    met = result["lost or reordered"] == 0 and result["latency p95 ms"] <= LATENCY_BAR_MS
    return 0 if met and result["opening ms"] <= OPENING_BAR_MS else 1


if __name__ == "__main__":
    sys.exit(main())
