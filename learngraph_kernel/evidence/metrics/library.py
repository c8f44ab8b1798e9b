"""Reading a workspace's `metrics/` folder: the only I/O of metric cards."""

from __future__ import annotations

from pathlib import Path

from learngraph_kernel.evidence.metrics.card import CardLibrary, MetricCard
from learngraph_kernel.evidence.metrics.errors import CardError
from learngraph_kernel.evidence.metrics.parsing import parse_cards


def load_cards(folder: Path) -> CardLibrary:
    """All cards of `folder/*.yaml` (and `*.yml`); an absent folder is an empty library.

    Raises:
        CardError: a file that cannot be read or holds a wrong card, a set in two files, a cycle, …
    """
    cards: list[MetricCard] = []
    homes: dict[str, Path] = {}
    paths = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]) if folder.is_dir() else []
    for path in paths:
        found = parse_cards(_read(path), f"{folder.name}/{path.name}")
        other = homes.setdefault(found[0].set, path)
        if other is not path:
            raise CardError(
                f"the set {found[0].set!r} is already defined in {other.name}",
                where=f"{folder.name}/{path.name}",
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
