"""What can go wrong with a model, by stable code.

A failure of the *set-up* (no such script, a missing library, a bad file) is raised; a failure of the *response* is a
`response.failed` event, which `complete` turns into the error class of its code. The table below is the only place
that says which failures may be tried again.
"""

from __future__ import annotations

from typing import Any, ClassVar

from learngraph_kernel.errors import BadInput, LearnGraphError


class ModelError(LearnGraphError):
    """A model's response failed."""

    code = "model_failed"
    retryable: ClassVar[bool] = False
    advice: ClassVar[str] = "see the provider's message"


class ModelAuthentication(ModelError):
    """The endpoint refused the key."""

    code = "model_authentication"
    advice = "check the environment variable that api_key_env names, and that the key may use this model"


class ModelRateLimited(ModelError):
    """Too many requests or tokens (429)."""

    code = "model_rate_limited"
    retryable = True
    advice = "wait, or lower the number of requests at once"


class ModelServerFailed(ModelError):
    """The endpoint or a relay before it failed (500, 502, 503, 504, 529)."""

    code = "model_server_failed"
    retryable = True
    advice = "try again later; if it lasts, look at the endpoint's status page"


class ModelDisconnected(ModelError):
    """The connection was refused, reset or closed before the response was complete."""

    code = "model_disconnected"
    retryable = True
    advice = "check base_url and the network"


class ModelTimedOut(ModelError):
    """No output for too long (also 408), or the whole request took too long."""

    code = "model_timed_out"
    retryable = True
    advice = "raise no_output_s or total_s of this model in learngraph.toml"


class ModelGarbled(ModelError):
    """What came back is not what the protocol says."""

    code = "model_garbled"
    retryable = True
    advice = "check that base_url is the API's address (often it ends in /v1), not a web page"


class ModelRequestRefused(ModelError):
    """The endpoint refused the request itself (400, 422)."""

    code = "model_request_refused"
    advice = "narrow the model's capabilities in learngraph.toml, so that the refused field is not sent"


class ModelContextExceeded(ModelError):
    """The conversation is longer than the model's context window."""

    code = "model_context_exceeded"
    advice = "shorten the conversation or its documents, or choose a model with a larger window"


class ModelNotFound(ModelError):
    """No such model at this endpoint (404)."""

    code = "model_not_found"
    advice = "check `model` and `base_url` in learngraph.toml"


class ModelContentRefused(ModelError):
    """The provider's content filter stopped the request or the answer."""

    code = "model_content_refused"
    advice = "rephrase the request"


class ModelEmptyAnswer(ModelError):
    """The response completed without text and without a tool call."""

    code = "model_empty_answer"
    advice = "raise max_output_tokens or turn thinking off: thinking may use up the whole limit before any text"


class AnswerInvalid(ModelError):
    """The answer did not fit its schema, and the repairs are used up."""

    code = "answer_invalid"
    advice = "state the expected form in the question, allow more repairs, or relax the schema"


class ScriptUnmatched(BadInput):
    """No rule of a scripted model fits the conversation."""

    code = "script_unmatched"


class ModelMisconfigured(BadInput):
    """`[models.…]` in learngraph.toml, or a script or snapshot it names, cannot be used."""

    code = "model_misconfigured"


FAILURES: dict[str, type[ModelError]] = {
    error.code: error
    for error in (
        ModelError,
        ModelAuthentication,
        ModelRateLimited,
        ModelServerFailed,
        ModelDisconnected,
        ModelTimedOut,
        ModelGarbled,
        ModelRequestRefused,
        ModelContextExceeded,
        ModelNotFound,
        ModelContentRefused,
    )
}
"""The codes a `response.failed` event may carry."""


def failure(code: str, reason: str, *, model: str, details: dict[str, Any] | None = None) -> ModelError:
    """The error of a failed response; an unknown code gives the base class, with the code among the details."""
    kind = FAILURES.get(code)
    if kind is None:
        return ModelError(reason, where=f"model {model}", remedy=ModelError.advice, details={"code": code})
    return kind(reason, where=f"model {model}", remedy=kind.advice, details=details)
