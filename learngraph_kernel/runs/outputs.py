"""What of a cell's outputs counts towards the content hash.

Two runs of a deterministic notebook must agree, so everything that belongs to the *running* is taken away (execution
counts, widget ids, object addresses, random element ids, library stamps inside pictures, the run's own id, how the
streams happened to be chopped) and everything that belongs to the *result* stays: text, tables, pixels, printed
timings, the order of a printed set. Pure functions; the notebook itself is never changed.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from learngraph_kernel.canonical import JSON_SAFE_INTEGER

CARD_MIME = "application/vnd.learngraph.card+json"
OWN_RUN = "run:self"
"""What the run's own id becomes, so that evidence naming its run agrees between runs."""

_WIDGET_MIMES = frozenset(
    {"application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"}
)  # only model ids, new in every run
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# A repr's address, and a bare pointer as 64-bit Linux lays out heap (0x55…, 0x56…) and mappings (0x7f…).
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]{6,16}\b|\b0x(?:7[ef]|5[56])[0-9a-fA-F]{10}\b")
_CELL_PROMPT = re.compile(r"\b(Cell In|Input In) ?\[[0-9]*\]")
_KERNEL_FILE = re.compile(r"(?:/[^\s/:\"'<>]+)*/ipykernel_\d+/\d+\.py")
_LIBRARY_FILE = re.compile(r"(?:~|(?:/[^\s/:\"'<>,]+)+)?/(?:site-packages|dist-packages|lib/python3\.\d+)/")
_OWN_FILE = re.compile(r"(?<![\w/.:])~?(?:/[^\s/:\"'<>,]+)*/(?=[^\s/:\"'<>,]+\.py\b)")
_RANDOM_ID = re.compile(
    r"\bid=([\"'])((?:[\w-]*?[-_])?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|T_[0-9a-f]{5}))\b"
)
_SVG_ID = re.compile(r"\bid=\"((?:[A-Za-z]+|C[0-9a-f]+_[0-9a-f]+_)?[0-9a-f]{10})\"")  # matplotlib's _make_id
_SVG_DATE = re.compile(r"<dc:date>[^<]*</dc:date>")
_SVG_STAMP = re.compile(r"Matplotlib v[0-9][^,<]*")
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_STAMPS = frozenset({b"tEXt", b"zTXt", b"iTXt", b"tIME"})  # ISO/IEC 15948: text and time, never pixels


def canonical_outputs(cell: Mapping[str, Any], *, run_id: str | None = None) -> list[dict[str, Any]]:
    """The outputs of a notebook cell as they count.

    Args:
        cell: a cell as nbformat 4 JSON; without `outputs` the answer is empty.
        run_id: the run that produced it; its id is replaced wherever it stands.

    Returns:
        JSON that has a canonical form: each stream once, standard output before standard error (how the two interleave
        is chance), then displays, results and errors in order.
    """
    streams = {"stdout": "", "stderr": ""}
    rest: list[dict[str, Any]] = []
    for output in cell.get("outputs") or ():
        kind = output.get("output_type")
        if kind == "stream":
            name = str(output.get("name", "stdout"))
            streams[name] = streams.get(name, "") + joined(output.get("text", ""))
        elif kind == "error":
            rest.append(_error(output))
        else:
            shown = _shown(str(kind), output)
            if shown["data"]:
                rest.append(shown)
    first = [
        {"output_type": "stream", "name": name, "text": plain_text(terminal_text(text))}
        for name, text in streams.items()
        if text
    ]
    answer: list[dict[str, Any]] = _jsonable([*first, *rest], run_id)
    return answer


def joined(text: Any) -> str:
    """nbformat's multi-line string: a list of pieces or one string."""
    return "".join(str(piece) for piece in text) if isinstance(text, list | tuple) else str(text)


def terminal_text(text: str) -> str:
    """What a terminal shows of a stream: colours dropped, carriage returns and backspaces overwrite.

    A carriage return moves to the start of the line and what follows overwrites; what is not overwritten stays.
    """
    if "\x1b" in text:
        text = _ANSI.sub(lambda match: "\x1b" if match.group() in ("\x1b[K", "\x1b[0K") else "", text)
    if not any(mark in text for mark in "\r\b\x1b"):
        return text
    return "\n".join(_overwritten(line) for line in text.split("\n"))


