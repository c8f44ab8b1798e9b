"""How fast `verify` hashes: 2 GB of artifacts in an exported folder, side by side with `sha256sum`.

    python benchmarks/verify.py [--gigabytes 2] [--rounds 3] [--directory DIR]

Bar: at least 0.8 × the throughput of `sha256sum` over the same files. Both read files that were just read (warm page
cache), in turns; `verify` checks signature, chain and content as well.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from _pairs import Bar, alternately, conclude, ratio, scratch, seconds, table

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.runs.content import content_document
from learngraph_kernel.runs.folder import parts_of_folder, write_folder
from learngraph_kernel.runs.keys import load_or_create_signer
from learngraph_kernel.runs.seal import seal_run_in_store
from learngraph_kernel.runs.stored import parts_of_run
from learngraph_kernel.runs.verify import verify_parts
from learngraph_kernel.store.database import Home, RunRecord, Store, new_run_id, utcnow

ACTOR = "user:bench"
FILES = 8


def sealed_run(store: Store, size: int) -> str:
    """A run whose artifacts hold `size` bytes of noise."""
    run = new_run_id()
    with store.unit_of_work(ACTOR) as work:
        work.insert_run(RunRecord(run, ACTOR, utcnow()))
    store.ledger.append(run, "run.started", {"parameters": {}, "isolation": "host", "environment": {}}, actor=ACTOR)
    block = os.urandom(1 << 20)
    for number in range(FILES):
        with store.artifacts.writer() as artifact:
            for at in range(0, size // FILES, len(block)):
                artifact.write(f"{number} {at}".encode().ljust(64) + block[64:])
        data = {"method": "log", "arguments": {}, "result": None, "artifacts": [artifact.sha256]}
        store.ledger.append(run, "call.completed", data, actor=ACTOR)
    content = content_document(
        code=[], parameters={}, inputs=[], metrics=[], image=None, outputs=[], report=None, result=None
    )
    data = {"status": "completed", "tier": None, "content": store.artifacts.put(canonical_json(content))}
    store.ledger.append(run, "run.completed", data, actor=ACTOR)
    seal_run_in_store(store, run, signer=load_or_create_signer(store.home.keys), actor=ACTOR)
    return run


def measure(folder: Path, size: int, rounds: int) -> list[Bar]:
    """The bar, from `rounds` rounds over the same files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())

    def theirs() -> None:
        subprocess.run(["sha256sum", *map(str, files)], stdout=subprocess.DEVNULL, check=True)

    def ours() -> None:
        verification = verify_parts(parts_of_folder(folder))
        if not verification.ok:
            raise SystemExit(f"the benchmark's own run does not verify: {verification.findings}")

    costs = alternately(rounds, lambda: seconds(theirs), lambda: seconds(ours))
    table(["sha256sum", "verify"], costs)
    print(f"  {size / 1e9:g} GB in {len(files)} files")
    return [Bar("throughput of verify / sha256sum", ratio(costs), "×", at_least=0.8)]


def main() -> int:
    """Prints the ratio; exit code 1 when it is below the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=None)
    arguments = parser.parse_args()
    size = int(arguments.gigabytes * 1e9)
    with scratch(arguments.directory) as name:
        home = Home(Path(name) / "home")
        with Store.open(home) as store:
            run = sealed_run(store, size)
            write_folder(parts_of_run(store, run), Path(name) / "run")
        for path in home.artifacts.rglob("*"):  # the copies in the store are not needed any more
            if path.is_file():
                path.unlink()
        return conclude(measure(Path(name) / "run", size, arguments.rounds))


if __name__ == "__main__":
    raise SystemExit(main())
