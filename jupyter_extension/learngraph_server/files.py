"""Rendered reports and stored results. A report shares Jupyter's origin, so it is shown in a sandbox of its own."""

from __future__ import annotations

import asyncio

from jupyter_server.auth.decorator import authorized
from tornado import web

from learngraph_server.answers import body_of, status_of
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
            self.send(status_of(error), body_of(error))
            return
        self.set_header("X-Content-Type-Options", "nosniff")
        self.finish(page, set_content_type="text/html; charset=utf-8")


class UploadHandler(LearnGraphHandler):
    """`POST …/attachments?name=NAME`: a file that is to go with a question; the body is its bytes."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        from learngraph_kernel.errors import LearnGraphError

        try:
            self.check_rate()
            runtime = await self.host.runtime()
            name = self.get_query_argument("name", "")
            kept = await asyncio.to_thread(runtime.records.attach, self.owner, name, self.request.body)
        except LearnGraphError as error:
            self.send(status_of(error), body_of(error))
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
            self.send(status_of(error), body_of(error))
            return
        self.set_header("Content-Disposition", f'attachment; filename="{sha256[:16]}"')
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Security-Policy", REPORT_CSP)
        self.finish(data, set_content_type="application/octet-stream")
