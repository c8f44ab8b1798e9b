"""What bytes are, by their first ones. The server's word is recorded beside it, and decides nothing."""

from __future__ import annotations

HEAD_BYTES = 4096
UNKNOWN = "application/octet-stream"

EXECUTABLES = frozenset({"application/x-executable", "application/x-msdownload", "application/x-mach-binary"})

_MAGIC: list[tuple[bytes, str]] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"ARROW1", "application/vnd.apache.arrow.file"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ", "application/x-msdownload"),
    (b"\xfe\xed\xfa\xce", "application/x-mach-binary"),
    (b"\xfe\xed\xfa\xcf", "application/x-mach-binary"),
    (b"\xce\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\xca\xfe\xba\xbe", "application/x-mach-binary"),
]
_MARKUP = [(b"<!doctype html", "text/html"), (b"<html", "text/html"), (b"<svg", "image/svg+xml")]


def detect(head: bytes) -> str:
    """The media type of content that begins with `head` (up to `HEAD_BYTES`)."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[257:262] == b"ustar":
        return "application/x-tar"
    text = _is_text(head)
    for magic, media_type in _MAGIC:
        # A CSV may begin with the letters MZ; an executable is never text.
        if head.startswith(magic) and not (text and media_type in EXECUTABLES):
            return media_type
    if not text:
        return UNKNOWN
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for tag, media_type in _MARKUP:
        if start.startswith(tag):
            return media_type
    return "application/xml" if start.startswith(b"<?xml") else "text/plain"


def _is_text(head: bytes) -> bool:
    """UTF-8 without control characters; the last character may be cut."""
    if any(byte < 0x20 and byte not in b"\t\n\f\r\x1b" for byte in head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end == len(head) and error.reason == "unexpected end of data"
    return True
