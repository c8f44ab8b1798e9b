"""Whether a container that runs really has the baseline: from outside (the engine's word) and from inside (its own).

Pure: values in, findings out. An empty list means that nothing is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from learngraph_kernel.sandboxd.hardening import (
    BYTES_A_FILE,
    GID,
    MASKED_PATHS,
    READONLY_PATHS,
    UID,
    Limits,
    seccomp_profile,
)

DEVICES = frozenset("core fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero console".split())
"""All that may lie in /dev: what the OCI runtime specification gives every container, none of it hardware."""

INTERFACES = frozenset(
    {"lo", "tunl0", "sit0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6gre0"}
)
"""`lo`, and the dormant tunnels that some kernels put into every new network namespace."""

WRITABLE = frozenset({"/tmp", "/workspace", "/dev/shm"})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as the baseline wants it.

    Attributes:
        code: which rule; stable.
        wanted, found: for people.
    """

    code: str
    wanted: str
    found: str


Inspect: TypeAlias = Mapping[str, Any]
_Rule: TypeAlias = tuple[str, str, Callable[[Inspect, Limits], Any], Callable[[Any, Limits], bool]]


def _host(name: str) -> Callable[[Inspect, Limits], Any]:
    return lambda inspect, limits: inspect["HostConfig"].get(name)


def _config(name: str) -> Callable[[Inspect, Limits], Any]:
    return lambda inspect, limits: inspect["Config"].get(name)


def _ulimits(inspect: Inspect, limits: Limits) -> dict[str, tuple[int, int]]:
    return {item["Name"]: (item["Soft"], item["Hard"]) for item in inspect["HostConfig"].get("Ulimits") or []}


def _shared_mounts(inspect: Inspect, limits: Limits) -> list[str]:
    return [m["Destination"] for m in inspect["Mounts"] if m.get("Propagation") not in ("rprivate", "private")]


def _socket_mounts(inspect: Inspect, limits: Limits) -> list[str]:
    return [m["Source"] for m in inspect["Mounts"] if m["Source"].endswith(("docker.sock", "containerd.sock"))]


def _seccomp(inspect: Inspect, limits: Limits) -> Any:
    options = inspect["HostConfig"].get("SecurityOpt") or []
    profiles = [option.partition("=")[2] for option in options if option.startswith("seccomp=")]
    return json.loads(profiles[0]) if profiles and profiles[0].startswith("{") else profiles


def _tmpfs_options(value: Any, limits: Limits) -> bool:
    options = set(((value or {}).get("/tmp") or "").split(","))
    wanted = {"noexec", "nosuid", "nodev", f"size={limits.tmp}", f"nr_inodes={limits.tmp // BYTES_A_FILE}"}
    return wanted <= options and set(value) == {"/tmp"}


def _log_bounded(value: Any, limits: Limits) -> bool:
    return bool(value["Type"] == "none" or value.get("Config", {}).get("max-size") == str(limits.log))


