"""What messages promise exists: commands and options that remedies name, and error codes that mean one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import learngraph_kernel
from learngraph_kernel.cli.main import COMMANDS, group

PACKAGE = Path(learngraph_kernel.__file__).parent
DOCS = PACKAGE.parent / "docs"
_NAMED = re.compile(r"\blearngraph ([a-z]+)((?: [A-Za-z0-9_<>…-]+)*)")


def texts(path: Path) -> Iterator[str]:
    """The texts of a module but its docstrings; the parts of an f-string as one, with `X` for each value."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def commands_named() -> set[tuple[str, str]]:
    """(command, what follows it) wherever a text of ours tells somebody to run one."""
    named = set()
    for path in PACKAGE.rglob("*.py"):
        for text in texts(path):
            named |= {(match[1], match[2].strip()) for match in _NAMED.finditer(text) if match[1] in COMMANDS}
    return named


def command(name: str) -> click.Command:
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "rest"), sorted(commands_named()))
def test_a_command_that_a_message_names_has_the_options_it_is_named_with(name: str, rest: str) -> None:
    found, words = command(name), rest.split()
    if isinstance(found, click.Group) and words:
        found = found.get_command(click.Context(found), words[0]) or found
    known = {option for parameter in found.params for option in parameter.opts} | {"--help"}
    assert {word for word in words if word.startswith("--")} <= known


def test_messages_name_commands_at_all() -> None:
    assert {"resume", "doctor", "verify", "list", "run", "source", "export"} <= {name for name, _ in commands_named()}


def codes() -> Iterator[str]:
    """The codes that error classes declare; read, not imported, because papermill's engine takes seconds to import."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for line in node.body if isinstance(node, ast.ClassDef) else ():
                targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
                value = getattr(line, "value", None)
                named = any(isinstance(target, ast.Name) and target.id == "code" for target in targets)
                if named and isinstance(value, ast.Constant):
                    yield str(value.value)


def test_a_code_belongs_to_one_class_and_is_documented() -> None:
    found = Counter(codes())
    assert len(found) > 80
    assert [code for code, count in found.items() if count > 1] == []
    assert [code for code in found if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []
    documented = set(re.findall(r"`([a-z_]+)`", (DOCS / "command-line.md").read_text(encoding="utf-8")))
    assert sorted(set(found) - documented) == []
