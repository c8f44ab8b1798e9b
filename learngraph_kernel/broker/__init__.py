"""The broker: what a kernel may ask, checked against its ticket and recorded before it is answered.

Start reading at `session` (one run's calls, recorded and replayed), then `methods` (one class a call) and `recording`
(what makes a run durable). `protocol` and `server` are the socket, `ticket` is what a kernel may do, `state` the
evidence so far; `interactive` and `lookups` serve a person without an engine. Knows nothing of runs, notebooks or
kernels: what a call needs of them is handed to it in `state`. May import evidence, data, models, store; the notebook's
side imports `protocol`.
"""
