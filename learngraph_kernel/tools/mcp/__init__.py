"""Tools of MCP servers: declared in learngraph.toml, held against a snapshot before every call.

`config` reads the declarations, `snapshot` is everything a server says about itself as one hashed value, `specs` turns
its tools into ours, `connection` speaks to one server through the official SDK (imported there alone), and `toolbox`
keeps a workspace's servers connected and their tools registered. What a server says is a stranger's word: its
descriptions are marked as such, its claims about effects only ever make a tool stricter, and whatever changes voids the
grants.
"""
