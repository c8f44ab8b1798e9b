"""What a hostile user or a hostile program with a ticket sends to sandboxd's API. Each returns whether it worked.

Every probe acts as an unprivileged uid that is nobody to the daemon, or as one that holds something narrower than what
it tries to do. It is held when the daemon refuses; what must not have happened is looked at, not only the status.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandbox.service_tokens import sign_token

SECRET = b"the owner's file"


class Exchange(Protocol):
    """One call as the stranger makes it: method, target, body, headers with `_` for `-`."""

    def __call__(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]: ...


@dataclass
class Scene:
    """A daemon, what its owner has there, and a stranger.

    Attributes:
        owner: the owner's client.
        box, kernel, command: ids of what the owner has.
        key: a key whose public half the daemon trusts, under the kid `trusted`.
        folders: a folder of the owner's and a place the stranger may not have mounted.
    """

    owner: SandboxClient
    stranger: Exchange
    box: str
    other_box: str
    kernel: str
    command: str
    key: Ed25519PrivateKey
    owners_folder: Path

    def token(self, **changes: Any) -> str:
        """A service token of the owner's subject, or what is wrong with it."""
        facts: dict[str, Any] = {"key": self.key, "kid": "trusted", "subject": "ana", "now": time.time(), **changes}
        return f"LearnGraph {sign_token(facts.pop('key'), facts.pop('kid'), facts.pop('subject'), **facts)}"

    def file_is(self, content: bytes) -> bool:
        return self.owner.get_file(self.box, "work/secret") == content


Probe = Callable[[Scene], bool]
PROBES: dict[str, Probe] = {}


def probe(function: Probe) -> Probe:
    PROBES[function.__name__.replace("_", "-")] = function
    return function


def worked(answer: tuple[int, Any]) -> bool:
    return answer[0] < 400


def listing(scene: Scene, **headers: str) -> bool:
    return worked(scene.stranger("GET", "/v1/sandboxes", **headers))


# Who


@probe
def call_as_another_uid(scene: Scene) -> bool:
    return worked(scene.stranger("GET", "/v1/health"))


@probe
def mint_as_another_uid(scene: Scene) -> bool:
    return worked(scene.stranger("POST", "/v1/tickets", {"scope": "owner", "effects": ["observe"], "ttl": 60}))


@probe
def token_of_an_unknown_key(scene: Scene) -> bool:
    return worked(scene.stranger("GET", "/v1/health", Authorization=scene.token(key=Ed25519PrivateKey.generate())))


@probe
def token_under_an_unknown_kid(scene: Scene) -> bool:
    return worked(scene.stranger("GET", "/v1/health", Authorization=scene.token(kid="../trusted")))


@probe
def token_that_has_expired(scene: Scene) -> bool:
    return worked(scene.stranger("GET", "/v1/health", Authorization=scene.token(now=time.time() - 3_600)))


@probe
def token_from_the_future(scene: Scene) -> bool:
    return worked(scene.stranger("GET", "/v1/health", Authorization=scene.token(now=time.time() + 3_600)))


@probe
def token_of_a_year(scene: Scene) -> bool:
    return worked(scene.stranger("GET", "/v1/health", Authorization=scene.token(life=31_536_000)))


@probe
def token_with_a_changed_subject(scene: Scene) -> bool:
    body, _, signature = scene.token().partition(".")
    other = sign_token(Ed25519PrivateKey.generate(), "trusted", "root", now=time.time()).partition(".")[0]
    return (
        worked(scene.stranger("GET", "/v1/health", Authorization=f"LearnGraph {other}.{signature}")) and body != other
    )


@probe
def token_without_a_signature(scene: Scene) -> bool:
    return worked(scene.stranger("GET", "/v1/health", Authorization=scene.token().partition(".")[0] + "."))


@probe
def token_of_another_scheme(scene: Scene) -> bool:
    return worked(scene.stranger("GET", "/v1/health", Authorization="Bearer " + scene.token().split(" ")[1]))


# What


def with_ticket(scene: Scene, ticket: str) -> dict[str, str]:
    """A known user (by token) who presents a ticket."""
    return {"Authorization": scene.token(subject="mallory"), "LearnGraph_Ticket": ticket}


def own_ticket(
    scene: Scene, *, effects: tuple[str, ...] = ("observe",), allowed: tuple[str, ...] | None = None
) -> tuple[int, Any]:
    """A ticket of mallory's own, whose service token may be narrowed to some effects."""
    authorization = scene.token(subject="mallory", effects=allowed)
    body = {"scope": "owner", "effects": list(effects), "ttl": 60}
    return scene.stranger("POST", "/v1/tickets", body, Authorization=authorization)


@probe
def ticket_stolen_from_its_owner(scene: Scene) -> bool:
    stolen = scene.owner.mint("owner", ["observe", "files"])
    target = f"/v1/sandboxes/{scene.box}/files/content?path=work/secret"
    return worked(scene.stranger("GET", target, **with_ticket(scene, stolen)))


@probe
def ticket_with_a_changed_id(scene: Scene) -> bool:
    ticket = own_ticket(scene)[1].get("ticket", "t_x.0")
    identity, _, mac = ticket.partition(".")
    forged = identity[:-1] + ("0" if identity[-1] != "0" else "1") + "." + mac
    return listing(scene, **with_ticket(scene, forged))


