"""What a run leaves behind: its events, its artifacts, its row in the table of runs.

Start reading at `database.Store`, the one door to all of it. `home` says where things lie, `artifacts` keeps bytes by
their hash, `ledger` keeps the chained events (`chain` is the pure part), `writer` is the one thread that writes,
`garbage` finds what nothing refers to any more. Imports `errors` and `canonical`, nothing else of ours. This package
imports nothing by itself, so that `store.home` costs no SQLAlchemy.
"""
