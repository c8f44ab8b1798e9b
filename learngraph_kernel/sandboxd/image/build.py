"""Building: locks → cached files → layers → an image in the engine, with its id.

Four layers: Debian, the wheels, the compiled modules of both, and LearnGraph's own side with its compiled modules.
The lower three change with the locks only and stay in the cache, so that a change of our code is a matter of seconds.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from learngraph_kernel.sandboxd.image.archive import REPOSITORY, Layer, image_config, image_id, write_archive
from learngraph_kernel.sandboxd.image.debs import read_deb
from learngraph_kernel.sandboxd.image.docker_command import Docker
from learngraph_kernel.sandboxd.image.errors import EngineError, NotReproducible
from learngraph_kernel.sandboxd.image.fetch import cache_folder, fetch_packages, fetch_wheels
from learngraph_kernel.sandboxd.image.layer import Entry, LayerDigest, Tree, file, merge, write_layer
from learngraph_kernel.sandboxd.image.recipe import COMPILE_SCRIPT, Recipe, sources
from learngraph_kernel.sandboxd.image.wheels import read_wheel

LABEL = "learngraph.image.inputs"
PREBUILT = "LEARNGRAPH_IMAGE"
"""Environment variable: `registry/name@sha256:…` of a prebuilt image."""

STAGE = f"{REPOSITORY}-stage"
SAYS = ("Debian packages", "wheels", "compiled modules", "LearnGraph inside")
"""The layers, lowest first."""

Progress: TypeAlias = Callable[[str, float], None]
"""Called with a step (`fetch`, `layer`, `compile`, `load`) and the share of the whole that is done, never falling."""

_DONE_AFTER = {"fetch": 0.35, "layer": 0.55, "compile": 0.85, "load": 1.0}


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image that the engine has.

    Attributes:
        id: `sha256:…`, the identity that seals record.
        inputs: the hash of what it was made from.
        layers: the digests of its layers, lowest first.
        reused: it was there already.
    """

    id: str
    inputs: str
    layers: tuple[str, ...]
    reused: bool


def present_image(recipe: Recipe, docker: Docker | None = None) -> BuiltImage | None:
    """The image of this recipe, if the engine has it. Raises EngineError when the engine does not answer.

    The label only finds candidates: an image made *from* ours (`docker commit`, a Dockerfile) carries it as well. What
    counts is that the id is the hash of exactly our configuration, and that the layers are those on record.
    """
    engine = docker or Docker()
    inputs = recipe.inputs()
    for found in engine.images_with_label(LABEL, inputs):
        layers = tuple(engine.inspect_image(found)["RootFS"]["Layers"])
        ours = len(layers) == len(SAYS) and recipe.expected in (None, layers[:-1])
        if ours and image_id(image_config(layers, SAYS, {LABEL: inputs})) == found:
            return BuiltImage(found, inputs, layers, reused=True)
    return None


def build_image(
    recipe: Recipe,
    *,
    cache: Path | None = None,
    docker: Docker | None = None,
    fresh: bool = False,
    progress: Progress = lambda step, share: None,
) -> BuiltImage:
    """Makes the image and loads it into the engine, unless it is there.

    Args:
        recipe: what goes in.
        cache: where downloads and layers lie; default: `fetch.cache_folder()`.
        docker: the engine.
        fresh: build every layer anew, even if image and layers are there.
        progress: hears of each step.

    Raises:
        FetchError, EngineError: a package or the engine cannot be had.
        NotReproducible: the layers differ from those on record for the same inputs.
    """
    engine = docker or Docker()
    engine.version()  # before minutes are spent
    present = None if fresh else present_image(recipe, engine)
    if present is not None:
        return present
    root = cache or cache_folder()
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second build waits, and then finds what the first one made
        present = None if fresh else present_image(recipe, engine)
        return present or _build(recipe, root, engine, fresh, progress)


def _build(recipe: Recipe, root: Path, engine: Docker, fresh: bool, progress: Progress) -> BuiltImage:
    lower = None if fresh else _stored_layers(recipe, root)
    if lower is None:
        lower = _lower_layers(recipe, root, engine, progress)
    with tempfile.TemporaryDirectory(dir=root) as scratch:
        top = _own_layer(recipe, lower, Path(scratch), engine)
        layers = [*lower, top]
        config = image_config([layer.digest.diff_id for layer in layers], SAYS, {LABEL: recipe.inputs()})
        identity = image_id(config)
        tag = f"{REPOSITORY}:{identity.removeprefix('sha256:')[:12]}"
        engine.feed(["load", "--quiet"], lambda pipe: write_archive(config, layers, tag, pipe))
    progress("load", _DONE_AFTER["load"])
    loaded = engine.inspect_image(tag)
    if loaded["Id"] != identity:
        raise EngineError(
            f"the engine shows the image as {loaded['Id']}, not {identity}",
            remedy="use the engine's classic image store (`features.containerd-snapshotter: false` in daemon.json)",
        )
    return BuiltImage(identity, recipe.inputs(), tuple(layer.digest.diff_id for layer in layers), reused=False)


