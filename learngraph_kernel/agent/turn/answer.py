"""The check of what a model answers: the same one that any report goes through, over the run it rests on.

Without a run nothing can be cited, so any number is one without evidence. An answer that states such numbers goes back,
as often as its limits say; after that it is shown with them marked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from learngraph_kernel.evidence.document import ReportDocument, build_document
from learngraph_kernel.evidence.html.notebook import report_text
from learngraph_kernel.evidence.values import Book
from learngraph_kernel.runs.book import book_of_run
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_REPAIR = (
    "Your answer states things without evidence:\n{problems}\nWrite the whole answer again with these places corrected "
    "and everything else as it was. Type no number: write a citation of what the last run recorded, or leave it out."
)


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer with its document.

    Attributes:
        problems: one line for each place without evidence.
        shown: the text with the values in place.
    """

    document: ReportDocument
    problems: tuple[str, ...]

    @property
    def shown(self) -> str:
        return report_text(self.document).partition("\n")[2].strip()  # without the line that names the tier


def language_of(text: str) -> str:
    """`zh` for a text with Chinese characters, else `en`."""
    return "zh" if _CJK.search(text) else "en"


def check_answer(text: str, language: str, store: Store, home: Home, run_id: str | None) -> Checked:
    """Resolves the citations of an answer over a run. Blocks.

    Raises:
        UnknownRun, ArtifactMissing, ArtifactCorrupt: the run's record cannot be read.
    """
    book = Book(run_id="") if run_id is None else book_of_run(store, home, run_id)
    document = build_document(text, book, language=language)
    problems = [
        f"- “{item.text}”: {item.message}" + (f" (perhaps {item.suggestion})" if item.suggestion else "")
        for item in document.violations
        if item.blocking
    ]
    return Checked(document, tuple(problems))


def repair_request(problems: tuple[str, ...]) -> str:
    """What the model is told when its answer goes back."""
    return _REPAIR.format(problems="\n".join(problems[:20]))
