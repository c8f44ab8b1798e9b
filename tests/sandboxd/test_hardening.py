"""The baseline: what is asked of the engine, what the engine says of a running container, what the container sees."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.sandboxd.baseline import inside_baseline, inspect_baseline
from learngraph_kernel.sandboxd.hardening import (
    ContainerSpec,
    Limits,
    Mount,
    UnsafeContainer,
    container_config,
    seccomp_profile,
)
from tests.sandbox.conftest import Engine, RunContainer
from tests.sandboxd.section5 import CHECKS

IMAGE = "sha256:" + "a" * 64
SLEEP = ("/usr/bin/python3.11", "-I", "-B", "-c", "import time; time.sleep(600)")
LABELS = {"learngraph.instance": "tests", "learngraph.kind": "kernel"}
SPEC = ContainerSpec("lg-x", IMAGE, SLEEP, LABELS)
SELFCHECK = ("python3.11", "-I", "-B", "-m", "learngraph_kernel.sandbox.inside.selfcheck")


@pytest.fixture
def inspection(
    docker_engine: Engine, sandbox_image: str, run_container: RunContainer, tmp_path: Path
) -> dict[str, Any]:
    """What the engine says of a hardened container that runs, with one mount."""
    spec = replace(SPEC, image=sandbox_image, mounts=(Mount(str(tmp_path), "/workspace"),))
    answer: dict[str, Any] = docker_engine.ask("GET", f"/containers/{run_container(container_config(spec))}/json")
    return answer


@pytest.mark.parametrize("image", ["learngraph-sandbox:latest", "sha256:123", IMAGE + "\n", "x@" + IMAGE])
def test_an_image_is_named_by_its_id_alone(image: str) -> None:
    with pytest.raises(UnsafeContainer):
        container_config(replace(SPEC, image=image))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("/", "/x"),
        ("/etc", "/x"),
        ("/var/run", "/x"),
        ("/var/run/docker.sock", "/x"),
        ("/run/containerd/containerd.sock", "/x"),
        ("/var/lib/docker", "/x"),
        ("/tmp/a/../../etc", "/x"),
        ("/tmp//a", "/x"),
        ("/tmp/a/", "/x"),
        ("a", "/x"),
        ("/tmp/a", "x"),
        ("/tmp/a", "/x/../etc"),
    ],
)
def test_a_mount_that_shows_the_host_is_refused(source: str, target: str) -> None:
    with pytest.raises(UnsafeContainer):
        container_config(replace(SPEC, mounts=(Mount(source, target),)))


def test_the_same_spec_gives_the_same_bytes() -> None:
    other = replace(SPEC, labels=dict(reversed(LABELS.items())))
    assert json.dumps(container_config(SPEC)) == json.dumps(container_config(other))


def test_gvisor_is_used_when_asked_for() -> None:
    assert "Runtime" not in container_config(SPEC)["HostConfig"]
    assert container_config(replace(SPEC, runtime="runsc"))["HostConfig"]["Runtime"] == "runsc"


@pytest.mark.parametrize(
    "name",
    "mount umount2 pivot_root unshare setns ptrace process_vm_readv process_vm_writev kcmp bpf perf_event_open keyctl "
    "add_key request_key io_uring_setup io_uring_enter io_uring_register userfaultfd open_by_handle_at "
    "name_to_handle_at fanotify_init init_module finit_module delete_module kexec_load reboot swapon syslog chroot "
    "acct quotactl fsopen fsmount move_mount open_tree mount_setattr memfd_create memfd_secret pidfd_getfd "
    "personality modify_ldt iopl ioperm settimeofday clock_settime sethostname seccomp".split(),
)
def test_a_dangerous_system_call_is_on_no_list(name: str) -> None:
    profile = json.loads(seccomp_profile())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert [rule for rule in profile["syscalls"] if name in rule["names"]] == []


SOCKETS = """
import json, socket, sys
def opens(family, kind, protocol):
    try:
        socket.socket(family, kind, protocol).close()
    except OSError as error:
        return error.errno
    return 0
