"""`lg.report`: a report document from Markdown with citations."""

from __future__ import annotations

from typing import Any

from learngraph_kernel.broker.methods.base import BadCall, Effect, Method, text_argument
from learngraph_kernel.broker.state import RunState
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.evidence.document import ReportDocument, build_document
from learngraph_kernel.evidence.html.notebook import mimebundle_for_report
from learngraph_kernel.evidence.violations import Violation


class ReportRefused(LearnGraphError):
    """A formal report states something without evidence; `details["violations"]` lists every place."""

    code = "report_refused"


class ReportCall(Method):
    """Resolves the citations; a model's text goes back for repair, then a formal run fails.

    A model's text is from outside as far as its repair goes: the repaired text is in the recorded document, and a rerun
    makes its own document from that. The numbers in it are always resolved anew.
    """

    name = "report"

    def effect_of(self, arguments: dict[str, Any]) -> Effect:
        return "read" if arguments.get("answer") is None else "model"

    def asks_outside(self, arguments: dict[str, Any]) -> bool:
        return arguments.get("answer") is not None

    def again(self, state: RunState, arguments: dict[str, Any], recorded: Any) -> Any:
        text = state.artifacts.read_json(recorded["document"])["source"]
        return self._checked(self._build(text, state), recorded["repairs"], state)

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        text = text_argument(arguments, "text")
        document = self._build(text, state)
        answer, repairs = arguments.get("answer"), 0
        while _blocking(document) and answer is not None and repairs < state.max_repairs:
            text, repairs = self._repair(state, answer, document), repairs + 1
            document = self._build(text, state)
        return self._checked(document, repairs, state)

    def _checked(self, document: ReportDocument, repairs: int, state: RunState) -> Any:
        state.violations = [violation.as_json() for violation in document.violations]
        if state.formal and _blocking(document):
            raise _refused(document, repairs)
        return {"document": state.artifacts.put(document.to_bytes()), "repairs": repairs}

    def _build(self, text: str, state: RunState) -> ReportDocument:
        return build_document(text, state.book, language=state.language, formal=state.formal)

    def _repair(self, state: RunState, answer: str, document: ReportDocument) -> str:
        from learngraph_kernel.broker.methods.model_calls import repair_answer

        if answer not in state.answers:
            raise BadCall(f"the run has no model answer {answer}")
        return repair_answer(state, answer, [violation.as_json() for violation in document.violations])

    def apply(self, state: RunState, arguments: dict[str, Any], result: Any) -> None:
        state.documents.append(result["document"])
        state.violations = self._document(state, result).as_json()["violations"]

    def present(self, state: RunState, result: Any) -> Any:
        document = self._document(state, result)
        return {
            "document": result["document"],
            "violations": document.as_json()["violations"],
            "bundle": mimebundle_for_report(document, run=state.run_id),
        }

    def artifacts(self, result: Any) -> list[str]:
        return [result["document"]]

    def _document(self, state: RunState, result: Any) -> ReportDocument:
        return ReportDocument.from_json(state.artifacts.read_json(result["document"]))


def _blocking(document: ReportDocument) -> bool:
    return any(violation.blocking for violation in document.violations)


def _remedy(suggestion: str | None) -> str:
    if suggestion is None:
        return "cite a metric, an input or a cell instead of writing the number"
    if suggestion.startswith("[["):
        return f"write {suggestion}"
    return suggestion if " " in suggestion else f"did you mean {suggestion}?"


def _place(source: str, violation: Violation) -> str:
    before = source[: violation.start]
    return f"report, line {before.count(chr(10)) + 1}, column {violation.start - before.rfind(chr(10))}"


def _refused(document: ReportDocument, repairs: int) -> ReportRefused:
    blocking = [violation for violation in document.violations if violation.blocking]
    first = blocking[0]
    more = f" (and {len(blocking) - 1} more)" if len(blocking) > 1 else ""
    tried = f" after {repairs} repair{'s' if repairs > 1 else ''}" if repairs else ""
    return ReportRefused(
        f"the report states something without evidence{tried}: {first.message}{more}",
        where=_place(document.source, first),
        remedy=_remedy(first.suggestion),
        details={"violations": [violation.as_json() for violation in document.violations]},
    )
