"""The agent: sessions, the turn, its guards and prompts; hosted by the server extension and by `learngraph ask`.

Start reading at `values.py` (what a conversation is), then `ports.py` (who needs what of whom). It imports the packages
below it (tools, runs, evidence, data, models, sandbox, store), nothing of Jupyter's server, and LangGraph only when the
first turn begins.
"""
