"""Settings and routes of the extension."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jupyter_server.auth.identity import IdentityProvider, PasswordIdentityProvider
from jupyter_server.extension.application import ExtensionApp
from traitlets import Enum, Float, Int, Unicode

from learngraph_server.files import ReportHandler, ResultHandler, UploadHandler
from learngraph_server.handlers import API, ApiHandler, OpenApiHandler, UnknownHandler
from learngraph_server.hosting import RuntimeHost
from learngraph_server.limiting import RateLimiter
from learngraph_server.routes import ROUTES, pattern
from learngraph_server.stream import EventsHandler


class LearnGraphServer(ExtensionApp):
    """LearnGraph in the Jupyter server."""

    name = "learngraph_server"
    extension_url = API
    load_other_extensions = True

    runtime_factory = Unicode(
        "learngraph_kernel.agent.runtime:open_runtime",
        help="`module:function` that opens the runtime: async, takes the home folder and the server's root folder.",
    ).tag(config=True)
    home = Unicode("", help="Where LearnGraph keeps its data (default: LEARNGRAPH_HOME).").tag(config=True)
    owners = Enum(
        ("auto", "process", "identity"),
        default_value="auto",
        help="Whose things a caller sees: those of the process's user, or of whom Jupyter's identity provider names. "
        "auto: the process's on a server with Jupyter's own token or password, else the named person's.",
    ).tag(config=True)
    requests_per_minute = Int(600, help="Calls one user may make a minute; 0: no limit.").tag(config=True)
    max_body_bytes = Int(4 * 1024 * 1024, help="The largest body of a call.").tag(config=True)
    heartbeat = Float(15.0, help="Seconds of silence after which a stream of events says that it is alive.").tag(
        config=True
    )

    def initialize_settings(self) -> None:
        """One host of the runtime and one limiter for all handlers."""
        root = Path(self.serverapp.root_dir).resolve()  # type: ignore[union-attr]
        home = Path(self.home) if self.home else None
        self.settings["learngraph_host"] = RuntimeHost(self.runtime_factory, home, root, heartbeat=self.heartbeat)
        self.settings["learngraph_limiter"] = RateLimiter(self.requests_per_minute)
        self.settings["learngraph_max_body"] = self.max_body_bytes
        self.settings["learngraph_by_identity"] = self._by_identity()

    def _by_identity(self) -> bool:
        """Whether several people may come. Jupyter's own providers make a name up for each holder of the one token."""
        if self.owners != "auto":
            return bool(self.owners == "identity")
        own = type(self.serverapp.identity_provider) in (IdentityProvider, PasswordIdentityProvider)  # type: ignore[union-attr]
        return bool(os.environ.get("JUPYTERHUB_API_URL")) or not own

    def initialize_handlers(self) -> None:
        """The table of routes, the streams and files beside it, and an answer for every other path below ours."""
        paths = dict.fromkeys(route.path for route in ROUTES)
        rules: list[Any] = [(API + pattern(path), ApiHandler, {"path": path}) for path in paths]
        self.handlers.extend(
            [
                (API + pattern("/sessions/{session}/events"), EventsHandler),
                (API + pattern("/runs/{run}/report"), ReportHandler),
                (API + pattern("/sessions/{session}/artifacts/{sha256}"), ResultHandler),
                (API + "/attachments", UploadHandler),
                (API + "/openapi.json", OpenApiHandler),
                *rules,
                (API + "(/.*)?", UnknownHandler),
            ]
        )

    async def stop_extension(self) -> None:
        """Turns that run are paused, so that they can be resumed."""
        await self.settings["learngraph_host"].close()
