"""The script of a scripted model: rules that match a conversation, and the steps each one plays.

```yaml
model: demo                    # optional; what `response.started` reports
chunk: 24                      # characters a text delta (default 24)
capabilities: {tools: true}    # optional, as in learngraph.toml
rules:
  - name: weekly               # optional; used in messages
    match:                     # all given conditions must hold; no `match` fits everything
      last: on-time            # the last user text contains this (or any of a list), case as written
      last_regex: 'week (?P<week>\\S+)'
      conversation: Q1         # the whole conversation's text contains this (system and tool texts included)
      conversation_regex: '…'
      turn: 1                  # which answer this is: 1 + the assistant messages so far
      model: demo              # the request's model
    steps:
      - text: "Week ${week}: [[m:flights]] flights."   # named groups of the rule's regexes may be used
      - thinking: "…"
      - tool_call: {name: query, arguments: {sql: "select 1"}}      # `id` optional
      - usage: {input: 10, cached: 0, cache_creation: 0, output: 5} # default: computed from the text
      - delay_ms: 200
      - finish: length                                   # default: stop, or tool_calls
      - fault: rate_limit      # auth | rate_limit | server | disconnect | garbage | timeout | silence
      - fault: {kind: server, times: 2, retry_after_s: 0.1}  # only the first two times this rule plays
```

The first rule that fits plays. Pure: parsing and matching only; `scripted` plays.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.errors import ModelMisconfigured, ScriptUnmatched
from learngraph_kernel.models.events import Finish, Usage
from learngraph_kernel.models.messages import NormalizedRequest
from learngraph_kernel.naming import suggestion

DEFAULT_CHUNK = 24

FAULTS: dict[str, tuple[str, int | None, str]] = {
    "auth": ("model_authentication", 401, "the key was refused"),
    "rate_limit": ("model_rate_limited", 429, "too many requests"),
    "server": ("model_server_failed", 503, "the endpoint is overloaded"),
    "disconnect": ("model_disconnected", None, "the connection was closed in the middle"),
    "garbage": ("model_garbled", None, "the response was not what the protocol says"),
    "timeout": ("model_timed_out", 408, "the endpoint timed out"),
    "silence": ("model_timed_out", None, "the endpoint went silent"),
}
"""What a script's fault becomes: code, HTTP status, reason. `silence` really hangs; the caller's clock ends it."""


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: Mapping[str, Any]
    id: str | None


@dataclass(frozen=True, slots=True)
class Count:
    usage: Usage


@dataclass(frozen=True, slots=True)
class Delay:
    seconds: float


@dataclass(frozen=True, slots=True)
class End:
    finish: Finish


@dataclass(frozen=True, slots=True)
class Fault:
    """`times` None: always; else only the first so many times the rule plays for one conversation."""

    kind: str
    times: int | None
    retry_after_s: float | None


Step: TypeAlias = Say | Think | Call | Count | Delay | End | Fault


@dataclass(frozen=True, slots=True)
class Match:
    """A rule's conditions; None is no condition."""

    last: tuple[str, ...] | None = None
    last_regex: re.Pattern[str] | None = None
    conversation: tuple[str, ...] | None = None
    conversation_regex: re.Pattern[str] | None = None
    turn: int | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    match: Match
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed script; `where` names it in messages."""

    where: str
    model: str
    chunk: int
    capabilities: Capabilities
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The rule that plays, and what its regexes' named groups caught."""

    rule: Rule
    groups: Mapping[str, str]


def choose(script: Script, request: NormalizedRequest) -> Found:
    """The first rule that fits.

    Raises:
        ScriptUnmatched: none does; the message names the script, the nearest rule and what of it did not hold.
    """
    situation = _Situation.of(request)
    nearest: tuple[float, Rule, list[str]] | None = None
    for rule in script.rules:
        missed = _missed(rule.match, situation)
        if not missed:
            return Found(rule, _groups(rule.match, situation))
        score = _closeness(rule.match, missed, situation)
        if nearest is None or score > nearest[0]:
            nearest = (score, rule, missed)
    where = f"script {script.where}"
    what = f"no rule fits turn {situation.turn} of model {situation.model!r}, last user text {_short(situation.last)}"
    if nearest is None:
        raise ScriptUnmatched(what, where=where, remedy="the script has no rules: add one")
    _, rule, missed = nearest
    remedy = f"nearest is rule {rule.name!r}, where {' and '.join(missed)}; change it or add a rule"
    raise ScriptUnmatched(what, where=where, remedy=remedy, details={"nearest": rule.name, "missed": missed})


