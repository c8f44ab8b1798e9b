"""learngraph.toml: found upwards, strict about keys, edited without losing a comment."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from learngraph_kernel.data.limits import BadLimits, Limits, RunLimits
from learngraph_kernel.data.source import SourceMissing, UnknownKind
from learngraph_kernel.data.workspace import (
    BadWorkspace,
    SourceExists,
    UnknownSource,
    add_source,
    find_workspace,
    load_workspace,
    remove_source,
)
from learngraph_kernel.errors import BadInput, ExitCode

GOOD = """\
# The shop's numbers.
[sources.sales]            # nightly copy
kind = "duckdb"
path = "data/sales.duckdb"

[sources.files]
kind = "folder"
path = "data"
limits = {rows = 1000, seconds = 2.5}

[models.default]
anything = "is the models' own business"
"""


def write(folder: Path, text: str) -> Path:
    (folder / "learngraph.toml").write_text(text, encoding="utf-8")
    return folder


def test_what_a_run_may_ask_is_read(tmp_path: Path) -> None:
    assert load_workspace(write(tmp_path, GOOD)).runs == RunLimits(calls=10_000, seconds=86_400.0)
    assert load_workspace(write(tmp_path, "[runs]\ncalls = 3\n")).runs == RunLimits(calls=3, seconds=86_400.0)


def test_the_nearest_file_upwards_is_the_workspace(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "x.ipynb").write_text("{}")
    for start in (tmp_path, deep, deep / "x.ipynb"):
        assert find_workspace(start).root == tmp_path


def test_a_folder_without_a_file_has_no_sources(tmp_path: Path) -> None:
    space = find_workspace(tmp_path)
    assert (space.root, dict(space.sources), space.file) == (tmp_path, {}, None)


def test_sources_and_their_limits_are_read(tmp_path: Path) -> None:
    space = load_workspace(write(tmp_path, GOOD))
    assert list(space.sources) == ["sales", "files"]
    assert space.sources["sales"].options == {"path": "data/sales.duckdb"}
    assert space.sources["sales"].limits == Limits(5_000_000, 1 << 30, 60.0)
    assert space.sources["files"].limits == Limits(rows=1000, seconds=2.5)


@pytest.mark.parametrize(
    ("text", "line", "what", "remedy"),
    [
        ("[source.a]\nkind='duckdb'\npath='x'\n", 1, "unknown key 'source'", "did you mean 'sources'?"),
        ("\n[sources.a]\nkind='duckdb'\npth='x'\n", 4, "unknown key 'pth'", "did you mean 'path'?"),
        ("[sources.a]\nknd='duckdb'\npath='x'\n", 2, "unknown key 'knd'", "did you mean 'kind'?"),
        ("[sources.a]\nkind='dukdb'\npath='x'\n", 2, "no source kind 'dukdb' is installed", "did you mean 'duckdb'?"),
        ("[runs]\nseconds=60\ncall=5\n", 3, "unknown limit 'call'", "did you mean 'calls'?"),
        ("runs=5\n", 1, "`runs` must be a table", "write [runs]"),
        ("[sources.a]\nkind='duckdb'\npath='x'\nlimits={row=5}\n", 4, "unknown limit 'row'", "did you mean 'rows'?"),
        (
            "[sources.a]\nkind='duckdb'\npath='x'\n[sources.a.limits]\nsecond=5\n",
            5,
            "unknown limit 'second'",
            "did you mean 'seconds'?",
        ),
        ("[sources.a]\npath='x'\n", 1, "source 'a' has no `kind`", 'e.g. kind = "duckdb"'),
        ("[sources.a]\nkind='duckdb'\n", 1, "source 'a' has no `path`", 'add path = "…"'),
        ("[sources.a]\nkind='duckdb'\npath=3\n", 3, "`path` of source 'a' must be a text", None),
        ("sources.a = {kind='duckdb', paht='x'}\n", 1, "unknown key 'paht'", "did you mean 'path'?"),
        ("[sources]\nb = 1\na.kind='duckdb'\n", 2, "source 'b' must be a table", "write [sources.b]"),
        (
            '[sources."my shop"]\nkind="duckdb"\npath="x"\nlimit={}\n',
            4,
            "unknown key 'limit'",
            "did you mean 'limits'?",
        ),
    ],
)
def test_a_wrong_key_is_named_with_its_line_and_the_closest_known_one(
    text: str, line: int, what: str, remedy: str | None, tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as error:
        load_workspace(write(tmp_path, text))
    assert (error.value.what, error.value.where, error.value.remedy) == (
        what,
        f"{tmp_path / 'learngraph.toml'}:{line}",
        remedy,
    )
    assert error.value.exit_code is ExitCode.USAGE


def test_toml_that_cannot_be_read_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadWorkspace, match="not valid TOML") as error:
        load_workspace(write(tmp_path, "[sources.a]\nkind = duckdb\n"))
    assert f"{tmp_path / 'learngraph.toml'}:2" in str(error.value.where)


@pytest.mark.parametrize("value", ["0", "-1", "true", '"many"', "1.5"])
def test_a_limit_must_be_a_positive_number(value: str, tmp_path: Path) -> None:
    with pytest.raises(BadLimits, match="must be a positive number"):
        load_workspace(write(tmp_path, f"[sources.a]\nkind='duckdb'\npath='x'\nlimits={{rows={value}}}\n"))


def test_an_unknown_source_names_the_closest(tmp_path: Path) -> None:
    with pytest.raises(UnknownSource) as error:
        load_workspace(write(tmp_path, GOOD)).source("sale")
    assert error.value.remedy == "did you mean 'sales'?"


def test_an_unknown_source_of_an_empty_workspace_says_how_to_add_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownSource, match=r"nor one above it has a learngraph\.toml.*learngraph source add"):
        find_workspace(tmp_path).source("sales")


def test_adding_and_removing_keeps_every_comment(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    add_source(tmp_path, "extra", "sqlite", {"path": "x.sqlite"})
    text = (tmp_path / "learngraph.toml").read_text()
    assert "# The shop's numbers." in text
    assert "# nightly copy" in text
    assert list(load_workspace(tmp_path).sources) == ["sales", "files", "extra"]
    remove_source(tmp_path, "extra")
    assert (tmp_path / "learngraph.toml").read_text().rstrip() == GOOD.rstrip()


def test_the_first_source_makes_the_file(tmp_path: Path) -> None:
    add_source(tmp_path, "demo", "sample", {"dataset": "nycflights13"})
    assert (tmp_path / "learngraph.toml").read_text() == '[sources.demo]\nkind = "sample"\ndataset = "nycflights13"\n'


@pytest.mark.parametrize(
    ("name", "kind", "options", "error"),
    [
        ("sales", "duckdb", {"path": "x"}, SourceExists),
        ("my shop", "duckdb", {"path": "x"}, BadWorkspace),
        ("new", "oracle", {"path": "x"}, UnknownKind),
        ("new", "duckdb", {"dataset": "x"}, BadWorkspace),
    ],
)
def test_a_refused_addition_leaves_the_file_as_it_was(
    name: str, kind: str, options: dict[str, str], error: type[Exception], tmp_path: Path
) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(error):
        add_source(tmp_path, name, kind, options)
    assert (tmp_path / "learngraph.toml").read_text() == GOOD


def test_an_open_source_is_kept_and_reopened_when_its_file_changes(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "s.duckdb"
    duckdb.connect(str(path)).close()
    space = load_workspace(write(tmp_path, '[sources.s]\nkind="duckdb"\npath="s.duckdb"\n'))
    first = space.open_source("s", home)
    assert space.open_source("s", home) is first
    replacement = tmp_path / "new.duckdb"
    with duckdb.connect(str(replacement)) as connection:
        connection.execute("create table t as select 1 as a")
    replacement.replace(path)
    second = space.open_source("s", home)
    assert second is not first
    assert [table.name for table in second.tables()] == ["t"]
    space.close()


def test_a_missing_source_file_is_named_with_its_place_in_the_workspace(tmp_path: Path, home: Path) -> None:
    space = load_workspace(write(tmp_path, GOOD))
    with pytest.raises(SourceMissing) as error:
        space.open_source("sales", home)
    assert str(tmp_path / "data" / "sales.duckdb") in error.value.what
    assert error.value.where == f"{tmp_path / 'learngraph.toml'}:2"
