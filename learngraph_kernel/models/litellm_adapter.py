"""The LiteLLM adapter: the only module that imports `litellm`, in a thread and not before a model is asked.

Importing it costs seconds, so its version is judged from its metadata first: 1.82.7 and 1.82.8 were malicious uploads,
and nothing below 1.84.0 is accepted. Its retries are off (ours are in `port.deliver`), it sees no `.env` file and no
remote cost map, and an error is sorted by the classes in its chain, never by its text.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import importlib
import importlib.metadata
import json
import math
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any

from learngraph_kernel.errors import Unavailable
from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.events import (
    Cost,
    NormalizedEvent,
    ResponseCompleted,
    ResponseFailed,
    ResponseStarted,
    Usage,
    UsageUpdated,
)
from learngraph_kernel.models.litellm_wire import StreamReader, finish_of, usage_of, wire_request
from learngraph_kernel.models.messages import Defaults, NormalizedRequest
from learngraph_kernel.models.prices import Prices

REFUSED_VERSIONS = ("1.82.7", "1.82.8")
LOWEST_VERSION = (1, 84, 0)
REMEDY = 'pip install "learngraph[models]"'

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches its price list over the network at import
    "LITELLM_MODE": "PRODUCTION",  # else it loads any .env file it finds above the current folder
    "LITELLM_TELEMETRY": "False",
}
_NO_KEY = "none-needed"
_NAMES_A_KEY = re.compile(r"(?i)(key|token|secret)$")
_LONGEST_REASON = 500


def check_version() -> str:
    """The installed version of LiteLLM, from its metadata, without importing it.

    Raises:
        Unavailable: it is missing, too old, or one of the refused versions.
    """
    try:
        version = importlib.metadata.version("litellm")
    except importlib.metadata.PackageNotFoundError as error:
        raise Unavailable("litellm is not installed", where="model adapter litellm", remedy=REMEDY) from error
    if version in REFUSED_VERSIONS or _release(version) < LOWEST_VERSION:
        floor = ".".join(map(str, LOWEST_VERSION))
        raise Unavailable(
            f"litellm {version} is refused: at least {floor} is needed",
            where="model adapter litellm",
            remedy=f'{REMEDY} (or: pip install "litellm>={floor}")',
        )
    return version


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: 1.84.0rc1 → (1, 84, 0)."""
    numbers = []
    for part in version.split(".")[:3]:
        digits = "".join(character for character in part[:8] if character.isdigit())
        numbers.append(int(digits) if digits and part[0].isdigit() else 0)
    return tuple(numbers)


def import_litellm() -> Any:
    """The library, quiet. Blocks for seconds the first time. Raises Unavailable."""
    check_version()
    os.environ.update(_ENVIRONMENT)
    try:
        library: Any = importlib.import_module("litellm")
    except ImportError as error:
        raise Unavailable(
            f"litellm cannot be imported: {error}", where="model adapter litellm", remedy=REMEDY
        ) from error
    library.suppress_debug_info = True
    library.drop_params = False  # a field is left out by our snapshot, where it can be seen, or not at all
    library.num_retries = 0
    return library


def known_windows(model: str) -> tuple[int | None, int | None]:
    """Context window and longest output of a model in tokens, by LiteLLM's list; None: not listed. Blocks."""
    library = import_litellm()
    listed = library.model_cost.get(model) or library.model_cost.get(model.partition("/")[2]) or {}
    window, longest = listed.get("max_input_tokens"), listed.get("max_output_tokens")
    return (window if isinstance(window, int) else None, longest if isinstance(longest, int) else None)


