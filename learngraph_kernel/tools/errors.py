"""What can go wrong between a call that a model asks for and an effect. Whatever is raised here, nothing happened."""

from __future__ import annotations

from learngraph_kernel.errors import BadInput, LearnGraphError


class ApprovalError(LearnGraphError):
    """An approval cannot be decided or used like this; its call does not happen through it."""

    code = "approval_error"


class UnknownApproval(ApprovalError):
    """There is no such approval."""

    code = "approval_unknown"


class ForeignApproval(ApprovalError):
    """It is somebody else's to decide, or belongs to another conversation's call."""

    code = "approval_foreign"


class EditedApproval(ApprovalError):
    """What was seen is not what would happen: the arguments have another hash."""

    code = "approval_edited"


class ReplayedApproval(ApprovalError):
    """It was decided, or used, before."""

    code = "approval_replayed"


class ExpiredApproval(ApprovalError):
    """Its time has passed."""

    code = "approval_expired"


class StaleApproval(ApprovalError):
    """The conversation or the tool has moved on since it was asked."""

    code = "approval_stale"


class BadDecision(ApprovalError):
    """The decision itself makes no sense: an edit without arguments, a standing grant that was not on offer."""

    code = "bad_decision"


class UnknownGrant(BadInput):
    """There is no such standing grant of this person."""

    code = "unknown_grant"


class ToolTicketRefused(LearnGraphError):
    """A ticket that the desk did not issue for exactly this call, or that was used or is out of date."""

    code = "tool_ticket_refused"


class ToolRefused(BadInput):
    """A tool cannot be registered as it is: its name, schema or declarations break the rules."""

    code = "tool_refused"


class ToolExists(BadInput):
    """Another tool is registered under that name."""

    code = "tool_exists"


class BadArguments(BadInput):
    """The arguments of a call break its schema; the details list each problem so that a model can mend them."""

    code = "bad_arguments"
