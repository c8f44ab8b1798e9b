"""Resource exhaustion: more than the limits of the test's hardened container, less than would disturb a machine.

Each bound is a little above what `test_escape.LIMITS` allows, so that an unlimited container gets through quickly.
"""

from __future__ import annotations

import mmap
import os
import resource
import signal
import time
from functools import partial
from pathlib import Path

from probing import PARAMETERS, PROBES, Outcome, Probe, absent, escaped, held, judge, probe, reach

RESOURCES = "resource exhaustion"
MIB = 1 << 20


@probe(RESOURCES, seconds=20)
def fork_bomb() -> Outcome:
    children: list[int] = []
    try:
        while len(children) < 300:
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            children.append(pid)
    except BlockingIOError:
        return held(f"no more after {len(children)}")
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            os.waitpid(pid, 0)
    return escaped(f"{len(children)} processes")


@probe(RESOURCES, seconds=20, may_die=True)
def memory() -> Outcome:
    Path("/proc/self/oom_score_adj").write_text("1000")  # this process first
    kept = mmap.mmap(-1, 320 * MIB)
    for at in range(0, len(kept), mmap.PAGESIZE):
        kept[at] = 1
    return escaped(f"{len(kept) // MIB} MiB touched")


@probe(RESOURCES)
def processor_time() -> Outcome:
    """Two processes spin: either the kernel throttles them, or (on a busy machine) the quota at least stands."""
    folder = next((each for each in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup") if os.path.exists(f"{each}/cpu.stat")), "")
    if not folder:
        return escaped("no limit: the host's own group")  # whose files have none
    before = _throttled(folder)
    deadline = time.monotonic() + 2
    other = os.fork()
    while time.monotonic() < deadline and _throttled(folder) == before:
        for number in range(200_000):
            number * number
    if other == 0:
        os._exit(0)
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)
    if _throttled(folder) > before:
        return held("throttled")
    quota = next(
        (Path(folder, name).read_text() for name in ("cpu.max", "cpu.cfs_quota_us") if Path(folder, name).exists()), "?"
    )
    return judge(quota.startswith(("max", "-1")), f"not throttled, quota {quota.strip()}")


def _throttled(folder: str) -> int:
    lines = Path(folder, "cpu.stat").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("nr_throttled")))


def _fills(path: str, size: int) -> Outcome:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for written in range(0, size, MIB):
            try:
                os.pwrite(descriptor, b"x" * MIB, written)
            except OSError as error:
                return held(f"{error.strerror} after {written // MIB} MiB")
        got = os.fstat(descriptor).st_size
        return judge(got == size, f"{got // MIB} MiB written")
    finally:
        os.unlink(path)


PROBES += [
    Probe("largest-file", RESOURCES, partial(_fills, "/workspace/work/large", 12 * MIB)),
    Probe("fill-tmp", RESOURCES, lambda: _in_pieces("/tmp", 12)),
    Probe("fill-shm", RESOURCES, lambda: _in_pieces("/dev/shm", 12)),
]


def _in_pieces(folder: str, count: int) -> Outcome:
    """Files of 1 MiB, so that not the limit of one file is what stops it."""
    made = []
    try:
        for number in range(count):
            made.append(f"{folder}/piece-{os.getpid()}-{number}")
            try:
                with open(made[-1], "xb") as file:
                    file.write(b"x" * MIB)
            except OSError as error:
                return held(f"{error.strerror} after {number} MiB")
        return escaped(f"{count} MiB")
    finally:
        for path in made:
            os.unlink(path)


def _inodes(folder: str) -> Outcome:
    made = 0
    os.mkdir(folder)
    try:
        for made in range(4000):
            try:
                os.close(os.open(f"{folder}/{made}", os.O_CREAT | os.O_WRONLY))
            except OSError as error:
                return held(f"{error.strerror} after {made} files")
        return escaped(f"{made + 1} files")
    finally:
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        os.rmdir(folder)


PROBES.append(Probe("inodes-of-tmp", RESOURCES, partial(_inodes, "/tmp/inodes"), seconds=20))


@probe(RESOURCES)
def open_files() -> Outcome:
    kept = []
    try:
        for _ in range(1000):
            kept.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        return held(f"{error.strerror} after {len(kept)}")
    return escaped(f"{len(kept)} open files")


@probe(RESOURCES)
def locked_memory() -> Outcome:
    """Memory that is never swapped or reclaimed."""
    kept = mmap.mmap(-1, 16 * MIB)
    import ctypes

    address = ctypes.addressof(ctypes.c_char.from_buffer(kept))
    result = ctypes.CDLL(None, use_errno=True).mlock(ctypes.c_void_p(address), ctypes.c_size_t(16 * MIB))
    return judge(result == 0, "16 MiB locked" if result == 0 else "refused")


def _not_shown() -> Outcome | None:
    missing = not PARAMETERS["hardened"] and "SYS_RESOURCE" in PARAMETERS["missing capabilities"]
    return absent("nobody has CAP_SYS_RESOURCE on this machine") if missing else None


def _raises(limit: int) -> Outcome:
    soft, hard = resource.getrlimit(limit)
    if hard != resource.RLIM_INFINITY and (not_shown := _not_shown()):
        return not_shown
    try:
        resource.setrlimit(limit, (soft, hard + 1 if hard != resource.RLIM_INFINITY else hard))
    except ValueError:
        return held(f"stays at {hard}")
    return judge(hard == resource.RLIM_INFINITY or resource.getrlimit(limit)[1] > hard, f"was {hard}")


for _limit in ("NOFILE", "FSIZE", "NPROC", "CORE"):
    PROBES.append(
        Probe(f"raise-limit-{_limit.lower()}", RESOURCES, partial(_raises, getattr(resource, f"RLIMIT_{_limit}")))
    )


@probe(RESOURCES)
def spared_by_the_oom_killer() -> Outcome:
    """Below 0, so that the host's are killed before it. (Back to 0 it may go: the engine leaves that open.)"""
    if not_shown := _not_shown():
        return not_shown
    path = Path("/proc/self/oom_score_adj")
    path.write_text("-10")
    return escaped(path.read_text().strip())


@probe(RESOURCES)
def first_in_the_queue() -> Outcome:
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    return escaped("nice -5")


PROBES.append(Probe("first-at-the-disk", RESOURCES, partial(reach, 251, 1, 0, (1 << 13) | 4)))  # IOPRIO_CLASS_RT


@probe(RESOURCES, seconds=20)
def flood_of_output() -> Outcome:
    """3 MiB to the container's log; the test looks at the log and says what came of it."""
    for _ in range(3 * 1024):
        os.write(1, b"flood " * 170 + b"end\n")
    return escaped("3 MiB written; see the log")
