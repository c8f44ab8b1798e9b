"""What a probe is, and how one is run so that it can hurt nothing but itself: in a process of its own, with a deadline.

Standard library only: these files run inside a container. A probe tries something for real, with a payload that does no
harm where it succeeds, and answers with a state and a fact:

    escaped   it worked
    held      it was refused or led nowhere
    absent    this kernel or machine does not have what was tried; nothing was shown either way

An `OSError` that is a refusal means held; any other exception is a fault of the probe (`broken`), never a success of
the box.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Outcome = tuple[str, str]

_NO = "EPERM EACCES EROFS ENOENT ESRCH ENETUNREACH ECONNREFUSED ENODEV ENXIO EAFNOSUPPORT EPROTONOSUPPORT"
REFUSALS = frozenset(getattr(errno, name) for name in _NO.split())
"""Errors that say no; any other one says that the probe asked wrongly, or that something let it in."""

LIBC = ctypes.CDLL(None, use_errno=True)
PARAMETERS: dict[str, Any] = {}
"""What the test planted outside: paths, ports, process ids; filled by `run`."""


@dataclass(frozen=True)
class Probe:
    """One attempt.

    Attributes:
        name, category: as in the table of docs/sandbox.md.
        attempt: does it.
        seconds: deadline.
        may_die: whether being killed is an answer (held) and not a fault.
    """

    name: str
    category: str
    attempt: Callable[[], Outcome]
    seconds: float = 10.0
    may_die: bool = False


PROBES: list[Probe] = []


def probe(category: str, **options: Any) -> Callable[[Callable[[], Outcome]], Callable[[], Outcome]]:
    """Puts a function on the table under its own name."""

    def register(attempt: Callable[[], Outcome]) -> Callable[[], Outcome]:
        PROBES.append(Probe(attempt.__name__.replace("_", "-"), category, attempt, **options))
        return attempt

    return register


def escaped(fact: object) -> Outcome:
    return "escaped", str(fact)[:200]


def held(fact: object) -> Outcome:
    return "held", str(fact)[:200]


def absent(fact: object) -> Outcome:
    return "absent", str(fact)[:200]


def judge(success: object, fact: object) -> Outcome:
    return escaped(fact) if success else held(fact)


def raw(number: int, *arguments: Any) -> tuple[int, int]:
    """A system call by number (x86-64): what it returned and errno."""
    ctypes.set_errno(0)
    LIBC.syscall.restype = ctypes.c_long
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *words)
    return result, ctypes.get_errno() if result < 0 else 0


def reach(number: int, *arguments: Any, passes: tuple[int, ...] = ()) -> Outcome:
    """Whether a system call gets past the permission check.

    Args:
        passes: errors that only come after it, for calls whose arguments are wrong on purpose.
    """
    result, code = raw(number, *arguments)
    name = errno.errorcode.get(code, str(code))
    if result >= 0 or code in passes:
        return escaped(f"syscall {number}: {name if code else result}")
    if code in (errno.EPERM, errno.EACCES):
        return held(f"syscall {number}: {name}")
    return (
        absent(f"this kernel has no syscall {number}")
        if code == errno.ENOSYS
        else ("broken", f"syscall {number}: {name}")
    )


def run(only: Probe) -> Outcome:
    """One probe in a process (and process group) of its own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.close(reading)
        os.write(writing, json.dumps(_attempt(only)).encode())
        os._exit(0)
    os.close(writing)
    answer = _read(reading, time.monotonic() + only.seconds)
    os.close(reading)
    for target in (-pid, pid):  # what it left behind; the group may not exist yet
        try:
            os.kill(target, signal.SIGKILL)
        except OSError:
            continue
    status = os.waitpid(pid, 0)[1]
    if answer:
        state, fact = json.loads(answer)
        return state, fact
    if only.may_die:
        return held(f"killed by signal {os.waitstatus_to_exitcode(status)}")
    return "broken", f"no answer within {only.seconds} s, status {os.waitstatus_to_exitcode(status)}"


def _attempt(only: Probe) -> Outcome:
    try:
        return only.attempt()
    except OSError as error:
        fact = f"{errno.errorcode.get(error.errno or 0, error)} {error.filename or ''}".strip()
        return held(fact) if error.errno in REFUSALS else ("broken", fact)
    except Exception as error:  # noqa: BLE001  reported as broken, which fails the test
        return "broken", repr(error)[:200]


def _read(descriptor: int, deadline: float) -> bytes:
    received = b""
    while (left := deadline - time.monotonic()) > 0 and select.select([descriptor], [], [], left)[0]:
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            break
        received += chunk
        if received.endswith(b"]"):
            break
    return received