_OUTSIDE: tuple[_Rule, ...] = (
    ("user", f"{UID}:{GID}", _config("User"), lambda v, _: v == f"{UID}:{GID}"),
    ("labels", "an owner and an instance", _config("Labels"), lambda v, _: "learngraph.instance" in (v or {})),
    ("health", "a health check", _config("Healthcheck"), lambda v, _: bool(v and v.get("Test"))),
    ("ports", "no port", _config("ExposedPorts"), lambda v, _: not v),
    ("terminal", "no terminal", _config("Tty"), lambda v, _: v is False),
    ("privileged", "not privileged", _host("Privileged"), lambda v, _: v is False),
    ("cap-drop", "all dropped", _host("CapDrop"), lambda v, _: v == ["ALL"]),
    ("cap-add", "none added", _host("CapAdd"), lambda v, _: not v),
    ("no-new-privileges", "on", _host("SecurityOpt"), lambda v, _: "no-new-privileges:true" in (v or [])),
    ("seccomp", "our profile", _seccomp, lambda v, _: v == json.loads(seccomp_profile())),
    ("read-only-root", "read-only", _host("ReadonlyRootfs"), lambda v, _: v is True),
    ("masked-paths", "all of ours", _host("MaskedPaths"), lambda v, _: set(MASKED_PATHS) <= set(v or [])),
    ("read-only-paths", "all of ours", _host("ReadonlyPaths"), lambda v, _: set(READONLY_PATHS) <= set(v or [])),
    ("network", "none", _host("NetworkMode"), lambda v, _: v == "none"),
    ("ipc", "private", _host("IpcMode"), lambda v, _: v == "private"),
    ("cgroup-namespace", "private", _host("CgroupnsMode"), lambda v, _: v == "private"),
    ("pid-namespace", "its own", _host("PidMode"), lambda v, _: v == ""),
    ("uts-namespace", "its own", _host("UTSMode"), lambda v, _: v == ""),
    ("user-namespace", "not the host's by choice", _host("UsernsMode"), lambda v, _: v == ""),
    ("memory", "the limit", _host("Memory"), lambda v, limits: v == limits.memory),
    ("swap", "no swap", _host("MemorySwap"), lambda v, limits: v == limits.memory),
    ("cpus", "the limit", _host("NanoCpus"), lambda v, limits: v == int(limits.cpus * 10**9)),
    ("cpu-shares", "the weight", _host("CpuShares"), lambda v, limits: v == limits.cpu_shares),
    ("pids", "the limit", _host("PidsLimit"), lambda v, limits: v == limits.pids),
    ("oom-killer", "on", _host("OomKillDisable"), lambda v, _: not v),
    (
        "ulimits",
        "core, fsize, nofile, nproc",
        _ulimits,
        lambda v, limits: (
            v
            == {
                name: (value, value)
                for name, value in (
                    ("core", 0),
                    ("fsize", limits.fsize),
                    ("nofile", limits.nofile),
                    ("nproc", limits.nproc),
                )
            }
        ),
    ),
    ("tmpfs", "noexec, nosuid, nodev, sized", _host("Tmpfs"), _tmpfs_options),
    ("shm", "the size", _host("ShmSize"), lambda v, limits: v == limits.shm),
    ("propagation", "private mounts", _shared_mounts, lambda v, _: not v),
    ("engine-socket", "not mounted", _socket_mounts, lambda v, _: not v),
    ("devices", "none", _host("Devices"), lambda v, _: not v),
    ("device-requests", "none", _host("DeviceRequests"), lambda v, _: not v),
    ("volumes-from", "none", _host("VolumesFrom"), lambda v, _: not v),
    ("published-ports", "none", _host("PortBindings"), lambda v, _: not v),
    ("init", "an init process", _host("Init"), lambda v, _: v is True),
    ("restart", "never", _host("RestartPolicy"), lambda v, _: v["Name"] in ("no", "")),
    ("log", "bounded", _host("LogConfig"), _log_bounded),
)


def inspect_baseline(inspect: Inspect, limits: Limits | None = None) -> list[Finding]:
    """What the engine says of a container that is not as the baseline wants it.

    Args:
        inspect: the answer of `GET /containers/{id}/json`.
        limits: what it was started with; default: the reference.
    """
    bounds = limits or Limits()
    findings = []
    for code, wanted, read, holds in _OUTSIDE:
        value = read(inspect, bounds)
        if not holds(value, bounds):
            findings.append(Finding(code, wanted, json.dumps(value, default=str)[:200]))
    return findings


def _zero(text: str | None) -> bool:
    return text is not None and int(text, 16) == 0


def _options(facts: Mapping[str, Any], path: str) -> set[str]:
    return set(facts["mounts"].get(path, {}).get("options", ()))


def _cgroup_memory(value: Any, limits: Limits) -> bool:
    return value is not None and value.isdigit() and int(value) == limits.memory


