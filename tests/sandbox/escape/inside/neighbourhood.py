"""Network, processes, other people's sandboxes: who else can be reached.

Listeners, the victim process and the neighbour were all started by the test; nobody else is spoken to. Where a way out
can only be shown by leaving, a UDP socket is connected and nothing is sent: the kernel says whether there is a route.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from functools import partial

from probing import PARAMETERS, PROBES, Outcome, Probe, escaped, held, judge, probe, raw

NETWORK, PROCESSES, OTHERS = "network", "processes", "other sandboxes"
PTRACE_ATTACH, PTRACE_DETACH = 16, 17


# Network


def _hears(family: int, kind: int, address: Callable[[], object]) -> Outcome:
    """Whether a listener of the test answers with the marker."""
    with socket.socket(family, kind) as client:
        client.settimeout(3)
        client.connect(address())  # type: ignore[arg-type]
        if kind == socket.SOCK_DGRAM:  # a stream's listener speaks first and may have hung up by now
            client.send(b"?")
        return judge(client.recv(200).decode() == PARAMETERS["marker"], "answered")


def _route(family: int, address: str) -> Outcome:
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.connect((address, 53))
        return escaped(f"a route to {address}")


V4, V6 = socket.AF_INET, socket.AF_INET6
PROBES += [
    Probe(
        "host-loopback-tcp", NETWORK, partial(_hears, V4, socket.SOCK_STREAM, lambda: ("127.0.0.1", PARAMETERS["tcp"]))
    ),
    Probe(
        "host-loopback-udp", NETWORK, partial(_hears, V4, socket.SOCK_DGRAM, lambda: ("127.0.0.1", PARAMETERS["udp"]))
    ),
    Probe("host-loopback-ipv6", NETWORK, partial(_hears, V6, socket.SOCK_STREAM, lambda: ("::1", PARAMETERS["tcp6"]))),
    Probe(
        "host-abstract-socket",
        NETWORK,
        partial(_hears, socket.AF_UNIX, socket.SOCK_STREAM, lambda: "\0" + PARAMETERS["abstract"]),
    ),
    Probe("route-to-the-internet", NETWORK, partial(_route, V4, "198.51.100.1")),
    Probe("route-to-the-internet-ipv6", NETWORK, partial(_route, V6, "2001:db8::1")),
    Probe("route-to-cloud-metadata", NETWORK, partial(_route, V4, "169.254.169.254")),
    Probe("route-to-the-docker-bridge", NETWORK, partial(_route, V4, "172.17.0.1")),
    Probe("route-to-private-networks", NETWORK, partial(_route, V4, "10.0.0.1")),
]


@probe(NETWORK)
def name_server() -> Outcome:
    with open("/etc/resolv.conf") as file:
        servers = [line.split()[1] for line in file if line.startswith("nameserver")]
    if not servers:
        return held("no name server is known")
    return _route(V6 if ":" in servers[0] else V4, servers[0])


@probe(NETWORK)
def interfaces() -> Outcome:
    dormant = ("tunl", "sit", "ip6tnl", "gre", "gretap", "erspan", "ip_vti", "ip6_vti", "ip6gre")
    names = [name for _, name in socket.if_nameindex() if name != "lo" and not name.startswith(dormant)]
    return judge(names, f"{len(names)} beside lo")


@probe(NETWORK)
def raw_icmp() -> Outcome:
    socket.socket(V4, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return escaped("raw socket opened")


@probe(NETWORK)
def packet_socket() -> Outcome:
    socket.socket(17, socket.SOCK_RAW, 0).close()  # AF_PACKET
    return escaped("packet socket opened")


@probe(NETWORK)
def interface_flags() -> Outcome:
    """Set to what they are."""
    with socket.socket(V4, socket.SOCK_DGRAM) as handle:
        request = fcntl.ioctl(handle, 0x8913, struct.pack("16sh14x", b"lo", 0))  # SIOCGIFFLAGS
        fcntl.ioctl(handle, 0x8914, request)  # SIOCSIFFLAGS
    return escaped("flags of lo set")


# Processes


def _marked(path: Callable[[], str], marker: str = "marker") -> Outcome:
    with open(path(), "rb") as file:
        return judge(PARAMETERS[marker].encode() in file.read(1 << 16), "the marker was there")


def _victim(rest: str) -> Callable[[], str]:
    return lambda: f"/proc/{PARAMETERS['victim']['pid']}/{rest}"


PROBES += [
    Probe("command-line-of-a-host-process", PROCESSES, partial(_marked, _victim("cmdline"))),
    Probe("environment-of-a-host-process", PROCESSES, partial(_marked, _victim("environ"))),
    Probe("root-of-a-host-process", PROCESSES, partial(_marked, lambda: _victim("root")() + PARAMETERS["secret"])),
]


def _signal(pid: int, command_line: str) -> Outcome:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        if command_line.encode() not in file.read():
            return held("that number is another process here")
    os.kill(pid, 0)
    return escaped("may be signalled")


PROBES.append(
    Probe("signal-a-host-process", PROCESSES, lambda: _signal(PARAMETERS["victim"]["pid"], PARAMETERS["marker"]))
)


@probe(PROCESSES)
def memory_of_a_host_process() -> Outcome:
    victim = PARAMETERS["victim"]
    with open(f"/proc/{victim['pid']}/mem", "rb", buffering=0) as file:
        file.seek(victim["address"])
        return judge(file.read(len(PARAMETERS["marker"])).decode() == PARAMETERS["marker"], "read its memory")


def _copied(number: int) -> Outcome:
    """process_vm_readv, process_vm_writev: the marker is read, or written over itself."""
    victim, marker = PARAMETERS["victim"], PARAMETERS["marker"].encode()
    here = ctypes.create_string_buffer(marker if number == 311 else len(marker), len(marker) + 1)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(here), len(marker))
    remote = (ctypes.c_size_t * 2)(victim["address"], len(marker))
    copied, code = raw(number, victim["pid"], local, 1, remote, 1, 0)
    return judge(copied == len(marker) and here.value == marker, f"{copied}, errno {code}")


PROBES.append(Probe("process-vm-readv", PROCESSES, partial(_copied, 310)))
PROBES.append(Probe("process-vm-writev", PROCESSES, partial(_copied, 311)))


@probe(PROCESSES)
def ptrace_a_host_process() -> Outcome:
    pid = PARAMETERS["victim"]["pid"]
    result, code = raw(101, PTRACE_ATTACH, pid, 0, 0)
    if result == 0:
        os.waitpid(pid, 0x40000000)  # __WALL
        raw(101, PTRACE_DETACH, pid, 0, 0)
    return judge(result == 0, f"attach: {result}, errno {code}")


@probe(PROCESSES)
def steal_a_descriptor() -> Outcome:
    """pidfd_getfd: the victim has the secret open."""
    victim = PARAMETERS["victim"]
    process, code = raw(434, victim["pid"], 0)
    if process < 0:
        return held(f"pidfd_open: errno {code}")
    stolen, code = raw(438, process, victim["descriptor"], 0)
    if stolen < 0:
        return held(f"pidfd_getfd: errno {code}")
    return judge(os.pread(stolen, 200, 0).decode() == PARAMETERS["marker"], "read through it")


def _enters(namespace: str, pid: Callable[[], int]) -> Outcome:
    descriptor = os.open(f"/proc/{pid()}/ns/{namespace}", os.O_RDONLY)
    result, code = raw(308, descriptor, 0)
    return judge(result == 0, f"setns: {result}, errno {code}")


def _enters_host(namespace: str) -> Outcome:
    return _enters(namespace, lambda: PARAMETERS["victim"]["pid"])


for _namespace in ("mnt", "uts"):
    PROBES.append(Probe(f"enter-{_namespace}-namespace-of-the-host", PROCESSES, partial(_enters_host, _namespace)))


def _becomes(call: Callable[[], None]) -> Outcome:
    if os.getuid() == 0:  # the open container: only with the capability can it come back
        os.setresuid(65532, 65532, 0)
    call()
    return escaped(f"uid {os.getuid()}, groups {os.getgroups()}")


@probe(PROCESSES)
def become_root() -> Outcome:
    return _becomes(lambda: os.setuid(0))


@probe(PROCESSES)
def join_a_group() -> Outcome:
    os.setgroups([0, 6])  # 6: disk
    return escaped("groups 0, 6")


# Other people's sandboxes


def _of_neighbour(rest: str) -> Callable[[], str]:
    return lambda: f"/proc/{PARAMETERS['neighbour']['pid']}/{rest}"


PROBES += [
    Probe("environment-of-a-neighbour", OTHERS, partial(_marked, _of_neighbour("environ"), "neighbour marker")),
    Probe("tmp-of-a-neighbour", OTHERS, partial(_marked, _of_neighbour("root/tmp/secret"), "neighbour marker")),
    Probe(
        "shared-memory-of-a-neighbour",
        OTHERS,
        partial(_marked, _of_neighbour("root/dev/shm/secret"), "neighbour marker"),
    ),
    Probe(
        "workspace-of-a-neighbour",
        OTHERS,
        partial(_marked, lambda: PARAMETERS["neighbour"]["workspace"] + "/secret", "neighbour marker"),
    ),
    Probe("run-folder-of-another-run", OTHERS, partial(_marked, lambda: PARAMETERS["other run"] + "/kernel.json")),
    Probe(
        "signal-a-neighbour", OTHERS, lambda: _signal(PARAMETERS["neighbour"]["pid"], PARAMETERS["neighbour marker"])
    ),
    Probe(
        "enter-ipc-namespace-of-a-neighbour", OTHERS, partial(_enters, "ipc", lambda: PARAMETERS["neighbour"]["pid"])
    ),
    Probe("shared-memory-of-the-host", OTHERS, partial(_marked, lambda: "/dev/shm/" + PARAMETERS["shm"])),
]


@probe(OTHERS)
def run_folders_listed() -> Outcome:
    other = PARAMETERS["other run"]
    return judge(os.path.basename(other) in os.listdir(os.path.dirname(other)), "looked for another run's")


@probe(OTHERS)
def abstract_socket_of_a_neighbour() -> Outcome:
    """Through its network namespace where that can be entered, else from here."""
    with contextlib.suppress(FileNotFoundError):
        _enters("net", lambda: PARAMETERS["neighbour"]["pid"])
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(3)
        client.connect("\0" + PARAMETERS["neighbour marker"])
        return escaped("connected")


@probe(OTHERS)
def signal_everybody() -> Outcome:
    """Every process this user may signal, were it not for signal 0: none is the victim."""
    os.kill(-1, 0)
    seen = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    return judge(PARAMETERS["victim"]["pid"] in seen and len(seen) > 20, f"{len(seen)} processes")
