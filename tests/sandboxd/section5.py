"""The automated checks of section 5 ("container runtime") of the CIS Docker benchmark, as Docker Bench has them.

Written from what each check looks at; the numbers are those of benchmark 1.6. Manual checks (5.9, 5.28) are not here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Inspect: TypeAlias = dict[str, Any]
Check: TypeAlias = Callable[[Inspect, list[str], dict[str, Any]], bool]
"""Takes the engine's inspection, the names of the container's processes and the engine's `info`; True: it passes."""

_SENSITIVE = ("/", "/boot", "/dev", "/etc", "/lib", "/proc", "/sys", "/usr")
_ALLOWED_CAPABILITIES = {
    f"CAP_{name}"
    for name in (
        "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW SETFCAP SETGID SETPCAP "
        "SETUID SYS_CHROOT"
    ).split()
}


def _host(inspect: Inspect, name: str) -> Any:
    return inspect["HostConfig"].get(name)


def _security(inspect: Inspect) -> list[str]:
    return _host(inspect, "SecurityOpt") or []


def _ports(inspect: Inspect) -> dict[str, Any]:
    return {name: bound for name, bound in (inspect["NetworkSettings"].get("Ports") or {}).items() if bound}


def _capability(name: str) -> str:
    return name if name.startswith("CAP_") else f"CAP_{name}"


def _apparmor(inspect: Inspect, processes: list[str], info: dict[str, Any]) -> bool:
    available = any("name=apparmor" in option for option in info["SecurityOptions"])
    return not available or inspect.get("AppArmorProfile") not in ("", "unconfined", None)


def _selinux(inspect: Inspect, processes: list[str], info: dict[str, Any]) -> bool:
    available = any("name=selinux" in option for option in info["SecurityOptions"])
    return not available or bool(_security(inspect))


CHECKS: dict[str, Check] = {
    "5.1 swarm is not on": lambda i, p, info: info["Swarm"]["LocalNodeState"] != "active",
    "5.2 AppArmor profile, where there is AppArmor": _apparmor,
    "5.3 SELinux options, where there is SELinux": _selinux,
    "5.4 no capability beyond the engine's own": lambda i, p, info: (
        {_capability(name) for name in _host(i, "CapAdd") or []} <= _ALLOWED_CAPABILITIES
    ),
    "5.5 not privileged": lambda i, p, info: _host(i, "Privileged") is False,
    "5.6 no sensitive host folder": lambda i, p, info: not any(m["Source"] in _SENSITIVE for m in i["Mounts"]),
    "5.7 no ssh daemon": lambda i, p, info: "sshd" not in p,
    "5.8 no privileged port": lambda i, p, info: not any(int(name.split("/")[0]) < 1025 for name in _ports(i)),
    "5.10 not the host's network": lambda i, p, info: _host(i, "NetworkMode") != "host",
    "5.11 memory is limited": lambda i, p, info: _host(i, "Memory") > 0,
    "5.12 processor weight is set": lambda i, p, info: _host(i, "CpuShares") not in (0, 1024),
    "5.13 root is read-only": lambda i, p, info: _host(i, "ReadonlyRootfs") is True,
    "5.14 no port on every interface": lambda i, p, info: (
        not any(entry["HostIp"] in ("0.0.0.0", "::", "") for bound in _ports(i).values() for entry in bound)
    ),
    "5.15 not restarted for ever": lambda i, p, info: (
        _host(i, "RestartPolicy")["Name"] in ("", "no") or _host(i, "RestartPolicy")["MaximumRetryCount"] in range(1, 6)
    ),
    "5.16 not the host's processes": lambda i, p, info: _host(i, "PidMode") != "host",
    "5.17 not the host's IPC": lambda i, p, info: _host(i, "IpcMode") != "host",
    "5.18 no host device": lambda i, p, info: not _host(i, "Devices"),
    "5.19 ulimits are set": lambda i, p, info: bool(_host(i, "Ulimits")),
    "5.20 no shared mount": lambda i, p, info: not any(m.get("Propagation") == "shared" for m in i["Mounts"]),
    "5.21 not the host's name space of names": lambda i, p, info: _host(i, "UTSMode") != "host",
    "5.22 seccomp is on": lambda i, p, info: (
        not _host(i, "Privileged") and not any(option == "seccomp=unconfined" for option in _security(i))
    ),
    "5.23 and 5.24 no privileged exec, none as root": lambda i, p, info: (
        i["Config"]["User"] not in ("", "0", "root", "0:0")
    ),
    "5.25 cgroup is the engine's": lambda i, p, info: _host(i, "CgroupParent") in ("", "docker"),
    "5.26 no new privileges": lambda i, p, info: any(o.startswith("no-new-privileges") for o in _security(i)),
    "5.27 health is checked": lambda i, p, info: "Health" in i["State"],
    "5.29 processes are limited": lambda i, p, info: (_host(i, "PidsLimit") or 0) > 0,
    "5.30 not on docker0": lambda i, p, info: "bridge" not in i["NetworkSettings"]["Networks"],
    "5.31 not the host's users by choice": lambda i, p, info: _host(i, "UsernsMode") != "host",
    "5.32 no engine socket": lambda i, p, info: not any(m["Source"].endswith("docker.sock") for m in i["Mounts"]),
}