def _inside_rules(facts: Mapping[str, Any], bounds: Limits) -> list[tuple[str, str, Any, bool]]:
    status, mounts, cgroup = facts["status"], facts["mounts"], facts["cgroup"]
    capabilities = {name: status.get(name) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    ulimits = {"core": 0, "fsize": bounds.fsize, "nofile": bounds.nofile, "nproc": bounds.nproc}
    devices = sorted(set(facts["devices"]) - DEVICES)
    interfaces = sorted(set(facts["interfaces"]) - INTERFACES)
    readable = facts["hidden files that can be read"]
    strangers = sorted(path for path in facts["writable"] if path not in WRITABLE)
    shared = sorted(path for path, mount in mounts.items() if mount["shared"])
    return [
        ("inside-capabilities", "all zero", capabilities, all(map(_zero, capabilities.values()))),
        ("inside-no-new-privileges", "1", status.get("NoNewPrivs"), status.get("NoNewPrivs") == "1"),
        ("inside-seccomp", "2 (filter)", status.get("Seccomp"), status.get("Seccomp") == "2"),
        ("inside-uid", str(UID), status.get("Uid"), set(status.get("Uid", "").split()) == {str(UID)}),
        ("inside-gid", str(GID), status.get("Gid"), set(status.get("Gid", "").split()) == {str(GID)}),
        ("inside-groups", "none but its own", status.get("Groups"), status.get("Groups", "?") in ("", str(GID))),
        ("inside-root", "read-only", mounts["/"]["mount_options"], "ro" in mounts["/"]["mount_options"].split(",")),
        ("inside-tmp", "tmpfs noexec nosuid nodev", sorted(_options(facts, "/tmp")), _closed_tmpfs(facts, "/tmp")),
        (
            "inside-shm",
            "tmpfs noexec nosuid nodev",
            sorted(_options(facts, "/dev/shm")),
            _closed_tmpfs(facts, "/dev/shm"),
        ),
        ("inside-sys", "read-only", sorted(_options(facts, "/sys")), "ro" in _options(facts, "/sys")),
        ("inside-proc-sys", "read-only", sorted(_options(facts, "/proc/sys")), "ro" in _options(facts, "/proc/sys")),
        ("inside-masked-paths", "nothing to read there", readable, not readable),
        ("inside-propagation", "no shared mount", shared, not shared),
        ("inside-devices", "only those of every container", devices, not devices),
        ("inside-network", "lo alone", interfaces, not interfaces and facts["routes"] == 0),
        ("inside-init", "an init process", facts["init"], facts["init"] in (["docker-init"], ["tini"])),
        ("inside-limits", str(ulimits), facts["limits"], facts["limits"] == {k: [v, v] for k, v in ulimits.items()}),
        ("inside-memory", str(bounds.memory), cgroup["memory"], _cgroup_memory(cgroup["memory"], bounds)),
        ("inside-swap", "none", cgroup["swap"], cgroup["swap"] in (None, "0", str(bounds.memory))),
        ("inside-pids", str(bounds.pids), cgroup["pids"], cgroup["pids"] == str(bounds.pids)),
        ("inside-cpus", str(bounds.cpus), cgroup["cpu"], _cpu_quota(cgroup["cpu"]) == bounds.cpus),
        ("inside-writable", "tmp folders alone", strangers, not strangers),
        ("inside-setuid", "no such program", facts["setuid"], not facts["setuid"]),
        ("inside-engine-socket", "not there", facts["sockets"], not facts["sockets"]),
    ]


def _closed_tmpfs(facts: Mapping[str, Any], path: str) -> bool:
    mount = facts["mounts"].get(path, {})
    return mount.get("type") == "tmpfs" and {"noexec", "nosuid", "nodev"} <= _options(facts, path)


def _cpu_quota(text: str | None) -> float | None:
    """`max 100000`, `200000 100000` (v2) or `200000` (v1, whose period the engine sets to 100 ms) → processors."""
    if text is None or not text.split()[0].isdigit():
        return None
    quota, period = (*text.split(), "100000")[:2]
    return int(quota) / int(period)


def inside_baseline(facts: Mapping[str, Any], limits: Limits | None = None) -> list[Finding]:
    """What a container sees of itself that is not as the baseline wants it.

    Args:
        facts: the answer of `sandbox.inside.selfcheck.facts`.
        limits: what it was started with; default: the reference.
    """
    rules = _inside_rules(facts, limits or Limits())
    return [Finding(code, wanted, str(found)[:200]) for code, wanted, found, holds in rules if not holds]
