"""The smallest MCP server: one tool, `echo`, over lines of JSON-RPC."""

import json
import sys
from typing import Any

TOOL = {
    "name": "echo",
    "description": "Says it again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            version = request["params"]["protocolVersion"]
            info = {"name": "place", "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": [TOOL]}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": request["params"]["arguments"]["text"]}]}}
        case "ping":
            return {"result": {}}
        case _:
            return {"error": {"code": -32601, "message": "not known here"}}


for line in sys.stdin:
    if "id" in (asked := json.loads(line)):
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}), flush=True)
