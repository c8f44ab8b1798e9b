"""Tools: what an agent may call. Specs, registry, policy by effects, approvals, tickets; the built-ins; MCP; skills.

Start reading at `values.py`. It imports runs, evidence, data, models, sandbox and store, never the agent.
"""
