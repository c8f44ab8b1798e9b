"""The verifiable bundle: one HTML file that holds a sealed run, shows its report and checks itself in the browser.

The report reads without JavaScript (a sandboxed frame); the run's files are embedded as base64 in inert elements; a
small script re-hashes them with WebCrypto. The page is a pure function of the files, so `learngraph verify` renders it
again and compares every byte: a change in the script, or in the report as it is shown, is found like any other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from learngraph_kernel.errors import BadInput
from learngraph_kernel.runs.folder import RunParts, holds, replace_file
from learngraph_kernel.runs.records import ENVELOPE, REPORT, REPORT_HTML
from learngraph_kernel.runs.seal import Envelope, EnvelopeUnreadable
from learngraph_kernel.runs.verify import Finding

FORMAT = "learngraph-bundle-v1"
MAX_BYTES = 256 << 20
"""Of embedded files; a browser has to hold them twice."""

_ELEMENT = re.compile(
    rb'<script type="application/x-learngraph-file" data-name="([A-Za-z0-9._/-]+)">([^<]*)</script>\n'
)
_MARK_WINDOW = 4096
_PLACE = re.compile(r"\{\{(\w+)\}\}")

_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "LearnGraph run",
        "unchecked": "Not checked yet: this page checks itself with JavaScript. Without it: learngraph verify FILE",
        "files_title": "Sealed files",
        "no_report": "This run has no report. Its files are embedded in this page.",
        "run": "Run",
        "tier": "Tier",
        "finished": "Finished",
        "content": "Content hash",
        "keyid": "Signed by (compare)",
    },
    "zh": {
        "title": "LearnGraph 运行",
        "unchecked": "尚未校验。本页用 JavaScript 自行校验；也可运行：learngraph verify FILE",
        "files_title": "封存的文件",
        "no_report": "本次运行没有报告，其文件嵌在本页中。",
        "run": "运行",
        "tier": "等级",
        "finished": "完成于",
        "content": "内容哈希",
        "keyid": "签名者（请核对）",
    },
}


class BundleTooLarge(BadInput):
    """The run's files do not fit into one page."""

    code = "bundle_too_large"


def is_bundle(path: Path) -> bool:
    """Whether the file is (the remains of) a bundle: its mark stands three times, so that damage doesn't hide it."""
    mark = FORMAT.encode()
    with path.open("rb") as file:
        start = file.read(_MARK_WINDOW)
        file.seek(max(0, path.stat().st_size - _MARK_WINDOW))
        return mark in start or mark in file.read()


def write_bundle(parts: RunParts, target: Path) -> None:
    """Writes the bundle of a run. Raises BundleTooLarge; an existing file is replaced only by a whole one."""
    replace_file(target, (piece for _, piece in _pieces(parts)))


def parts_of_bundle(path: Path) -> RunParts:
    """The embedded files of a bundle; what cannot be decoded counts as strange."""
    files = {}
    strange = []
    for match in _ELEMENT.finditer(path.read_bytes()):
        name = match.group(1).decode()
        try:
            files[name] = holds(base64.b64decode(match.group(2), validate=True))
        except binascii.Error:
            strange.append(name)
    return RunParts(str(path), files, tuple(strange))


def page_findings(path: Path, parts: RunParts) -> list[Finding]:
    """Whether the page is exactly the one these files give: the first difference, named by the part it lies in."""
    data = path.read_bytes()
    at = 0
    for name, piece in _pieces(parts):
        there = data[at : at + len(piece)]
        if there != piece:
            offset = at + next((i for i, (a, b) in enumerate(zip(there, piece, strict=False)) if a != b), len(there))
            what = f"the page differs at byte {offset} ({name}) from what this run's files give"
            return [Finding("bundle_altered", what, name)]
        at += len(piece)
    if at != len(data):
        return [Finding("bundle_altered", f"{len(data) - at} bytes follow the end of the page", "viewer")]
    return []


def _pieces(parts: RunParts) -> Iterator[tuple[str, bytes]]:
    """The page, piece by piece, each with the name of what it shows."""
    contents = {name: parts.read(name) for name in sorted(parts.files)}
    size = sum(map(len, contents.values()))
    if size > MAX_BYTES:
        raise BundleTooLarge(
            f"the run's files are {size >> 20} MiB, a bundle holds at most {MAX_BYTES >> 20} MiB",
            where=parts.where,
            remedy="export the folder instead: learngraph export RUN --to DIR",
        )
    language = _language(contents)
    words = _WORDS[language]
    script = _asset("verify.js")
    values = {
        "language": language,
        "format": FORMAT,
        "script_hash": "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "title": words["title"],
        "style": _asset("page.css"),
        "unchecked": words["unchecked"],
        "facts": _facts(contents, words),
        "files_title": f"{words['files_title']} ({len(contents)})",
        "rows": "".join(f'<tr data-name="{name}"><td>–</td><td>{name}</td></tr>\n' for name in contents),
        "report": _report(contents, words),
        "script": script,
    }
    for literal, place in _template():
        yield "viewer", literal.encode()
        if place == "files":
            for name, data in contents.items():
                yield name, _element(name, data)
        elif place:
            yield "report.html as shown" if place == "report" else "viewer", values[place].encode()


def _element(name: str, data: bytes) -> bytes:
    opening = f'<script type="application/x-learngraph-file" data-name="{name}">'
    return opening.encode() + base64.b64encode(data) + b"</script>\n"


def _language(contents: Mapping[str, bytes]) -> str:
    try:
        language = json.loads(contents[REPORT])["language"]
    except (KeyError, ValueError, TypeError):
        return "en"
    return "zh" if isinstance(language, str) and language.startswith("zh") else "en"


def _facts(contents: Mapping[str, bytes], words: Mapping[str, str]) -> str:
    """What the seal says, for readers without JavaScript too; nothing when it can't be read (verify names that)."""
    try:
        envelope = Envelope.from_bytes(contents.get(ENVELOPE, b""))
    except EnvelopeUnreadable:
        return ""
    predicate: Mapping[str, Any] = envelope.statement["predicate"]
    facts = {key: predicate.get(key) for key in ("run", "tier", "finished", "content")} | {"keyid": envelope.keyid}
    return "".join(
        f'<div><dt>{words[key]}</dt><dd data-fact="{key}">{html.escape(str(value))}</dd></div>\n'
        for key, value in facts.items()
        if value is not None
    )


def _report(contents: Mapping[str, bytes], words: Mapping[str, str]) -> str:
    if REPORT_HTML not in contents:
        return f"<p>{words['no_report']}</p>\n"
    page = html.escape(contents[REPORT_HTML].decode("utf-8", "replace"), quote=True)
    return f'<iframe title="report" sandbox srcdoc="{page}"></iframe>\n'


@cache
def _asset(name: str) -> str:
    return resources.files("learngraph_kernel.runs").joinpath("bundle_assets", name).read_text(encoding="utf-8")


@cache
def _template() -> tuple[tuple[str, str | None], ...]:
    """The page as literals, each followed by the place to fill after it."""
    literals = _PLACE.split(_asset("page.html"))
    return tuple((literals[i], literals[i + 1] if i + 1 < len(literals) else None) for i in range(0, len(literals), 2))
