from __future__ import annotations

import stat
from pathlib import Path

import pytest

from learngraph_kernel.store.errors import StoreUnavailable
from learngraph_kernel.store.home import Home


def test_the_environment_moves_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEARNGRAPH_HOME", str(tmp_path / "elsewhere"))
    assert Home.default().database == tmp_path / "elsewhere" / "learngraph.db"


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_it_lies_in_the_users_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    if value is None:
        monkeypatch.delenv("LEARNGRAPH_HOME", raising=False)
    else:
        monkeypatch.setenv("LEARNGRAPH_HOME", value)
    assert Home.default().root == tmp_path / ".local" / "share" / "learngraph"


def test_ensure_makes_private_folders_and_tightens_a_lax_root(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.root.mkdir(mode=0o755)
    home.ensure()
    home.ensure()
    for folder in (home.root, home.artifacts, home.runs, home.keys, home.samples):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_file_in_the_way_is_named_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")
    with pytest.raises(StoreUnavailable, match="LEARNGRAPH_HOME") as caught:
        Home(tmp_path / "home").ensure()
    assert caught.value.where is not None
    assert "home" in caught.value.where
