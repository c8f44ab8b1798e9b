"""Reading a workspace's `metrics/` folder: the only I/O of metric cards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from learngraph_kernel.evidence.metrics.card import CardLibrary, MetricCard
from learngraph_kernel.evidence.metrics.errors import CardError
from learngraph_kernel.evidence.metrics.parsing import parse_cards


def load_cards(folder: Path) -> CardLibrary:
    """All cards of `folder/*.yaml` (and `*.yml`); an absent folder is an empty library. Raises as its two halves."""
    return library_of(read_card_texts(folder))


def read_card_texts(folder: Path) -> dict[str, str]:
    """The files of a metrics folder, as `{"metrics/weekly.yaml": text}`. Raises CardError for an unreadable one."""
    paths = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]) if folder.is_dir() else []
    return {f"{folder.name}/{path.name}": _read(path) for path in paths}


def library_of(texts: Mapping[str, str]) -> CardLibrary:
    """The library that files make together.

    Raises:
        CardError: a file that holds a wrong card, a set in two files, a cycle, …
    """
    cards: list[MetricCard] = []
    homes: dict[str, str] = {}
    for place, text in texts.items():
        found = parse_cards(text, place)
        other = homes.setdefault(found[0].set, place)
        if other != place:
            raise CardError(
                f"the set {found[0].set!r} is already defined in {other}",
                where=place,
                remedy="give one of the files another `set:`",
            )
        cards += found
    return CardLibrary.of(cards)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CardError(
            f"the file cannot be read: {error}",
            where=f"{path.parent.name}/{path.name}",
            remedy="make it readable UTF-8",
        ) from error
