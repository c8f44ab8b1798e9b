from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.data.workspace import BadWorkspace
from learngraph_kernel.tools.settings import DEFAULTS, parse_tools, tool_settings
from learngraph_kernel.tools.values import Effect


def test_a_workspace_says_how_effects_are_approved_and_which_tools_are_on(tmp_path: Path) -> None:
    (tmp_path / "learngraph.toml").write_text(
        '[tools]\ndisabled = ["sandbox_exec"]\nenabled = ["mcp__a__b"]\nseconds = 30\ncharacters = 2000\n'
        'network = "never"\noutside-write = "ask"\nrun-code-on-host = "always"\n'
    )
    found = tool_settings(tmp_path)
    changed = {Effect.NETWORK: "never", Effect.OUTSIDE_WRITE: "ask", "run-code-on-host": "always"}
    assert found.modes == {**DEFAULTS, **changed}
    assert (found.disabled, found.enabled) == (frozenset({"sandbox_exec"}), frozenset({"mcp__a__b"}))
    assert (found.seconds, found.characters) == (30, 2000)


def test_without_a_table_the_defaults_hold(tmp_path: Path) -> None:
    assert tool_settings(tmp_path).modes == DEFAULTS


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"networks": "ask"}, "no key 'networks'"),
        ({"network": "yes"}, "network is not 'yes'"),
        ({"network": True}, "network is not True"),
        ({"disabled": "a"}, "disabled must be a list"),
        ({"disabled": [1]}, "disabled must be a list"),
        ({"seconds": 0}, "seconds must be"),
        ({"seconds": True}, "seconds must be"),
        ({"characters": 10}, "characters must be"),
        ({"characters": 1e4}, "characters must be"),
    ],
)
def test_a_wrong_key_or_value_is_named(table: dict[str, Any], why: str) -> None:
    with pytest.raises(BadWorkspace) as refused:
        parse_tools(table, where="learngraph.toml")
    assert why in refused.value.what
    assert refused.value.where == "learngraph.toml"


def test_tools_that_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "learngraph.toml").write_text('tools = "all"\n')
    with pytest.raises(BadWorkspace, match="must be a table"):
        tool_settings(tmp_path)
