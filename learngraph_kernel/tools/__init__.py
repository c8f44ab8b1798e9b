"""Tools: what an agent may call. Specs, registry, policy by effects, approvals, tickets; the built-ins; MCP; skills.

Start reading at `values.py`, then `desk.py`, which puts the others in order. What a call meets: `registry` (with
`schema_guard`), `arguments`, `policy` (with `settings`), `approvals` (values in `approval_record`, changes in
`approval_rows`, reasons in `approval_refusals`), `grants`, `tickets`, `calling` (with `calls` and `execution`),
`results` (with `redaction`).
It imports runs, evidence, data, models, sandbox and store, never the agent.
"""