def _overwritten(line: str) -> str:
    if not any(mark in line for mark in "\r\b\x1b"):
        return line
    shown: list[str] = []
    at = 0
    for piece in re.split(r"([\r\b\x1b])", line):
        if piece == "\r":
            at = 0
        elif piece == "\b":
            at = max(0, at - 1)
        elif piece == "\x1b":  # erase to the end of the line, ECMA-48 EL
            del shown[at:]
        else:
            shown[at : at + len(piece)] = piece
            at += len(piece)
    return "".join(shown)


def plain_text(text: str) -> str:
    """Object addresses in reprs made equal; other hexadecimal numbers stay."""
    return _ADDRESS.sub("0x…", text) if "0x" in text else text


def _shown(kind: str, output: Mapping[str, Any]) -> dict[str, Any]:
    data = {mime: value for mime, value in (output.get("data") or {}).items() if mime not in _WIDGET_MIMES}
    ours = CARD_MIME in data
    metadata = {mime: value for mime, value in (output.get("metadata") or {}).items() if mime not in _WIDGET_MIMES}
    return {
        "output_type": kind,
        "data": {mime: _mime_value(mime, value, ours=ours) for mime, value in data.items()},
        "metadata": metadata,
    }


def _mime_value(mime: str, value: Any, *, ours: bool) -> Any:
    if mime == "application/json" or mime.endswith("+json"):
        return value
    text = joined(value)
    if mime == "image/png":
        return _png(text)
    if mime == "image/svg+xml":
        return _svg(text)
    if mime.startswith(("image/", "audio/", "video/")) or mime == "application/pdf":
        return "".join(text.split())  # base64, however it was wrapped
    if mime == "text/html":
        return text if ours else plain_text(_renamed(text, _RANDOM_ID, 2))
    return plain_text(text)


def _png(text: str) -> str:
    compact = "".join(text.split())
    try:
        data = base64.b64decode(compact, validate=True)
    except binascii.Error:
        return compact  # not base64: it counts as it stands
    return base64.b64encode(strip_png(data)).decode()


def strip_png(data: bytes) -> bytes:
    """A PNG without its text and time chunks; anything that is no well-formed PNG comes back as it is."""
    if not data.startswith(_PNG_SIGNATURE):
        return data
    kept = [_PNG_SIGNATURE]
    at = len(_PNG_SIGNATURE)
    while at < len(data):
        if at + 12 > len(data):
            return data
        (length,) = struct.unpack_from(">I", data, at)
        end = at + 12 + length
        if end > len(data):
            return data
        if data[at + 4 : at + 8] not in _PNG_STAMPS:
            kept.append(data[at:end])
        at = end
    return b"".join(kept)


def _svg(text: str) -> str:
    if "atplotlib" not in text:
        return plain_text(text)
    text = _SVG_STAMP.sub("Matplotlib", _SVG_DATE.sub("<dc:date/>", text))
    return _renamed(text, _SVG_ID, 1)


def _renamed(text: str, pattern: re.Pattern[str], group: int) -> str:
    """Random ids numbered in the order in which they are defined, wherever they are used."""
    names: dict[str, str] = {}
    for match in pattern.finditer(text):
        names.setdefault(match.group(group), f"id-{len(names) + 1}")
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda match: names[match.group()], text)


def _error(output: Mapping[str, Any]) -> dict[str, Any]:
    lines = "\n".join(joined(line) for line in output.get("traceback") or ())
    return {
        "output_type": "error",
        "ename": str(output.get("ename", "")),
        "evalue": _traceback_text(str(output.get("evalue", ""))),
        "traceback": _traceback_text(lines),
    }


def _traceback_text(text: str) -> str:
    """Colours, prompts' numbers, folders and addresses taken out; file names and line numbers stay."""
    text = _ANSI.sub("", text)
    text = _CELL_PROMPT.sub(r"\1 [ ]", text)
    text = _KERNEL_FILE.sub("cell", text)
    text = _LIBRARY_FILE.sub("lib/", text)
    return plain_text(_OWN_FILE.sub("", text))


def _jsonable(value: Any, run_id: str | None) -> Any:
    """JSON that RFC 8785 accepts, whatever a kernel sent: large integers, NaN, lone surrogates."""
    if isinstance(value, str):
        return _mask(value, run_id).encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_jsonable(str(key), run_id): _jsonable(item, run_id) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item, run_id) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > JSON_SAFE_INTEGER:
        return {"$int": str(value)}
    if isinstance(value, float) and not (math.isfinite(value) and abs(value) <= JSON_SAFE_INTEGER):
        return {"$float": str(value)}  # 1e17 would be read back as an integer that has no canonical form
    return value


def _mask(text: str, run_id: str | None) -> str:
    return text.replace(run_id, OWN_RUN) if run_id else text
