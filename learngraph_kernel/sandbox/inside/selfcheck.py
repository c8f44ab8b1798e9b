"""What a container sees of itself, as JSON: the other half of the hardening test, which compares both.

Run inside: `python -I -B -m learngraph_kernel.sandbox.inside.selfcheck`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

_STATUS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups")
_LIMITS = {
    "core": resource.RLIMIT_CORE,
    "fsize": resource.RLIMIT_FSIZE,
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
}
# cgroup v2 first, then the two controllers of v1
_CGROUP = {
    "memory": ("memory.max", "memory/memory.limit_in_bytes"),
    "swap": ("memory.swap.max", "memory/memory.memsw.limit_in_bytes"),
    "pids": ("pids.max", "pids/pids.max"),
    "cpu": ("cpu.max", "cpu/cpu.cfs_quota_us"),
}
_HIDDEN = (
    "/proc/kcore",
    "/proc/kallsyms",
    "/proc/keys",
    "/proc/interrupts",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/sched_debug",
    "/proc/timer_list",
    "/proc/latency_stats",
    "/proc/acpi",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)


def facts() -> dict[str, Any]:
    """Everything the baseline speaks of, as this process sees it."""
    return {
        "status": _status(),
        "environment": sorted(os.environ),
        "limits": {name: list(resource.getrlimit(number)) for name, number in _LIMITS.items()},
        "mounts": _mounts(),
        "devices": sorted(os.listdir("/dev")),
        "interfaces": [line.split(":")[0].strip() for line in _lines("/proc/net/dev")[2:]],
        "routes": len(_lines("/proc/net/route")[1:]),
        "init": _lines("/proc/1/comm")[:1],
        "processes": sum(name.isdigit() for name in os.listdir("/proc")),
        "hostname": os.uname().nodename,
        "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in sorted(os.listdir("/proc/self/ns"))},
        "cgroup": {name: _first(paths) for name, paths in _CGROUP.items()},
        "writable": [path for path in _top_folders() if os.access(path, os.W_OK)],
        "setuid": _setuid(),
        "hidden files that can be read": [path for path in _HIDDEN if _has_content(path)],
        "sockets": [path for path in ("/var/run/docker.sock", "/run/docker.sock") if Path(path).exists()],
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _status() -> dict[str, str]:
    pairs = (line.split(":", 1) for line in _lines("/proc/self/status"))
    return {name: value.strip() for name, value in pairs if name in _STATUS}


def _mounts() -> dict[str, dict[str, Any]]:
    """Mount point → type and options, of the mount and of its file system (proc(5), mountinfo)."""
    found: dict[str, dict[str, Any]] = {}
    for line in _lines("/proc/self/mountinfo"):
        before, after = line.split(" - ", 1)
        fields, rest = before.split(), after.split()
        options = sorted({*fields[5].split(","), *rest[2].split(",")})
        shared = any(word.startswith("shared:") for word in fields[6:])
        found[fields[4]] = {"type": rest[0], "options": options, "mount_options": fields[5], "shared": shared}
    return found


def _first(paths: tuple[str, ...]) -> str | None:
    for path in paths:
        lines = _lines(f"/sys/fs/cgroup/{path}")
        if lines:
            return lines[0]
    return None


def _has_content(path: str) -> bool:
    try:
        return bool(os.listdir(path) if os.path.isdir(path) else os.read(os.open(path, os.O_RDONLY), 1))
    except OSError:
        return False


def _top_folders() -> list[str]:
    tops = [f"/{name}" for name in sorted(os.listdir("/"))]
    return [path for path in [*tops, "/", "/proc/sys", "/sys/fs/cgroup", "/dev/shm"] if os.path.isdir(path)]


def _setuid() -> list[str]:
    """Programs that run with another's rights; only this file system, and only where programs lie."""
    found = []
    for top in ("/usr", "/etc"):
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if os.lstat(path).st_mode & 0o6000:
                    found.append(path)
    return found


if __name__ == "__main__":
    json.dump(facts(), sys.stdout)
