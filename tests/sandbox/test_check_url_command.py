from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import COMMAND
from tests.sandbox.url_corpus import LEGITIMATE, OTHERS, PUBLIC, SPELLINGS


def check(lines: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, "sandbox", "check-url", *options],
        input=lines,
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts.json"
    answers = {"example.com": [PUBLIC], "BÜCHER.example.": [PUBLIC], "inside.example": ["10.0.0.1"], "none.example": []}
    path.write_text(json.dumps(answers))
    return path


def answers(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, object]]:
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_line_gets_one_answer_in_order(hosts: Path) -> None:
    lines = [
        "https://example.com/a", "", "https://inside.example/", "https://none.example/", "https://xn--bcher-kva.example/",
        "https://unknown.example/", " ", "https://example.com/",
    ]  # fmt: skip
    said = answers(check("\n".join(lines).encode(), "--resolver", str(hosts), "--json"))
    assert [answer["url"] for answer in said] == lines
    assert [answer["allowed"] for answer in said] == [True, False, False, False, True, False, False, True]
    assert all(set(answer) == {"url", "allowed", "reason"} for answer in said)


def test_the_hostile_corpus_and_the_legitimate_one_through_the_command(tmp_path: Path) -> None:
    hostile = [url for url in SPELLINGS if not any(0xD800 <= ord(char) <= 0xDFFF for char in url)]
    legitimate = [*LEGITIMATE, *OTHERS]
    from learngraph_kernel.sandbox.urls import parse_url

    table = tmp_path / "hosts.json"
    table.write_text(json.dumps({parse_url(url).host: [PUBLIC] for url in legitimate}))
    said = answers(check("\n".join([*hostile, *legitimate]).encode(), "--resolver", str(table), "--json"))
    assert [answer["url"] for answer in said] == [*hostile, *legitimate]
    assert [answer["allowed"] for answer in said] == [False] * len(hostile) + [True] * len(legitimate)


def test_bytes_that_are_no_text_are_refused_and_do_not_stop_the_rest(hosts: Path) -> None:
    lines = b"\0\nhttps://example.com/\xff\n\xed\xa0\x80\nhttps://example.com/\r\nhttps://example.com/\n"
    said = answers(check(lines, "--resolver", str(hosts), "--json"))
    assert [answer["allowed"] for answer in said] == [False, False, False, False, True]


def test_without_a_resolver_nothing_is_allowed_and_the_reason_is_given() -> None:
    (answer,) = answers(check(b"https://example.com/\n", "--json"))
    assert answer["allowed"] is False
    assert "no resolver given" in str(answer["reason"])


def test_for_a_person_hostile_text_is_escaped(hosts: Path) -> None:
    done = check(b"https://example.com/\x1b[31m\nhttps://example.com/\n", "--resolver", str(hosts))
    assert b"\x1b" not in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()] == [b"refused", b"allowed"]


@pytest.mark.parametrize("content", ["[]", "not json", '{"a": "1.1.1.1"}', '{"a": [1]}', "[" * 100000])
def test_a_bad_table_of_hosts_is_bad_input(tmp_path: Path, content: str) -> None:
    table = tmp_path / "hosts.json"
    table.write_text(content)
    done = check(b"https://example.com/\n", "--resolver", str(table), "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "bad_input"


def test_no_socket_is_ever_opened(hosts: Path) -> None:
    script = (
        "import sys\n"
        "def watch(event, arguments):\n"
        "    if event.startswith('socket.'): raise SystemExit('socket: ' + event)\n"
        "sys.addaudithook(watch)\n"
        "from learngraph_kernel.cli import main\n"
        f"main(['sandbox', 'check-url', '--json', '--resolver', {str(hosts)!r}])"
    )
    urls = b"https://example.com/\nhttps://unknown.example/\n"
    done = subprocess.run([COMMAND[0], "-c", script], input=urls, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout.splitlines()) == 2
