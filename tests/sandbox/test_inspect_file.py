"""The fixed runner looks at hostile files: it names what is wrong, writes nothing, and ends soon."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import sqlite3
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from learngraph_kernel.sandbox.inside.inspect_file import MAX_OUTPUT, bounded_json, extract, inspect

ZEROS = bytes(20 << 20)
WORKBOOK = (
    '<workbook xmlns="x" xmlns:r="y"><sheets><sheet name="Sales" sheetId="1" r:id="rId1"/>'
    '<sheet name="Secret" state="veryHidden" sheetId="2" r:id="rId2"/></sheets></workbook>'
)
RELATIONS = (
    '<Relationships xmlns="z"><Relationship Id="rId1" Target="worksheets/sheet1.xml"/>'
    '<Relationship Id="rId2" Target="/xl/worksheets/sheet2.xml"/>'
    '<Relationship Id="rId9" Target="http://evil/" TargetMode="External"/></Relationships>'
)
STRINGS = "<sst><si><t>region</t></si><si><r><t>am</t></r><r><t>ount</t></r></si></sst>"
SHEET = (
    '<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row>'
    '<row r="2"><c r="A2" t="inlineStr"><is><t>north</t></is></c><c r="B2"><f>SUM(1)</f><v>1</v></c></row></sheetData>'
    "</worksheet>"
)


def make_zip(entries: dict[str | zipfile.ZipInfo, bytes | str], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def make_xlsx(**parts: str | bytes) -> bytes:
    entries: dict[str | zipfile.ZipInfo, bytes | str] = {
        "[Content_Types].xml": "<Types/>",
        "xl/workbook.xml": WORKBOOK,
        "xl/_rels/workbook.xml.rels": RELATIONS,
        "xl/sharedStrings.xml": STRINGS,
        "xl/worksheets/sheet1.xml": SHEET,
        "xl/worksheets/sheet2.xml": SHEET,
    }
    return make_zip(entries | {name.replace("__", "/").replace("_xml", ".xml"): data for name, data in parts.items()})


def make_tar(members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def overlapping() -> bytes:
    """One compressed entry that the directory names fifty times."""
    data = make_zip({"a": bytes(100_000)})
    end = data.rindex(b"PK\x05\x06")
    size, offset = struct.unpack_from("<LL", data, end + 12)
    central = data[offset : offset + size]
    copies = b"".join(central[:46] + bytes([97 + n % 26]) for n in range(50))
    return data[:offset] + copies + struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 50, 50, len(copies), offset, 0)


def lying(claimed: int) -> bytes:
    """A sheet that claims to be small and is not."""
    data = bytearray(make_xlsx(xl__worksheets__sheet1_xml=b"<worksheet>" + b" " * (80 << 20) + b"</worksheet>"))
    at = data.rindex(b"xl/worksheets/sheet1.xml") - 46
    struct.pack_into("<L", data, at + 24, claimed)
    return bytes(data)


def many_entries() -> bytes:
    return make_zip({f"f{number}": b"" for number in range(11_000)})


def huge_directory() -> bytes:
    data = make_zip({"a": b"x"})
    end = data.rindex(b"PK\x05\x06")
    return data[: end + 12] + struct.pack("<L", 200 << 20) + data[end + 16 :]


def huge_directory_64() -> bytes:
    record = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 2**40, 2**40, 2**50, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 4, 1)
    end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return b"PK\x03\x04" + record + locator + end


LAUGHS = "<!DOCTYPE l [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(10)
)
LAUGHS += "]><worksheet>&k;</worksheet>"
EXTERNAL = '<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]><workbook>&x;</workbook>'

# name, content, the warning or the words of the error it must give
HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "zip bomb": ("a.zip", lambda: make_zip({"a": ZEROS}), "bomb"),
    "zip bomb of many": ("a.zip", lambda: make_zip({f"{n}": bytes(2 << 20) for n in range(20)}), "bomb"),
    "42.zip": ("a.zip", lambda: make_zip({f"lib {n}.zip": make_zip({"0.zip": b"x"}) for n in range(16)}), "nested"),
    "overlapping entries": ("a.zip", overlapping, "overlapping"),
    "zip slip": ("a.zip", lambda: make_zip({"../../etc/cron.d/x": b""}), "traversal"),
    "zip absolute": ("a.zip", lambda: make_zip({"/etc/passwd": b""}), "traversal"),
    "zip drive": ("a.zip", lambda: make_zip({"C:/windows/x": b""}), "traversal"),
    "zip backslash": ("a.zip", lambda: make_zip({"..\\..\\x": b""}), "traversal"),
    "zip home": ("a.zip", lambda: make_zip({"~/.ssh/authorized_keys": b""}), "traversal"),
    "zip dots inside": ("a.zip", lambda: make_zip({"a/b/../../../x": b""}), "traversal"),
    "zip link": ("a.zip", lambda: make_zip({entry("l", 0o120777): "/etc/passwd"}), "special_entry"),
    "zip device": ("a.zip", lambda: make_zip({entry("d", 0o020666): b""}), "special_entry"),
    "zip bidi name": ("a.zip", lambda: make_zip({"a\u202efdp.exe": b""}), "hidden_characters"),
    "zip escape name": ("a.zip", lambda: make_zip({"a\x1b[2Jb": b""}), "hidden_characters"),
    "zip case twins": ("a.zip", lambda: make_zip({"A.txt": b"", "a.TXT": b""}), "same_name"),
    "zip many entries": ("a.zip", many_entries, "many_entries"),
    "zip huge directory": ("a.zip", huge_directory, "directory has"),
    "zip64 huge directory": ("a.zip", huge_directory_64, "directory has"),
    "zip cut off": ("a.zip", lambda: make_zip({"a": b"x" * 999})[:-30], "cut off"),
    "zip after a program": ("a.zip", lambda: b"PK\x03\x04" + bytes(500) + make_zip({"a": b""}), "prefixed"),
    "pdf and zip": ("a.pdf", lambda: b"%PDF-1.4\n" + make_zip({"a": b""}), "polyglot"),
    "png and zip": ("a.png", lambda: b"\x89PNG\r\n\x1a\n" + bytes(99) + make_zip({"a": b""}), "polyglot"),
    "program as csv": ("a.csv", lambda: b"\x7fELF" + bytes(200), "executable"),
    "windows program as png": ("a.png", lambda: b"MZ" + bytes(200), "extension"),
    "script as csv": ("a.csv", lambda: b"#!/bin/sh\nrm -rf /\n", "executable"),
    "html as csv": ("a.csv", lambda: b"<script>alert(1)</script>", "extension"),
    "pickle": ("a.pkl", lambda: pickle.dumps({"a": 1}, 4), "executable"),
    "formula injection": ("a.csv", lambda: b'a,b\n1,"=cmd|x!A1"\n2,3\n', "formula"),
    "csv line without end": ("a.csv", lambda: b"a,b\n1,2\n" + b"x" * 400_000 + b",2\n", "long_line"),
    "csv ragged": ("a.csv", lambda: b"a,b\n" + b"1,2\n" * 40 + b"1\n", "ragged"),
    "billion laughs": ("a.xlsx", lambda: make_xlsx(xl__worksheets__sheet1_xml=LAUGHS), "sheet_unreadable"),
    "external entity": ("a.xlsx", lambda: make_xlsx(xl__workbook_xml=EXTERNAL), "document type"),
    "xlsx bomb": ("a.xlsx", lambda: make_xlsx(xl__worksheets__sheet1_xml=b" " * (80 << 20)), "bomb"),
    "xlsx that lies about its size": ("a.xlsx", lambda: lying(100), "sheet_unreadable"),
    "xlsx broken xml": ("a.xlsx", lambda: make_xlsx(xl__worksheets__sheet1_xml="<a><b>"), "sheet_unreadable"),
    "xlsx macros": ("a.xlsm", lambda: make_xlsx(xl__vbaProject__x="", **{"xl/vbaProject.bin": b"x"}), "macros"),
    "xlsx deep xml": ("a.xlsx", lambda: make_xlsx(xl__worksheets__sheet1_xml="<a>" * 200_000), "sheet_unreadable"),
    "tar traversal": ("a.tar", lambda: make_tar([(member("../x"), b"")]), "traversal"),
    "tar absolute": ("a.tar", lambda: make_tar([(member("/etc/x"), b"")]), "traversal"),
    "tar link": ("a.tar", lambda: make_tar([(member("l", tarfile.SYMTYPE, "/etc"), b"")]), "special_entry"),
    "tar hard link": ("a.tar", lambda: make_tar([(member("l", tarfile.LNKTYPE, "/etc/passwd"), b"")]), "special_entry"),
    "tar device": ("a.tar", lambda: make_tar([(member("d", tarfile.CHRTYPE), b"")]), "special_entry"),
    "tar fifo": ("a.tar", lambda: make_tar([(member("f", tarfile.FIFOTYPE), b"")]), "special_entry"),
    "tar set-uid": ("a.tar", lambda: make_tar([(member("s", mode=0o4755), b"")]), "set_id"),
    "tar cut off": ("a.tar", lambda: make_tar([(member("a"), b"x"), (member("b"), bytes(9000))])[:3000], "damaged"),
    "tar.gz bomb": ("a.tgz", lambda: make_tar([(member("a"), ZEROS)], "w:gz"), "bomb"),
    "gzip bomb": ("a.gz", lambda: gzip.compress(ZEROS, mtime=0), "bomb"),
    "gzip of many streams": ("a.gz", lambda: gzip.compress(bytes(100_000), mtime=0) * 200, "bomb"),
    "bzip2 bomb": ("a.bz2", lambda: bz2.compress(ZEROS), "bomb"),
    "xz bomb": ("a.xz", lambda: lzma.compress(ZEROS), "bomb"),
    "gzip in gzip": ("a.gz", lambda: gzip.compress(gzip.compress(b"x"), mtime=0), "nested"),
    "gzip damaged": ("a.gz", lambda: gzip.compress(os.urandom(5000), mtime=0)[:2000], "cut off"),
    "gzip garbage": ("a.gz", lambda: b"\x1f\x8b\x08" + b"\xff" * 100, "damaged"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    file_name, make, expected = HOSTILE[name]
    path = tmp_path / file_name
    path.write_bytes(make())
    before = sorted(os.listdir(tmp_path))
    started = time.process_time()
    report = inspect(str(path))
    assert time.process_time() - started < 5
    assert expected in {each["code"] for each in report["warnings"]} or expected in str(report["error"])
    assert len(bounded_json(report)) <= MAX_OUTPUT
    assert sorted(os.listdir(tmp_path)) == before
    json.dumps(report).encode("ascii")


PLAIN: dict[str, tuple[bytes, str]] = {
    "a.csv": (b"a,b\n1,2\n3,4\n", "csv"),
    "a.tsv": (b"a\tb\n1\t2\n", "csv"),
    "a.txt": ("你好，世界".encode(), "text"),
    "a.json": (b'{"a": [1, 2]}', "json"),
    "a.jsonl": (b'{"a": 1}\n{"a": 2}\n', "jsonl"),
    "a.html": (b"<!doctype html><p>x", "html"),
    "a.xml": (b"<?xml version='1.0'?><a/>", "xml"),
    "a.md": (b"# Title\n\nText.\n", "text"),
    "a.zip": (make_zip({"a": b"x"}), "zip"),
    "a.xlsx": (make_xlsx(), "xlsx"),
    "a.docx": (make_zip({"[Content_Types].xml": "", "word/document.xml": "<d/>"}), "docx"),
    "a.tar": (make_tar([(member("a"), b"x")]), "tar"),
    "a.gz": (gzip.compress(b"x", mtime=0), "gzip"),
    "a.xz": (lzma.compress(b"x"), "xz"),
    "a.bz2": (bz2.compress(b"x"), "bzip2"),
    "a.png": (b"\x89PNG\r\n\x1a\n" + bytes(40), "png"),
    "a.parquet": (b"PAR1" + bytes(40) + b"PAR1", "parquet"),
    "a.bin": (bytes(range(256)), "binary"),
    "empty.csv": (b"", "empty"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_an_honest_file_is_recognised_without_a_warning(name: str, tmp_path: Path) -> None:
    data, kind = PLAIN[name]
    (tmp_path / name).write_bytes(data)
    report = inspect(str(tmp_path / name))
    assert (report["kind"], report["error"], report["size"]) == (kind, None, len(data))
    assert {each["code"] for each in report["warnings"]} <= {"formulas", "hidden_sheet"}


def test_a_sqlite_file_is_recognised(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("create table t (a)")
    assert inspect(str(tmp_path / "a.db"))["kind"] == "sqlite"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("a,b\n1,é\n".encode(), "utf-8"),
        ("a,b\n1,é\n".encode("utf-8-sig"), "utf-8-sig"),
        ("a,b\n1,é\n".encode("utf-16"), "utf-16"),
        ("地区,金额\n华东,1\n".encode("gb18030"), "gb18030"),
        ("prix;coût\n1;à\n2;é\n".encode("cp1252"), "cp1252"),
        (b"x" * 65535 + "é".encode(), "utf-8"),
    ],
)
def test_the_encoding_is_found(data: bytes, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    assert inspect(str(tmp_path / "a.csv"))["encoding"] == encoding


def test_a_csv_file_is_described(tmp_path: Path) -> None:
    text = '"region, all";amount;day;share\n"a;b";1.5;2026-01-02;3 %\nc;2;2026-01-03;\n'
    (tmp_path / "a.csv").write_text(text)
    details = inspect(str(tmp_path / "a.csv"))["details"]
    assert (details["delimiter"], details["rows"], details["column_count"]) == (";", 2, 4)
    assert details["columns"] == [
        {"name": "region, all", "type": "text"},
        {"name": "amount", "type": "number"},
        {"name": "day", "type": "date"},
        {"name": "share", "type": "text"},
    ]


def test_a_workbook_is_described(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(make_xlsx())
    report = inspect(str(tmp_path / "a.xlsx"))
    assert report["details"] == {
        "sheet_count": 2,
        "sheets": [
            {"name": "Sales", "state": "visible", "rows": 2, "columns": 2, "header": ["region", "amount"]},
            {"name": "Secret", "state": "veryHidden", "rows": 2, "columns": 2, "header": ["region", "amount"]},
        ],
    }
    assert {each["code"] for each in report["warnings"]} == {"formulas", "hidden_sheet"}


def test_a_workbook_of_a_real_writer_is_described(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "数据"
    book.active.append(["地区", "金额", 3])
    book.active.append(["华东", 1.5, None])
    book.save(tmp_path / "a.xlsx")
    sheet = inspect(str(tmp_path / "a.xlsx"))["details"]["sheets"][0]
    assert sheet == {"name": "数据", "state": "visible", "rows": 2, "columns": 3, "header": ["地区", "金额", "3"]}


def test_an_archive_is_listed(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(make_zip({"d/": b"", "d/a.csv": b"1,2"}))
    details = inspect(str(tmp_path / "a.zip"))["details"]
    assert details["listed"] == [
        {"name": "d/", "size": 0, "kind": "folder"},
        {"name": "d/a.csv", "size": 3, "kind": "file"},
    ]


def test_text_comes_without_anything_that_acts_or_hides(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<html><head><title>t</title></head><body><p>Hello\u202e \u200bworld</p><script>evil()</script>"
        "<style>x{}</style><p>second&amp;</p></body></html>"
    )
    report = extract(str(tmp_path / "a.html"))
    assert report["text"].split() == ["Hello", "world", "second&"]
    assert report["untrusted"] is True and report["cut"] is False


def test_text_of_a_word_file(tmp_path: Path) -> None:
    body = '<w:document xmlns:w="w"><w:p><w:t>One</w:t></w:p><w:p><w:instrText>EVIL</w:instrText><w:t>two</w:t></w:p>'
    data = make_zip({"[Content_Types].xml": "", "word/document.xml": body + "</w:document>"})
    (tmp_path / "a.docx").write_bytes(data)
    assert extract(str(tmp_path / "a.docx"))["text"] == "One\ntwo"


def test_long_text_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("字" * 100_000)
    report = extract(str(tmp_path / "a.txt"))
    assert report["cut"] is True
    assert len(bounded_json(report)) <= MAX_OUTPUT


def test_names_in_an_old_code_page_are_no_overlap(tmp_path: Path) -> None:
    data = make_zip({"xx" * 20 + f"{n}": b"" for n in range(3)})
    data = data.replace(b"xx" * 20, "华东".encode("gbk") * 10)
    (tmp_path / "a.zip").write_bytes(data)
    assert inspect(str(tmp_path / "a.zip"))["warnings"] == []


def test_an_entry_without_a_name_is_listed(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(make_zip({"QQ": b"x"}).replace(b"QQ", b"\0Q"))
    assert inspect(str(tmp_path / "a.zip"))["details"]["entries"] == 1


def test_no_damage_makes_the_runner_fail(tmp_path: Path) -> None:
    """Honest and hostile files with bytes changed, cut out and put in, always the same ones."""
    random = Random(7)
    small = ("zip slip", "overlapping entries", "tar link", "gzip in gzip", "xlsx macros", "zip64 huge directory")
    seeds = [data for data, _ in PLAIN.values()] + [HOSTILE[name][1]() for name in small]
    path = tmp_path / "a.xlsx"
    for _ in range(600):
        data = bytearray(random.choice(seeds))
        for _ in range(random.randint(1, 12)):
            at = random.randrange(len(data) + 1)
            data[at : at + random.choice((0, 1, 1, 1, 30))] = random.randbytes(random.choice((0, 1, 1, 1, 8)))
        path.write_bytes(data)
        for report in (inspect(str(path)), extract(str(path))):
            assert report["error"] or "kind" in report
            assert len(bounded_json(report)) <= MAX_OUTPUT


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "missing"])
def test_only_a_regular_file_is_opened(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    if kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    report = inspect(str(path))
    assert report["error"] and "kind" not in report


def test_it_runs_as_a_program_with_the_standard_library_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    code = (
        "import runpy, sys; sys.argv = ['x', 'inspect', sys.argv[1]]\n"
        "try: runpy.run_module('learngraph_kernel.sandbox.inside.inspect_file', run_name='__main__')\n"
        "finally:\n"
        "    ours = {m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names) - {'learngraph_kernel'}\n"
        "    print(sorted(m for m in ours if not m.startswith(('_', 'sitecustomize'))), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(tmp_path / "a.csv")],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert json.loads(done.stdout)["kind"] == "csv"
    assert done.stderr.decode().strip() == "[]"
