"""`make image`: chooses what is possible here, makes the image, records its digest and prints it.

`auto` takes a prebuilt image by digest when one is configured and can be had, else builds; `prebuilt` takes nothing
else, so a registry that is down or gives other bytes is an error and never another image.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandboxd.image.build import PREBUILT, BuiltImage, build_image, package_trees, record_text
from learngraph_kernel.sandboxd.image.docker_command import Docker
from learngraph_kernel.sandboxd.image.errors import EngineError, LockError
from learngraph_kernel.sandboxd.image.fetch import cache_folder
from learngraph_kernel.sandboxd.image.layer import write_layer
from learngraph_kernel.sandboxd.image.recipe import Recipe, recipe_folder, sources
from learngraph_kernel.sandboxd.image.relock import lock_packages, lock_requirements

FONTS = "files/usr/local/share/learngraph/fonts"


def main(arguments: list[str]) -> int:
    """The command. Returns 0, or 1 after saying what is wrong on standard error."""
    options = _parser().parse_args(arguments)
    cache = options.cache or cache_folder()
    try:
        if options.rootfs is not None:
            write_rootfs(Recipe.load(), options.rootfs, cache)
            return 0
        if options.relock:
            relock(recipe_folder(), cache)
        image, origin = make_image(options.mode, cache, fresh=options.fresh)
    except LearnGraphError as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    record_image(options.record, image, origin)
    print(json.dumps({"id": image.id, "inputs": image.inputs, "origin": origin, "reused": image.reused}))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="build.py", description="Makes the sandbox image and prints its id.")
    parser.add_argument("--mode", choices=("auto", "prebuilt", "local"), default="auto")
    parser.add_argument("--cache", type=Path, help="folder of downloads and layers (default: LEARNGRAPH_IMAGE_CACHE)")
    parser.add_argument("--record", type=Path, help="file the digest is written to")
    parser.add_argument("--fresh", action="store_true", help="build every layer anew")
    parser.add_argument("--relock", action="store_true", help="make the locks anew first")
    parser.add_argument("--rootfs", type=Path, help="only write the image's files into this folder (Dockerfile)")
    return parser


def make_image(mode: str, cache: Path, *, fresh: bool = False) -> tuple[BuiltImage, str]:
    """The image and where it came from (`pull` or `recipe`).

    Raises:
        EngineError: `prebuilt`, and the prebuilt image is not configured or cannot be had.
        FetchError, NotReproducible: as `build_image`.
    """
    recipe = Recipe.load()
    reference = os.environ.get(PREBUILT)
    if mode != "local" and reference:
        try:
            return pull_image(reference, recipe, Docker()), "pull"
        except EngineError as error:
            if mode == "prebuilt":
                raise
            print(f"image: {error}; building it here instead", file=sys.stderr)
    if mode == "prebuilt":
        raise EngineError("no prebuilt image is configured", remedy=f"set {PREBUILT}=registry/name@sha256:…")
    return build_image(recipe, cache=cache, fresh=fresh, progress=_Told()), "recipe"


def pull_image(reference: str, recipe: Recipe, docker: Docker) -> BuiltImage:
    """Pulls an image by digest.

    Raises:
        EngineError: the reference has no digest, or the registry does not have it.
    """
    if "@sha256:" not in reference:
        raise EngineError(f"{reference} names no digest", where=PREBUILT, remedy="write registry/name@sha256:…")
    docker.call("pull", "--quiet", reference)
    found = docker.inspect_image(reference)
    return BuiltImage(found["Id"], recipe.inputs(), tuple(found["RootFS"]["Layers"]), reused=False)


class _Told:
    """Prints progress, a line a step and a line every tenth."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._last = ("", -1)

    def __call__(self, step: str, share: float) -> None:
        if self._last != (step, int(share * 10)):
            self._last = (step, int(share * 10))
            print(f"image: {step:<8} {share:4.0%}  {time.monotonic() - self._started:5.1f} s", file=sys.stderr)


def record_image(path: Path | None, image: BuiltImage, origin: str) -> None:
    """Writes digests, and nothing but digests, to `path` (default: `<home>/sandboxd/images.json`)."""
    if path is None:
        from learngraph_kernel.store.home import Home

        path = Home.default().root / "sandboxd" / "images.json"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    body = {"id": image.id, "inputs": image.inputs, "layers": list(image.layers), "origin": origin}
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(json.dumps(body, indent=2) + "\n")
    os.replace(file.name, path)


def relock(root: Path, cache: Path) -> None:
    """Makes the locks, the font list and `image.lock` anew: twice built, so that the record is of what repeats."""
    if not os.access(root, os.W_OK):
        raise LockError("cannot be written", where=str(root), remedy="make the locks in a checkout")
    (root / "packages.lock").write_text(lock_packages((root / "packages.in").read_text(), dt.datetime.now(dt.UTC)))
    (root / "requirements.lock").write_text(lock_requirements(root / "requirements.in"))
    shutil.rmtree(root / FONTS, ignore_errors=True)
    (root / "image.lock").unlink(missing_ok=True)
    (root / FONTS).mkdir(parents=True)
    name, text = font_list(build_image(Recipe.load(root), cache=cache, fresh=True, progress=_Told()))
    (root / FONTS / name).write_text(text)
    recipe = Recipe.load(root)
    first = build_image(recipe, cache=cache, fresh=True, progress=_Told())
    (root / "image.lock").write_text(record_text(recipe, first))
    build_image(Recipe.load(root), cache=cache, fresh=True, progress=_Told())


_FONT_SCRIPT = """
import json, matplotlib.font_manager as fonts, os, sys
name, = os.listdir(os.environ["MPLCONFIGDIR"])
found = json.load(open(os.environ["MPLCONFIGDIR"] + "/" + name))
for key in ("ttflist", "afmlist"):
    found[key].sort(key=lambda font: (font["fname"], font["index"] if "index" in font else 0))
json.dump([name, json.dumps(found, indent=1) + "\\n"], sys.stdout)
"""


def font_list(image: BuiltImage) -> tuple[str, str]:
    """The list of fonts that the image's matplotlib makes, as the name and text of its cache file."""
    command = ["docker", "run", "--rm", "--network=none", "--read-only", "--tmpfs=/tmp", image.id]
    command += ["/usr/bin/python3.11", "-B", "-s", "-c", _FONT_SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EngineError(f"matplotlib made no font list: {done.stderr.strip()[-500:]}")
    name, text = json.loads(done.stdout)
    return str(name), str(text)


def write_rootfs(recipe: Recipe, target: Path, cache: Path) -> None:
    """The image's files as a folder, and the sources to compile as `sources.tar` beside it: for the Dockerfile."""
    debian, wheels = package_trees(recipe, cache, lambda share: None)
    tree = {**debian, **wheels, **recipe.inside}
    target.mkdir(parents=True)
    with tempfile.TemporaryFile(dir=target.parent) as file:
        write_layer(tree, file)
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r:") as tar:
            # Made a moment ago by ourselves, and with absolute links; early 3.11 has no argument `filter`.
            tar.extraction_filter = lambda member, path: member
            tar.extractall(target, numeric_owner=True)
    with (target.parent / "sources.tar").open("wb") as sources_file:
        write_layer(sources(tree), sources_file, parents=False)
