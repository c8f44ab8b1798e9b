"""Information, files, the engine: what of the host can be seen, read or changed.

Only what the test planted is ever read; of anything else that is the host's own, it is enough that it opens.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any

from probing import PARAMETERS, PROBES, Outcome, Probe, absent, escaped, held, judge, probe, reach

INFORMATION, FILES, DOCKER = "information", "files", "docker"
ENGINE = "/var/run/docker.sock"


# Information


@probe(INFORMATION)
def host_name() -> Outcome:
    name = os.uname().nodename
    return judge(name == PARAMETERS["hostname"], "the host's name" if name == PARAMETERS["hostname"] else name)


@probe(INFORMATION)
def kernel_log_size() -> Outcome:
    return reach(103, 10, 0, 0)  # SYSLOG_ACTION_SIZE_BUFFER


@probe(INFORMATION)
def kernel_addresses() -> Outcome:
    with open("/proc/kallsyms") as file:
        line = file.readline()
    return judge(line and int(line.split()[0], 16), "an address" if line else "empty")


@probe(INFORMATION)
def cgroup_paths() -> Outcome:
    with open("/proc/self/cgroup") as file:
        paths = {line.strip().split(":", 2)[2] for line in file}
    return judge(any(PARAMETERS["container"] in path for path in paths), sorted(paths)[-1])


@probe(INFORMATION)
def namespaces_of_the_host() -> Outcome:
    """The network namespace's number is the host's."""
    return judge(os.readlink("/proc/self/ns/net") == PARAMETERS["network namespace"], os.readlink("/proc/self/ns/net"))


def _has_content(path: str) -> Outcome:
    if os.path.isdir(path):
        return judge(os.listdir(path), f"{path}: {len(os.listdir(path))} entries")
    if path == "/proc/kcore" and not os.path.exists(path):
        return absent("this kernel has no /proc/kcore")
    descriptor = os.open(path, os.O_RDONLY)
    return judge(os.read(descriptor, 1), f"{path}: can be read")


for _name in ("interrupts", "keys", "timer_list", "kcore"):
    PROBES.append(Probe(f"proc-{_name.replace('_', '-')}", INFORMATION, partial(_has_content, f"/proc/{_name}")))
PROBES.append(Probe("sys-firmware", INFORMATION, partial(_has_content, "/sys/firmware")))


# Files


def _through_roots(path: str) -> Outcome:
    """Whether the host's file system is reached through the root of process 1 or of the victim; nothing is read."""
    ours = os.stat("/")
    for pid in (1, PARAMETERS["victim"]["pid"]):
        try:
            theirs = os.stat(f"/proc/{pid}/root/")
            os.stat(f"/proc/{pid}/root{path}")
        except OSError:
            continue
        if (theirs.st_dev, theirs.st_ino) != (ours.st_dev, ours.st_ino):
            return escaped(f"{path} is there, below /proc/{pid}/root")
    return held("no other root than ours")


def _opens(path: str, flags: int) -> Outcome:
    """Opened and closed again; nothing is written or read."""
    if not os.path.lexists(path) and not PARAMETERS["hardened"]:
        return absent(f"this kernel has no {path}")
    os.close(os.open(path, flags))
    return escaped(f"{path} opens")


