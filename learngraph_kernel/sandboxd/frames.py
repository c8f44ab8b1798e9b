"""The bytes between sandboxd and a runner: Docker's multiplexed stream outside, length-prefixed JSON inside.

Pure: bytes in, frames out. The container is not trusted, so every length is bounded before anything is kept.
Source of the outer format: Docker Engine API, "Attach to a container", stream format.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from learngraph_kernel.errors import LearnGraphError

MAX_FRAME = 1024 * 1024
STDERR_TAIL = 4096
_STDOUT, _STDERR = 1, 2


class BrokenStream(LearnGraphError):
    """What came out of the container is not what the runner sends."""

    code = "broken_stream"


def encode_frame(frame: dict[str, Any]) -> bytes:
    """One frame for the runner's input."""
    body = json.dumps(frame, separators=(",", ":")).encode("ascii")
    return struct.pack(">I", len(body)) + body


class FrameReader:
    """Turns chunks of an attached stream into the runner's frames; keeps the end of its standard error."""

    def __init__(self) -> None:
        self._outer = bytearray()
        self._inner = bytearray()
        self.stderr = b""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Frames that are complete with this chunk. Raises BrokenStream."""
        self._outer += chunk
        while len(self._outer) >= 8:
            stream, length = self._outer[0], struct.unpack_from(">I", self._outer, 4)[0]
            if stream not in (_STDOUT, _STDERR) or length > 16 * MAX_FRAME:
                raise BrokenStream("the container's stream is not multiplexed as Docker does it")
            if len(self._outer) < 8 + length:
                break
            payload = bytes(self._outer[8 : 8 + length])
            del self._outer[: 8 + length]
            if stream == _STDERR:
                self.stderr = (self.stderr + payload)[-STDERR_TAIL:]
            else:
                self._inner += payload
                yield from self._frames()

    def _frames(self) -> Iterator[dict[str, Any]]:
        while len(self._inner) >= 4:
            (length,) = struct.unpack_from(">I", self._inner)
            if length > MAX_FRAME:
                raise BrokenStream(f"the runner announced a frame of {length} bytes")
            if len(self._inner) < 4 + length:
                return
            body = bytes(self._inner[4 : 4 + length])
            del self._inner[: 4 + length]
            try:
                frame = json.loads(body)
            except ValueError as error:
                raise BrokenStream("the runner sent a frame that is not JSON") from error
            if not isinstance(frame, dict) or not isinstance(frame.get("kind"), str):
                raise BrokenStream("the runner sent a frame without a kind")
            yield frame
