"""The daemon near the Docker socket, and all that only it may know.

Only `engine` imports `docker`. What an agent does to files starts at `workspace` (the folder) and `storage` (what
outlives it); `restore`, `quota` and `grants` watch over a command while it runs.
"""