class LiteLLMModel:
    """One endpoint.

    Args:
        model: LiteLLM's name, provider first: `openai/gpt-4o-mini`.
        base_url: the endpoint, or None for the provider's own.
        api_key_env: the environment variable that holds the key. Without it and with a `base_url` no key is sent;
            without both, LiteLLM looks in the provider's usual variable.
        capabilities, defaults, prices: as configured.
        environ: where `api_key_env` is looked up.
        secret: gives the key when it is needed, instead of a variable.
        auth_style: the header it is sent in, `bearer` (Authorization) or `x-api-key`.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        capabilities: Capabilities | None = None,
        defaults: Defaults | None = None,
        prices: Prices | None = None,
        environ: Mapping[str, str] | None = None,
        secret: Callable[[], str] | None = None,
        auth_style: str = "bearer",
    ) -> None:
        self.model = model
        self.capabilities = capabilities or Capabilities()
        self.defaults = defaults or Defaults()
        self._base_url = base_url
        self._api_key_env = api_key_env
        self._prices = prices
        self._environ = os.environ if environ is None else environ
        self._secret, self._auth_style = secret, auth_style

    async def prepare(self) -> None:
        """Imports the library in a thread and looks up the key. Raises Unavailable."""
        await asyncio.to_thread(self._key)
        await asyncio.to_thread(import_litellm)

    def _key(self) -> str | None:
        if self._secret is not None:
            return self._secret()
        if self._api_key_env is None:
            return _NO_KEY if self._base_url else None  # never lend another provider's key to this address
        key = self._environ.get(self._api_key_env, "")
        if not key:
            raise Unavailable(
                f"the environment variable {self._api_key_env} is not set",
                where=f"model {self.model}",
                remedy=f"export {self._api_key_env}=… before starting",
            )
        return key

    async def invoke(self, request: NormalizedRequest) -> AsyncIterator[NormalizedEvent]:
        """One attempt, streamed. Raises Unavailable."""
        library = await asyncio.to_thread(import_litellm)
        key = await asyncio.to_thread(self._key)
        fields = {**wire_request(request, self.capabilities), **self._address(key)}
        stream: Any = None
        reader = StreamReader()
        try:
            stream = await library.acompletion(
                **fields, num_retries=0, max_retries=0, timeout=request.limits.total_s, caching=False
            )
            started = False
            usage: Any = None
            async for chunk in stream:
                if not started:
                    started = True
                    yield ResponseStarted(request.model, chunk.id or "", request_id=_request_id(stream))
                for choice in chunk.choices[:1]:
                    for event in reader.read(choice):
                        yield event
                usage = getattr(chunk, "usage", None) or usage
            for event in self._end(library, request, stream, reader, usage):
                yield event
        except Exception as error:  # noqa: BLE001  (a vendor may raise anything: it becomes a coded failure here)
            yield _failed(error, request.model, library, secrets=self._not_to_be_shown(key))
        finally:
            if hasattr(stream, "aclose"):
                await stream.aclose()

    def _address(self, key: str | None) -> dict[str, Any]:
        """Where to, and how the key is sent."""
        fields: dict[str, Any] = {"api_base": self._base_url} if self._base_url else {}
        if key and self._auth_style == "x-api-key":
            return fields | {"api_key": _NO_KEY, "client": _client_with_x_api_key(key, self._base_url)}
        return fields | ({"api_key": key} if key else {})

    def _not_to_be_shown(self, key: str | None) -> list[str]:
        """The key, and any that LiteLLM may have found by itself."""
        found = [value for name, value in self._environ.items() if _NAMES_A_KEY.search(name) and len(value) >= 8]
        return [*([key] if key and key != _NO_KEY else []), *found]

    def _end(
        self, library: Any, request: NormalizedRequest, stream: Any, reader: StreamReader, usage: Any
    ) -> Iterator[NormalizedEvent]:
        """The closing events. LiteLLM makes up a finish reason and token counts where the endpoint gave none."""
        if getattr(stream, "received_finish_reason", reader.finish) is None or reader.finish is None:
            if reader.anything:
                yield ResponseFailed("model_disconnected", "the stream ended without a finish reason", request.model)
            else:
                yield ResponseFailed("model_garbled", "the response holds no chat completion", request.model)
            return
        finish = finish_of(reader.finish)
        if finish == "content_filter" and not reader.anything:
            yield ResponseFailed("model_content_refused", "the provider's content filter stopped it", request.model)
            return
        yield from reader.calls()
        counted = usage_of(usage) if usage is not None and _was_reported(stream) else None
        if counted is not None:
            yield UsageUpdated(counted)
        cost = self._cost(library, request.model, counted, usage)
        yield ResponseCompleted(finish, cost, reader.opaque(request.model))

    def _cost(self, library: Any, model: str, counted: Usage | None, usage: Any) -> Cost | None:
        """By the configured prices, else the provider's list price; a relay's price nobody knows."""
        if counted is None:
            return None
        if self._prices is not None:
            return self._prices.cost(counted)
        listed = model in library.model_cost or model.partition("/")[2] in library.model_cost
        if self._base_url is not None or not listed:
            return None
        parts = library.cost_per_token(model=model, usage_object=usage)
        return Cost(sum((Decimal(str(part)) for part in parts), Decimal(0)), "USD")


def _client_with_x_api_key(key: str, base_url: str | None) -> Any:
    """A client that leaves `Authorization` out: a relay that knows the other header alone may refuse this one."""
    import openai

    async def leave_out(request: Any) -> None:
        request.headers.pop("authorization", None)

    http = openai.DefaultAsyncHttpxClient(event_hooks={"request": [leave_out]})
    headers = {"x-api-key": key}
    return openai.AsyncOpenAI(
        api_key=_NO_KEY, base_url=base_url, default_headers=headers, http_client=http, max_retries=0
    )


def _was_reported(stream: Any) -> bool:
    """Whether the endpoint itself counted tokens; if not, LiteLLM's figure is an estimate and is not passed on."""
    return any(getattr(chunk, "usage", None) is not None for chunk in getattr(stream, "chunks", ()))


