"""Finding a source kind: the built-in ones, and those other packages bring."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from learngraph_kernel.data.source import BUILT_IN_KINDS, UnknownKind, source_kind
from learngraph_kernel.data.workspace import load_workspace


@pytest.mark.parametrize("kind", sorted(BUILT_IN_KINDS))
def test_a_built_in_kind_names_its_keys(kind: str) -> None:
    found = source_kind(kind)
    assert found.required <= found.keys
    assert found.required


def test_a_kind_from_another_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    (tmp_path / "shoutsource.py").write_text(
        "class ShoutKind:\n"
        "    keys = frozenset({'volume'})\n"
        "    required = frozenset()\n"
        "    def open(self, config, root, home):\n"
        "        return ('opened', config.name, config.options['volume'])\n"
    )
    metadata = tmp_path / "shoutsource-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shoutsource\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[learngraph.source]\nshout = shoutsource:ShoutKind\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "learngraph.toml").write_text('[sources.loud]\nkind = "shout"\nvolume = "eleven"\n')
    space = load_workspace(tmp_path)
    assert space.open_source("loud", home) == ("opened", "loud", "eleven")
    sys.modules.pop("shoutsource", None)


def test_an_unknown_kind_names_the_closest() -> None:
    with pytest.raises(UnknownKind) as error:
        source_kind("sqllite")
    assert error.value.remedy == "did you mean 'sqlite'?"