for _name, _path, _flags in (
    ("sysctl-core-pattern", "/proc/sys/kernel/core_pattern", os.O_WRONLY),
    ("sysctl-panic", "/proc/sys/kernel/panic", os.O_WRONLY),
    ("sysrq-trigger", "/proc/sysrq-trigger", os.O_WRONLY),
    ("sys-write", "/sys/kernel/mm/transparent_hugepage/enabled", os.O_WRONLY),
    ("sys-uevent", "/sys/kernel/uevent_helper", os.O_WRONLY),
    ("kernel-messages-device", "/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK),
    ("tun-device", "/dev/net/tun", os.O_RDWR),
    ("userfaultfd-device", "/dev/userfaultfd", os.O_RDWR),
    ("loop-device", "/dev/loop-control", os.O_RDWR),
    ("fuse-device", "/dev/fuse", os.O_RDWR),
):
    PROBES.append(Probe(_name, FILES, partial(_opens, _path, _flags)))


@probe(FILES)
def cgroup_files_writable() -> Outcome:
    """Also the release agent, which the kernel runs as root of the host."""
    wanted = ("release_agent", "devices.allow", "memory.limit_in_bytes", "memory.max", "cgroup.procs")
    found = [os.path.join(at, name) for at, _, names in os.walk("/sys/fs/cgroup") for name in names if name in wanted]
    opened = [path for path in found if os.access(path, os.W_OK)]
    for path in opened:
        os.close(os.open(path, os.O_WRONLY))
    return judge(opened, f"{len(opened)} of {len(found)} writable")


def _writes(path: str) -> Outcome:
    with open(path, "x") as file:
        file.write("x")
    os.unlink(path)
    return escaped(f"{path} written")


PROBES += [Probe(f"write-{name}", FILES, partial(_writes, f"{path}/escape-file")) for name, path in
           (("root", ""), ("etc", "/etc"), ("usr", "/usr"), ("python", "/usr/lib/python3.11"))]  # fmt: skip


def _reads_the_secret(path: Callable[[], str]) -> Outcome:
    with open(path()) as file:
        return judge(file.read() == PARAMETERS["marker"], "read the file")


PROBES += [
    Probe("file-of-the-host", FILES, partial(_reads_the_secret, lambda: PARAMETERS["secret"])),
    Probe("secret-through-another-root", FILES, lambda: _through_roots(PARAMETERS["secret"])),
]


@probe(FILES)
def write_into_a_read_only_mount() -> Outcome:
    """What is granted (snapshots) is for reading."""
    with open(os.path.join(PARAMETERS["granted"], "Q1"), "a") as file:
        file.write("")
    return escaped("opened for writing")


@probe(FILES)
def root_of_another_process() -> Outcome:
    return _through_roots("/")


def _node(kind: int, device: Callable[[], int], flags: int = os.O_RDONLY | os.O_NONBLOCK) -> Outcome:
    path = "/tmp/escape-node"
    os.mknod(path, kind | 0o600, device())
    try:
        os.close(os.open(path, flags))
    finally:
        os.unlink(path)
    return escaped("made and opened")


@probe(FILES)
def disk_through_a_new_device_node() -> Outcome:
    if not PARAMETERS["disk"]:
        return absent("not even root may open a block device on this machine")
    return _node(stat.S_IFBLK, lambda: PARAMETERS["disk"])


@probe(FILES)
def kernel_messages_through_a_new_device_node() -> Outcome:
    return _node(stat.S_IFCHR, lambda: os.makedev(1, 11))


def _runs(folder: str) -> Outcome:
    path = os.path.join(folder, "escape-program")
    shutil.copyfile("/usr/bin/true", path)
    os.chmod(path, 0o700)
    try:
        return judge(subprocess.run([path]).returncode == 0, "a program written there ran")
    finally:
        os.unlink(path)


PROBES += [
    Probe("run-from-tmp", FILES, partial(_runs, "/tmp")),
    Probe("run-from-shm", FILES, partial(_runs, "/dev/shm")),
]


@probe(FILES)
def set_user_id_program() -> Outcome:
    """Run by an ordinary user (also in the open container), a program that is root's and set-user-id."""
    if not PARAMETERS["root outside"]:
        return absent("the test does not run as root and cannot plant a file of root's")
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65532)
        os.setuid(65532)
    return judge(subprocess.run(["/workspace/inputs/set-user-id"]).returncode == 0, "effective user is root")


@probe(FILES)
def hard_link_to_a_file_of_another_user() -> Outcome:
    if not PARAMETERS["root outside"]:
        return absent("the test does not run as root and cannot plant a file of root's")
    os.link("/workspace/inputs/of-root", "/workspace/work/linked-of-root")
    os.unlink("/workspace/work/linked-of-root")
    return escaped("linked")


@probe(FILES)
def give_a_file_to_root() -> Outcome:
    path = "/workspace/work/given"
    with open(path, "w"):
        os.chown(path, 65532, 65532) if os.getuid() == 0 else None
    os.chown(path, 0, 0)
    return escaped("chown to 0:0")


@probe(FILES)
def file_capabilities() -> Outcome:
    """A program that would start with CAP_SYS_ADMIN (vfs_cap_data, revision 2)."""
    path = "/workspace/work/capable"
    with open(path, "w"):
        os.setxattr(path, "security.capability", bytes.fromhex("0100000200002000000000000000000000000000"))
    return escaped("set")


# The engine


def _asks(method: str, path: Callable[[], str], body: Any, wanted: tuple[int, ...]) -> Outcome:
    connection = http.client.HTTPConnection("engine", timeout=5)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(ENGINE)
    connection.request(method, path(), json.dumps(body), {"Content-Type": "application/json"})
    status = connection.getresponse().status
    return judge(status in wanted, f"{method} answered {status}")


def _neighbour(rest: str) -> Callable[[], str]:
    return lambda: f"/v1.41/containers/{PARAMETERS['neighbour']['name']}{rest}"


MISSING = {"Image": "sha256:" + "0" * 64, "HostConfig": {"Privileged": True, "Binds": ["/:/host"]}}
PROBES += [
    Probe("engine-answers", DOCKER, partial(_asks, "GET", lambda: "/_ping", None, (200,))),
    Probe("engine-looks-into-others", DOCKER, partial(_asks, "GET", _neighbour("/json"), None, (200,))),
    Probe("engine-reads-logs-of-others", DOCKER, partial(_asks, "GET", _neighbour("/logs?stdout=1"), None, (200,))),
    # 404: it would have been made, but there is no such image
    Probe(
        "engine-makes-a-container", DOCKER, partial(_asks, "POST", lambda: "/v1.41/containers/create", MISSING, (404,))
    ),
    # made, never started
    Probe("engine-runs-in-others", DOCKER, partial(_asks, "POST", _neighbour("/exec"), {"Cmd": ["true"]}, (201,))),
]


PROBES += [
    Probe("engine-data-folder", DOCKER, partial(_through_roots, "/var/lib/docker/containers")),
    Probe("engine-socket-through-another-root", DOCKER, partial(_through_roots, "/run/docker.sock")),
    Probe("containerd-socket", DOCKER, partial(_through_roots, "/run/docker/containerd/containerd.sock")),
]
