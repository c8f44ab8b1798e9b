"""What is killed in test_crash.py: forks a child for each line it reads, and the child records until it is killed.

The child acknowledges in a file, which outlives it: one line for each event or artifact, written only after the call
that recorded it has returned.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from learngraph_kernel.store.database import Home, Store


def record(home: Path, run: str, acknowledgements: Path) -> None:
    descriptor = os.open(acknowledgements, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    store = Store.open(Home(home))

    def work(number: int) -> None:
        count = 0
        while True:
            count += 1
            name = store.artifacts.put(f"{acknowledgements.name} {number} {count}".encode()) if count % 3 == 0 else None
            if name is not None:
                os.write(descriptor, f"artifact {name}\n".encode())
            if count % 5 == 0:
                with store.unit_of_work("user:ana") as unit:
                    unit.append(run, "cell.completed", {"outputs": name})
                    unit.update_run(run, title=f"{number} {count}")
                event = unit.events[0]
            else:
                event = store.ledger.append(run, "call.completed", {"result": name, "pad": "x" * 500}, actor="user:ana")
            os.write(descriptor, f"event {event.seq} {event.hash}\n".encode())

    for number in range(4):
        threading.Thread(target=work, args=(number,)).start()


def main() -> None:
    home, run = Path(sys.argv[1]), sys.argv[2]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            record(home, run, Path(line.strip()))
            threading.Event().wait()
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)


main()
