"""Which rows a join repeats: functional dependence over the equalities of a select.

Fix a row of some sources. Another source is *determined* when the columns it is equated to (by columns of determined
sources, by constants, by what the groups fix) cover one of its keys. What stays undetermined repeats the fixed row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from learngraph_kernel.data.lint.shape import Shape

Place = tuple[str, str]
"""(alias, column), folded."""

CONSTANT: Place = ("", "")


@dataclass(slots=True)
class Classes:
    """Columns that are equal in every row, as a union-find."""

    parent: dict[Place, Place] = field(default_factory=dict)

    def find(self, place: Place) -> Place:
        root = place
        while self.parent.get(root, root) != root:
            root = self.parent[root]
        while self.parent.get(place, place) != root:
            self.parent[place], place = root, self.parent[place]
        return root

    def join(self, left: Place, right: Place) -> None:
        self.parent.setdefault(left, left)
        self.parent.setdefault(right, right)
        self.parent[self.find(left)] = self.find(right)


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """The parts of an AND, brackets opened. Of an OR, also what all its branches have in common."""
    if node is None:
        return
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from conjuncts(node.left)
        yield from conjuncts(node.right)
        return
    yield node
    if isinstance(node, exp.Or):
        branches = [list(conjuncts(branch)) for branch in alternatives(node)]
        for part in branches[0]:
            if all(part in others for others in branches[1:]):
                yield part


def alternatives(node: exp.Expr) -> Iterator[exp.Expr]:
    """The branches of an OR."""
    node = node.unnest()
    if isinstance(node, exp.Or):
        yield from alternatives(node.left)
        yield from alternatives(node.right)
    else:
        yield node


@dataclass(frozen=True, slots=True)
class Closure:
    """What rows of some sources are repeated by.

    Attributes:
        known: undetermined sources with a known key: they do repeat.
        unknown: undetermined sources without one: nobody can tell.
    """

    known: tuple[str, ...]
    unknown: tuple[str, ...]


def closure(shapes: Mapping[str, Shape], classes: Classes, start: Iterable[str], fixed: Iterable[Place]) -> Closure:
    """Follows the dependences from a row of `start`; `fixed` are columns that do not vary (the groups')."""
    constants = {classes.find(CONSTANT), *(classes.find(place) for place in fixed)}
    determined = _determined(shapes, classes, set(start), constants)
    unknown = tuple(alias for alias in shapes if alias not in determined and not shapes[alias].keys)
    # What only an unknown source repeats is as unknown as that one.
    surely = _determined(shapes, classes, determined | set(unknown), constants)
    return Closure(tuple(alias for alias in shapes if alias not in surely), unknown)


def _determined(shapes: Mapping[str, Shape], classes: Classes, start: set[str], constants: set[Place]) -> set[str]:
    determined = set(start)
    while True:
        reached = constants | {classes.find(place) for place in list(classes.parent) if place[0] in determined}
        added = {
            alias
            for alias, shape in shapes.items()
            if alias not in determined
            and any(all(classes.find((alias, column)) in reached for column in key) for key in shape.keys)
        }
        if not added:
            return determined
        determined |= added