@probe
def ticket_made_up(scene: Scene) -> bool:
    return listing(scene, **with_ticket(scene, f"t_{secrets.token_hex(12)}.{secrets.token_hex(32)}"))


@probe
def no_ticket_at_all(scene: Scene) -> bool:
    return listing(scene, Authorization=scene.token(subject="mallory"))


@probe
def ticket_of_another_session(scene: Scene) -> bool:
    ticket = scene.owner.mint("session:other", ["observe", "files"])
    narrow = SandboxClient(scene.owner.path, ticket=ticket)
    try:
        return narrow.get_file(scene.box, "work/secret") == SECRET
    except Exception:  # noqa: BLE001  refused, in whatever words
        return False
    finally:
        narrow.close()


def narrow(scene: Scene, effects: list[str], act: Callable[[SandboxClient], object]) -> bool:
    """Whether an act of the owner's agent works under a ticket of these effects alone."""
    client = SandboxClient(scene.owner.path, ticket=scene.owner.mint("owner", effects))
    try:
        act(client)
    except Exception:  # noqa: BLE001  refused, in whatever words
        return False
    finally:
        client.close()
    return True


@probe
def agent_permits_its_own_deletion(scene: Scene) -> bool:
    agent = ["observe", "files", "exec", "kernel", "lifecycle"]
    return narrow(scene, agent, lambda client: client.grant_deletion(scene.box, ["work/secret"]))


@probe
def agent_opens_its_own_way_out(scene: Scene) -> bool:
    agent = ["observe", "files", "exec", "kernel", "lifecycle"]
    return narrow(scene, agent, lambda client: client.allow_egress(scene.box, ["files.example"]))


@probe
def onlooker_writes_a_file(scene: Scene) -> bool:
    return narrow(scene, ["observe"], lambda client: client.put_file(scene.box, "work/new", b"x"))


@probe
def onlooker_runs_a_command(scene: Scene) -> bool:
    return narrow(scene, ["observe"], lambda client: client.exec(scene.box, ["python", "work/s.py"]))


@probe
def onlooker_starts_a_kernel(scene: Scene) -> bool:
    return narrow(scene, ["observe", "exec"], lambda client: client.start_kernel("r_onlooker"))


@probe
def onlooker_ends_a_sandbox(scene: Scene) -> bool:
    return narrow(scene, ["observe", "files"], lambda client: client.stop(scene.other_box))


@probe
def token_that_allows_little_mints_much(scene: Scene) -> bool:
    return worked(own_ticket(scene, effects=("grant", "kernel"), allowed=("observe",)))


# Whose


def mallory(scene: Scene, method: str, target: str, body: Any = None) -> bool:
    ticket = own_ticket(scene, effects=("observe", "files", "exec", "lifecycle", "grant", "kernel"))[1].get(
        "ticket", ""
    )
    key = secrets.token_hex(8)
    return worked(scene.stranger(method, target, body, Idempotency_Key=key, **with_ticket(scene, ticket)))


@probe
def read_a_file_of_another(scene: Scene) -> bool:
    return mallory(scene, "GET", f"/v1/sandboxes/{scene.box}/files/content?path=work/secret")


@probe
def read_output_of_another(scene: Scene) -> bool:
    return mallory(scene, "GET", f"/v1/exec/{scene.command}?stdout=0")


@probe
def read_output_of_another_from_an_offset(scene: Scene) -> bool:
    return mallory(scene, "GET", f"/v1/exec/{scene.command}?stdout=3&stderr=0&wait=0")


@probe
def signal_a_kernel_of_another(scene: Scene) -> bool:
    return mallory(scene, "POST", f"/v1/kernels/{scene.kernel}/signal", {"signal": "SIGINT"})


@probe
def read_the_log_of_a_kernel_of_another(scene: Scene) -> bool:
    return mallory(scene, "GET", f"/v1/kernels/{scene.kernel}/logs")


@probe
def key_of_another_user(scene: Scene) -> bool:
    key = "an-idempotency-key"
    mine = scene.owner.create("keyed", key=key)
    headers = with_ticket(scene, own_ticket(scene, effects=("lifecycle",))[1].get("ticket", ""))
    status, answer = scene.stranger("POST", "/v1/sandboxes", {"session": "keyed"}, Idempotency_Key=key, **headers)
    return status < 400 and answer["sandbox"] == mine.id


# What is mounted


def kernel_with(scene: Scene, **request: Any) -> bool:
    status, answer = scene.stranger(
        "POST",
        "/v1/kernels",
        {"run": f"r_{secrets.token_hex(4)}", **request},
        Idempotency_Key=secrets.token_hex(8),
        **with_ticket(scene, own_ticket(scene, effects=("kernel",))[1].get("ticket", "")),
    )
    return status < 400 and bool(answer)


@probe
def mount_a_folder_of_the_owner(scene: Scene) -> bool:
    granted = scene.owners_folder.with_name(scene.owners_folder.name + "-granted")
    return kernel_with(scene, folder=str(scene.owners_folder), granted=str(granted))


@probe
def preload_a_library_into_a_kernel(scene: Scene) -> bool:
    return kernel_with(scene, environment={"LD_PRELOAD": "/tmp/evil.so"})


@probe
def another_broker_for_a_kernel(scene: Scene) -> bool:
    return kernel_with(scene, environment={"LEARNGRAPH_BROKER": "/tmp/mine.sock"})