print(json.dumps([opens(*case) for case in json.loads(sys.argv[1])]))
"""
RAW, STREAM, SEQPACKET = 3, 1, 5
OPEN = [("unix", (1, STREAM, 0)), ("inet", (2, STREAM, 0)), ("inet6", (10, STREAM, 0)), ("netlink route", (16, RAW, 0))]
CLOSED = [
    ("netlink netfilter", (16, RAW, 12)),
    ("netlink audit", (16, RAW, 9)),
    ("packet", (17, RAW, 0)),
    ("bluetooth", (31, RAW, 0)),
    ("crypto interface (AF_ALG)", (38, SEQPACKET, 0)),
    ("vsock", (40, STREAM, 0)),
    ("xdp", (44, RAW, 0)),
]


def test_only_the_families_of_sockets_that_kernels_need_can_be_opened(
    docker_engine: Engine, sandbox_image: str, run_container: RunContainer
) -> None:
    """libzmq asks for the interfaces (netlink route) before it binds, and aborts when it may not."""
    name = run_container(container_config(replace(SPEC, image=sandbox_image)))
    asked = json.dumps([case for _, case in OPEN + CLOSED])
    answers = json.loads(docker_engine.command.call("exec", name, "python3", "-c", SOCKETS, asked))
    assert answers == [0] * len(OPEN) + [1] * len(CLOSED)  # EPERM: refused, not merely unknown to this kernel


def test_a_running_container_has_the_baseline_as_the_engine_sees_it(inspection: dict[str, Any]) -> None:
    assert inspect_baseline(inspection) == []


def test_a_running_container_has_the_baseline_as_it_sees_itself(
    docker_engine: Engine, sandbox_image: str, run_container: RunContainer
) -> None:
    name = run_container(container_config(replace(SPEC, image=sandbox_image)))
    facts = json.loads(docker_engine.command.call("exec", name, *SELFCHECK))
    assert inside_baseline(facts) == []
    assert facts["hostname"] == "lg-x"


def test_a_plain_container_is_found_out_from_inside(
    docker_engine: Engine, sandbox_image: str, run_container: RunContainer
) -> None:
    name = run_container({"Image": sandbox_image, "Cmd": list(SLEEP), "User": "0:0"})
    found = {
        finding.code for finding in inside_baseline(json.loads(docker_engine.command.call("exec", name, *SELFCHECK)))
    }
    assert found >= {
        "inside-capabilities",
        "inside-no-new-privileges",
        "inside-uid",
        "inside-gid",
        "inside-root",
        "inside-tmp",
        "inside-network",
        "inside-init",
        "inside-limits",
        "inside-memory",
        "inside-pids",
        "inside-cpus",
        "inside-writable",
        "inside-masked-paths",
    }


WORSE: list[tuple[str, list[str], Any]] = [
    ("user", ["Config", "User"], "0:0"),
    ("labels", ["Config", "Labels"], {}),
    ("health", ["Config", "Healthcheck"], None),
    ("ports", ["Config", "ExposedPorts"], {"80/tcp": {}}),
    ("terminal", ["Config", "Tty"], True),
    ("privileged", ["HostConfig", "Privileged"], True),
    ("cap-drop", ["HostConfig", "CapDrop"], ["NET_RAW"]),
    ("cap-add", ["HostConfig", "CapAdd"], ["SYS_ADMIN"]),
    ("no-new-privileges", ["HostConfig", "SecurityOpt"], [f"seccomp={seccomp_profile()}"]),
    ("seccomp", ["HostConfig", "SecurityOpt"], ["no-new-privileges:true"]),
    ("seccomp", ["HostConfig", "SecurityOpt"], ["no-new-privileges:true", "seccomp=unconfined"]),
    (
        "seccomp",
        ["HostConfig", "SecurityOpt"],
        ["no-new-privileges:true", 'seccomp={"defaultAction":"SCMP_ACT_ALLOW"}'],
    ),
    ("read-only-root", ["HostConfig", "ReadonlyRootfs"], False),
    ("masked-paths", ["HostConfig", "MaskedPaths"], []),
    ("read-only-paths", ["HostConfig", "ReadonlyPaths"], None),
    ("network", ["HostConfig", "NetworkMode"], "default"),
    ("ipc", ["HostConfig", "IpcMode"], "host"),
    ("cgroup-namespace", ["HostConfig", "CgroupnsMode"], "host"),
    ("pid-namespace", ["HostConfig", "PidMode"], "host"),
    ("uts-namespace", ["HostConfig", "UTSMode"], "host"),
    ("user-namespace", ["HostConfig", "UsernsMode"], "host"),
    ("memory", ["HostConfig", "Memory"], 0),
    ("swap", ["HostConfig", "MemorySwap"], -1),
    ("cpus", ["HostConfig", "NanoCpus"], 0),
    ("cpu-shares", ["HostConfig", "CpuShares"], 0),
    ("pids", ["HostConfig", "PidsLimit"], None),
    ("oom-killer", ["HostConfig", "OomKillDisable"], True),
    ("ulimits", ["HostConfig", "Ulimits"], None),
    ("tmpfs", ["HostConfig", "Tmpfs"], {"/tmp": "rw,size=67108864"}),
    ("tmpfs", ["HostConfig", "Tmpfs"], None),
    ("shm", ["HostConfig", "ShmSize"], 1),
    ("propagation", ["Mounts"], [{"Source": "/a", "Destination": "/b", "Propagation": "rshared"}]),
    ("engine-socket", ["Mounts"], [{"Source": "/run/docker.sock", "Destination": "/b", "Propagation": "rprivate"}]),
    ("devices", ["HostConfig", "Devices"], [{"PathOnHost": "/dev/kvm"}]),
    ("device-requests", ["HostConfig", "DeviceRequests"], [{"Driver": "nvidia"}]),
    ("volumes-from", ["HostConfig", "VolumesFrom"], ["other"]),
    ("published-ports", ["HostConfig", "PortBindings"], {"80/tcp": [{"HostPort": "80"}]}),
    ("init", ["HostConfig", "Init"], None),
    ("restart", ["HostConfig", "RestartPolicy"], {"Name": "always", "MaximumRetryCount": 0}),
    ("log", ["HostConfig", "LogConfig"], {"Type": "json-file", "Config": {}}),
]


def _as_inspected(body: dict[str, Any]) -> dict[str, Any]:
    """A body as the engine would show the container; for tables of cases without an engine."""
    config = {name: value for name, value in body.items() if name != "HostConfig"}
    return {"Config": config, "HostConfig": copy.deepcopy(body["HostConfig"]), "Mounts": []}


@pytest.mark.parametrize(("code", "place", "value"), WORSE)
def test_each_rule_finds_what_breaks_it(code: str, place: list[str], value: Any) -> None:
    inspected = _as_inspected(container_config(SPEC))
    assert inspect_baseline(inspected) == []
    spot = inspected
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = value
    assert code in [finding.code for finding in inspect_baseline(inspected)]


def test_other_limits_are_other_limits() -> None:
    limits = Limits(memory=512 * 1024**2, cpus=0.5, pids=64)
    inspected = _as_inspected(container_config(replace(SPEC, limits=limits)))
    assert inspect_baseline(inspected, limits) == []
    assert [finding.code for finding in inspect_baseline(inspected)] == ["memory", "swap", "cpus", "pids"]


def _processes(engine: Engine, container: str) -> list[str]:
    rows = engine.ask("GET", f"/containers/{container}/top")["Processes"]
    return [row[-1].split()[0].rpartition("/")[2] for row in rows]


def test_every_automated_check_of_section_5_passes(docker_engine: Engine, inspection: dict[str, Any]) -> None:
    processes, info = _processes(docker_engine, inspection["Id"]), docker_engine.ask("GET", "/info")
    assert [name for name, check in CHECKS.items() if not check(inspection, processes, info)] == []


def test_each_check_of_section_5_finds_an_open_container(
    docker_engine: Engine, sandbox_image: str, run_container: RunContainer
) -> None:
    host = {
        "Privileged": True,
        "CapAdd": ["SYS_ADMIN"],
        "NetworkMode": "host",
        "PidMode": "host",
        "IpcMode": "host",
        "UTSMode": "host",
        "UsernsMode": "host",
        "RestartPolicy": {"Name": "always"},
        "CgroupParent": "/elsewhere",
        "Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/x", "CgroupPermissions": "r"}],
        "Mounts": [
            {"Type": "bind", "Source": "/etc", "Target": "/host-etc", "ReadOnly": True},
            {"Type": "bind", "Source": "/var/run/docker.sock", "Target": "/docker.sock", "ReadOnly": True},
        ],
    }
    name = run_container({"Image": sandbox_image, "Cmd": list(SLEEP), "User": "0", "HostConfig": host}, start=False)
    inspected, info = docker_engine.ask("GET", f"/containers/{name}/json"), docker_engine.ask("GET", "/info")
    # What cannot be had here for real: a shared mount, a published port beside the host's network, a swarm, AppArmor.
    inspected["Mounts"][0]["Propagation"] = "shared"
    inspected["NetworkSettings"]["Ports"] = {"80/tcp": [{"HostIp": "0.0.0.0", "HostPort": "80"}]}
    inspected["NetworkSettings"]["Networks"] = {"bridge": {}}
    inspected["AppArmorProfile"], inspected["HostConfig"]["SecurityOpt"] = "unconfined", []
    info["Swarm"]["LocalNodeState"] = "active"
    info["SecurityOptions"] = ["name=apparmor", "name=selinux"]
    assert [check for check, holds in CHECKS.items() if holds(inspected, ["sshd"], info)] == []
