"""Arrows between packages point down, as docs/architecture.md draws them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "learngraph_kernel"

# What each package may import of ours. Modules beside them (`errors`, `canonical`, `naming`, `schemas`, `versions`) are
# for all. `broker.protocol` is the notebook's side of the socket as well.
BELOW: dict[str, set[str]] = {
    "cli": {
        "accounts",
        "agent",
        "tools",
        "models",
        "doctor",
        "runs",
        "evidence",
        "data",
        "sandbox",
        "sandboxd",
        "store",
    },
    "doctor": {"accounts", "runs", "evidence", "data", "models", "sandbox", "store"},
    "agent": {"accounts", "tools", "runs", "evidence", "data", "models", "sandbox", "store"},
    "tools": {"runs", "evidence", "data", "models", "sandbox", "store"},
    "sandboxd": {"broker", "sandbox", "store"},
    "sandbox": {"broker", "store"},
    "notebook": {"broker"},
    "accounts": {"models", "store"},
    "runs": {"accounts", "broker", "evidence", "data", "models", "sandbox", "store"},
    "broker": {"evidence", "data", "models", "store"},
    "data": {"evidence"},
    "evidence": set(),
    "models": set(),
    "store": set(),
}


def imported(package: str) -> Iterator[tuple[str, str]]:
    """(module, package of ours that it imports), for every import anywhere in a package's modules."""
    for path in sorted((PACKAGE / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                parts = name.split(".")
                if parts[0] == PACKAGE.name and len(parts) > 1 and (PACKAGE / parts[1]).is_dir():
                    yield f"{path.relative_to(PACKAGE)}", parts[1]


def test_every_package_has_its_place() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == BELOW.keys()


@pytest.mark.parametrize("package", BELOW)
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    upwards = [
        f"{module} imports {other}" for module, other in imported(package) if other not in BELOW[package] | {package}
    ]
    assert upwards == []


def test_only_the_daemon_s_engine_imports_docker() -> None:
    importers = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if name.split(".")[0] == "docker"
    }
    assert importers <= {"sandboxd/engine.py"}


def test_the_notebook_side_knows_the_brokers_protocol_alone() -> None:
    for path in (PACKAGE / "notebook").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("learngraph_kernel.broker"):
                names = {alias.name for alias in node.names}
                assert node.module == "learngraph_kernel.broker.protocol" or names == {"protocol"}, path.name