def _lower_layers(recipe: Recipe, cache: Path, engine: Docker, progress: Progress) -> list[Layer]:
    """Debian, the wheels and the compiled modules of both, built anew and put into the cache."""
    debian, wheels = package_trees(recipe, cache, lambda share: progress("fetch", _DONE_AFTER["fetch"] * share))
    folder = cache / "layers" / recipe.base_inputs()
    shutil.rmtree(cache / "layers", ignore_errors=True)  # of earlier locks too: each set takes the size of the image
    folder.mkdir(parents=True)
    lowest = _write(debian, folder / "debian.tar")
    layers = [lowest, _write(wheels, folder / "wheels.tar")]
    progress("layer", _DONE_AFTER["layer"])
    compiled = _compiled(sources({**debian, **wheels}), lowest, folder, engine)
    layers.append(_write(compiled, folder / "compiled.tar"))
    progress("compile", _DONE_AFTER["compile"])
    _check(recipe, layers)
    record = [{"file": item.path.name, "digest": item.digest.diff_id} for item in layers]
    (folder / "layers.json").write_text(json.dumps(record))
    return layers


def package_trees(recipe: Recipe, cache: Path, progress: Callable[[float], None]) -> tuple[Tree, Tree]:
    """What the Debian packages and our own files bring, and what the wheels bring; downloads what the cache lacks."""
    debian = recipe.skeleton()
    for path in fetch_packages(recipe.debian, cache, lambda share: progress(share * 0.2), recipe.snapshot):
        merge(read_deb(path), debian)
    merge(recipe.skeleton().items(), debian)  # ours win over the packages' own
    wheels: Tree = {}
    for path in fetch_wheels(recipe.wheels, cache, progress):
        merge(read_wheel(path), wheels)
    return debian, wheels


def _stored_layers(recipe: Recipe, cache: Path) -> list[Layer] | None:
    """The lower layers from the cache, re-hashed; None when they are not there whole."""
    folder = cache / "layers" / recipe.base_inputs()
    try:
        record = json.loads((folder / "layers.json").read_text())
        layers = [_reread(folder / item["file"], item["digest"]) for item in record]
    except FileNotFoundError:
        return None
    if None in layers:
        return None
    found = [layer for layer in layers if layer is not None]
    _check(recipe, found)
    return found


def _reread(path: Path, digest: str) -> Layer | None:
    with path.open("rb") as source:
        if f"sha256:{hashlib.file_digest(source, 'sha256').hexdigest()}" != digest:
            return None
    return Layer(path, LayerDigest(digest, path.stat().st_size))


def _check(recipe: Recipe, layers: list[Layer]) -> None:
    """Against the record of an earlier build from the same inputs, on whatever machine."""
    found = tuple(layer.digest.diff_id for layer in layers)
    if recipe.expected is not None and recipe.expected != found:
        raise NotReproducible(
            f"the same lock gave the layers {', '.join(found)}, on record are {', '.join(recipe.expected)}",
            where="image.lock",
            remedy="remove the image cache and build again; if it stays, do not use this image and report both digests",
        )


def _own_layer(recipe: Recipe, lower: list[Layer], scratch: Path, engine: Docker) -> Layer:
    """LearnGraph's side, with its compiled modules."""
    tree = dict(recipe.inside)
    merge(_compiled(sources(tree), lower[0], scratch, engine).items(), tree)
    return _write(tree, scratch / "learngraph.tar")


def _compiled(python: Mapping[str, Entry], debian: Layer, folder: Path, engine: Docker) -> Tree:
    """Compiles sources with the image's own Python, in a container of the lowest layer, closed like every other."""
    config = image_config([debian.digest.diff_id], SAYS[:1], {"learngraph.image.stage": "1"})
    tag = f"{STAGE}:{os.getpid()}"
    engine.feed(["load", "--quiet"], lambda pipe: write_archive(config, [debian], tag, pipe))
    try:
        with tempfile.TemporaryFile(dir=folder) as answer:
            command = ["run", "--rm", "--interactive", "--network=none", "--read-only", "--cap-drop=ALL"]
            command += ["--security-opt=no-new-privileges", "--pids-limit=64", "--memory=2g", "--memory-swap=2g"]
            script = COMPILE_SCRIPT.read_text()
            command += [tag, "/usr/bin/python3.11", "-B", "-s", "-c", script]
            engine.feed(command, lambda pipe: _write_sources(python, pipe), answer)
            answer.seek(0)
            return _read_compiled(answer)
    finally:
        engine.call("image", "rm", "--force", tag)


def _write_sources(python: Mapping[str, Entry], pipe: IO[bytes]) -> None:
    write_layer(python, pipe, parents=False)


def _read_compiled(answer: IO[bytes]) -> Tree:
    tree: Tree = {}
    with tarfile.open(fileobj=answer, mode="r:") as tar:
        for member in tar:
            source = tar.extractfile(member)
            assert source is not None, "the script writes files only"
            tree[member.name] = file(source.read())
    return tree


def _write(tree: Tree, path: Path) -> Layer:
    with path.open("wb") as target:
        return Layer(path, write_layer(tree, target))


def record_text(recipe: Recipe, image: BuiltImage) -> str:
    """What `image.lock` says of a build."""
    return json.dumps({"inputs": recipe.base_inputs(), "layers": list(image.layers[:3])}, indent=2) + "\n"


__all__ = ["LABEL", "PREBUILT", "BuiltImage", "Progress", "build_image", "present_image", "record_text"]
