"""The routes of the API, version 1: what each call does, and the table of all of them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO

from learngraph_kernel.sandbox.answers import BadRequest, Conflict
from learngraph_kernel.sandboxd.call import Call
from learngraph_kernel.sandboxd.core import check_key
from learngraph_kernel.sandboxd.kernel_requests import shown as shown_kernel
from learngraph_kernel.sandboxd.sandboxes import shown as shown_sandbox

CHUNK = 1024 * 1024
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")

Answer = dict[str, Any] | BinaryIO | str
Route = Callable[[Call], Awaitable[Answer]]


async def health(call: Call) -> Answer:
    return {"state": "ok", "instance": call.daemon.core.around.instance, "api": 1}


async def readiness(call: Call) -> Answer:
    return await call.daemon.health.readiness()


async def metrics(call: Call) -> Answer:
    return await call.daemon.health.metrics()


async def mint_ticket(call: Call) -> Answer:
    body = call.json("scope", "effects", "ttl")
    return await call.daemon.tickets.mint(call.caller, body, check_key(call.key))


async def image_status(call: Call) -> Answer:
    return await call.daemon.images.status()


async def build_image(call: Call) -> Answer:
    return await call.daemon.images.begin(call.caller, "build", check_key(call.key))


async def pull_image(call: Call) -> Answer:
    return await call.daemon.images.begin(call.caller, "pull", check_key(call.key))


async def image_job(call: Call) -> Answer:
    return await call.daemon.images.job(call.names["id"])


async def create_sandbox(call: Call) -> Answer:
    body = call.json("session", "policy")
    session, policy = body.get("session"), body.get("policy", "sandbox-agent-v1")
    if not isinstance(session, str) or not _SESSION.fullmatch(session) or not isinstance(policy, str):
        raise BadRequest("session must be a name of up to 128 letters, digits and ._:-", code="bad_session")
    await call.allow("lifecycle", f"session:{session}")
    return shown_sandbox(await call.daemon.sandboxes.create(call.caller, session, policy, check_key(call.key)))


async def list_sandboxes(call: Call) -> Answer:
    await call.allow("observe")
    rows = await call.daemon.sandboxes.owned(call.caller)
    running = await call.daemon.kernels.list(call.caller)
    return {"sandboxes": [shown_sandbox(row) for row in rows], "kernels": [shown_kernel(row) for row in running]}


async def show_sandbox(call: Call) -> Answer:
    return shown_sandbox(await call.sandbox("observe"))


async def start_sandbox(call: Call) -> Answer:
    row = await call.sandbox("lifecycle")
    await call.daemon.sandboxes.start(row)
    return shown_sandbox(await call.daemon.sandboxes.get(call.caller, row["id"]))


async def stop_sandbox(call: Call) -> Answer:
    row = await call.sandbox("lifecycle")
    await call.daemon.sandboxes.stop(row, "stopped by its owner")
    return shown_sandbox(await call.daemon.sandboxes.get(call.caller, row["id"]))


async def delete_sandbox(call: Call) -> Answer:
    row = await call.sandbox("lifecycle")
    await call.daemon.sandboxes.delete(row)
    return {"sandbox": row["id"], "state": "expired"}


async def begin_command(call: Call) -> Answer:
    row = await call.sandbox("exec")
    service, wait = call.daemon.commands, call.number("wait")
    begun = await service.begin(call.caller, row, call.json(), check_key(call.key))
    if wait == 0:
        return begun
    await call.allow("observe", f"session:{row['session']}")
    await service.ended(begun["exec"], wait)
    return await service.show(begun["exec"], {"stdout": 0, "stderr": 0}, 0)


async def inspect_file(call: Call) -> Answer:
    row = await call.sandbox("exec")
    return await call.daemon.commands.inspect(call.caller, row, call.json("task", "path"), check_key(call.key))


async def list_commands(call: Call) -> Answer:
    row = await call.sandbox("observe")
    return {"execs": await call.daemon.commands.list(row["id"])}


async def show_command(call: Call) -> Answer:
    row = await call.command("observe")
    offsets = {stream: int(call.number(stream)) for stream in ("stdout", "stderr")}
    return await call.daemon.commands.show(row["id"], offsets, call.number("wait"))


async def cancel_command(call: Call) -> Answer:
    row = await call.command("exec")
    await call.daemon.commands.cancel(row["id"])
    return {"exec": row["id"], "state": "cancelling" if row["state"] == "running" else row["state"]}


async def list_files(call: Call) -> Answer:
    row = await call.sandbox("observe")
    files = await call.daemon.core.workers.run(call.daemon.files.listing, row, call.query.get("path"))
    return {"files": files, "bytes": sum(file["size"] for file in files)}


async def get_file(call: Call) -> Answer:
    row = await call.sandbox("observe")

    path, files = call.query.get("path", ""), call.daemon.files

    def whole() -> BinaryIO:
        """The file, once all of it was read: damage is told as an error, not as a connection that breaks."""
        with files.open(row, path) as file:
            while file.read(CHUNK):
                continue
        return files.open(row, path)

    return await call.daemon.core.workers.run(whole)


async def put_file(call: Call) -> Answer:
    row = await call.sandbox("files")
    await call.daemon.sandboxes.touch(row["id"])
    assert call.upload is not None  # the handler of this path takes bodies to disk
    return await call.daemon.core.workers.run(call.daemon.files.put, row, call.query.get("path", ""), call.upload)


async def delete_file(call: Call) -> Answer:
    row = await call.sandbox("files")
    live = call.daemon.sandboxes.live.get(row["id"])
    if live is not None and live.command is not None:
        raise Conflict("a command is running in this workspace", code="busy", remedy="wait for it, or cancel it")
    recursive = call.query.get("recursive") == "true"
    remove = call.daemon.files.delete
    return {"deleted": await call.daemon.core.workers.run(remove, row, call.query.get("path", ""), recursive)}


async def publish_file(call: Call) -> Answer:
    row = await call.sandbox("files")
    path = str(call.json("path").get("path", ""))
    version = await call.daemon.core.workers.run(call.daemon.files.publish, row, path)
    return {"path": version.path, "version": version.version, "sha256": version.sha256, "size": version.size}


async def grant_deletion(call: Call) -> Answer:
    row = await call.sandbox("grant")
    return await call.daemon.grant(call.caller, row, call.json("paths", "ttl"), check_key(call.key))


async def give_egress(call: Call) -> Answer:
    row, body = await call.sandbox("grant"), call.json("kind", "hosts", "ttl")
    if body.get("kind") == "general":
        await call.daemon.sandboxes.change_way_out(row)
    return await call.daemon.egress.grant(call.caller, row, body, check_key(call.key))


async def list_egress(call: Call) -> Answer:
    return {"policies": await call.daemon.egress.listed(await call.sandbox("observe"))}


async def revoke_egress(call: Call) -> Answer:
    row = await call.sandbox("grant")
    gone = await call.daemon.egress.revoke(row, call.names["policy"])
    await call.daemon.fetching.sweep()
    return gone


async def fetch_page(call: Call) -> Answer:
    row = await call.sandbox("exec")
    return await call.daemon.fetching.fetch(row, call.json("url", "policy", "seconds", "bytes"))


async def start_kernel(call: Call) -> Answer:
    body = call.json()
    await call.allow("kernel", f"run:{body.get('run')}")
    return await call.daemon.kernels.start(call.caller, body, check_key(call.key))


async def show_kernel(call: Call) -> Answer:
    return shown_kernel(await call.daemon.kernels.state(await call.kernel()))


async def interrupt_kernel(call: Call) -> Answer:
    row = await call.kernel()
    await call.daemon.kernels.signal(row, "SIGINT")
    return {"kernel": row["id"]}


async def signal_kernel(call: Call) -> Answer:
    row = await call.kernel()
    await call.daemon.kernels.signal(row, str(call.json("signal").get("signal")))
    return {"kernel": row["id"]}


async def restart_kernel(call: Call) -> Answer:
    row, body = await call.kernel(), call.json("environment")
    return await call.daemon.kernels.restart(call.caller, row, body.get("environment", {}))


async def kernel_logs(call: Call) -> Answer:
    row = await call.kernel()
    return {"kernel": row["id"], "log": await call.daemon.kernels.logs(row)}


async def delete_kernel(call: Call) -> Answer:
    row = await call.kernel()
    await call.daemon.kernels.delete(row)
    return {"kernel": row["id"], "state": "stopped"}


async def collect(call: Call) -> Answer:
    await call.allow("lifecycle")
    return await call.daemon.collect()


async def shut_down(call: Call) -> Answer:
    await call.allow("lifecycle")
    going_on = await call.daemon.kernels.list(call.caller)
    call.daemon.shut_down(call.caller)
    return {"state": "stopping", "kernels": [row["id"] for row in going_on]}


UPLOADS = frozenset({"/v1/sandboxes/{id}/files/content"})
"""Paths whose bodies are files."""

ROUTES: tuple[tuple[str, str, Route], ...] = (
    ("GET", "/v1/health", health),
    ("GET", "/v1/readiness", readiness),
    ("GET", "/v1/metrics", metrics),
    ("POST", "/v1/tickets", mint_ticket),
    ("GET", "/v1/images", image_status),
    ("POST", "/v1/images/build", build_image),
    ("POST", "/v1/images/pull", pull_image),
    ("GET", "/v1/images/jobs/{id}", image_job),
    ("POST", "/v1/sandboxes", create_sandbox),
    ("GET", "/v1/sandboxes", list_sandboxes),
    ("GET", "/v1/sandboxes/{id}", show_sandbox),
    ("DELETE", "/v1/sandboxes/{id}", delete_sandbox),
    ("POST", "/v1/sandboxes/{id}/start", start_sandbox),
    ("POST", "/v1/sandboxes/{id}/stop", stop_sandbox),
    ("POST", "/v1/sandboxes/{id}/exec", begin_command),
    ("GET", "/v1/sandboxes/{id}/exec", list_commands),
    ("POST", "/v1/sandboxes/{id}/inspect", inspect_file),
    ("GET", "/v1/sandboxes/{id}/files", list_files),
    ("GET", "/v1/sandboxes/{id}/files/content", get_file),
    ("PUT", "/v1/sandboxes/{id}/files/content", put_file),
    ("DELETE", "/v1/sandboxes/{id}/files/content", delete_file),
    ("POST", "/v1/sandboxes/{id}/publish", publish_file),
    ("POST", "/v1/sandboxes/{id}/grants", grant_deletion),
    ("POST", "/v1/sandboxes/{id}/egress", give_egress),
    ("GET", "/v1/sandboxes/{id}/egress", list_egress),
    ("DELETE", "/v1/sandboxes/{id}/egress/{policy}", revoke_egress),
    ("POST", "/v1/sandboxes/{id}/fetch", fetch_page),
    ("GET", "/v1/exec/{id}", show_command),
    ("POST", "/v1/exec/{id}/cancel", cancel_command),
    ("POST", "/v1/kernels", start_kernel),
    ("GET", "/v1/kernels/{id}", show_kernel),
    ("DELETE", "/v1/kernels/{id}", delete_kernel),
    ("POST", "/v1/kernels/{id}/interrupt", interrupt_kernel),
    ("POST", "/v1/kernels/{id}/signal", signal_kernel),
    ("POST", "/v1/kernels/{id}/restart", restart_kernel),
    ("GET", "/v1/kernels/{id}/logs", kernel_logs),
    ("POST", "/v1/gc", collect),
    ("POST", "/v1/shutdown", shut_down),
)