@dataclass(frozen=True, slots=True)
class _Situation:
    last: str
    conversation: str
    turn: int
    model: str

    @classmethod
    def of(cls, request: NormalizedRequest) -> _Situation:
        users = [message.text for message in request.messages if message.role == "user"]
        return cls(
            last=users[-1] if users else "",
            conversation="\n".join(message.text for message in request.messages),
            turn=1 + sum(message.role == "assistant" for message in request.messages),
            model=request.model,
        )


def _missed(match: Match, now: _Situation) -> list[str]:
    """The conditions that do not hold, each as a phrase."""
    missed = []
    for name, needles, text in (("last", match.last, now.last), ("conversation", match.conversation, now.conversation)):
        if needles is not None and not any(needle in text for needle in needles):
            missed.append(f"`{name}` wants {' or '.join(repr(needle) for needle in needles)}")
    for name, pattern, text in (
        ("last_regex", match.last_regex, now.last),
        ("conversation_regex", match.conversation_regex, now.conversation),
    ):
        if pattern is not None and not pattern.search(text):
            missed.append(f"`{name}` wants /{pattern.pattern}/")
    if match.turn not in (None, now.turn):
        missed.append(f"`turn` wants {match.turn}")
    if match.model not in (None, now.model):
        missed.append(f"`model` wants {match.model!r}")
    return missed


def _groups(match: Match, now: _Situation) -> dict[str, str]:
    groups: dict[str, str] = {}
    for pattern, text in ((match.conversation_regex, now.conversation), (match.last_regex, now.last)):
        found = pattern.search(text) if pattern is not None else None
        if found:
            groups.update({key: value or "" for key, value in found.groupdict().items()})
    return groups


def _closeness(match: Match, missed: list[str], now: _Situation) -> float:
    """Fewer missed conditions first; then how alike the wanted words and the text are."""
    wanted = [*(match.last or ()), *([match.last_regex.pattern] if match.last_regex else [])]
    alike = max((difflib.SequenceMatcher(None, want, now.last).ratio() for want in wanted), default=0.0)
    return alike - len(missed)


def _short(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:117] + "…")


def parse_script(body: Any, *, where: str) -> Script:
    """A script from what YAML gave.

    Raises:
        ModelMisconfigured: the place (rule, step) and what is wrong there.
    """
    top = _table(body, {"model", "chunk", "capabilities", "rules"}, where, "the script")
    rules = top.get("rules")
    if not isinstance(rules, list) or not rules:
        raise ModelMisconfigured("no rules", where=where, remedy="give `rules:`, a list of rules with `steps:`")
    chunk = top.get("chunk", DEFAULT_CHUNK)
    if not isinstance(chunk, int) or isinstance(chunk, bool) or chunk < 1:
        raise ModelMisconfigured(f"`chunk` is {chunk!r}", where=where, remedy="give a number of characters above 0")
    return Script(
        where=where,
        model=str(top.get("model", "scripted")),
        chunk=chunk,
        capabilities=Capabilities.from_json(top.get("capabilities") or {}, where=f"{where}, capabilities"),
        rules=tuple(_rule(rule, index, where) for index, rule in enumerate(rules, start=1)),
    )


def _rule(body: Any, number: int, script: str) -> Rule:
    where = f"{script}, rule {number}"
    table = _table(body, {"name", "match", "steps"}, where, "a rule")
    steps = table.get("steps")
    if not isinstance(steps, list) or not steps:
        raise ModelMisconfigured("no steps", where=where, remedy="give `steps:`, a list such as `- text: Hello`")
    match = _match(table.get("match") or {}, f"{where}, match")
    return Rule(
        name=str(table.get("name", f"rule {number}")),
        match=match,
        steps=tuple(_step(step, f"{where}, step {index}") for index, step in enumerate(steps, start=1)),
    )


