"""The daemon near the Docker socket, and all that only it may know: the image, the hardening, the engine's weaknesses.

Only `engine` imports `docker`. What serves calls: `server` (start reading here), `api`, `daemon`, `sandboxes`,
`commands`, `kernels`, `reconcile`. What a container is: `hardening` (what each gets), `baseline` (whether one really
has it), `preflight` (whether the engine can be trusted), `image` (how the image is made). A workspace's files
(`beneath`, `scan`, `quota`, `restore`, `workspace`, `storage`) need no engine.
"""
