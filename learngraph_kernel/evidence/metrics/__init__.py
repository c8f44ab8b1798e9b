"""Metric cards: versioned definitions in YAML, evaluated on the runtime side with exact decimals."""
