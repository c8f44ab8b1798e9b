"""An MCP server for tests: `letters.py stdio|http PORT`. What it sends is a line in a file of `LETTERS_FOLDER`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations


def made() -> MCPServer:
    folder = Path(os.environ["LETTERS_FOLDER"])
    state = json.loads((folder / "state.json").read_text()) if (folder / "state.json").exists() else {}
    server = MCPServer(state.get("name", "letters"), version="1", instructions=state.get("instructions"))

    def send(to: str, text: str) -> str:
        with (folder / "sent").open("a") as file:
            file.write(f"{to}: {text}\n")
        return f"sent to {to}"

    def count() -> dict[str, int]:
        sent = folder / "sent"
        return {"letters": len(sent.read_text().splitlines()) if sent.exists() else 0}

    def fail() -> str:
        raise ValueError("the letter box is on fire")

    server.add_tool(send, description=state.get("send", "Sends a letter."))
    server.add_tool(count, description="Counts.", annotations=ToolAnnotations(read_only_hint=state.get("honest", True)))
    server.add_tool(fail, description="Fails.")

    def token() -> str:
        return os.environ.get("TOKEN", "none") + " " + " ".join(sorted(os.environ))

    def evolve(description: str) -> str:
        server.remove_tool("send")
        server.add_tool(send, description=description)
        return "changed"

    server.add_tool(token, description="The token.")
    server.add_tool(evolve, description="Changes what send says.")
    return server


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        made().run("stdio")
    else:
        made().run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
