"""Secrets: encrypted, masked, and gone when they are removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.accounts.vault import BadSecret, UnknownSecret, Vault, VaultLocked
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home

VALUE = "sk-very-secret-0123456789"


def test_a_secret_comes_back_and_stands_nowhere_on_the_disk(store: Store, place: Home) -> None:
    vault = Vault(store, place)
    vault.put("openai", VALUE, actor="user:ana")
    assert vault.reveal("openai") == VALUE
    store.close()
    for path in place.root.rglob("*"):
        assert not path.is_file() or VALUE.encode() not in path.read_bytes(), path


def test_a_list_tells_names_and_nothing_of_the_values(store: Store, place: Home) -> None:
    vault = Vault(store, place)
    vault.put("openai", VALUE, actor="user:ana")
    (row,) = vault.listed()
    assert (row["name"], row["changed_by"]) == ("openai", "user:ana") and VALUE[:8] not in str(row)


def test_setting_again_replaces_and_removing_forgets(store: Store, place: Home) -> None:
    vault = Vault(store, place)
    vault.put("openai", VALUE, actor="user:ana")
    vault.put("openai", "another-value", actor="user:ana")
    assert vault.reveal("openai") == "another-value"
    vault.remove("openai", actor="user:ana")
    with pytest.raises(UnknownSecret):
        vault.reveal("openai")
    with pytest.raises(UnknownSecret):
        vault.remove("openai", actor="user:ana")


@pytest.mark.parametrize("name", ["", "Openai", "a b", "../key", "1x", "x" * 65, "a\n"])
def test_a_name_is_a_plain_word(store: Store, place: Home, name: str) -> None:
    with pytest.raises(BadSecret):
        Vault(store, place).put(name, VALUE, actor="user:ana")


@pytest.mark.parametrize("value", ["", "short", "two\nlines of text", "x" * 20_000])
def test_a_value_is_one_that_can_be_masked(store: Store, place: Home, value: str) -> None:
    with pytest.raises(BadSecret):
        Vault(store, place).put("openai", value, actor="user:ana")


def test_a_missing_damaged_or_other_key_is_told_and_never_made_anew_over_secrets(store: Store, place: Home) -> None:
    vault, key = Vault(store, place), place.keys / "vault.key"
    vault.put("openai", VALUE, actor="user:ana")
    kept = key.read_bytes()
    for wrong in (None, b"damaged", b"A" * 43 + b"="):
        key.unlink(missing_ok=True)
        if wrong is not None:
            key.write_bytes(wrong)
            key.chmod(0o600)
        with pytest.raises(VaultLocked):
            vault.reveal("openai")
    key.unlink()
    with pytest.raises(VaultLocked):
        vault.put("other", VALUE, actor="user:ana")
    key.write_bytes(kept)
    key.chmod(0o600)
    assert vault.reveal("openai") == VALUE


def test_a_key_that_others_may_read_is_refused(store: Store, place: Home) -> None:
    vault = Vault(store, place)
    vault.put("openai", VALUE, actor="user:ana")
    (place.keys / "vault.key").chmod(0o640)
    with pytest.raises(VaultLocked, match="others may read"):
        vault.reveal("openai")


def test_processes_that_begin_at_once_agree_on_the_key(place: Home) -> None:
    code = "import sys; from learngraph_kernel.cli import main; main(['secret', 'set', sys.argv[1]])"
    children = [
        subprocess.Popen([sys.executable, "-c", code, f"s{n}"], stdin=subprocess.PIPE, env=os.environ.copy())
        for n in range(4)
    ]
    for child in children:
        child.communicate(VALUE.encode(), timeout=60)
    assert [child.returncode for child in children] == [0] * 4
    with Store.open(place) as store:
        assert {Vault(store, place).reveal(f"s{n}") for n in range(4)} == {VALUE}


def test_the_command_keeps_lists_and_removes(learngraph: Any, home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "learngraph_kernel.cli", "secret", "set", "openai"],
        input=VALUE, text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert VALUE not in done.stdout + done.stderr and 'api_key = "secret:openai"' in done.stdout
    listed = learngraph("secret", "list", "--json")
    assert [row["name"] for row in listed.json["secrets"]] == ["openai"] and VALUE not in listed.out
    assert learngraph("secret", "remove", "openai").code == 0
    assert learngraph("secret", "remove", "openai").code != 0
