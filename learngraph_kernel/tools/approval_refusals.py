"""Why an approval cannot be decided or used: the first reason that holds, as the error that names it.

Foreign comes first, so that nobody learns what became of somebody else's approval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from learngraph_kernel.tools.approval_record import Approval, Choice, Grant
from learngraph_kernel.tools.errors import (
    ApprovalError,
    BadDecision,
    EditedApproval,
    ExpiredApproval,
    ForeignApproval,
    ReplayedApproval,
    StaleApproval,
    UnknownApproval,
)
from learngraph_kernel.tools.values import ToolScope

_ASK_AGAIN = "let the agent ask again"


def check_decision(choice: Choice, grant: Grant, arguments: Mapping[str, Any] | None, text: str, longest: int) -> None:
    """Raises BadDecision when a decision makes no sense by itself."""
    if choice not in get_args(Choice):
        raise BadDecision(f"{choice!r} is no decision", remedy=f"one of {', '.join(get_args(Choice))}")
    if grant not in get_args(Grant):
        raise BadDecision(f"{grant!r} is no grant", remedy=f"one of {', '.join(get_args(Grant))}")
    if (choice == "edit") != (arguments is not None):
        raise BadDecision("arguments come with an edit, and only with it", remedy="choose `edit`, or send none")
    if choice != "approve" and grant != "allow_once":
        raise BadDecision("only an approval grants anything", remedy="leave `grant` out")
    if choice == "respond" and not text.strip():
        raise BadDecision("an answer has words", remedy="send a text, or reject the call")
    if len(text) > longest:
        raise BadDecision(f"a text of more than {longest} characters", remedy="say it shorter")


def unknown(approval_id: str) -> UnknownApproval:
    """There is no such record."""
    return UnknownApproval("there is no such approval", where=approval_id[:80], remedy="reload the list of approvals")


def check_decidable(approval: Approval, owner: str, arguments_hash: str) -> None:
    """Raises the reason why this person cannot decide it now, if there is one."""
    if owner not in approval.approvers:
        raise foreign(approval.id)
    if approval.state != "pending":
        raise _gone(approval)
    if arguments_hash != approval.exact.hash:
        raise EditedApproval(
            "what was shown is not what would happen: the arguments have another hash",
            where=approval.id,
            remedy="reload the approval and look at its arguments again",
        )


def not_decidable(approval: Approval, owner: str, arguments_hash: str) -> ApprovalError:
    """The reason why a conditional change found nothing to change."""
    try:
        check_decidable(approval, owner, arguments_hash)
    except ApprovalError as reason:
        return reason
    return StaleApproval("it changed while it was being decided", where=approval.id, remedy="reload it")


def check_usable(approval: Approval, scope: ToolScope) -> None:
    """Raises the reason why this turn cannot use it, if there is one; any decision is fine, so is none yet."""
    asked = (approval.owner, approval.workspace, approval.session_id, approval.turn_id, approval.agent)
    if asked != (scope.owner, scope.workspace, scope.session_id, scope.turn_id, scope.agent):
        raise foreign(approval.id)
    if approval.state in {"expired", "withdrawn"}:
        raise _gone(approval)


def not_usable(approval: Approval) -> ApprovalError:
    """The reason why it could not be used up."""
    if approval.state == "pending":
        return StaleApproval("nobody has decided it yet", where=approval.id, remedy="wait for the decision")
    return _gone(approval)


def tool_changed(approval: Approval) -> StaleApproval:
    """The tool is not what the person saw."""
    return StaleApproval(
        "the tool has changed since it was approved, so the approval counts for nothing",
        where=approval.id,
        remedy=_ASK_AGAIN,
    )


def expired(approval: Approval) -> ExpiredApproval:
    """Too late."""
    return ExpiredApproval("its time has passed", where=approval.id, remedy=_ASK_AGAIN)


def foreign(approval_id: str) -> ForeignApproval:
    """Somebody else's."""
    return ForeignApproval("it is not yours to decide or to use", where=approval_id, remedy="reload the list")


def _gone(approval: Approval) -> ApprovalError:
    if approval.state == "expired":
        return expired(approval)
    if approval.state == "withdrawn":
        return StaleApproval("the conversation has gone on without it", where=approval.id, remedy=_ASK_AGAIN)
    return ReplayedApproval(f"it was decided before: {approval.state}", where=approval.id, remedy="reload the list")
