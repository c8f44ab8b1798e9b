"""Runs: executing notebooks, the ledger's meaning, resume, rerun, seal, verify, export."""
