"""The guard rails: may one more container start?

`judge` is pure. `Gate` makes "count, judge, note" one step: an asyncio lock among this process's tasks and a file lock
among processes, both held until the `starting` row is committed. Memory is an allotment, since two containers cannot
share a byte: the sum of the limits stays below the share. Processor time can be shared, so it is not counted but capped
(`cgroups`): all containers together get at most their share.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from learngraph_kernel.sandbox.answers import OverCapacity
from learngraph_kernel.sandboxd.settings import GIB, MIB, Settings
from learngraph_kernel.sandboxd.workers import Workers


@dataclass(frozen=True, slots=True)
class Load:
    """What is in use now.

    Attributes:
        user: active containers of the caller.
        total: active containers of the deployment, warm ones included.
        memory: the machine's memory in bytes.
        disk_free: bytes free where the workspaces lie.
    """

    user: int
    total: int
    memory: int
    disk_free: int


def judge(load: Load, settings: Settings) -> None:
    """Refuses when one more container would break a guard rail. Raises OverCapacity."""
    if load.user >= settings.active_per_user:
        raise OverCapacity(
            f"you already have {load.user} active containers, the most allowed",
            code="user_containers",
            remedy="stop one (`learngraph sandbox ls`, `learngraph sandbox stop ID`) or wait until one is idle",
            zh=(f"您已有 {load.user} 个活动容器，达到上限", "请停止其中一个，或等待空闲容器自动停止"),
            details={"limit": settings.active_per_user},
        )
    judge_machine(load, settings)


def judge_machine(load: Load, settings: Settings) -> None:
    """The guard rails that do not depend on who is asking. Raises OverCapacity."""
    if load.total >= settings.active_total:
        raise OverCapacity(
            f"{load.total} containers are active, the most allowed here",
            code="total_containers",
            remedy="try again in a few minutes; an administrator can raise active_total",
            zh=(f"已有 {load.total} 个活动容器，达到系统上限", "请稍后再试；管理员可提高 active_total"),
            details={"limit": settings.active_total},
        )
    allotted = (load.total + 1) * settings.container_memory
    if allotted > settings.memory_share * load.memory:
        raise OverCapacity(
            f"one more container would allot {allotted // MIB} MiB of {load.memory // MIB} MiB, "
            f"more than {settings.memory_share:.0%}",
            code="host_memory",
            remedy="try again when a container has stopped; an administrator can raise memory_share",
            zh=(
                f"再启动一个容器将分配超过 {settings.memory_share:.0%} 的主机内存",
                "请在其他容器停止后重试；管理员可提高 memory_share",
            ),
        )
    judge_disk(load.disk_free, settings)


def judge_disk(free: int, settings: Settings) -> None:
    """Refuses when the disk is too full to begin something. Raises OverCapacity."""
    if free < settings.disk_kept:
        raise OverCapacity(
            f"{free / GIB:.1f} GiB of disk are free; {settings.disk_kept / GIB:.0f} GiB are kept",
            code="host_disk",
            remedy="free disk space (`learngraph sandbox gc`, `learngraph gc`)",
            zh=(f"磁盘仅剩 {free / GIB:.1f} GiB，低于保留值", "请释放磁盘空间（learngraph sandbox gc、learngraph gc）"),
        )


def judge_retained(retained: int, settings: Settings) -> None:
    """Refuses one more workspace. Raises OverCapacity."""
    if retained >= settings.retained_per_user:
        raise OverCapacity(
            f"{retained} workspaces of yours are kept, the most allowed",
            code="user_workspaces",
            remedy="delete one (`learngraph sandbox ls`, `learngraph sandbox gc`) or let one expire",
            zh=(f"已保留 {retained} 个工作区，达到上限", "请删除一个工作区，或等待其到期"),
            details={"limit": settings.retained_per_user},
        )


def disk_free(path: Path) -> int:
    """Bytes an ordinary user may still write on the file system of `path`."""
    return shutil.disk_usage(path).free


class Gate:
    """Mutual exclusion for decisions about capacity."""

    def __init__(self, path: Path, workers: Workers) -> None:
        self._path, self._workers = path, workers
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Nobody else decides while this is held, in this process or another."""
        async with self._lock:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                await self._workers.run(fcntl.flock, descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)
