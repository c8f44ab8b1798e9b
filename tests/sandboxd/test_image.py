"""The image: its parts from small archives made here, and the real one from inside."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from learngraph_kernel.sandboxd.hardening import ContainerSpec, container_config
from learngraph_kernel.sandboxd.image.archive import ENVIRONMENT, Layer, image_config, image_id, write_archive
from learngraph_kernel.sandboxd.image.build import LABEL, _check, present_image
from learngraph_kernel.sandboxd.image.command import make_image, pull_image, record_image
from learngraph_kernel.sandboxd.image.debs import read_deb
from learngraph_kernel.sandboxd.image.docker_command import Docker
from learngraph_kernel.sandboxd.image.errors import EngineError, FetchError, LockError, NotReproducible
from learngraph_kernel.sandboxd.image.fetch import cached, fetch_packages
from learngraph_kernel.sandboxd.image.layer import EPOCH, Tree, file, folder, merge, symlink, write_layer
from learngraph_kernel.sandboxd.image.locks import Pinned, read_packages, read_requirements
from learngraph_kernel.sandboxd.image.mirrors import addresses, mirror
from learngraph_kernel.sandboxd.image.recipe import Recipe, recipe_folder
from learngraph_kernel.sandboxd.image.relock import Stanza, closure
from learngraph_kernel.sandboxd.image.wheels import PACKAGES, read_wheel
from tests.sandbox.conftest import Engine, RunContainer

HASH = "a" * 64
WHEN = "20261201T040000Z"
SLEEP = ("/usr/bin/python3.11", "-I", "-B", "-c", "import time; time.sleep(600)")


def deb(path: Path, *members: tarfile.TarInfo | tuple[str, bytes, int]) -> Path:
    """A Debian package with these members."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, content, mode = member
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(content), mode, 12345
            tar.addfile(info, io.BytesIO(content))
    parts = [("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), ("data.tar.xz", data.getvalue())]
    body = b"!<arch>\n"
    for name, content in parts:
        body += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content
        body += b"\n" * (len(content) % 2)
    path.write_bytes(body)
    return path


def link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


def device(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = tarfile.CHRTYPE
    return info


def wheel(path: Path, files: dict[str, bytes], executable: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o755 if name == executable else 0o644) << 16
            archive.writestr(info, content)
    return path


def test_a_layer_depends_on_paths_and_bytes_alone() -> None:
    tree: Tree = {"b/c": file(b"1"), "a": symlink("b/c"), "d": folder(mode=0o1777), "x" * 200: file(b"long")}
    first, second = io.BytesIO(), io.BytesIO()
    digest = write_layer(tree, first)
    assert write_layer(dict(reversed(tree.items())), second) == digest
    assert first.getvalue() == second.getvalue()
    assert digest.diff_id == f"sha256:{hashlib.sha256(first.getvalue()).hexdigest()}"
    first.seek(0)
    with tarfile.open(fileobj=first) as tar:
        members = {member.name: member for member in tar}
    assert list(members) == sorted(members)
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members.values()} == {(EPOCH, 0, 0, "", "")}
    assert members["b"].isdir()


def test_no_setuid_program_gets_into_a_layer(tmp_path: Path) -> None:
    tree = dict(read_deb(deb(tmp_path / "a.deb", ("./usr/bin/su", b"x", 0o4755))))
    tree["usr/bin/other"] = file(b"x", mode=0o6755)
    target = io.BytesIO()
    write_layer(tree, target)
    target.seek(0)
    with tarfile.open(fileobj=target) as tar:
        assert [member.name for member in tar if member.mode & 0o6000] == []


def test_a_folder_of_a_package_does_not_replace_a_link_of_ours() -> None:
    tree: Tree = {"bin": symlink("usr/bin")}
    merge([("bin", folder()), ("bin2", folder())], tree)
    assert (tree["bin"].kind, tree["bin2"].kind) == ("symlink", "folder")


def test_a_debian_package_is_read_with_merged_usr_and_without_documentation(tmp_path: Path) -> None:
    package = deb(
        tmp_path / "a.deb",
        ("./bin/tool", b"x", 0o755),
        link("./lib/x86_64-linux-gnu/libz.so.1", "libz.so.1.2"),
        link("./lib/x86_64-linux-gnu/libq.so", "../../usr/lib/libq.so"),
        link("./usr/bin/awk", "mawk"),
        ("./usr/share/doc/tool/copyright", b"MIT", 0o644),
        ("./usr/share/doc/tool/changelog.gz", b"x", 0o644),
        ("./usr/share/man/man1/tool.1.gz", b"x", 0o644),
        ("./var/lib/tool/state", b"x", 0o644),
    )
    tree = dict(read_deb(package))
    assert set(tree) == {
        "usr/bin/tool",
        "usr/bin/awk",
        "usr/lib/x86_64-linux-gnu/libz.so.1",
        "usr/lib/x86_64-linux-gnu/libq.so",
        "usr/share/doc/tool/copyright",
    }
    assert tree["usr/bin/tool"].mode == 0o755
    assert tree["usr/bin/awk"].link == "mawk"
    assert tree["usr/lib/x86_64-linux-gnu/libz.so.1"].link == "/usr/lib/x86_64-linux-gnu/libz.so.1.2"
    assert tree["usr/lib/x86_64-linux-gnu/libq.so"].link == "/usr/lib/libq.so"


def test_a_device_in_a_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="usr/x"):
        list(read_deb(deb(tmp_path / "a.deb", device("./usr/x"))))


def test_what_is_no_package_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.deb").write_bytes(b"<html>")
    with pytest.raises(LockError, match="not a Debian package"):
        list(read_deb(tmp_path / "a.deb"))


def test_a_wheel_is_laid_out_as_an_installer_would(tmp_path: Path) -> None:
    files = {
        "p/__init__.py": b"1",
        "p/bin/tool": b"elf",
        "p/tests/test_p.py": b"no",
        "p-1.dist-info/METADATA": b"m",
        "p-1.data/data/share/jupyter/kernels/k/kernel.json": b"{}",
        "p-1.data/scripts/p": b"#!python\nprint()",
        "p-1.data/headers/p.h": b"no",
    }
    tree = dict(read_wheel(wheel(tmp_path / "p.whl", files, executable="p/bin/tool")))
    assert set(tree) == {
        f"{PACKAGES}/p/__init__.py",
        f"{PACKAGES}/p/bin/tool",
        f"{PACKAGES}/p-1.dist-info/METADATA",
        "usr/local/share/jupyter/kernels/k/kernel.json",
        "usr/local/bin/p",
    }
    assert [tree[f"{PACKAGES}/p/{name}"].mode for name in ("__init__.py", "bin/tool")] == [0o644, 0o755]
    assert (tree["usr/local/bin/p"].content(), tree["usr/local/bin/p"].mode) == (
        b"#!/usr/bin/python3.11\nprint()",
        0o755,
    )


@pytest.mark.parametrize("name", ["../etc/passwd", "/etc/passwd", "p/../../x"])
def test_a_wheel_cannot_leave_its_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(LockError):
        list(read_wheel(wheel(tmp_path / "p.whl", {name: b"x"})))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"a 1 {HASH} debian/pool/a.deb\na 2 {HASH} debian/pool/a.deb\n", "packages.lock:2"),
        ("# only a comment\n", "packages.lock"),
        ("a 1 123 debian/pool/a.deb\n", "packages.lock:1"),
        (f"\n\na 1 {HASH} file:///etc/passwd\n", "packages.lock:3"),
    ],
)
def test_a_wrong_lock_is_named_with_its_line(text: str, place: str) -> None:
    with pytest.raises(LockError) as caught:
        read_packages(text, where="packages.lock")
    assert caught.value.where == place


