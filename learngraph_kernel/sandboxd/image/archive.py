"""The image's configuration, its identity, and the archive `docker load` reads.

The id of an image is the SHA-256 of its configuration (OCI image specification, "ImageID"), which names the layers by
the hashes of their uncompressed tar files; with a fixed `created` it depends on the content alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from learngraph_kernel.sandboxd.image.layer import EPOCH, LayerDigest

CREATED = "2025-01-01T00:00:00Z"
UID = 65532
REPOSITORY = "learngraph-sandbox"

ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "HOME": "/tmp",
    "IPYTHONDIR": "/tmp/.ipython",
    "XDG_CACHE_HOME": "/tmp/.cache",
    "MPLCONFIGDIR": "/tmp/.matplotlib",
    "MATPLOTLIBRC": "/usr/local/share/learngraph/matplotlibrc",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    # As many threads as the container has processors: sums of floats must not depend on the host's number of cores.
    "OMP_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "2",
    "POLARS_MAX_THREADS": "2",
}


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer's tar file and what is known of it."""

    path: Path
    digest: LayerDigest


def image_config(layers: Sequence[str], says: Sequence[str], labels: Mapping[str, str]) -> bytes:
    """The configuration, byte for byte what its hash is taken of.

    Args:
        layers: the digests of the layers, lowest first.
        says: what each is, for `docker history`.
        labels: of the image.
    """
    config: dict[str, Any] = {
        "architecture": "amd64",
        "os": "linux",
        "created": CREATED,
        "config": {
            "User": f"{UID}:{UID}",
            "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "Cmd": ["/usr/bin/python3.11", "-I", "-B"],
            "WorkingDir": "/",
            "Labels": dict(sorted(labels.items())),
        },
        "rootfs": {"type": "layers", "diff_ids": list(layers)},
        "history": [{"created": CREATED, "created_by": f"learngraph: {text}"} for text in says],
    }
    return json.dumps(config, sort_keys=True, separators=(",", ":")).encode()


def image_id(config: bytes) -> str:
    """`sha256:…`, as the engine will show it."""
    return f"sha256:{hashlib.sha256(config).hexdigest()}"


def write_archive(config: bytes, layers: Sequence[Layer], tag: str, target: IO[bytes]) -> None:
    """What `docker load` reads: the configuration, the layers, and the manifest that joins them.

    Args:
        config: from `image_config`.
        layers: lowest first; their files are read now.
        tag: `name:tag` the engine shows beside the id.
        target: need not be seekable.
    """
    name = image_id(config).removeprefix("sha256:") + ".json"
    paths = [f"{layer.digest.diff_id.removeprefix('sha256:')}/layer.tar" for layer in layers]
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": paths}]).encode()
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.GNU_FORMAT, bufsize=1 << 20) as tar:
        _add(tar, name, io.BytesIO(config), len(config))
        _add(tar, "manifest.json", io.BytesIO(manifest), len(manifest))
        for layer, path in zip(layers, paths, strict=True):
            with layer.path.open("rb") as source:
                _add(tar, path, source, layer.digest.size)


def _add(tar: tarfile.TarFile, name: str, source: IO[bytes], size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, EPOCH, 0o644
    tar.addfile(info, source)
