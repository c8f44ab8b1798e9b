"""The settings file: every key checked, none guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from learngraph_kernel.sandboxd.settings import GIB, BadSettings, Settings, load_settings

BASE = Settings.under(Path("/state"))


def load(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "sandboxd.toml"
    path.write_text(text)
    return load_settings(path, BASE)


def test_the_defaults_are_the_references() -> None:
    assert (BASE.container_idle, BASE.container_absolute) == (180, 1_800)
    assert (BASE.workspace_idle, BASE.workspace_absolute, BASE.retained_per_user) == (1_800, 86_400, 10)
    assert (BASE.active_per_user, BASE.active_total, BASE.disk_kept) == (2, 20, 20 * GIB)
    assert (BASE.memory_share, BASE.cpu_share, BASE.command_seconds) == (0.70, 0.80, 180)
    assert (BASE.workspace_bytes, BASE.output_bytes, BASE.container_memory) == (256 << 20, 5 << 20, 2 * GIB)


def test_values_replace_defaults(tmp_path: Path) -> None:
    found = load(
        tmp_path, '[sandbox]\nactive_total = 3\ncontainer_idle = 5\nimage = "sha256:x"\nkernel_roots = ["/tmp"]\n'
    )
    assert (found.active_total, found.container_idle, found.image) == (3, 5.0, "sha256:x")
    assert found.kernel_roots == (Path("/tmp"),) and found.active_per_user == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[sandbox]\nactive_totl = 3", "active_total"),
        ("[sandbx]\n", "sandbx"),
        ("[sandbox]\nactive_total = '3'", "active_total"),
        ("[sandbox]\nactive_total = true", "active_total"),
        ("[sandbox]\nactive_total = 1.5", "active_total"),
        ("[sandbox]\nactive_total = -1", "active_total"),
        ("[sandbox]\nmemory_share = 1.5", "memory_share"),
        ("[sandbox]\ncpu_share = 0", "cpu_share"),
        ("[sandbox]\nadmit = 'everyone'", "admit"),
        ("[sandbox]\nkernel_roots = []", "kernel_roots"),
        ("[sandbox]\nstrict = 1", "strict"),
        ("[sandbox", "cannot be read"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(BadSettings) as caught:
        load(tmp_path, text)
    assert named in str(caught.value)


def test_a_missing_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(BadSettings):
        load_settings(tmp_path / "none.toml", BASE)