def test_a_requirement_without_exactly_one_hash_is_refused() -> None:
    for line in ("a==1", f"a==1 --hash=sha256:{HASH} --hash=sha256:{HASH}", f"a>=1 --hash=sha256:{HASH}"):
        with pytest.raises(LockError):
            read_requirements(line, where="requirements.lock")
    assert read_requirements(f"a==1 --hash=sha256:{HASH}", where="x") == (Pinned("a", "1", HASH),)


def test_dependencies_are_followed_but_for_what_is_excluded() -> None:
    def stanza(name: str, *depends: str) -> Stanza:
        return Stanza(name, "1", HASH, "debian/pool/x", depends)

    known = {s.name: s for s in (stanza("a", "b", "dpkg"), stanza("b", "a", "c"), stanza("c"), stanza("dpkg", "z"))}
    assert [s.name for s in closure(["a"], known, {"dpkg"})] == ["a", "b", "c"]
    with pytest.raises(LockError, match="dpkg needs z"):
        closure(["a"], known, set())


@pytest.fixture
def local_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror on this disk, with one package that is not what the lock names."""
    pool = tmp_path / "mirror" / "debian" / "pool"
    pool.mkdir(parents=True)
    (pool / "other.deb").write_bytes(b"other")
    monkeypatch.setenv("LEARNGRAPH_DEBIAN_MIRROR", (tmp_path / "mirror").as_uri())
    return pool


@pytest.mark.usefixtures("local_mirror")
def test_a_package_that_is_not_what_the_lock_names_is_not_kept(tmp_path: Path) -> None:
    item = Pinned("a", "1", HASH, "debian/pool/other.deb")
    with pytest.raises(FetchError, match="the lock names"):
        fetch_packages([item], tmp_path / "cache", lambda share: None, WHEN)
    assert list((tmp_path / "cache" / "files").iterdir()) == []


@pytest.mark.usefixtures("local_mirror")
def test_a_package_that_debian_dropped_says_what_to_do(tmp_path: Path) -> None:
    item = Pinned("a", "1", HASH, "debian/pool/gone.deb")
    with pytest.raises(FetchError, match="make image-lock"):
        fetch_packages([item], tmp_path / "cache", lambda share: None, WHEN)


def test_the_mirror_is_the_one_that_apt_uses_unless_one_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    with pytest.raises(FetchError, match="no Debian mirror is known"):
        mirror({}, tmp_path)
    (folder / "debian.sources").write_text(
        "Types: deb\n# http://old.example/debian\nURIs: http://near.example/debian\n"
    )
    assert mirror({}, tmp_path) == "http://near.example"
    assert mirror({"LEARNGRAPH_DEBIAN_MIRROR": "http://named.example/"}, tmp_path) == "http://named.example"
    (tmp_path / "sources.list").write_text("deb [signed-by=/k.gpg] https://first.example/os/debian/ bookworm main\n")
    assert mirror({}, tmp_path) == "https://first.example/os"


def test_a_version_that_the_mirror_dropped_is_looked_for_in_the_archive_that_is_named() -> None:
    named = {
        "LEARNGRAPH_DEBIAN_MIRROR": "http://near.example",
        "LEARNGRAPH_DEBIAN_SNAPSHOT": "http://all.example/archive/",
    }
    assert addresses("debian-security/pool/a.deb", WHEN, named) == [
        "http://near.example/debian-security/pool/a.deb",
        f"http://all.example/archive/debian-security/{WHEN}/pool/a.deb",
    ]


def test_a_filled_cache_needs_no_network(tmp_path: Path) -> None:
    item = Pinned("a", "1", HASH, "debian/pool/a.deb")
    path = cached(tmp_path, item, ".deb")
    path.parent.mkdir()
    path.write_bytes(b"x")
    assert fetch_packages([item], tmp_path, lambda share: None, WHEN) == [path]


def _layer(path: Path, content: bytes) -> Layer:
    with path.open("wb") as target:
        return Layer(path, write_layer({"x": file(content)}, target))


def test_the_id_of_an_image_is_the_hash_of_its_configuration(tmp_path: Path) -> None:
    one, two = _layer(tmp_path / "1", b"1"), _layer(tmp_path / "2", b"2")
    layers, says = [one.digest.diff_id, two.digest.diff_id], ["one", "two"]
    config = image_config(layers, says, {"b": "2", "a": "1"})
    assert config == image_config(layers, says, {"a": "1", "b": "2"})
    assert image_id(config) != image_id(image_config(layers[::-1], says, {"a": "1", "b": "2"}))
    target = io.BytesIO()
    write_archive(config, [one, two], "x:1", target)
    target.seek(0)
    with tarfile.open(fileobj=target) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        stored = tar.extractfile(manifest[0]["Config"])
        assert stored is not None and stored.read() == config
        assert len(manifest[0]["Layers"]) == 2


def test_layers_that_differ_from_the_record_are_an_error(tmp_path: Path) -> None:
    recipe = Recipe((), (), {}, {}, expected=("sha256:other",))
    with pytest.raises(NotReproducible, match="sha256:other"):
        _check(recipe, [_layer(tmp_path / "1", b"1")])


def test_a_change_of_any_input_is_another_image_and_the_record_no_longer_speaks_for_it() -> None:
    recipe = Recipe.load()
    assert recipe.expected is not None, "image.lock is of other inputs: run `make image-lock`"
    other_lock = replace(recipe, debian=recipe.debian[1:])
    other_code = replace(recipe, inside={**recipe.inside, "x": file(b"y")})
    assert other_lock.base_inputs() != recipe.base_inputs()
    assert other_code.base_inputs() == recipe.base_inputs()
    assert len({item.inputs() for item in (recipe, other_lock, other_code)}) == 3


def test_the_inputs_do_not_depend_on_where_the_checkout_lies(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    for source in recipe_folder().rglob("*"):
        if source.is_file():
            target = copy / source.relative_to(recipe_folder())
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    assert Recipe.load(copy).inputs() == Recipe.load().inputs()


def test_prebuilt_fails_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEARNGRAPH_IMAGE", raising=False)
    with pytest.raises(EngineError, match="no prebuilt image"):
        make_image("prebuilt", tmp_path)
    monkeypatch.setenv("LEARNGRAPH_IMAGE", "registry.invalid/x:latest")
    with pytest.raises(EngineError, match="names no digest"):
        make_image("prebuilt", tmp_path)


def test_an_image_made_from_ours_is_not_taken_for_it(
    docker_engine: Engine, sandbox_image: str, run_container: RunContainer
) -> None:
    name = run_container({"Image": sandbox_image}, start=False)
    other = docker_engine.command.call("commit", name).strip()
    try:
        found = present_image(Recipe.load(), docker_engine.command)
        assert found is not None and found.id == sandbox_image
        assert other in docker_engine.command.images_with_label(LABEL, found.inputs)
    finally:
        docker_engine.command.call("image", "rm", other)


def test_a_registry_that_is_not_there_is_an_error_of_the_engine(docker_engine: Engine) -> None:
    with pytest.raises(EngineError, match="docker pull"):
        pull_image(f"registry.invalid/x@sha256:{HASH}", Recipe.load(), docker_engine.command)


def test_auto_falls_back_to_the_image_of_the_recipe(
    sandbox_image: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEARNGRAPH_IMAGE", f"registry.invalid/x@sha256:{HASH}")
    image, origin = make_image("auto", tmp_path)
    assert (image.id, origin) == (sandbox_image, "recipe")
    assert "building it here instead" in capsys.readouterr().err
    record_image(tmp_path / "images.json", image, origin)
    assert json.loads((tmp_path / "images.json").read_text())["id"] == sandbox_image


def test_no_docker_is_said_before_anything_is_downloaded(tmp_path: Path) -> None:
    from learngraph_kernel.sandboxd.image import build_image

    with pytest.raises(EngineError, match="no command"):
        build_image(Recipe.load(), cache=tmp_path, docker=Docker("docker-that-is-not-here"))
    assert list(tmp_path.iterdir()) == []


def test_the_dockerfile_sets_the_same_environment() -> None:
    text = (recipe_folder() / "Dockerfile").read_text().replace("\\\n", " ")
    last = text.rpartition("FROM scratch")[2]
    (line,) = [line for line in last.splitlines() if line.startswith("ENV ")]
    assert dict(pair.split("=", 1) for pair in line.split()[1:]) == dict(ENVIRONMENT)


PROBE = """
import json, locale, os, time, subprocess
import anywidget, duckdb, ipykernel, numpy, pandas, polars, pyarrow
import matplotlib.font_manager as fonts, matplotlib.pyplot as plt
import learngraph_kernel as lg, learngraph_kernel.notebook.magics
axes = plt.subplots()[1]
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("error")  # a glyph that no font has is a warning
    axes.set_title("航班周报 flights 週報 フライト")
    plt.savefig("/tmp/a.svg")
