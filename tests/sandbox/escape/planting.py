"""What the test plants for the probes to find: secrets, a victim process, listeners, folders of other people.

Everything is the test's own and lies in one temporary folder (a short path, since sockets lie in it), except a small
file in /dev/shm and an abstract socket. It is all taken away again.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learngraph_kernel.sandboxd.hardening import GID, UID
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder
from tests.sandbox.escape.catalogue import INSIDE

ROOT = os.getuid() == 0

# geteuid; exit(euid & 255): an x86-64 ELF of one segment, so that it runs in any container
SET_USER_ID = bytes.fromhex(
    "7f454c4602010100000000000000000002003e0001000000780040000000000040000000000000000000000000000000"
    "000000004000380001000000000000000100000005000000000000000000000000004000000000000000400000000000"
    "880000000000000088000000000000000010000000000000b86b0000000f0589c7b83c0000000f05"
)

VICTIM = """
import ctypes, sys, time
kept = ctypes.create_string_buffer(sys.argv[1].encode())
opened = open(sys.argv[2])
print(ctypes.addressof(kept), opened.fileno(), flush=True)
time.sleep(600)
"""


@dataclass
class World:
    """One world to escape from.

    Attributes:
        base: the temporary folder.
        folder: the workspace as sandboxd reads it; `folder.files` is /workspace inside.
        parameters: what the probes are told.
        marker: what every secret holds.
    """

    base: Path
    folder: WorkspaceFolder
    parameters: dict[str, Any]
    marker: str
    hardened: bool

    @property
    def run(self) -> Path:
        return self.base / "run"

    @property
    def work(self) -> Path:
        return self.folder.files / "work"

    @property
    def secret(self) -> Path:
        return self.base / "secret"

    def finish_parameters(self) -> None:
        (self.base / "inside/parameters.json").write_text(json.dumps(self.parameters))


@contextlib.contextmanager
def planted(marker: str, *, hardened: bool) -> Iterator[World]:
    """A world; see the module."""
    base = Path(tempfile.mkdtemp(prefix="lg-esc-", dir="/tmp"))
    base.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, base)
        folder = stack.enter_context(WorkspaceFolder(base / "workspace", owner=(UID, GID) if ROOT else None))
        world = World(base, folder, {}, marker, hardened)
        _plant_files(world)
        shm = Path("/dev/shm") / f"{base.name}-shm"
        shm.write_text(marker)
        stack.callback(shm.unlink)
        world.parameters |= {
            "hardened": hardened,
            "marker": marker,
            "secret": str(world.secret),
            "csv": str(base / "data.csv"),
            "outside": str(base / "outside"),
            "run": str(world.run),
            "granted": str(base / "granted"),
            "other run": str(base / "other"),
            "shm": shm.name,
            "hostname": os.uname().nodename,
            "container": "docker",
            "network namespace": os.readlink("/proc/self/ns/net"),
            "disk": _block_device(base),
            "root outside": ROOT,
            "missing capabilities": _missing_capabilities(),
            "handle": _handle(world.secret),
            "victim": stack.enter_context(_victim(world)),
            **stack.enter_context(_listeners(marker)),
        }
        yield world


def _plant_files(world: World) -> None:
    base = world.base
    for name in ("run", "granted", "other", "outside"):
        (base / name).mkdir()
    world.secret.write_text(world.marker)
    (base / "data.csv").write_text("a\n1\n")
    (base / "granted/Q1").write_text("snapshot")
    (base / "granted/Q1").chmod(0o666)  # so that only the mount says no
    (base / "other").chmod(0o700)
    (base / "other/kernel.json").write_text(json.dumps({"key": world.marker}))
    for name in ("f", "deletable"):
        (base / "outside" / name).write_text(world.marker)
    shutil.copytree(INSIDE, base / "inside", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (base / "inside").iterdir():
        path.chmod(0o644)
    (base / "inside").chmod(0o755)
    inputs = world.folder.files / "inputs"
    (inputs / "set-user-id").write_bytes(SET_USER_ID)
    (inputs / "set-user-id").chmod(0o4755)
    (inputs / "of-root").write_text("root's")
    os.link(world.secret, world.work / "planted-name")  # by other means than the container's
    if ROOT:
        shutil.chown(world.run, UID, GID)
    else:
        world.run.chmod(0o777)


def _missing_capabilities() -> list[str]:
    """Those of this suite's that this machine gives nobody (it may be a virtual one)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    bounding = next(int(line.split()[1], 16) for line in lines if line.startswith("CapBnd"))
    return [name for name, number in (("SYS_RESOURCE", 24), ("SYS_BOOT", 22)) if not bounding >> number & 1]


def _block_device(base: Path) -> int:
    """One that root may open on this machine: the disk, else a loop device; 0 for none."""
    device = base.stat().st_dev
    for path in (f"/dev/block/{os.major(device)}:{os.minor(device)}", "/dev/loop0"):
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY))
            return os.stat(path).st_rdev
    return 0


def _handle(path: Path) -> tuple[int, str] | None:
    """What name_to_handle_at(2) says of a file; None where the file system has no handles or we may not ask."""
    structure = ctypes.create_string_buffer((128).to_bytes(4, "little"), 8 + 128)
    mount = ctypes.c_int()
    words = (ctypes.c_long(-100), bytes(path), structure, ctypes.byref(mount), ctypes.c_long(0))
    if ctypes.CDLL(None).syscall(ctypes.c_long(303), *words) != 0:
        return None
    size, kind = (int.from_bytes(structure.raw[at : at + 4], "little") for at in (0, 4))
    return kind, structure.raw[8 : 8 + size].hex()


@contextlib.contextmanager
def _victim(world: World) -> Iterator[dict[str, int]]:
    environment = {"PATH": os.environ["PATH"], "SECRET": world.marker}
    command = [sys.executable, "-I", "-c", VICTIM, world.marker, str(world.secret)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        address, descriptor = map(int, process.stdout.readline().split())
        try:
            yield {"pid": process.pid, "address": address, "descriptor": descriptor}
            assert process.poll() is None, "a probe killed the victim"
        finally:
            process.kill()


@contextlib.contextmanager
def _listeners(marker: str) -> Iterator[dict[str, Any]]:
    class Says(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if isinstance(self.request, tuple):
                self.request[1].sendto(marker.encode(), self.client_address)
            else:
                self.request.sendall(marker.encode())

    class V6(socketserver.ThreadingTCPServer):
        address_family = socket.AF_INET6

    abstract = f"lg-escape-{marker}"
    servers: dict[str, socketserver.BaseServer] = {
        "tcp": socketserver.ThreadingTCPServer(("127.0.0.1", 0), Says),
        "udp": socketserver.ThreadingUDPServer(("127.0.0.1", 0), Says),
        "tcp6": V6(("::1", 0), Says),
        "abstract": socketserver.ThreadingUnixStreamServer("\0" + abstract, Says),
    }
    for server in servers.values():
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        ports = {name: server.server_address[1] for name, server in servers.items() if name != "abstract"}
        yield {**ports, "abstract": abstract}
    finally:
        for server in servers.values():
            server.shutdown()
            server.server_close()
