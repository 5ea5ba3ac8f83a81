"""A server of the Python SDK over streamable HTTP. The argument is the port."""

import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("small")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(structured_output=False)
async def slow(steps: int, context: Context) -> str:
    """Reports its progress."""
    for step in range(steps):
        await context.report_progress(step + 1, steps)
        await anyio.sleep(0.05)
    return f"{steps} steps"


server.run("streamable-http", port=int(sys.argv[1]))
