"""Which paths an agent may name."""

from __future__ import annotations

import pytest

from learngraph_kernel.sandbox.paths import PathRefused, check_deletable, check_path, collides


@pytest.mark.parametrize(
    "path",
    ["work", "work/a", "inputs/报表.xlsx", "outputs/a b.csv", "work/.hidden", "work/-rf", "work/a..b", "work/..."],
)
def test_relative_paths_below_the_three_folders_pass(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("empty", ""),
        ("empty", "work/"),
        ("empty", "work//a"),
        ("empty", "./work"),
        ("empty", "work/."),
        ("traversal", ".."),
        ("traversal", "work/.."),
        ("traversal", "work/../.."),
        ("traversal", "../work/a"),
        ("absolute", "/"),
        ("absolute", "/work/a"),
        ("absolute", "//work/a"),
        ("absolute", "~/a"),
        ("absolute", "~root/a"),
        ("drive", "C:/a"),
        ("drive", "c:"),
        ("backslash", "work\\..\\a"),
        ("backslash", "\\\\host\\share"),
        ("outside", "a"),
        ("outside", "Work/a"),
        ("outside", "workspace/a"),
        ("outside", "ｗork/a"),
        ("outside", " work/a"),
        ("invisible", "work/a\0b"),
        ("invisible", "work/a\nb"),
        ("invisible", "work/\u202etxt.exe"),
        ("invisible", "work/a\u200bb"),
        ("invisible", "work/\ufeffa"),
        ("invisible", "work/\x7f"),
        ("invisible", "work/\x9b31m"),
        ("invisible", "work/\udcff"),
        ("invisible", "work/\u2028"),
        ("invisible", "work/\u2066a\u2069"),
        ("too_long", "work/" + "a" * 256),
        ("too_long", "work/" + "漢" * 86),
        ("too_long", "work/" + "/".join(["a" * 200] * 6)),
        ("too_deep", "/".join(["work"] + ["a"] * 32)),
    ],
)
def test_other_spellings_are_refused_by_name(rule: str, path: str) -> None:
    with pytest.raises(PathRefused) as refusal:
        check_path(path)
    assert refusal.value.rule == rule
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("path", ["work/a ", "work/ a", "work/a.", "work/a/.b ", "work/\u3000a"])
def test_a_new_name_must_not_mislead(path: str) -> None:
    assert check_path(path) == path
    with pytest.raises(PathRefused) as refusal:
        check_path(path, new=True)
    assert refusal.value.rule == "misleading"


def test_a_new_name_is_brought_to_nfc() -> None:
    assert check_path("work/e\u0301.csv", new=True) == "work/\u00e9.csv"


@pytest.mark.parametrize("path", ["work", "inputs/a", "outputs/a", "inputs", "outputs"])
def test_only_what_lies_below_work_may_be_deleted(path: str) -> None:
    with pytest.raises(PathRefused) as refusal:
        check_deletable(path)
    assert refusal.value.rule == "not_below_work"


@pytest.mark.parametrize(
    ("name", "other"),
    [("A.csv", "a.CSV"), ("\u00e9", "e\u0301"), ("straße", "STRASSE"), ("ﬁle", "file"), ("１", "1"), ("K", "\u212a")],
)
def test_names_that_would_be_confused_collide(name: str, other: str) -> None:
    assert collides(name, ["x", other]) == other
    assert collides(name, ["x", name]) is None
