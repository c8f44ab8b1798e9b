"""What test_full_disk.py runs where room is short: records until it is refused, then looks at what is left.

    full_disk_child.py HOME ROOM   ROOM: `limit` sets RLIMIT_FSIZE here, `disk` means HOME lies on a small file system

Prints one JSON object.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from pathlib import Path

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.store.database import Home, RunRecord, Store, utcnow
from learngraph_kernel.store.ledger import check_chain

LIMIT = 600_000


def main() -> None:
    home, room = Home(Path(sys.argv[1])), sys.argv[2]
    result: dict[str, object] = {}
    with Store.open(home) as store:
        with store.unit_of_work("u") as work:
            work.insert_run(RunRecord("r_1", "u", utcnow()))
        earlier = store.artifacts.put(b"earlier")
        if room == "limit":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
        acknowledged = 0
        try:
            with store.artifacts.writer() as out:
                while True:
                    out.write(os.urandom(100_000))
        except LearnGraphError as error:
            result["artifact"] = error.as_json()
        result["artifacts"] = list(store.artifacts.iterate()) == [earlier]
        result["temporaries"] = len(list((home.artifacts / "tmp").iterdir()))
        try:
            while True:
                store.ledger.append("r_1", "a", {"pad": "x" * 8000}, actor="u")
                acknowledged += 1
        except LearnGraphError as error:
            result["event"] = error.as_json()
        result["acknowledged"] = acknowledged
    if room == "disk":
        fill(home.root.parent / "fill")
    with Store.open(home) as store:
        head = check_chain(store.ledger.events("r_1"))
        result["readable"] = 0 if head is None else head.seq
        result["earlier"] = store.artifacts.read(earlier).decode()
    print(json.dumps(result))


def fill(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))


main()
