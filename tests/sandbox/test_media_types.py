from __future__ import annotations

import pytest

from learngraph_kernel.sandbox.media_types import UNKNOWN, detect

CASES = [
    (b"", "text/plain"),
    (b"a,b\n1,2\n", "text/plain"),
    ("周,数\n".encode(), "text/plain"),
    ("周,数".encode()[:-1], "text/plain"),  # cut in the middle of a character
    (b"MZ,BZh\n1,2\n", "text/plain"),
    (b"MZ\x90\x00\x03", "application/x-msdownload"),
    (b"\x7fELF\x02", "application/x-executable"),
    (b"\xcf\xfa\xed\xfe\x07", "application/x-mach-binary"),
    (b"\xef\xbb\xbf  <!DOCTYPE HTML>", "text/html"),
    (b"<?xml version='1.0'?>", "application/xml"),
    (b"<svg>", "image/svg+xml"),
    (b"\x89PNG\r\n\x1a\n\0", "image/png"),
    (b"\xff\xd8\xff\xe0\0", "image/jpeg"),
    (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    (b"RIFF\x10\0\0\0WAVEfmt ", UNKNOWN),
    (b"PAR1\x15\0", "application/vnd.apache.parquet"),
    (b"PK\x03\x04\x14\0", "application/zip"),
    (b"SQLite format 3\0\x10", "application/vnd.sqlite3"),
    (b"name\0" + b"\0" * 252 + b"ustar\0", "application/x-tar"),
    (b"\xb9\xab,\x01", UNKNOWN),
]


@pytest.mark.parametrize(("head", "media_type"), CASES)
def test_bytes_are_known_by_their_beginning(head: bytes, media_type: str) -> None:
    assert detect(head) == media_type
