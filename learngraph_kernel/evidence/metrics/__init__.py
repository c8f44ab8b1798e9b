"""Metric cards: versioned definitions in YAML, evaluated on the runtime side with exact decimals.

Start reading at `card` (what a card is), then `evaluation` (what happens to it); `expression` and `arithmetic` are the
little language, `bindings` and `inputs` say where values come from. Pure but for `library`, which reads the files.
"""

from __future__ import annotations

from learngraph_kernel.evidence.metrics.card import CardLibrary, Finding, MetricCard, card_hash, check_additivity
from learngraph_kernel.evidence.metrics.errors import (
    BindingError,
    CardError,
    ExpressionError,
    InexactInput,
    MetricFailed,
    MetricVersionConflict,
    TruncatedInput,
)
from learngraph_kernel.evidence.metrics.evaluation import Rule, evaluate_set
from learngraph_kernel.evidence.metrics.library import library_of, load_cards, read_card_texts
from learngraph_kernel.evidence.metrics.parsing import parse_cards

__all__ = [
    "BindingError",
    "CardError",
    "CardLibrary",
    "ExpressionError",
    "Finding",
    "InexactInput",
    "MetricCard",
    "MetricFailed",
    "MetricVersionConflict",
    "Rule",
    "TruncatedInput",
    "card_hash",
    "check_additivity",
    "evaluate_set",
    "library_of",
    "load_cards",
    "parse_cards",
    "read_card_texts",
]
