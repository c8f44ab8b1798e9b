"""`learngraph verify` and `learngraph export` as a person or a script calls them: real processes, documented codes."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.cli.main import main
from learngraph_kernel.runs.keys import load_or_create_signer
from learngraph_kernel.runs.seal import seal_run_in_store
from learngraph_kernel.store.database import Home, Store
from tests.runs.sample_run import ACTOR, RUN, record_run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("cli") / "home")
    with Store.open(home) as store:
        record_run(store)
        seal_run_in_store(store, RUN, signer=load_or_create_signer(home.keys), actor=ACTOR)
        record_run(store, "r_0UNSEA1ED", closing="run.failed")
    return home


@pytest.fixture
def call(home: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs the command; returns exit code, standard output, standard error."""
    monkeypatch.setenv("LEARNGRAPH_HOME", str(home.root))

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return int(stop.value.code or 0), out, err

    return run


def exported(call: Any, tmp_path: Path) -> Path:
    code, _, err = call("export", RUN, "--to", tmp_path / "out")
    assert (code, err) == (0, "")
    return tmp_path / "out"


def test_a_run_in_the_store_verifies(call: Any) -> None:
    code, out, _ = call("verify", RUN)
    assert code == 0
    assert out.startswith(f"verified: {RUN} is what was sealed")
    assert "a key in this instance's keys folder" in out


def test_an_exported_folder_verifies_without_store_or_key(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = exported(call, tmp_path)
    monkeypatch.setenv("LEARNGRAPH_HOME", str(tmp_path / "nothing here"))
    code, out, _ = call("verify", folder)
    assert code == 0
    assert "not pinned" in out
    assert not (tmp_path / "nothing here").exists()


def test_a_flipped_byte_is_named_and_the_code_is_5(call: Any, tmp_path: Path) -> None:
    folder = exported(call, tmp_path)
    data = bytearray((folder / "report.html").read_bytes())
    data[20] ^= 1
    (folder / "report.html").write_bytes(bytes(data))
    code, out, _ = call("verify", folder)
    assert code == 5
    assert "[file_altered] report.html" in out
    code, out, _ = call("verify", folder, "--json")
    body = json.loads(out)
    assert (code, body["ok"]) == (5, False)
    assert [finding["where"] for finding in body["findings"]] == ["report.html"]


def test_json_says_what_was_verified(call: Any, home: Home) -> None:
    code, out, _ = call("verify", RUN, "--json")
    body = json.loads(out)
    assert (code, body["ok"], body["run_id"], body["trust"]) == (0, True, RUN, "own")
    assert body["signer"] == load_or_create_signer(home.keys).public.keyid
    assert len(body["content_hash"]) == 64


def test_a_pinned_key_must_have_signed(call: Any, tmp_path: Path, home: Home) -> None:
    folder = exported(call, tmp_path)
    own = load_or_create_signer(home.keys).public
    for key in (own.keyid, "SHA256:" + own.keyid.upper(), home.keys / "signing-key.pub"):
        code, out, _ = call("verify", folder, "--key", key)
        assert (code, "the key you named" in out) == (0, True)
    code, out, _ = call("verify", folder, "--key", "0" * 64)
    assert code == 5
    assert "[signer_not_pinned]" in out


@pytest.mark.parametrize(
    ("arguments", "code_name"),
    [
        (["verify", "r_NOSUCHRUN"], "nothing_to_verify"),
        (["verify", "."], "nothing_to_verify"),
        (["verify", __file__], "nothing_to_verify"),
        (["verify", "r_0UNSEA1ED"], "not_sealed"),
        (["verify", RUN, "--key", "no key"], "bad_input"),
        (["verify", RUN, "--key", __file__], "not_a_public_key"),
        (["export", "r_NOSUCHRUN", "--to", "x"], "nothing_to_verify"),
        (["export", RUN], "bad_input"),
        (["export", RUN, "--to", "no/such/folder"], "bad_input"),
        (["export", RUN, "--to", "."], "folder_in_the_way"),
    ],
)
def test_bad_input_is_code_2_with_a_remedy(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code_name: str
) -> None:
    (tmp_path / "something").write_text("x")
    monkeypatch.chdir(tmp_path)
    code, out, _ = call(*arguments, "--json")
    assert code == 2
    body = json.loads(out)["error"]
    assert body["code"] == code_name
    assert body["remedy"]


def test_every_form_can_be_written_at_once_and_verifies(call: Any, tmp_path: Path) -> None:
    pytest.importorskip("rocrate")
    forms = ("--to", "folder"), ("--html", "report.html"), ("--bundle", "bundle.html"), ("--crate", "crate")
    code, out, _ = call("export", RUN, *(item for flag, name in forms for item in (flag, tmp_path / name)), "--json")
    assert code == 0
    written = json.loads(out)
    assert (written["run_id"], written["bundle"]) == (RUN, str(tmp_path / "bundle.html"))
    for name in ("folder", "bundle.html", "crate/run"):
        assert call("verify", tmp_path / name)[0] == 0
    assert (tmp_path / "report.html").read_bytes() == (tmp_path / "folder" / "report.html").read_bytes()


def test_a_folder_exports_to_the_same_bundle_as_the_run(call: Any, tmp_path: Path) -> None:
    folder = exported(call, tmp_path)
    assert call("export", folder, "--bundle", tmp_path / "a.html")[0] == 0
    assert call("export", RUN, "--bundle", tmp_path / "b.html")[0] == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_what_is_not_as_sealed_is_not_exported(call: Any, tmp_path: Path) -> None:
    folder = exported(call, tmp_path)
    (folder / "result.json").write_bytes(b"{}")
    code, out, _ = call("export", folder, "--bundle", tmp_path / "b.html", "--json")
    assert code == 5
    assert json.loads(out)["error"]["details"]["findings"]
    assert not (tmp_path / "b.html").exists()


def test_a_row_of_the_table_of_runs_that_was_changed_is_found(
    call: Any, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Home(tmp_path / "copy")
    shutil.copytree(home.root, copy.root)
    with Store.open(copy) as store, store.unit_of_work("user:mallory") as work:
        work.update_run(RUN, tier="degraded")
    monkeypatch.setenv("LEARNGRAPH_HOME", str(copy.root))
    code, out, _ = call("verify", RUN)
    assert code == 5
    assert "[record_disagrees]" in out


def test_a_full_disk_is_one_clear_message_and_leaves_nothing(call: Any, tmp_path: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    try:
        code, _, err = call("export", RUN, "--bundle", tmp_path / "b.html", "--to", tmp_path / "folder")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert code == 1
    assert "no room to write" in err
    assert list(tmp_path.iterdir()) == []


def test_the_command_works_as_a_process(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from learngraph_kernel.cli import main; main()", "verify", RUN],
        env={**os.environ, "LEARNGRAPH_HOME": str(home.root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
