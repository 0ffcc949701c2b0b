"""An MCP server of plain JSON lines, which does what its script says: for tests of what stands before one.

    python scripted_server.py SCRIPT

SCRIPT is JSON:
    tools    a list of lists of tools: what the first `tools/list` gets, the second ...; the last one again
    pages    the pages of its list, in place of that
    says     by method, or by the name of a tool: lines that are written before the answer, as they are
    answers  by the name of a tool: the result, or None: none comes
    exit     by the name of a tool: it ends with this code before it answers
    keeps    whether it goes on at the end of its input
    seen     the file to which every line that comes is written
"""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        script = json.load(file)
    lists = list(script.get("tools", [[]]))
    seen = os.open(script["seen"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        os.write(seen, line)
        message = json.loads(line)
        method, params = message.get("method", ""), message.get("params") or {}
        tool = params.get("name", "") if method == "tools/call" else ""
        for said in script.get("says", {}).get(tool or method, ()):
            out.write(said.encode("utf-8", "surrogateescape"))
            out.flush()
        if tool in script.get("exit", {}):
            sys.exit(script["exit"][tool])
        if "id" not in message or "method" not in message:
            continue
        result = {"echo": method}
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}}
            result["serverInfo"] = {"name": "scripted", "version": "1"}
        elif method == "tools/list":
            if "pages" in script:
                page = int(params.get("cursor", 0))
                more = {"nextCursor": str(page + 1)} if page + 1 < len(script["pages"]) else {}
                result = {"tools": script["pages"][page], **more}
            else:
                result = {"tools": lists.pop(0) if len(lists) > 1 else lists[0]}
        elif tool:
            result = {"content": [{"type": "text", "text": f"{tool} got {json.dumps(params.get('arguments'))}"}]}
            result = script.get("answers", {}).get(tool, result)
        if result is not None:
            out.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
            out.flush()
    while script.get("keeps"):
        time.sleep(60)


if __name__ == "__main__":
    main()
