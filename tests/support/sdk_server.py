"""An MCP server by the official SDK: `python sdk_server.py stdio`, or `python sdk_server.py http PORT [TOKEN]`."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Elicit, Image, MCPServer, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

server = MCPServer("sdk")


class Trip(BaseModel):
    """What is asked."""

    city: str
    days: int
    night: bool = False


async def ask_trip() -> Elicit[Trip]:
    return Elicit("Where do you want to go?", Trip)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("this went wrong")


@server.tool()
async def slow() -> str:
    """Take for ever."""
    try:
        await asyncio.sleep(3600)
    finally:
        print("slow was cancelled", file=sys.stderr, flush=True)
    return "done"


@server.tool()
def picture() -> Image:
    """Return a picture."""
    return Image(data=b"\x89PNG" + b"0" * 1000, format="png")


@server.tool()
def book(trip: Annotated[Trip, Resolve(ask_trip)]) -> str:
    """Ask, and say what was answered."""
    return f"{trip.city} for {trip.days}, {'by night' if trip.night else 'by day'}"


def by_http(port: int, token: str) -> None:
    inner = server.streamable_http_app()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        request = Request(scope)
        answer: Any = inner
        if request.headers.get("authorization", "") != (f"Bearer {token}" if token else ""):
            answer = Response("who are you?", 401)
        elif scope["path"] == "/away":
            answer = RedirectResponse("http://localhost:9/mcp", 307)
        elif scope["path"] == "/large":
            answer = Response(b" " * (40 << 20), media_type="application/json")
        await answer(scope, receive, send)

    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")
    uvicorn.Server(config).run()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run()
    else:
        by_http(int(sys.argv[2]), "".join(sys.argv[3:4]))
