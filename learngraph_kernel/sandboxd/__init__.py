"""The daemon near the Docker socket, and all that only it may know: the image, the hardening, the engine's
weaknesses.

Only `engine` imports `docker`. Start reading at `hardening` (what every container gets), `baseline` (whether a
container really has it), `preflight` (whether the engine can be trusted) and `image` (how the image is made).
"""
