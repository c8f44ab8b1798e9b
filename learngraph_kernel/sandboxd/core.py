"""What every part of the daemon works with: settings, records, engine, threads, the clock, and counters."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.answers import BadRequest, Conflict, NotReady
from learngraph_kernel.sandboxd import schema
from learngraph_kernel.sandboxd.capacity import Gate, Load, disk_free
from learngraph_kernel.sandboxd.containers import Surroundings
from learngraph_kernel.sandboxd.engine_port import EngineFailed, EnginePort, NoImage
from learngraph_kernel.sandboxd.records import ACTIVE, KERNEL_ACTIVE, Records, Row
from learngraph_kernel.sandboxd.settings import Settings
from learngraph_kernel.sandboxd.workers import Workers

_log = logging.getLogger(__name__)


async def _no_room() -> bool:
    return False


@dataclass
class Core:
    """The daemon's shared parts.

    Attributes:
        clock: unix seconds.
        host_memory: bytes of the machine that runs containers.
        counters: by metric name, for `GET /v1/metrics`.
        make_room: ends a warm kernel or an idle fetch container for somebody who needs its place; False when none is.
        unrecorded: how many containers run that have no row (the web-fetch pool's).
    """

    settings: Settings
    records: Records
    engine: EnginePort
    workers: Workers
    gate: Gate
    around: Surroundings
    clock: Callable[[], float]
    host_memory: int
    counters: Counter[str] = field(default_factory=Counter)
    make_room: Callable[[], Awaitable[bool]] = _no_room
    unrecorded: Callable[[], int] = lambda: 0
    _locks: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = field(
        default_factory=weakref.WeakValueDictionary
    )

    def load(self, owner: str) -> Load:
        """What is in use, read in the database's thread while the gate is held."""
        boxes, kernels = schema.sandboxes, schema.kernels
        counted, active = boxes.c.state.in_(ACTIVE), kernels.c.state.in_(KERNEL_ACTIVE)
        mine = self.records.count(boxes, counted, boxes.c.owner == owner)
        mine += self.records.count(kernels, active, kernels.c.owner == owner)
        total = self.records.count(boxes, counted) + self.records.count(kernels, active) + self.unrecorded()
        return Load(mine, total, self.host_memory, disk_free(self.settings.state))

    def lock(self, *name: str) -> asyncio.Lock:
        """A lock for one resource (`sandbox`, id) or one idempotency key (owner, key)."""
        key = ("\0".join(name[:-1]), name[-1])
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    def remembered(self, owner: str, key: str, request: Any) -> Row | None:
        """What an idempotency key already stands for. Raises Conflict when it was another request's."""
        found = self.records.remembered(owner, key)
        if found is not None and found["request"] != digest(request):
            raise Conflict(
                "this idempotency key was used for another request",
                code="idempotency_conflict",
                remedy="use a fresh key for a new request",
                zh=("此幂等键已用于另一个请求", "请为新请求使用新的键"),
            )
        return found


def check_key(key: str | None) -> str:
    """The `Idempotency-Key` of a call that creates. Raises BadRequest."""
    if key is None or not 8 <= len(key) <= 200 or not key.isascii() or not key.isprintable():
        raise BadRequest(
            "this call creates something and needs an Idempotency-Key of 8 to 200 printable characters",
            code="idempotency_key_missing",
            remedy="send a fresh random key, and the same one when you repeat the call",
        )
    return key


def engine_refusal(error: LearnGraphError) -> LearnGraphError:
    """What a caller is told of an engine's error: its own words may name paths of the host, so they stay in the log."""
    if isinstance(error, NoImage):
        return NotReady(
            "the sandbox image is not in the engine",
            code="image_missing",
            remedy="make it: learngraph sandbox build",
            zh=("容器引擎中没有沙箱镜像", "请构建镜像：learngraph sandbox build"),
        )
    if isinstance(error, EngineFailed):
        _log.warning("the engine refused: %s", error.what)
        return NotReady(
            "the container engine could not do this",
            code=error.code,
            remedy="see sandboxd's log, and `learngraph doctor`",
            zh=("容器引擎未能完成此操作", "请查看 sandboxd 日志，并运行 learngraph doctor"),
        )
    return error
