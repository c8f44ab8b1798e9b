"""The runtime's side of the closed box: what may enter it and how, and the client of `sandboxd`.

Pure policy: `addresses`, `hostnames`, `urls` decide about a URL without sending a packet; `argv` decides about a
command line, `paths` about a path in a workspace. Host-side downloads: start reading at `acquire`, which puts
`approvals`, `fetching`, `images`, `git_source` and `receipts` together. `client` asks sandboxd; `answers` are what it
says no with. `inside` runs in the container and is part of the image (standard library only). Nothing here imports
`docker`; importing this package imports nothing.
"""
