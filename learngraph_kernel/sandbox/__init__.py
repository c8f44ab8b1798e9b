"""The runtime's side of the sandbox: what it asks sandboxd for, and the policies it applies before asking.

`inside` runs in the container and is part of the image (standard library only). Nothing here imports `docker`.
"""
