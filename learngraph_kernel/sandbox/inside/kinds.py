"""What a file is, by its content and never by its name."""

from __future__ import annotations

import codecs
import json
import os
import re
from typing import BinaryIO

HEAD = 64 << 10
EXTENSIONS = {
    "csv": ("csv", "tsv", "tab", "txt"),
    "json": ("json", "geojson", "ipynb", "txt"),
    "jsonl": ("jsonl", "ndjson", "txt"),
    "text": (
        "txt",
        "md",
        "log",
        "py",
        "js",
        "mjs",
        "cjs",
        "r",
        "sql",
        "yaml",
        "yml",
        "toml",
        "ini",
        "cfg",
        "tex",
        "rst",
    ),
    "html": ("html", "htm"),
    "xml": ("xml", "xsd", "rss", "kml"),
    "script": ("sh", "py", "pl", "rb", "js", "bash"),
    "jpeg": ("jpg", "jpeg"),
    "tiff": ("tif", "tiff"),
    "gzip": ("gz", "tgz", "tar.gz"),
    "bzip2": ("bz2", "tbz2"),
    "xz": ("xz", "txz"),
    "zstd": ("zst",),
    "sqlite": ("sqlite", "sqlite3", "db"),
    "duckdb": ("duckdb", "db"),
    "ole": ("xls", "doc", "ppt", "msg", "msi"),
    "zip": ("zip", "jar", "npz", "whl", "epub", "odt", "ods", "xlsx", "docx", "pptx"),
    "arrow": ("arrow", "feather", "ipc"),
    "xlsx": ("xlsx", "xlsm"),
    "docx": ("docx", "docm"),
    "pptx": ("pptx", "pptm"),
    "pickle": ("pkl", "pickle", "joblib"),
    "binary": ("bin", "dat"),
    "empty": (),
}
_MAGIC = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    (b"\x7fELF", "elf"),
    (b"\0asm", "wasm"),
    (b"\xca\xfe\xba\xbe", "java-class"),
    (b"\xcf\xfa\xed\xfe", "mach-o"),
    (b"SQLite format 3\0", "sqlite"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (b"\x93NUMPY", "npy"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
    (b"{\\rtf", "rtf"),
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")
_HTML = re.compile(r"<(!doctype html|html|head|body|script|iframe|svg)\b", re.I)
ARCHIVES = frozenset({"zip", "tar", "gzip", "bzip2", "xz", "zstd", "7z", "rar", "xlsx", "docx", "pptx"})
TEXTS = frozenset({"text", "csv", "json", "jsonl", "html", "xml", "script"})


def kind_of_head(head: bytes) -> str:
    """The kind of what starts with these bytes: a format, `text` and its kinds, `binary` or `empty`."""
    if not head:
        return "empty"
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    if head[8:12] == b"DUCK":
        return "duckdb"
    if head[257:262] == b"ustar":
        return "tar"
    if head[:2] == b"MZ" and len(head) >= 64:
        return "windows-executable"
    if head[0] == 0x80 and len(head) > 1 and 2 <= head[1] <= 5:
        return "pickle"
    encoding = encoding_of(head)
    return "binary" if encoding is None else _text_kind(head.decode(encoding, "replace"), len(head) >= HEAD)


def encoding_of(head: bytes) -> str | None:
    """The encoding of text that starts with these bytes; None for no text. `gb18030` and `cp1252` are guesses."""
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name if _is_text(head, name) else None
    return next((name for name in ("utf-8", "gb18030", "cp1252") if _is_text(head, name)), None)


def hides_an_archive(file: BinaryIO, kind: str) -> bool:
    """Whether something that is no archive ends like one (a polyglot)."""
    if kind in ARCHIVES:
        return False
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - 65_557))
    return b"PK\x05\x06" in file.read()


def _is_text(head: bytes, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(head, len(head) < HEAD)
    except UnicodeError:
        return False
    return not _CONTROL.search(text)


def _text_kind(text: str, cut: bool) -> str:
    text = text.lstrip("\ufeff")
    start = text.lstrip()
    if text.startswith("#!"):
        return "script"
    if start.startswith("<") and _HTML.search(start[:2000]):
        return "html"
    if start.startswith(("<?xml", "<!DOCTYPE", "<!ENTITY")):
        return "xml"
    if start.startswith(("{", "[")):
        if _is_json(start) or (cut and not _is_json(start.split("\n", 1)[0])):
            return "json"
        if _is_json(start.split("\n", 1)[0]):
            return "jsonl"
    lines = text.split("\n")[:50]
    lines = [line for line in (lines[:-1] if cut else lines) if line.strip()]
    return "csv" if delimiter_of(lines) is not None else "text"


def delimiter_of(lines: list[str]) -> str | None:
    """The delimiter that occurs equally often, outside quotes, in (nearly) every line; None when there is none."""
    if len(lines) < 2:
        return None
    for delimiter in "\t,;|":
        counts = [re.sub(r'"(?:[^"]|"")*"', "", line[:10_000]).count(delimiter) for line in lines]
        common = max(set(counts), key=counts.count)
        if common and counts.count(common) >= 0.9 * len(counts):
            return delimiter
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
