"""What a workspace may hold, checked before, during and after a command.

The file system sets no limit on a folder, so we count: the walk of `scan` gives the usage, and what exceeds a limit
ends the command. One thing no walk sees is a file that was deleted while a process holds it open; `unlinked_bytes`
counts those from the processes' side.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from typing import ClassVar

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandboxd.scan import BLOCK, Limits, Scan, Usage

_REASONS = {
    "bytes": ("the workspace holds more than {0.bytes:,} bytes", "工作区超过 {0.bytes:,} 字节"),
    "files": ("the workspace holds more than {0.files:,} files", "工作区超过 {0.files:,} 个文件"),
    "directories": ("the workspace holds more than {0.directories:,} folders", "工作区超过 {0.directories:,} 个文件夹"),
    "depth": ("folders are nested deeper than {0.depth} levels", "文件夹嵌套超过 {0.depth} 层"),
    "unreadable": ("a folder cannot be read, so its content cannot be counted", "有文件夹无法读取，无法计入用量"),
}


class QuotaExceeded(LearnGraphError):
    """The workspace holds, or would hold, more than it may. `details["limit"]` names the limit."""

    code: ClassVar[str] = "quota_exceeded"

    def __init__(self, limit: str, limits: Limits, usage: Usage) -> None:
        reason, reason_zh = _REASONS[limit]
        super().__init__(
            reason.format(limits),
            where="workspace",
            remedy="delete files below work/, or write less",
            details={
                "limit": limit,
                "files": usage.files,
                "directories": usage.directories,
                "bytes": usage.bytes,
                "reason_zh": reason_zh.format(limits),
                "remedy_zh": "请删除 work/ 下的文件，或减少写入",
            },
        )
        self.limit = limit


def exceeded(found: Scan, limits: Limits, *, unlinked: int = 0) -> QuotaExceeded | None:
    """The limit that a walk found exceeded.

    Args:
        found: of `scan`, with these limits or none.
        unlinked: bytes of deleted files that are still open, from `unlinked_bytes`.
    """
    usage = found.usage
    limit: str | None = found.stopped
    if limit is None and usage.bytes + unlinked > limits.bytes:
        limit = "bytes"
    elif limit is None and usage.files > limits.files:
        limit = "files"
    elif limit is None and usage.directories > limits.directories:
        limit = "directories"
    elif limit is None and any(path.count("/") + 1 >= limits.depth for path in found.folders):
        limit = "depth"
    return None if limit is None else QuotaExceeded(limit, limits, usage)


def check_room(usage: Usage, limits: Limits, *, size: int, files: int = 1, directories: int = 0) -> None:
    """Refuses what would exceed a limit, before it is written.

    Args:
        size: bytes to be added.
        files, directories: how many will be made.

    Raises:
        QuotaExceeded: nothing was written.
    """
    if usage.bytes + size > limits.bytes:
        raise QuotaExceeded("bytes", limits, usage)
    if usage.files + files > limits.files:
        raise QuotaExceeded("files", limits, usage)
    if usage.directories + directories > limits.directories:
        raise QuotaExceeded("directories", limits, usage)


def unlinked_bytes(pids: Iterable[int], device: int) -> int:
    """Bytes on disk of files on `device` that were deleted but are held open by these processes; each file once.

    Needs the right to look at the processes (root, or the same user). Processes that end meanwhile count nothing.
    """
    sizes: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")
                    if status.st_nlink == 0 and status.st_dev == device and stat.S_ISREG(status.st_mode):
                        sizes[status.st_ino] = status.st_blocks * BLOCK
    return sum(sizes.values())
