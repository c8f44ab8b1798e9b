"""The sandbox image, built without a registry, without root and bit for bit the same everywhere.

The idea: an image is a pure function of two lock files. Debian packages and wheels are read as what they are
(archives) and their members are written straight into a sorted tar file with fixed times and owners; no package
manager runs, so there are no logs, caches or machine ids to clean away, and what nobody needs (shells' tools, package
managers, setuid programs) never gets in. The identity of the image is the hash of its configuration, so the same
locks give the same id in any folder.

Standard library only. Start reading at `build`; `recipe` is what goes in, `debs` and `wheels` read archives, `layer`
and `archive` write them, `fetch` fills the cache, `docker_command` is all of Docker that is needed.
"""

from __future__ import annotations

from learngraph_kernel.sandboxd.image.build import BuiltImage, build_image, present_image
from learngraph_kernel.sandboxd.image.recipe import Recipe

__all__ = ["BuiltImage", "Recipe", "build_image", "present_image"]