print(json.dumps({
    "query": callable(lg.query),
    "hash": hash("learngraph"),
    "timezone": time.tzname,
    "locale": locale.setlocale(locale.LC_ALL, ""),
    "uid": os.getuid(),
    "fonts": os.readlink(os.environ["MPLCONFIGDIR"] + "/" + os.listdir(os.environ["MPLCONFIGDIR"])[0]),
    "font": fonts.findfont("Droid Sans Fallback"),
    "listed": len(fonts.fontManager.ttflist),
    "compiled": all(os.path.exists(module.__cached__) for module in (pandas, numpy, lg, json)),
    "node": subprocess.check_output(["node", "-p", "process.version.split('.')[0]"], text=True).strip(),
    "kernels": os.listdir("/usr/local/share/jupyter/kernels"),
    "left over": [p for p in ("/etc/machine-id", "/var/cache", "/var/log", "/var/lib", "/usr/bin/dpkg", "/usr/bin/apt")
                  if os.path.exists(p)],
}))
"""


def test_the_image_has_what_notebooks_need_under_the_baseline(
    docker_engine: Engine, sandbox_image: str, run_container: RunContainer
) -> None:
    spec = ContainerSpec("lg-probe", sandbox_image, SLEEP, {"learngraph.instance": "tests"})
    name = run_container(container_config(spec))
    answers = [json.loads(docker_engine.command.call("exec", name, "python3", "-c", PROBE)) for _ in range(2)]
    assert answers[0] == answers[1]  # hashes of strings among them
    answer = answers[0]
    assert answer.pop("hash") == answers[1]["hash"]
    assert answer.pop("listed") > 30
    assert int(answer.pop("node").lstrip("v")) >= 22
    assert os.path.basename(answer.pop("fonts")).startswith("fontlist-v")
    assert answer == {
        "query": True,
        "timezone": ["UTC", "UTC"],
        "locale": "C.UTF-8",
        "uid": 65532,
        "font": "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
        "compiled": True,
        "kernels": ["python3"],
        "left over": [],
    }