def _failed(error: Exception, model: str, library: Any, *, secrets: Sequence[str]) -> ResponseFailed:
    code = classify(error, library)
    reason = str(getattr(error, "message", "") or error) or type(error).__name__
    for secret in secrets:
        reason = reason.replace(secret, "…")
    return ResponseFailed(
        code,
        reason[:_LONGEST_REASON],
        model,
        _status(error),
        _retry_after(error),
        request_id=next((headers.get("x-request-id", "") for headers in _headers(error)), ""),
    )


def _request_id(stream: Any) -> str:
    """The endpoint's own id of the request, for its support; empty when it sent none."""
    headers = (getattr(stream, "_hidden_params", None) or {}).get("additional_headers") or {}
    return str(headers.get("llm_provider-x-request-id") or headers.get("x-request-id") or "")


def _status(error: BaseException) -> int | None:
    """The HTTP status that was really received: LiteLLM's own exceptions claim a 500 for a line nobody answered."""
    import openai

    statuses = (
        cause.status_code
        for cause in _chain(error)
        if type(cause).__module__ == openai.__name__ and isinstance(cause, openai.APIStatusError)
    )
    return next(statuses, None)


def classify(error: Exception, library: Any) -> str:
    """The code of a vendor's exception, by the classes in its chain and by HTTP status."""
    if isinstance(error, library.exceptions.MidStreamFallbackError):  # wraps whatever broke a stream that had begun
        return _broken_stream(error)
    if _status(error) == 504:  # a relay's time-out, which LiteLLM takes for ours
        return "model_server_failed"
    for name, code in _BY_CLASS:
        if isinstance(error, getattr(library.exceptions, name, ())):
            return _broken_stream(error, code) if code in ("model_server_failed", "model_disconnected") else code
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status in _BY_STATUS:
        return _BY_STATUS[status]
    return "model_server_failed" if isinstance(status, int) and status >= 500 else "model_failed"


_BY_CLASS: tuple[tuple[str, str], ...] = (  # the first that fits; special cases before their bases
    ("AuthenticationError", "model_authentication"),
    ("PermissionDeniedError", "model_authentication"),
    ("PaymentRequiredError", "model_authentication"),
    ("RateLimitError", "model_rate_limited"),
    ("ContextWindowExceededError", "model_context_exceeded"),
    ("ContentPolicyViolationError", "model_content_refused"),
    ("NotFoundError", "model_not_found"),
    ("Timeout", "model_timed_out"),
    ("BadRequestError", "model_request_refused"),
    ("UnprocessableEntityError", "model_request_refused"),
    ("APIResponseValidationError", "model_garbled"),
    ("InternalServerError", "model_server_failed"),
    ("BadGatewayError", "model_server_failed"),
    ("ServiceUnavailableError", "model_server_failed"),
    ("APIConnectionError", "model_disconnected"),
)
_BY_STATUS = {
    400: "model_request_refused",
    401: "model_authentication",
    402: "model_authentication",
    403: "model_authentication",
    404: "model_not_found",
    408: "model_timed_out",
    422: "model_request_refused",
    429: "model_rate_limited",
}


def _broken_stream(error: Exception, otherwise: str = "model_server_failed") -> str:
    """What is at the bottom of a connection error: a cut line, unreadable bytes, or the endpoint's own complaint."""
    import httpx
    import openai

    for cause in _chain(error):
        if isinstance(cause, json.JSONDecodeError | UnicodeDecodeError):
            return "model_garbled"
        if isinstance(cause, openai.APITimeoutError | httpx.TimeoutException | TimeoutError):
            return "model_timed_out"
        if isinstance(cause, httpx.TransportError | ConnectionError | StopAsyncIteration | EOFError):
            return "model_disconnected"
    return otherwise


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _headers(error: BaseException) -> Iterator[Mapping[str, str]]:
    """The headers of the responses in a chain of exceptions, with lower-case names."""
    for cause in _chain(error):
        headers = getattr(getattr(cause, "response", None), "headers", None)
        if headers:
            yield {name.lower(): value for name, value in headers.items()}


def _retry_after(error: BaseException) -> float | None:
    """Seconds the endpoint asked to wait (RFC 9110, 10.2.3: a number or a date); None when it said nothing usable."""
    for headers in _headers(error):
        value = headers.get("retry-after", "").strip()
        try:
            seconds = float(value)
        except ValueError:
            try:
                seconds = (parsedate_to_datetime(value) - dt.datetime.now(dt.UTC)).total_seconds()
            except (ValueError, TypeError):
                continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    return None
