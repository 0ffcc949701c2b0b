"""An MCP server at a URL that wants a login, and the authorization server that it names, on two loopback ports.

The person at the browser of these tests agrees at once: `/authorize` sends the browser on with a code.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

SECRET = "s3cret-of-the-robot-1"
"""The secret of the client `robot`, which logs in by itself."""
BROWSER = f"""{sys.executable} -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' %s"""


class LoginServer:
    """Both servers. Attributes change what they do and show what they got."""

    def __init__(self) -> None:
        self.issued = 0
        """Number of access tokens given out. The last one is valid."""
        self.expires = 3600
        self.renews = True
        """Whether a refresh token is accepted."""
        self.wants_scope = ""
        """The scope that a token must have for a call of a tool."""
        self.authorizer = ""
        """The authorization server to name, in place of its own."""
        self.echoes = False
        """Whether the description of the tool contains the token that was sent."""
        self.refuses = False
        """Whether the person at the browser says no."""
        self.scope = ""
        """The scope of the last token."""
        self.asked: list[dict[str, str]] = []
        """The queries of all pages that a browser opened."""
        self.calls: list[str] = []
        """The names of all called tools."""
        self.renewals = 0
        self.session = 0
        """Number of the session of the protocol that is open. Requests of others get 404."""
        self.clients: list[str] = []
        """ID and secret of the client of each request for tokens."""
        self.key: Any = None
        """The public key of the client, if it signs what it sends."""
        self._challenge = ""
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), _visit(self, work)) for work in (_resource, _authorizer)]

    @property
    def url(self) -> str:
        """The URL of the MCP server."""
        return f"http://127.0.0.1:{self._servers[0].server_address[1]}/mcp"

    @property
    def issuer(self) -> str:
        """The URL of the authorization server."""
        return f"http://127.0.0.1:{self._servers[1].server_address[1]}"

    @property
    def token(self) -> str:
        """The valid access token."""
        return f"Acc3ss-4f8d1c27b9e05a63-{self.issued}"

    @property
    def refresh(self) -> str:
        """The valid refresh token."""
        return f"R3fresh-77c1e90b2d4f6a85-{self.issued}"

    def tokens(self) -> dict[str, Any]:
        """Give out new tokens."""
        self.issued += 1
        fields = {"access_token": self.token, "refresh_token": self.refresh, "scope": self.scope}
        return {**fields, "token_type": "Bearer", "expires_in": self.expires}

    def __enter__(self) -> Self:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


Answer = tuple[int, dict[str, str], Any]


def _resource(state: LoginServer, path: str, headers: Any, body: bytes) -> Answer:
    if path == "/.well-known/oauth-protected-resource/mcp":
        return 200, {}, {"resource": state.url, "authorization_servers": [state.authorizer or state.issuer]}
    if path != "/mcp" or not body:
        return 405, {}, None
    if not state.issued or headers.get("Authorization") != f"Bearer {state.token}":
        return 401, {"WWW-Authenticate": "Bearer"}, None
    message = json.loads(body)
    method = message["method"]
    session = {"Mcp-Session-Id": f"session-{state.session}"} if method == "initialize" else {}
    if headers.get("Mcp-Session-Id", f"session-{state.session}") != f"session-{state.session}":
        return 404, {}, None
    if method == "tools/call":
        if state.wants_scope not in ("", state.scope):
            return 403, {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{state.wants_scope}"'}, None
        state.calls.append(message["params"]["name"])
        result: Any = {"content": [{"type": "text", "text": f"you sent {headers['Authorization']}"}]}
    elif method == "initialize":
        named = {"name": "far", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": named}
    elif method == "tools/list":
        described = {"description": f"You sent {headers['Authorization']}"} if state.echoes else {}
        result = {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}, **described}]}
    elif "id" not in message:
        return 202, {}, None
    else:
        error = {"code": -32601, "message": "no such method"}
        return 200, {}, {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return 200, session, {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _authorizer(state: LoginServer, path: str, headers: Any, body: bytes) -> Answer:
    parts = urlsplit(path)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    form = {name: values[0] for name, values in parse_qs(body.decode()).items()} if parts.path == "/token" else {}
    if form:
        scheme, _, sent = headers.get("Authorization", "").partition(" ")
        basic = base64.b64decode(sent).decode().replace(":", " ") if scheme == "Basic" else ""
        if state.key is not None:
            claims = jwt.decode(form["client_assertion"], state.key, ["ES256", "RS256", "EdDSA"], audience=state.issuer)
            state.clients.append(f"{claims['sub']} by its key")
        else:
            state.clients.append(basic or f"{form['client_id']} {form.get('client_secret', '')}")
    match parts.path:
        case "/.well-known/oauth-authorization-server":
            ends = {f"{name}_endpoint": f"{state.issuer}/{name}" for name in ("token", "register")}
            ends["registration_endpoint"] = ends.pop("register_endpoint")
            ends["authorization_endpoint"] = f"{state.issuer}/authorize"
            return 200, {}, {"issuer": state.issuer, "code_challenge_methods_supported": ["S256"], **ends}
        case "/register":
            return 201, {}, {**json.loads(body), "client_id": "client-1"}
        case "/authorize":
            state.asked.append(query)
            state._challenge, state.scope = query["code_challenge"], query.get("scope", "")
            answer = {"error": "access_denied"} if state.refuses else {"code": "c0de"}
            return 302, {"Location": f"{query['redirect_uri']}?{urlencode({**answer, 'state': query['state']})}"}, None
        case "/token" if form["grant_type"] == "authorization_code":
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            is_valid = base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == state._challenge
            return (200, {}, state.tokens()) if is_valid else (400, {}, {"error": "invalid_grant"})
        case "/token" if form["grant_type"] == "client_credentials":
            is_valid = state.key is not None or state.clients[-1] == f"robot {SECRET}"
            state.scope = form.get("scope", "")
            tokens = (
                {name: value for name, value in state.tokens().items() if name != "refresh_token"} if is_valid else {}
            )
            return (200, {}, tokens) if is_valid else (401, {}, {"error": "invalid_client"})
        case "/token":
            state.renewals += 1
            is_valid = state.renews and form["refresh_token"] == state.refresh
            return (200, {}, state.tokens()) if is_valid else (400, {}, {"error": "invalid_grant"})
        case _:
            return 404, {}, None


def _visit(state: LoginServer, work: Any) -> type[BaseHTTPRequestHandler]:
    class Visit(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            status, headers, fields = work(state, self.path, self.headers, self.rfile.read(length))
            data = b"" if fields is None else json.dumps(fields).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                **headers,
                "Content-Length": str(len(data)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_DELETE = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    return Visit
