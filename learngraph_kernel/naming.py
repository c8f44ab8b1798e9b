"""Names a person got slightly wrong: which known name did they mean? The one place that guesses."""

from __future__ import annotations

from collections.abc import Iterable

PLAUSIBLE = 0.55
"""difflib's ratio from which a known name counts as a plausible slip."""


def closest(name: str, known: Iterable[str], *, cutoff: float = PLAUSIBLE) -> str | None:
    """The known name nearest to `name`, or None when nothing is near enough to be a plausible slip."""
    import difflib  # costs 3 ms and is only needed on the way to an error

    candidates = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), candidates, n=1, cutoff=cutoff)
    return candidates[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = PLAUSIBLE) -> str | None:
    """The remedy that names the nearest known name; None when none is near."""
    near = closest(name, known, cutoff=cutoff)
    return None if near is None else f"did you mean {near!r}?"


def suggestion(name: str, known: Iterable[str], *, kind: str = "names") -> str:
    """The remedy for an unknown name: the nearest known one, else all of them (at most twelve)."""
    names = sorted(set(known))
    hint = did_you_mean(name, names)
    if hint is not None:
        return hint
    if not names:
        return f"there are no {kind} here"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"known {kind}: {shown}"
