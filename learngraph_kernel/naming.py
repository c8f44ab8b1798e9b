"""Names a person got slightly wrong: which known name did they mean?"""

from __future__ import annotations

from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to `name`, or None when nothing is near enough to be a plausible slip."""
    import difflib  # costs 3 ms and is only needed on the way to an error

    candidates = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), candidates, n=1, cutoff=0.55)
    return candidates[found[0]] if found else None


def suggestion(name: str, known: Iterable[str], *, kind: str = "names") -> str:
    """The remedy for an unknown name: the nearest known one, else all of them (at most twelve)."""
    names = sorted(set(known))
    near = closest(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    if not names:
        return f"there are no {kind} here"
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"known {kind}: {shown}"
