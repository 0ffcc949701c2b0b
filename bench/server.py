"""A loopback server for the bench: answers with N bash calls, then with text; parses nothing, so that it costs little.

Usage: python bench/server.py CALLS COMMAND -- prints its port, serves until its stdin closes. Each connection plays
from the start.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading


def _chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def _call(number: int, command: str) -> dict[str, object]:
    arguments = json.dumps({"command": command})
    return {"id": f"call_{number}", "type": "function", "function": {"name": "bash", "arguments": arguments}}


def _reply(number: int, calls: int, command: str, *, stream: bool) -> bytes:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    done = number >= calls
    if not stream:
        message: dict[str, object] = {"role": "assistant", "content": "done" if done else None}
        if not done:
            message["tool_calls"] = [_call(number, command)]
        finish = "stop" if done else "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
        return _http(body, "application/json")
    delta: dict[str, object] = {"content": "done"} if done else {"tool_calls": [{"index": 0, **_call(number, command)}]}
    body = _chunk({"role": "assistant", "content": ""}) + _chunk(delta) + _chunk({}, "stop" if done else "tool_calls")
    tail = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [], "usage": usage}
    return _http(body + b"data: " + json.dumps(tail).encode() + b"\n\ndata: [DONE]\n\n", "text/event-stream")


def _http(body: bytes, kind: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _serve(connection: socket.socket, calls: int, command: str) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer, number = b"", 0
    while True:
        while b"\r\n\r\n" not in buffer:
            data = connection.recv(1 << 20)
            if not data:
                return
            buffer += data
        head, _, rest = buffer.partition(b"\r\n\r\n")
        length = next(int(ln[15:]) for ln in head.split(b"\r\n") if ln.lower().startswith(b"content-length:"))
        parts, have = [rest], len(rest)
        while have < length:
            data = connection.recv(1 << 20)
            if not data:
                return
            parts.append(data)
            have += len(data)
        body = b"".join(parts)
        stream = b'"stream":true' in body or b'"stream": true' in body
        connection.sendall(_reply(number, calls, command, stream=stream))
        buffer, number = body[length:], number + 1


def main() -> None:
    calls, command = int(sys.argv[1]), sys.argv[2]
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    threading.Thread(target=_accept, args=(listener, calls, command), daemon=True).start()
    sys.stdin.read()
    os._exit(0)


def _accept(listener: socket.socket, calls: int, command: str) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection, calls, command), daemon=True).start()


if __name__ == "__main__":
    main()
