# ruff: noqa: E501  tables of cases

from __future__ import annotations

import pytest

from learngraph_kernel.sandbox.acquisition import GitLimits, GitRefused, LimitExceeded
from learngraph_kernel.sandbox.git_objects import TreeFile, object_id, read_file, walk


class Objects:
    """Objects in memory, by their true names."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, bytes]] = {}

    def add(self, kind: str, content: bytes) -> str:
        name = object_id(kind, content)
        self.held[name] = (kind, content)
        return name

    def blob(self, content: bytes = b"x\n") -> str:
        return self.add("blob", content)

    def tree(self, *entries: tuple[str, bytes, str]) -> str:
        return self.add(
            "tree", b"".join(f"{mode} ".encode() + name + b"\0" + bytes.fromhex(to) for mode, name, to in entries)
        )

    def commit(self, tree: str) -> str:
        return self.add("commit", f"tree {tree}\nauthor a <a> 0 +0000\n\nm\n".encode())

    def read(self, name: str, limit: int) -> tuple[str, bytes] | None:
        return self.held.get(name)


@pytest.fixture
def objects() -> Objects:
    return Objects()


def files(objects: Objects, tree: str, **limits: int) -> list[TreeFile]:
    return walk(objects.commit(tree), objects.read, GitLimits(**limits))


def read_all(objects: Objects, commit: str) -> None:
    for file in walk(commit, objects.read, GitLimits()):
        read_file(file, objects.read, GitLimits())


def test_the_files_of_a_commit_are_listed_by_path(objects: Objects) -> None:
    blob = objects.blob()
    inner = objects.tree(("100755", b"run.sh", blob), ("100644", "数.csv".encode(), blob))
    top = objects.tree(("40000", b"z", inner), ("100644", b"a b.txt", blob), ("100644", b".gitignore", blob))
    assert files(objects, top) == [
        TreeFile(".gitignore", False, blob),
        TreeFile("a b.txt", False, blob),
        TreeFile("z/run.sh", True, blob),
        TreeFile("z/数.csv", False, blob),
    ]


@pytest.mark.parametrize(
    ("mode", "said"),
    [("120000", "a symbolic link"), ("160000", "a submodule"), ("100600", "mode 100600"), ("040000", "mode 040000"), ("0", "mode 0")],
)  # fmt: skip
def test_what_is_no_file_or_folder_is_refused(objects: Objects, mode: str, said: str) -> None:
    with pytest.raises(GitRefused, match=said):
        files(objects, objects.tree((mode, b"x", objects.blob())))


NAMES = [
    b"", b".", b"..", b".git", b".GIT", b".git ", b".git.", b"git~1", b"GIT~12", b".gitmodules", b"a/b", b"../x", b"/etc",
    b"a\\b", b"c:", b"a\nb", b"a\x1bb", b"\xff", b"x" * 256, "a\u202eb".encode(), "a\u200bb".encode(),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:30])
def test_a_name_that_could_lead_elsewhere_is_refused(objects: Objects, name: bytes) -> None:
    blob = objects.blob()
    with pytest.raises(GitRefused, match="name"):
        files(objects, objects.tree(("100644", name, blob)))
    with pytest.raises(GitRefused, match="name"):
        files(objects, objects.tree(("40000", name, objects.tree(("100644", b"x", blob)))))


def test_a_name_twice_is_refused(objects: Objects) -> None:
    blob = objects.blob()
    with pytest.raises(GitRefused, match="twice"):
        files(objects, objects.tree(("100644", b"a", blob), ("40000", b"a", objects.tree(("100644", b"x", blob)))))


def test_paths_that_differ_only_in_case_are_refused(objects: Objects) -> None:
    blob = objects.blob()
    with pytest.raises(GitRefused, match="case"):
        files(objects, objects.tree(("100644", b"A", blob), ("100644", b"a", blob)))


@pytest.mark.parametrize("cut", [1, 10, 20, 21, 25])
def test_a_listing_that_is_cut_off_is_refused(objects: Objects, cut: int) -> None:
    blob = objects.blob()
    whole = objects.held[objects.tree(("100644", b"a", blob), ("100644", b"b", blob))][1]
    with pytest.raises(GitRefused, match="cut off"):
        files(objects, objects.add("tree", whole[:-cut]))


@pytest.mark.parametrize("what", ["commit", "tree", "inner tree", "blob"])
def test_a_missing_object_is_a_truncated_tree(objects: Objects, what: str) -> None:
    blob = objects.blob()
    inner = objects.tree(("100644", b"x", blob))
    top = objects.tree(("40000", b"in", inner))
    commit = objects.commit(top)
    del objects.held[{"commit": commit, "tree": top, "inner tree": inner, "blob": blob}[what]]
    with pytest.raises(GitRefused, match="truncated"):
        read_all(objects, commit)


@pytest.mark.parametrize("what", ["commit", "tree", "blob"])
def test_a_flipped_byte_is_noticed(objects: Objects, what: str) -> None:
    blob = objects.blob()
    top = objects.tree(("100644", b"x", blob))
    commit = objects.commit(top)
    name = {"commit": commit, "tree": top, "blob": blob}[what]
    kind, content = objects.held[name]
    objects.held[name] = (kind, content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(GitRefused, match="not what its name says"):
        read_all(objects, commit)


def test_a_tag_or_tree_is_no_commit(objects: Objects) -> None:
    with pytest.raises(GitRefused, match="not what its name says"):
        walk(objects.tree(("100644", b"x", objects.blob())), objects.read, GitLimits())


def test_a_commit_without_a_tree_is_refused(objects: Objects) -> None:
    with pytest.raises(GitRefused, match="names no tree"):
        walk(objects.add("commit", b"parent x\n"), objects.read, GitLimits())


def test_files_are_counted(objects: Objects) -> None:
    blob = objects.blob()
    top = objects.tree(*[("100644", b"%d" % number, blob) for number in range(4)])
    assert len(files(objects, top, files=4)) == 4
    with pytest.raises(LimitExceeded, match="more than 3 files"):
        files(objects, top, files=3)


def test_folders_that_hold_each_other_many_times_and_no_file_come_to_an_end(objects: Objects) -> None:
    tree = objects.tree()
    for _ in range(30):
        tree = objects.tree(("40000", b"a", tree), ("40000", b"b", tree))
    with pytest.raises(LimitExceeded, match="folders"):
        files(objects, tree)


def test_depth_is_limited(objects: Objects) -> None:
    tree = objects.tree(("100644", b"x", objects.blob()))
    for _ in range(3):
        tree = objects.tree(("40000", b"d", tree))
    assert [file.path for file in files(objects, tree, depth=3)] == ["d/d/d/x"]
    with pytest.raises(LimitExceeded, match="deep"):
        files(objects, tree, depth=2)


def test_an_lfs_pointer_is_refused(objects: Objects) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
    with pytest.raises(GitRefused, match="LFS pointer"):
        read_file(TreeFile("big.bin", False, objects.blob(pointer)), objects.read, GitLimits())
