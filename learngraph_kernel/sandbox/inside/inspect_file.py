"""The fixed runner of `sandbox-policy-v1`: says what an uploaded file is, or takes inert text out of it.

    python3 -I -B -m learngraph_kernel.sandbox.inside.inspect_file inspect inputs/report.xlsx

It prints one JSON object of at most 256 KiB and ends with 0; what is wrong with the file stands in it. The file is
hostile until shown otherwise: it is opened without following links, never executed, extracted or unpickled, and what
is unpacked on the way is bounded. (Not called `inspect`, since a script's folder comes first on Python's path.)
"""

from __future__ import annotations

import json
import os
import resource
import stat
import sys
from typing import BinaryIO

from learngraph_kernel.sandbox.inside import archives, kinds, tables, texts
from learngraph_kernel.sandbox.inside.findings import Details, Unreadable, Warnings, clean

FORMAT = "learngraph-inspection-v1"
TASKS = ("inspect", "text")
MAX_OUTPUT = 256 << 10
CPU_SECONDS = 60
MEMORY = 1 << 30


def inspect(path: str) -> Details:
    """What a file is. Takes its path; returns the report, also when the file cannot be read."""
    return _report(path, "inspect")


def extract(path: str) -> Details:
    """The report with the file's inert text as `text`."""
    return _report(path, "text")


def _report(path: str, task: str) -> Details:
    warnings = Warnings()
    report: Details = {"format": FORMAT, "task": task, "name": clean(os.path.basename(path)), "error": None}
    try:
        with _open(path) as file:
            report |= _identify(file, path, warnings)
            if task == "text":
                text, cut = texts.inert_text(file, report["kind"], report["encoding"])
                report |= {"text": text, "cut": cut, "untrusted": True}
            else:
                report["details"] = _describe(file, report["kind"], report["encoding"], warnings)
    except Unreadable as error:
        report["error"] = clean(str(error), 300)
    except MemoryError:
        report["error"] = "looking at the file takes more memory than allowed"
    except RecursionError:
        report["error"] = "the file is nested too deeply"
    report["warnings"] = warnings.as_json()
    return report


def _open(path: str) -> BinaryIO:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise Unreadable("this is not a regular file")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = os.open(path, flags)
    except OSError as error:
        raise Unreadable(f"the file cannot be opened ({error.strerror})") from error
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise Unreadable("this is not a regular file")
    return file


def _identify(file: BinaryIO, path: str, warnings: Warnings) -> Details:
    head = file.read(kinds.HEAD)
    kind = kinds.kind_of_head(head)
    if kind == "zip":
        kind = _kind_of_zip(file, warnings)
    elif kinds.hides_an_archive(file, kind):
        warnings.add("polyglot", f"a file of kind {kind} that is a ZIP archive as well")
    encoding = kinds.encoding_of(head) if kind in kinds.TEXTS else None
    extension = os.path.basename(path).rpartition(".")[2].lower() if "." in os.path.basename(path) else ""
    expected = kinds.EXTENSIONS.get(kind, (kind,))
    if extension and expected and extension not in expected:
        warnings.add("extension", f"the name says .{clean(extension, 20)}, the content is {kind}")
    return {"size": os.fstat(file.fileno()).st_size, "kind": kind, "encoding": encoding}


def _kind_of_zip(file: BinaryIO, warnings: Warnings) -> str:
    try:
        with archives.open_zip(file) as archive:
            names = set(archive.namelist())
    except Unreadable:
        return "zip"
    for part, kind in (("xl/workbook.xml", "xlsx"), ("word/document.xml", "docx"), ("ppt/presentation.xml", "pptx")):
        if part in names and "[Content_Types].xml" in names:
            return kind
    return "zip"


def _describe(file: BinaryIO, kind: str, encoding: str | None, warnings: Warnings) -> Details:
    if kind == "csv":
        return tables.describe_csv(file, encoding or "utf-8", warnings)
    if kind == "xlsx":
        return tables.describe_xlsx(file, warnings)
    if kind in ("zip", "docx", "pptx"):
        return archives.list_zip(file, warnings)
    if kind == "tar":
        return archives.list_tar(file, kind, warnings)
    if kind in ("gzip", "bzip2", "xz"):
        return archives.describe_packed(file, kind, warnings)
    if kind == "pickle":
        warnings.add("executable", "loading it would run code; it is not loaded")
    if kind in ("elf", "windows-executable", "mach-o", "java-class", "wasm", "script"):
        warnings.add("executable", "the file is a program; it is not run")
    if kind in ("7z", "rar", "zstd"):
        warnings.add("not_listed", f"archives of kind {kind} are not looked into")
    return _count_lines(file) if kind in kinds.TEXTS else {}


def _count_lines(file: BinaryIO) -> Details:
    file.seek(0)
    lines, last = 0, b"\n"
    while chunk := file.read(1 << 20):
        lines += chunk.count(b"\n")
        last = chunk[-1:]
    return {"lines": lines + (last != b"\n")}


def bounded_json(report: Details) -> bytes:
    """The report as JSON of at most 256 KiB: details go first, then text; never the kind and the warnings."""
    for smaller in ({}, {"details": {"omitted": "too large"}}, {"text": "", "cut": True}):
        report |= {key: value for key, value in smaller.items() if key in report}
        data = json.dumps(report, ensure_ascii=True).encode()
        if len(data) <= MAX_OUTPUT:
            return data
    raise AssertionError("a report without details and text is small")


def main(arguments: list[str]) -> int:
    """`inspect|text PATH`."""
    if len(arguments) != 2 or arguments[0] not in TASKS:
        print("usage: inspect_file (inspect|text) PATH", file=sys.stderr)
        return 2
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    report = _report(arguments[1], arguments[0])
    sys.stdout.buffer.write(bounded_json(report) + b"\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
