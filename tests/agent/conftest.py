"""The engine, the image and a daemon as for tests of the box."""

from __future__ import annotations

from tests.models.conftest import litellm_library
from tests.sandbox.conftest import docker_engine, sandbox_image, sandboxd

__all__ = ["docker_engine", "litellm_library", "sandbox_image", "sandboxd"]
