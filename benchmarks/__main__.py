"""Every benchmark, one after the other, each in a process of its own: `python benchmarks` (or `make bench`).

Prints what each prints, then which missed a bar; exit code 1 when one did.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    missed = []
    for script in sorted(HERE.glob("[a-z]*.py")):
        print(f"== python benchmarks/{script.name}", flush=True)
        if subprocess.run([sys.executable, str(script)]).returncode != 0:
            missed.append(script.name)
    print("every bar is met" if not missed else f"missed or failed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