def _match(body: Any, where: str) -> Match:
    table = _table(body, set(Match.__slots__), where, "match")
    turn = table.get("turn")
    if turn is not None and (not isinstance(turn, int) or isinstance(turn, bool) or turn < 1):
        raise ModelMisconfigured(f"`turn` is {turn!r}", where=where, remedy="give a whole number from 1")
    return Match(
        last=_needles(table, "last", where),
        last_regex=_pattern(table, "last_regex", where),
        conversation=_needles(table, "conversation", where),
        conversation_regex=_pattern(table, "conversation_regex", where),
        turn=turn,
        model=table.get("model"),
    )


def _needles(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...] | None:
    if key not in table:
        return None
    values = table[key] if isinstance(table[key], list) else [table[key]]
    if not values or not all(isinstance(value, str) and value for value in values):
        raise ModelMisconfigured(
            f"`{key}` is {table[key]!r}", where=where, remedy="give text or a list of texts (quote it)"
        )
    return tuple(values)


def _pattern(table: Mapping[str, Any], key: str, where: str) -> re.Pattern[str] | None:
    if key not in table:
        return None
    try:
        return re.compile(table[key], re.DOTALL)
    except (re.error, TypeError) as error:
        raise ModelMisconfigured(f"`{key}`: {error}", where=where, remedy="give a Python regular expression") from error


_STEP_REMEDY = "see learngraph_kernel.models.script; put text in quotes where YAML reads it as a number or a yes"
_STEPS = ("text", "thinking", "tool_call", "usage", "delay_ms", "finish", "fault")


def _step(body: Any, where: str) -> Step:
    table = _table(body, set(_STEPS), where, "a step")
    if len(table) != 1:
        raise ModelMisconfigured(f"a step says {len(table)} things", where=where, remedy="give one thing a step")
    ((kind, value),) = table.items()
    match kind, value:
        case "text", str():
            return Say(value)
        case "thinking", str():
            return Think(value)
        case "tool_call", {"name": str(name)}:
            _table(value, {"name", "arguments", "id"}, where, "tool_call")
            return Call(name, dict(_table(value.get("arguments") or {}, None, where, "arguments")), value.get("id"))
        case "usage", dict() if all(isinstance(count, int) and count >= 0 for count in value.values()):
            return Count(Usage(**_table(value, set(Usage.__slots__), where, "usage")))
        case "delay_ms", int() | float() if value >= 0:
            return Delay(value / 1000)
        case "finish", str() if value in get_args(Finish):
            return End(value)  # type: ignore[arg-type]
        case "fault", str() | dict():
            return _fault(value, where)
    raise ModelMisconfigured(f"`{kind}` cannot be {value!r}", where=where, remedy=_STEP_REMEDY)


def _fault(value: str | dict[str, Any], where: str) -> Fault:
    body = {"kind": value} if isinstance(value, str) else value
    table: dict[str, Any] = _table(body, {"kind", "times", "retry_after_s"}, where, "fault")
    if table.get("kind") not in FAULTS:
        remedy = f"known: {', '.join(FAULTS)}"
        raise ModelMisconfigured(f"unknown fault {table.get('kind')!r}", where=where, remedy=remedy)
    for key in ("times", "retry_after_s"):
        if not isinstance(table.get(key, 1), int | float):
            raise ModelMisconfigured(f"`{key}` is {table[key]!r}", where=where, remedy="give a number")
    return Fault(table["kind"], table.get("times"), table.get("retry_after_s"))


def _table(value: Any, keys: set[str] | None, where: str, what: str) -> dict[str, Any]:
    """A mapping whose keys are all known (`keys` None: any)."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ModelMisconfigured(f"{what} is {_short(str(value))}", where=where, remedy="give a mapping")
    for key in value:
        if keys is not None and key not in keys:
            remedy = suggestion(key, keys, kind="keys")
            raise ModelMisconfigured(f"{what} has an unknown key {key!r}", where=where, remedy=remedy)
    return dict(value)
