"""What of a cell's outputs counts: tables of cases, and two real runs of one thing."""

from __future__ import annotations

import base64
import io
import json
import random
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.runs.outputs import canonical_outputs, strip_png, terminal_text


def stream(text: Any, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def display(data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}, **more}


def result(text: str, count: int = 1) -> dict[str, Any]:
    return display({"text/plain": text}) | {"output_type": "execute_result", "execution_count": count}


def error(*lines: str, evalue: str = "bad") -> dict[str, Any]:
    return {"output_type": "error", "ename": "ValueError", "evalue": evalue, "traceback": list(lines)}


def canonical(*outputs: dict[str, Any], run_id: str | None = None) -> bytes:
    return canonical_json(canonical_outputs({"cell_type": "code", "outputs": list(outputs)}, run_id=run_id))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("50%\r100%", "100%"),
        ("100%\r50%", "50%%"),
        ("abc\rX", "Xbc"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\rb\rc\nd\re", "c\ne"),
        ("ab\b\bXY", "XY"),
        ("\b\bab", "ab"),
        ("long line\r\x1b[Kshort", "short"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("进度 1\r进度 2", "进度 2"),
        ("", ""),
    ],
)
def test_a_stream_reads_as_a_terminal_shows_it(text: str, shown: str) -> None:
    assert terminal_text(text) == shown


SAME = {
    "execution counts": ([result("1", 1)], [result("1", 9)]),
    "chopped streams": ([stream("ab"), stream("c\n")], [stream("abc\n")]),
    "a stream as lines": ([stream(["a\n", "b"])], [stream("a\nb")]),
    "stdout and stderr interleaved": (
        [stream("a"), stream("e", "stderr"), stream("b")],
        [stream("e", "stderr"), stream("ab")],
    ),
    "object addresses": ([result("<object object at 0x7f2a10b3c5d0>")], [result("<object object at 0x55d0c0ffee10>")]),
    "short addresses": ([result("<f at 0x10f3a2b80>")], [result("<f at 0x7f10f3a2b80>")]),
    "addresses in streams": ([stream("<A at 0x7f0000000010>")], [stream("<A at 0x7f0000000020>")]),
    "bare pointers": ([stream("ptr=0x7f2a10b3c5d0")], [stream("ptr=0x7f9910b3c5d0")]),
    "widget ids": (
        [display({"text/plain": "IntSlider(value=0)", "application/vnd.jupyter.widget-view+json": {"model_id": "a"}})],
        [display({"text/plain": "IntSlider(value=0)", "application/vnd.jupyter.widget-view+json": {"model_id": "b"}})],
    ),
    "a display of a widget alone": (
        [display({"application/vnd.jupyter.widget-view+json": {"model_id": "a"}})],
        [],
    ),
    "the order of JSON members": (
        [display({"application/json": {"a": 1, "b": [2]}})],
        [display({"application/json": {"b": [2], "a": 1}})],
    ),
    "the wrapping of base64": ([display({"image/jpeg": "AAAA\nBBBB\n"})], [display({"image/jpeg": "AAAABBBB"})]),
    "transient display ids": (
        [display({"text/plain": "x"}, transient={"display_id": "1"})],
        [display({"text/plain": "x"})],
    ),
    "styler ids": (
        [display({"text/html": '<style>#T_a1b2c_row0 {}</style><table id="T_a1b2c"><td id="T_a1b2c_row0">1</td>'})],
        [display({"text/html": '<style>#T_0ff1c_row0 {}</style><table id="T_0ff1c"><td id="T_0ff1c_row0">1</td>'})],
    ),
    "random element ids": (
        [display({"text/html": "<div id='x-0123456789abcdef0123456789abcdef'></div>"})],
        [display({"text/html": "<div id='x-fedcba9876543210fedcba9876543210'></div>"})],
    ),
    "colours and prompts in a traceback": (
        [error("\x1b[31mValueError\x1b[0m", "Cell \x1b[32mIn[3]\x1b[0m, line 1")],
        [error("ValueError", "Cell In[17], line 1")],
    ),
    "folders in a traceback": (
        [error("File /home/ana/.venv/lib/python3.11/site-packages/pandas/core/frame.py:10, in f(x)")],
        [error("File /opt/x/site-packages/pandas/core/frame.py:10, in f(x)")],
    ),
    "the kernel's temporary file in a traceback": (
        [error("File /tmp/ipykernel_12/345.py in <module>")],
        [error("File /tmp/ipykernel_99/345678.py in <module>")],
    ),
    "own folder in a traceback": ([error("File ~/work/my.py:3, in g()")], [error("File /srv/job/my.py:3, in g()")]),
    "addresses in an error": ([error(evalue="<A at 0x7f0000000010>")], [error(evalue="<A at 0x7f0000000020>")]),
}


@pytest.mark.parametrize("case", SAME)
def test_what_belongs_to_the_running_does_not_count(case: str) -> None:
    first, second = SAME[case]
    assert canonical(*first) == canonical(*second)


