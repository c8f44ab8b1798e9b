"""What can go wrong with a metric: in its card, in what it is bound to, in its evaluation, in its versions."""

from __future__ import annotations

from learngraph_kernel.errors import BadInput, LearnGraphError


class CardError(BadInput):
    """A metric card cannot be read, or cards contradict each other."""

    code = "metric_card"


class ExpressionError(CardError):
    """A card's expression is not in the expression language."""

    code = "metric_expression"


class BindingError(BadInput):
    """An input of a metric leads to no value: no such snapshot, column, row, parameter or metric."""

    code = "metric_binding"


class TruncatedInput(BindingError):
    """A truncated snapshot was to feed a metric."""

    code = "metric_truncated"


class InexactInput(BindingError):
    """A card that asks for exact decimals was given a float."""

    code = "metric_inexact"


class MetricFailed(LearnGraphError):
    """The card says `error` for what happened: a null, or a division by zero."""

    code = "metric_failed"


class MetricVersionConflict(LearnGraphError):
    """A pinned card has a newer version and nobody has said what that means for this workflow."""

    code = "metric_version_conflict"
