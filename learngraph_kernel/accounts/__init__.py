"""Model accounts: keys in a vault, what an endpoint was seen to understand, what was spent, where loopback leads.

`opening.open_declared` puts them together for a declared model; `models` itself knows no storage. It may import
`models` and `store`. Start at `opening.py`; the budgets stand alone in `budgets.py`.
"""
