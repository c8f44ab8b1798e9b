"""Decompressing with a bound: on the bytes that come out, on their ratio to those that went in, and on memory.

A bomb is not told by looking at it but by refusing to go on: whoever reads from here gets at most `limit` bytes.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from typing import Any, BinaryIO

from learngraph_kernel.sandbox.inside.findings import Unreadable

MAX_OUTPUT = 64 << 20
MAX_RATIO = 200
_FREE = 1 << 20  # below this much output the ratio says nothing
_LZMA_MEMORY = 128 << 20  # xz may ask for gigabytes
_CHUNK = 64 << 10


class Bomb(Unreadable):
    """More came out than may."""


class Inflating(io.RawIOBase):
    """The content of a gzip, bzip2 or xz file, concatenated streams included. Raises Bomb, Unreadable when read."""

    def __init__(self, source: BinaryIO, kind: str, limit: int = MAX_OUTPUT) -> None:
        super().__init__()
        self._source = source
        self._kind = kind
        self._limit = limit
        self._engine: Any = self._new()
        self._pending = b""
        self._output = b""
        self._started = False
        self.consumed = 0
        self.produced = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        while not self._output:
            if not self._fill():
                return 0
        count = min(len(view), len(self._output))
        view[:count] = self._output[:count]
        self._output = self._output[count:]
        return count

    def _fill(self) -> bool:
        """Decompresses a little; False at the end."""
        if not self._pending and (self._engine.eof or getattr(self._engine, "needs_input", True)):
            self._pending = self._source.read(_CHUNK)
            self.consumed += len(self._pending)
            if not self._pending:
                if not self._engine.eof and self._started:
                    raise Unreadable("the compressed data is cut off")
                return False
        if self._engine.eof:  # another stream may follow, or padding
            self._pending = self._pending.lstrip(b"\0")
            if not self._pending:
                return True
            self._engine = self._new()
        self._started = True
        try:
            self._output = self._engine.decompress(self._pending, _CHUNK)
        except (OSError, zlib.error, lzma.LZMAError, EOFError, ValueError) as error:
            raise Unreadable(f"the compressed data is damaged ({error})") from error
        self._pending = self._rest()
        self.produced += len(self._output)
        if self.produced > self._limit:
            raise Bomb(f"more than {self._limit:,} bytes come out of it")
        if self.produced > _FREE and self.produced > MAX_RATIO * max(self.consumed, 1):
            raise Bomb(f"more than {MAX_RATIO} times its size comes out of it")
        return True

    def _rest(self) -> bytes:
        if self._engine.eof:
            return bytes(self._engine.unused_data)
        return bytes(getattr(self._engine, "unconsumed_tail", b""))

    def _new(self) -> Any:
        if self._kind == "gzip":
            return zlib.decompressobj(wbits=31)
        if self._kind == "bzip2":
            return bz2.BZ2Decompressor()
        return lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)