DIFFERENT = {
    "text": ([stream("1")], [stream("2")]),
    "the stream it went to": ([stream("1")], [stream("1", "stderr")]),
    "a printed timing": ([stream("took 1.2 s")], [stream("took 1.3 s")]),
    "the order of a printed set": ([result("{'a', 'b'}")], [result("{'b', 'a'}")]),
    "a hexadecimal number": ([result("0xdeadbeef")], [result("0xdeadbee0")]),
    "a hash in a text": ([stream("7f2a10b3c5d0")], [stream("7f2a10b3c5d1")]),
    "a mime type": ([display({"text/plain": "1"})], [display({"text/html": "1"})]),
    "JSON": ([display({"application/json": {"a": 1}})], [display({"application/json": {"a": 2}})]),
    "large integers in JSON": ([display({"application/json": 2**60})], [display({"application/json": 2**60 + 1})]),
    "the order of displays": ([result("1"), result("2")], [result("2"), result("1")]),
    "display or result": ([display({"text/plain": "1"})], [result("1")]),
    "metadata": ([display({"text/plain": "1"})], [display({"text/plain": "1"}) | {"metadata": {"width": 3}}]),
    "a line number in a traceback": ([error("File my.py:3")], [error("File my.py:4")]),
    "the kind of error": ([error()], [error() | {"ename": "KeyError"}]),
    "our card": (
        [display({"application/vnd.learngraph.card+json": {"value": 1}})],
        [display({"application/vnd.learngraph.card+json": {"value": 2}})],
    ),
    "our own html": (
        [display({"application/vnd.learngraph.card+json": {}, "text/html": "<b>1</b>"})],
        [display({"application/vnd.learngraph.card+json": {}, "text/html": "<b>2</b>"})],
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_belongs_to_the_result_counts(case: str) -> None:
    first, second = DIFFERENT[case]
    assert canonical(*first) != canonical(*second)


def test_evidence_that_names_its_run_agrees_between_runs() -> None:
    def card(run: str) -> dict[str, Any]:
        return display({"application/vnd.learngraph.card+json": {"run": run}, "text/html": f"<p>run {run}</p>"})

    assert canonical(card("r_1AB"), run_id="r_1AB") == canonical(card("r_2CD"), run_id="r_2CD")
    assert canonical(card("r_1AB"), run_id="r_1AB") != canonical(card("r_other"), run_id="r_2CD")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"$schema": "x"}, {"a": [2**70]}, None, True])
def test_anything_a_kernel_sends_has_a_canonical_form(value: Any) -> None:
    assert canonical(display({"application/json": value}))


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(pixels: bytes, *stamps: bytes) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", len(pixels), 1, 8, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + b"".join(stamps)
        + chunk(b"IDAT", zlib.compress(b"\0" + pixels))
        + chunk(b"IEND", b"")
    )


def test_stamps_in_a_picture_do_not_count_but_pixels_do() -> None:
    plain = png(b"\1\2")
    for kind in (b"tEXt", b"iTXt", b"zTXt", b"tIME"):
        assert strip_png(png(b"\1\2", chunk(kind, b"Software\0Matplotlib 3.9"))) == plain
    assert strip_png(png(b"\1\2", chunk(b"pHYs", b"\0" * 9))) != plain
    assert strip_png(png(b"\1\3")) != plain


@pytest.mark.parametrize("data", [b"", b"no picture", png(b"\1")[:-3], png(b"\1") + b"tail"])
def test_a_damaged_picture_counts_as_it_is(data: bytes) -> None:
    assert strip_png(data) == data
    assert canonical(display({"image/png": base64.b64encode(data).decode()}))


def test_a_picture_that_is_not_base64_counts_as_it_is() -> None:
    assert canonical(display({"image/png": "!!"})) != canonical(display({"image/png": "!?"}))


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_two_drawings_of_one_figure_agree_and_of_another_do_not(kind: str) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib.figure import Figure

    def drawn(last: int) -> bytes:
        figure = Figure()
        axes = figure.subplots()
        axes.plot([1, 2, last], marker="o")
        axes.fill_between([0, 1], [1, 2], hatch="/")
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, metadata={"Title": str(random.random())} if kind == "png" else None)
        data = buffer.getvalue()
        mime, text = (
            ("image/svg+xml", data.decode()) if kind == "svg" else ("image/png", base64.b64encode(data).decode())
        )
        return canonical(display({mime: text}))

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


texts = st.text(alphabet=st.sampled_from("ab\r\n\b\x1b[K0x7f é进") | st.characters(), max_size=30)


@given(st.lists(texts, max_size=5), st.randoms())
def test_however_a_stream_is_chopped_it_counts_the_same(pieces: list[str], chance: random.Random) -> None:
    whole = "".join(pieces)
    cuts = sorted(chance.randrange(len(whole) + 1) for _ in range(3))
    again = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert canonical(*map(stream, pieces)) == canonical(*map(stream, again))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | texts,
        lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
        max_leaves=8,
    )
)
def test_canonical_outputs_survive_json_and_are_stable(value: Any) -> None:
    cell = {"outputs": [display({"application/json": value}), stream(str(value))]}
    once = canonical_outputs(cell)
    assert json.loads(canonical_json(once)) == once
    assert canonical_outputs({"outputs": once}) == once
