"""The runtime's side of the closed box: what may enter it and how, and the client of `sandboxd`.

Pure policy: `addresses`, `hostnames`, `urls` decide about a URL without sending a packet. Host-side downloads: start
reading at `acquire`, which puts `approvals`, `fetching`, `images`, `git_source` and `receipts` together. Nothing here
imports `docker`; importing this package imports nothing.
"""
