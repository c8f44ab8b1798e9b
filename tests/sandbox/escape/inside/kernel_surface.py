"""Kernel surface: system calls that containers have been left through, each made for real."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import socket
from functools import partial

from probing import PARAMETERS, PROBES, Outcome, Probe, absent, escaped, held, judge, probe, raw, reach

KERNEL = "kernel surface"
HERE = -100  # AT_FDCWD
NEWNS, NEWCGROUP, NEWUSER, NEWPID, NEWNET = 0x20000, 0x02000000, 0x10000000, 0x20000000, 0x40000000


def _zeros(size: int, *words: int) -> ctypes.Array[ctypes.c_char]:
    """A structure that begins with these 32-bit words."""
    return ctypes.create_string_buffer(b"".join(word.to_bytes(4, "little") for word in words), size)


# name, number (x86-64), arguments, errors that come only after the permission check
CALLS = [
    ("mount-tmpfs", 165, (b"none", b"/home", b"tmpfs", 0, 0), ()),
    ("remount-root-writable", 165, (0, b"/", 0, 0x1020, 0), ()),
    ("umount", 166, (b"/home", 0), ()),
    ("pivot-root", 155, (b"/tmp", b"/tmp"), (errno.EINVAL, errno.EBUSY)),
    ("chroot", 161, (b"/tmp",), ()),
    ("fsopen", 430, (b"tmpfs", 0), ()),
    ("open-tree-clone", 428, (HERE, b"/", 1), ()),
    ("move-mount", 429, (-1, b"", -1, b"", 0), (errno.EINVAL, errno.EBADF, errno.ENOENT)),
    ("mount-setattr", 442, (HERE, b"/", 0, _zeros(32), 32), ()),
    ("unshare-user", 272, (NEWUSER,), ()),
    ("unshare-net", 272, (NEWNET,), ()),
    ("unshare-mount", 272, (NEWNS,), ()),
    ("unshare-pid", 272, (NEWPID,), ()),
    ("unshare-cgroup", 272, (NEWCGROUP,), ()),
    ("bpf-map", 321, (0, _zeros(72, 2, 4, 4, 1), 72), ()),
    ("perf-event-open", 298, (_zeros(128, 1, 128), 0, -1, -1, 0), ()),
    ("io-uring-setup", 425, (4, _zeros(120)), ()),
    ("userfaultfd", 323, (0x80000,), ()),
    ("keyctl-session-keyring", 250, (0, -3, 0), (errno.ENOKEY,)),
    ("add-key", 248, (b"user", b"escape", b"x", 1, -2), ()),
    ("request-key", 249, (b"user", b"escape-none", 0, 0), (errno.ENOKEY,)),
    ("fanotify-init", 300, (0, 0), ()),
    ("init-module", 175, (0, 0, b""), (errno.ENOEXEC, errno.EFAULT, errno.EINVAL)),
    ("finit-module", 313, (-1, b"", 0), (errno.EBADF, errno.EINVAL)),
    ("delete-module", 176, (b"escape-none", 0x800), (errno.ENOENT,)),
    ("kexec-load", 246, (0, 0, 0, 0xFFFF0000), (errno.EINVAL,)),
    ("reboot", 169, (0, 0, 0, 0), (errno.EINVAL,)),  # the magic numbers are wrong: asked, never done
    ("swapon", 167, (b"/escape-none", 0), (errno.ENOENT,)),
    ("acct", 163, (b"/escape-none",), (errno.ENOENT,)),
    ("personality", 135, (0x0040000,), ()),
    ("modify-ldt", 154, (0, _zeros(16), 16), ()),
    ("ioperm", 173, (0x80, 1, 1), ()),
    ("memfd-create", 319, (b"escape", 0), ()),
    ("memfd-secret", 447, (0,), ()),
    ("seccomp-from-inside", 317, (2, 0, _zeros(4, 0x7FFF0000)), ()),
    ("kcmp", 312, (os.getpid(), os.getpid(), 2, 0, 0), ()),
    ("ptrace-traceme", 101, (0, 0, 0, 0), ()),
    ("vmsplice", 278, (-1, 0, 0, 0), (errno.EBADF,)),
]
for _name, _number, _arguments, _passes in CALLS:
    PROBES.append(Probe(_name, KERNEL, partial(reach, _number, *_arguments, passes=_passes)))


@probe(KERNEL)
def clone_new_user() -> Outcome:
    result, code = raw(56, NEWUSER | 17, 0, 0, 0, 0)
    if result == 0:
        os._exit(0)
    return judge(result > 0, f"clone: {result} {errno.errorcode.get(code, code)}")


@probe(KERNEL)
def clone3_new_user() -> Outcome:
    arguments = (ctypes.c_uint64 * 11)(NEWUSER, 0, 0, 0, 17)
    result, code = raw(435, arguments, ctypes.sizeof(arguments))
    if result == 0:
        os._exit(0)
    return judge(result > 0, f"clone3: {result} {errno.errorcode.get(code, code)}")


@probe(KERNEL)
def setns() -> Outcome:
    """Into its own namespace: nothing changes, but the call is there."""
    return reach(308, os.open("/proc/self/ns/net", os.O_RDONLY), NEWNET)


@probe(KERNEL)
def set_host_name() -> Outcome:
    """To what it is already."""
    name = os.uname().nodename.encode()
    return reach(170, name, len(name))


@probe(KERNEL)
def raise_capabilities() -> Outcome:
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    raw(125, header, data)
    data[1] |= 1 << 21  # CAP_SYS_ADMIN permitted,
    data[0] |= data[1]  # and all that is permitted effective
    return reach(126, header, data)


@probe(KERNEL, may_die=True)
def thirty_two_bit_system_calls() -> Outcome:
    """A filter that knows 64-bit numbers only is walked round through `int 0x80`: unshare(CLONE_NEWUSER) of i386."""
    code = bytes.fromhex("53 b836010000 bb00000010 cd80 5b c3")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    result = call()
    return absent("no 32-bit calls") if result == -errno.ENOSYS else judge(result >= 0, f"int 0x80: {result}")


@probe(KERNEL)
def open_by_handle() -> Outcome:
    """The handle of a file outside, opened through a mount of the same file system ("shocker")."""
    kind, handle = PARAMETERS["handle"]
    structure = ctypes.create_string_buffer(
        len(bytes.fromhex(handle)).to_bytes(4, "little")
        + kind.to_bytes(4, "little", signed=True)
        + bytes.fromhex(handle)
    )
    mount = os.open("/workspace", os.O_RDONLY | os.O_DIRECTORY)
    result, code = raw(304, mount, structure, os.O_RDONLY)
    if result < 0:
        return held(errno.errorcode[code]) if code == errno.EPERM else ("broken", errno.errorcode[code])
    return judge(os.read(result, 100).decode() == PARAMETERS["marker"], "read a file by its handle")


@probe(KERNEL)
def name_to_handle() -> Outcome:
    handle = _zeros(136, 128)
    return reach(303, HERE, b"/workspace", handle, ctypes.byref(ctypes.c_int()), 0)


def _socket(family: int, kind: int, protocol: int) -> Outcome:
    socket.socket(family, kind, protocol).close()
    return escaped("socket opened")


for _name, _number, _kind, _protocol in (
    ("netlink-netfilter", 16, socket.SOCK_RAW, 12),
    ("netlink-audit", 16, socket.SOCK_RAW, 9),
    ("vsock-to-the-hypervisor", 40, socket.SOCK_STREAM, 0),
):
    PROBES.append(Probe(_name, KERNEL, partial(_socket, _number, _kind, _protocol)))


def _system_v(create: int, remove: int, *arguments: int) -> Outcome:
    identity, code = raw(create, 0, *arguments)
    if identity < 0:
        return held(errno.errorcode[code]) if code == errno.EPERM else ("broken", errno.errorcode[code])
    raw(remove, identity, 0, 0, 0)
    return escaped("created and removed one")


PROBES += [
    Probe("system-v-shared-memory", KERNEL, partial(_system_v, 29, 31, 4096, 0o1600)),
    Probe("system-v-message-queue", KERNEL, partial(_system_v, 68, 71, 0o1600)),
]
