"""Runs: what `learngraph run`, `resume`, `rerun`, `verify` and `export` do, and the embedded runtime of `lg`.

Start reading at `plan` (what will run, checked) and `lifecycle` (begun, executed, issued, sealed). Then, in the order
of a run's life: `parameters`, `declaration`, `injection`; `launch`, `kernel`, `engine`, `recorder`; `closing`,
`content`, `records`, `seal`; afterwards `verify` (`targets`, `folder`, `stored`, `chain_check`), `export` (`bundle`,
`crate`), `again` and `rerun`. `papermill_engine` and `embedded` are the two other ways in. May import everything
below: broker, evidence, data, models, store.
"""
