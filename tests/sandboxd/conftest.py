"""The engine and the image, as for tests of the runtime's side."""

from __future__ import annotations

from tests.sandbox.conftest import docker_engine, run_container, sandbox_image

__all__ = ["docker_engine", "run_container", "sandbox_image"]
