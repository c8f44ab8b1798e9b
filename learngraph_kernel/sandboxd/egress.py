"""Egress policies on record, and the doors that are open by them.

Giving one is a person's decision: it takes the effect `grant`, which an agent's ticket never has. The record is the
approval; what the policy says has a digest, and every connection is held against the record under that digest, so a
policy that was taken back, has ended or was tampered with opens nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from learngraph_kernel.canonical import canonical_json, digest
from learngraph_kernel.sandbox.addresses import AddressPolicy, refusal_of
from learngraph_kernel.sandbox.answers import Forbidden, NotFound, NotReady
from learngraph_kernel.sandbox.egress import EgressPolicy, egress_policy
from learngraph_kernel.sandbox.fetching import Connector, DirectConnector
from learngraph_kernel.sandbox.resolvers import SystemResolver
from learngraph_kernel.sandbox.urls import Resolver
from learngraph_kernel.sandboxd import folders
from learngraph_kernel.sandboxd.auth import Caller
from learngraph_kernel.sandboxd.core import Core
from learngraph_kernel.sandboxd.egress_proxy import EgressProxy, Tunnelled
from learngraph_kernel.sandboxd.hardening import UID
from learngraph_kernel.sandboxd.records import Row, new_id
from learngraph_kernel.sandboxd.schema import egress_log
from learngraph_kernel.sandboxd.schema import egress_policies as table

AUTHORITIES = "authorities.pem"


@dataclass(frozen=True)
class Network:
    """How the daemon reaches the world for its doors; tests hand in their own.

    Attributes:
        authorities: PEM text of whom the box trusts; None: whom this machine trusts.
    """

    resolver: Resolver = field(default_factory=SystemResolver)
    connector: Connector = field(default_factory=DirectConnector)
    policy: AddressPolicy = refusal_of
    authorities: str | None = None


@dataclass
class Door:
    """A way out that is mounted into one container.

    Attributes:
        folder: what is mounted, read-only: the socket and the authorities.
    """

    policy: EgressPolicy
    folder: Path
    proxy: EgressProxy
    shut: bool = False


class Egress:
    """The policies of all sessions."""

    def __init__(self, core: Core, network: Network) -> None:
        self._core, self._network = core, network
        self._root = core.settings.state / "egress"
        self._doors: dict[str, Door] = {}
        folders.private_folder(self._root)
        for old in self._root.iterdir():  # of a daemon that was killed; their containers end with it
            folders.remove_below(self._root, old.name)

    async def grant(self, caller: Caller, row: Row, body: Mapping[str, Any], key: str) -> Row:
        """Records a policy for a session. The same key gives the same policy. Raises BadEgress, Conflict."""
        if not self._core.settings.egress:
            raise NotReady(
                "no way out may be opened here",
                code="egress_off",
                remedy="an administrator can set egress = true, and let sandboxd reach the network",
                zh=("此处禁止出网", "管理员可设 egress = true，并允许 sandboxd 访问网络"),
            )
        identity = {"call": "egress", "sandbox": row["id"], "request": dict(body)}
        async with self._core.lock("key", caller.owner, key):
            known = await self._core.workers.record(self._core.remembered, caller.owner, key, identity)
            if known is not None:
                return await self.one(row, known["resource"])
            policy = egress_policy(
                body.get("kind", "fetch"),
                body.get("hosts"),
                owner=row["owner"],
                session=row["session"],
                approval=new_id("eg"),
                now=self._core.clock(),
                ttl=body.get("ttl", 3_600),
            )
            await self._core.workers.record(self._insert, policy, caller, row, key, identity)
        return await self.one(row, policy.approval)

    def _insert(self, policy: EgressPolicy, caller: Caller, row: Row, key: str, identity: Any) -> None:
        records, now = self._core.records, self._core.clock()
        with records.transaction():
            records.insert(
                table,
                {
                    "id": policy.approval,
                    "sandbox": row["id"],
                    "digest": policy.digest,
                    "kind": policy.kind,
                    "body": canonical_json(policy.as_json()).decode(),
                    "approved_by": caller.owner,
                    "created": now,
                    "ends": policy.ends,
                    "revoked": None,
                },
            )
            records.remember(caller.owner, key, digest(identity), policy.approval, None, now)

    async def one(self, row: Row, identity: str) -> Row:
        """A policy of a session, as callers see it. Raises NotFound."""
        found = await self._core.workers.record(self._core.records.get, table, identity)
        if found is None or found["sandbox"] != row["id"]:
            raise NotFound("this session has no such egress policy", code="no_such_policy")
        return _shown(found)

    async def listed(self, row: Row) -> list[Row]:
        """The policies of a session, newest first."""
        mine = sa.select(table).where(table.c.sandbox == row["id"]).order_by(table.c.created.desc()).limit(100)
        return [_shown(found) for found in await self._core.workers.record(self._core.records.rows, mine)]

    async def revoke(self, row: Row, identity: str) -> Row:
        """Takes a policy back: its doors close now, with what runs through them."""
        await self.one(row, identity)
        changes = {"revoked": self._core.clock()}
        await self._core.workers.record(self._core.records.update, table, identity, changes)
        for name, door in list(self._doors.items()):
            if door.policy.approval == identity:
                await self._shut(name)
        return await self.one(row, identity)

    async def in_force(self, row: Row, kind: str, name: str | None = None) -> EgressPolicy | None:
        """The policy of a session that holds now: the one of this digest, or the latest of this kind."""
        now = self._core.clock()
        mine = sa.select(table).where(
            table.c.sandbox == row["id"], table.c.kind == kind, table.c.revoked.is_(None), table.c.ends > now
        )
        if name is not None:
            mine = mine.where(table.c.digest == name)
        found = await self._core.workers.record(self._core.records.row, mine.order_by(table.c.created.desc()))
        return None if found is None else EgressPolicy.from_json(json.loads(found["body"]))

    async def require(self, row: Row, kind: str, name: object) -> EgressPolicy:
        """As `in_force`. Raises Forbidden when there is none of that digest and kind."""
        policy = await self.in_force(row, kind, name) if isinstance(name, str) else None
        if policy is None:
            raise Forbidden(
                f"no {kind} policy of that digest is in force for this session",
                code="egress_denied",
                remedy="a person has to allow the hosts first: learngraph sandbox fetch URL --allow HOST",
                zh=("此会话没有生效的出网策略", "请先由人批准：learngraph sandbox fetch URL --allow HOST"),
            )
        return policy

    # Doors

    async def open(self, policy: EgressPolicy) -> Door:
        """A door for one container; close it with `close`."""
        name = f"eg-{secrets.token_hex(12)}"
        folder = self._root / name
        await self._core.workers.run(self._make_folder, folder)
        proxy = EgressProxy(
            folder / "proxy.sock",
            policy,
            self._network,
            self._core.workers,
            still=self._still_in_force,
            note=self._note,
            clock=self._core.clock,
        )
        await proxy.start()
        await self._core.workers.run(folders.open_to_container, folder, writable=False)
        await self._core.workers.run(_let_in, folder / "proxy.sock")
        door = self._doors[name] = Door(policy, folder, proxy)
        return door

    async def close(self, door: Door) -> None:
        """Closes a door and removes its folder. Safe to repeat."""
        await self._shut(door.folder.name)
        await self._core.workers.run(folders.remove_below, self._root, door.folder.name)

    async def close_all(self) -> None:
        """At the daemon's end."""
        for door in list(self._doors.values()):
            await self.close(door)

    async def _shut(self, name: str) -> None:
        door = self._doors.pop(name, None)
        if door is not None:
            door.shut = True
            await door.proxy.close()

    def _make_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        folder.joinpath(AUTHORITIES).write_text(self._network.authorities or machine_authorities())

    async def _still_in_force(self, policy: EgressPolicy) -> bool:
        found = await self._core.workers.record(self._core.records.get, table, policy.approval)
        return bool(
            found is not None
            and found["revoked"] is None
            and found["digest"] == policy.digest
            and digest(json.loads(found["body"])) == policy.digest
        )

    async def _note(self, done: Tunnelled) -> None:
        self._core.counters[f"egress_{done.verdict}"] += 1
        row = {
            "at": self._core.clock(),
            "policy": done.policy,
            "host": done.host,
            "address": done.address,
            "verdict": done.verdict,
            "reason": done.reason,
            "sent": done.sent,
            "received": done.received,
        }
        await self._core.workers.record(self._core.records.insert, egress_log, row)


def _let_in(path: Path) -> None:
    """Connecting takes the write bit of a socket (unix(7))."""
    os.setxattr(path, "system.posix_acl_access", folders.acl(6, {UID: 6}))


@cache
def machine_authorities() -> str:
    """The certificates this machine trusts, as PEM."""
    ders = ssl.create_default_context().get_ca_certs(binary_form=True)
    return "".join(map(ssl.DER_cert_to_PEM_cert, ders))


def _shown(row: Row) -> Row:
    body = json.loads(row["body"])
    return {
        "policy": row["digest"],
        "id": row["id"],
        "kind": row["kind"],
        "hosts": body["hosts"],
        "ends": row["ends"],
        "approved_by": row["approved_by"],
        "revoked": row["revoked"],
    }
