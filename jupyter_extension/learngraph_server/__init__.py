"""The Jupyter server extension: the agent's runtime over REST and SSE, under Jupyter's own base URL and token.

`extension` is the whole server side on one screen: settings and routes. `routes` is the table of calls with their
schemas, `openapi` what that table says to others; `handlers` authenticates, checks and answers, `stream` is SSE,
`files` serves reports and artifacts. `hosting` opens the runtime when the first call needs it. Imports
`learngraph_kernel`; nothing there imports this.
"""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from learngraph_server.extension import LearnGraphServer

    return [{"module": "learngraph_server", "app": LearnGraphServer}]
