"""Rendered reports and stored results. A report shares Jupyter's origin, so it is shown in a sandbox of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from learngraph_server.handlers import LearnGraphHandler

REPORT_CSP = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'"


class ReportHandler(LearnGraphHandler):
    """`GET …/runs/{run}/report`: the page of one of the caller's runs."""

    @property
    def content_security_policy(self) -> str:
        return REPORT_CSP

    @web.authenticated
    @authorized
    async def get(self, run: str) -> None:
        from learngraph_kernel.errors import LearnGraphError

        try:
            self.check_rate()
            runtime = await self.host.runtime()
            page = await asyncio.to_thread(runtime.records.report, self.owner, run)
        except LearnGraphError as error:
            await self.refuse(error)
            return
        self.set_header("X-Content-Type-Options", "nosniff")
        self.finish(page, set_content_type="text/html; charset=utf-8")


@web.stream_request_body
class UploadHandler(LearnGraphHandler):
    """`POST …/attachments?name=NAME`: a file that is to go with a question; the body is its bytes.

    A body that is too large is refused when that is known, not when all of it has come.
    """

    async def prepare(self, **options: Any) -> None:
        self._body = bytearray()
        await super().prepare(**options)
        length = self.request.headers.get("Content-Length", "0")
        if not self._finished and length.isascii() and length.isdigit():
            self._bound(int(length))

    def data_received(self, chunk: bytes) -> None:
        self._bound(len(self._body) + len(chunk))
        self._body += chunk

    def _bound(self, size: int) -> None:
        from learngraph_kernel.agent.values import MAX_ATTACHMENT

        if size > MAX_ATTACHMENT:
            raise web.HTTPError(413)  # the body that is still to come is not read

    @web.authenticated
    @authorized
    async def post(self) -> None:
        from learngraph_kernel.errors import LearnGraphError

        try:
            self.check_rate()
            runtime = await self.host.runtime()
            name = self.get_query_argument("name", "")
            kept = await asyncio.to_thread(runtime.records.attach, self.owner, name, bytes(self._body))
        except LearnGraphError as error:
            await self.refuse(error)
            return
        self.send(200, kept)


class ResultHandler(LearnGraphHandler):
    """`GET …/sessions/{session}/artifacts/{sha256}`: something that this conversation refers to, as a download."""

    @web.authenticated
    @authorized
    async def get(self, session: str, sha256: str) -> None:
        from learngraph_kernel.errors import LearnGraphError

        try:
            self.check_rate()
            runtime = await self.host.runtime()
            await runtime.log.session(session, self.owner)
            data = await asyncio.to_thread(runtime.records.artifact, session, sha256)
        except LearnGraphError as error:
            await self.refuse(error)
            return
        self.set_header("Content-Disposition", f'attachment; filename="{sha256[:16]}"')
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Security-Policy", REPORT_CSP)
        self.finish(data, set_content_type="application/octet-stream")
