"""The container's command: plants traps in the workspace, runs every probe, writes what came of each.

python3 -B -s run.py PARAMETERS.json RESULTS.json
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import sys
import time

from probing import LIBC, PARAMETERS, PROBES, run

WORK = "/workspace/work"


def plant() -> None:
    """Links and the like that the host side will meet when it reads the workspace (`outside.py`)."""
    secret, outside = PARAMETERS["secret"], PARAMETERS["outside"]
    for name, target in (
        ("link-to-file", secret),
        ("link-relative", os.path.join("../../..", os.path.basename(secret))),
        ("link-to-folder", outside),
        ("link-to-environment", "/proc/self/environ"),
        ("evil", secret),
    ):
        os.symlink(target, f"{WORK}/{name}")
    os.mkfifo(f"{WORK}/fifo")
    os.mkdir(f"{WORK}/many")
    for number in range(400):
        os.close(os.open(f"{WORK}/many/{number}", os.O_CREAT | os.O_WRONLY))
    for name in ("raced", "precious"):
        with open(f"{WORK}/{name}", "w") as file:
            file.write("honest")
    with open(f"{WORK}/sparse", "w") as file:
        file.truncate(6 << 20)
    try:
        os.mknod(f"{WORK}/device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        os.symlink("/dev/zero", f"{WORK}/device")  # the next best thing


def swap() -> int:
    """A process that exchanges an honest file and a link, as fast as it can (renameat2, RENAME_EXCHANGE)."""
    pid = os.fork()
    if pid == 0:
        os.chdir(WORK)
        while True:
            LIBC.renameat2(-100, b"raced", -100, b"evil", 2)
            time.sleep(0)
    return pid


def main(parameters: str, results: str) -> None:
    with open(parameters) as file:
        PARAMETERS.update(json.load(file))
    import archive_tricks, broker_abuse, exhaustion, host_view, kernel_surface, neighbourhood  # noqa: E401, F401, I001

    plant()
    swapper = swap()
    os.close(os.open(f"{os.path.dirname(results)}/planted", os.O_CREAT | os.O_WRONLY))
    outcomes = {}
    for each in PROBES:
        began = time.monotonic()
        outcomes[each.name] = [*run(each), each.category, round(time.monotonic() - began, 2)]
    while not os.path.exists(f"{os.path.dirname(results)}/read"):  # the host side still races
        time.sleep(0.02)
    os.kill(swapper, signal.SIGKILL)
    os.waitpid(swapper, 0)
    with open(results + ".part", "w") as file:
        json.dump(outcomes, file)
    os.rename(results + ".part", results)


if __name__ == "__main__":
    assert ctypes.sizeof(ctypes.c_long) == 8, "the numbers of the system calls are those of x86-64"
    main(*sys.argv[1:])
