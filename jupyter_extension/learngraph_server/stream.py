"""The events of a conversation as SSE: every event once, in order, resumed after any break by `Last-Event-ID`.

The log is the truth, this only carries it: a reader that goes away stops nothing, and one that comes back says the
number of the last event it has. Nothing is shown before it is on disk, so that number means the same for ever.
"""

from __future__ import annotations

import json

from jupyter_server.auth.decorator import authorized
from tornado import web
from tornado.iostream import StreamClosedError

from learngraph_server.answers import BadCall
from learngraph_server.handlers import LearnGraphHandler

RETRY_MS = 1_000


class EventsHandler(LearnGraphHandler):
    """`GET …/sessions/{session}/events?after=N`."""

    @web.authenticated
    @authorized
    async def get(self, session: str) -> None:
        from learngraph_kernel.errors import LearnGraphError

        try:
            self.check_rate()
            after = self._after()
            runtime = await self.host.runtime()
            await runtime.log.session(session, self.owner)
        except LearnGraphError as error:
            await self.refuse(error)
            return
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-cache, no-transform")
        self.set_header("X-Accel-Buffering", "no")  # a proxy that gathers would hold events back
        stream = runtime.log.follow(session, after=after)
        try:
            self.write(f"retry: {RETRY_MS}\n\n")
            await self.flush()
            async for event in stream:
                if event is None:
                    self.write(": alive\n\n")
                else:
                    data = json.dumps(event.as_json(), ensure_ascii=False)
                    self.write(f"id: {event.seq}\nevent: {event.type.value}\ndata: {data}\n\n")
                await self.flush()
            self.finish()
        except StreamClosedError:
            self.log.debug("learngraph: a reader of %s went away", session)
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    def _after(self) -> int:
        given = self.request.headers.get("Last-Event-ID") or self.get_query_argument("after", "0")
        if not (given.isascii() and given.isdigit() and len(given) < 12):
            raise BadCall("the number of the last event is none", where=given[:40], remedy="give the id of an event")
        return int(given)
