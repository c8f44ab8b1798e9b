"""All of Docker that the build needs, through its command: load, look up, run once, remove.

The command and not the library, so that an image can be built before anything but Docker is installed.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import IO, Any

from learngraph_kernel.sandboxd.image.errors import EngineError

REMEDY = "start the engine (`systemctl start docker`, or `dockerd` as root); Debian: apt-get install docker.io"


class Docker:
    """The `docker` command.

    Args:
        program: its name or path.
    """

    def __init__(self, program: str = "docker") -> None:
        self._program = program

    def _start(self, words: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen([self._program, *words], **options)
        except FileNotFoundError:
            raise EngineError(f"there is no command `{self._program}`", remedy=REMEDY) from None

    def call(self, *words: str) -> str:
        """Runs a command and returns what it printed. Raises EngineError with the engine's own words."""
        process = self._start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate()
        if process.returncode:
            raise EngineError(f"docker {words[0]}: {err.decode(errors='replace').strip()[-500:]}", remedy=REMEDY)
        return out.decode()

    def feed(self, words: Sequence[str], write: Callable[[IO[bytes]], None], target: IO[bytes] | None = None) -> None:
        """Runs a command that reads what `write` writes; what it prints goes to `target`."""
        with tempfile.TemporaryFile() as errors:
            out = subprocess.DEVNULL if target is None else target
            process = self._start(words, stdin=subprocess.PIPE, stdout=out, stderr=errors)
            assert process.stdin is not None
            broken = False
            try:
                with process.stdin as pipe:
                    write(pipe)
            except BrokenPipeError:
                broken = True
            if process.wait() or broken:
                errors.seek(0)
                reason = errors.read().decode(errors="replace").strip()[-500:]
                raise EngineError(f"docker {words[0]}: {reason}", remedy=REMEDY)

    def version(self) -> dict[str, Any]:
        """`docker version` as JSON. Raises EngineError when the engine does not answer."""
        answer: dict[str, Any] = json.loads(self.call("version", "--format", "{{json .}}"))
        return answer

    def images_with_label(self, label: str, value: str) -> list[str]:
        """The ids of the images that carry the label."""
        ids = self.call("image", "ls", "--no-trunc", "--quiet", "--filter", f"label={label}={value}").split()
        return sorted(set(ids))

    def inspect_image(self, name: str) -> dict[str, Any]:
        """Everything the engine says of an image."""
        (answer,) = json.loads(self.call("image", "inspect", name))
        found: dict[str, Any] = answer
        return found
