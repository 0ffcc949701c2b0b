"""The login of a client that nobody sits at, such as a CI job, at a server at a URL (OAuth 2.1, client credentials).

The declaration names the client's authorization server. The SDK sends the secret, or a JWT signed with the client's key,
to no other. A token is stored as that of this client alone, so that no login of a user is taken for it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable

import httpx2
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthToken

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.plugins.mcp.client.oauth import TokenFile, followed, way_of_secret
from harness.plugins.mcp.logins import LoginFile
from harness.plugins.mcp.server_declaration import ServerDeclaration

_OF_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
"""Algorithms of signatures (RFC 7518), by the curve of the key."""

End = Callable[[httpx2.Response | Exception | None], None]


class _ClientTokens(TokenFile):
    """The SDK's storage for the tokens of one client. The file holds no secret of the client."""

    def __init__(self, file: LoginFile, declaration: ServerDeclaration, learn: Callable[[str], None]) -> None:
        super().__init__(file, declaration.url, learn)
        self._client: dict[str, JsonValue] = {
            "client_id": declaration.client,
            "grant_types": ["client_credentials"],
            "issuer": declaration.issuer,
        }

    def client_fields(self, context: OAuthContext) -> dict[str, JsonValue]:  # noqa: ARG002 - the declared one
        return self._client

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens. `None` if they are another client's, or have expired."""
        login = self.file.read()
        if login is None or login.client != self._client or (login.expires and login.expires < time.time()):
            return None
        self.take(login)
        if self.context is not None:
            self.context.token_expiry_time = login.expires or None
        return await super().get_tokens()


class SecretAuth(ClientCredentialsOAuthProvider):
    """Sends a token that the client gets with its secret."""

    def __init__(self, tokens: TokenFile, declaration: ServerDeclaration, secret: str, end: End) -> None:
        """Log in with `secret`. `end` receives the last response to each request, or an error of the login."""
        super().__init__(declaration.url, tokens, declaration.client, secret, issuer=declaration.issuer)
        tokens.context = self.context
        self._end = end

    async def _perform_authorization(self) -> httpx2.Request:
        self._fixed_client_info.token_endpoint_auth_method = way_of_secret(self.context.oauth_metadata)
        return await super()._perform_authorization()

    def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        return followed(super()._auth_flow(request), self._end)


class KeyAuth(PrivateKeyJWTOAuthProvider):
    """Sends a token that the client gets with a JWT, signed with its private key (RFC 7523)."""

    def __init__(self, tokens: TokenFile, declaration: ServerDeclaration, key: str, end: End) -> None:
        """Log in with the private key (PEM). `end` receives the same as in SecretAuth. Raises UsageError."""
        jwt = SignedJWTParameters(
            issuer=declaration.client, subject=declaration.client, signing_key=key, signing_algorithm=_algorithm(key)
        )
        sign = jwt.create_assertion_provider()
        super().__init__(declaration.url, tokens, declaration.client, sign, issuer=declaration.issuer)
        tokens.context = self.context
        self._end = end

    def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        return followed(super()._auth_flow(request), self._end)


def client_auth(
    file: LoginFile, declaration: ServerDeclaration, credential: str, learn: Callable[[str], None], end: End
) -> httpx2.Auth:
    """Return the login of a declared client. `credential` is its secret, or the private key. Raises UsageError.

    `learn` receives each token, so that it can be masked.
    """
    tokens = _ClientTokens(file, declaration, learn)
    kind = KeyAuth if declaration.client_key else SecretAuth
    return kind(tokens, declaration, credential, end)


def _algorithm(key: str) -> str:
    """Return the algorithm for signatures with a private key. Raises UsageError for a key that cannot be used."""
    try:
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError):  # TypeError: it wants a password
        private = None
    match private:
        case rsa.RSAPrivateKey():
            return "RS256"
        case ed25519.Ed25519PrivateKey():
            return "EdDSA"
        case ec.EllipticCurvePrivateKey() if private.curve.name in _OF_CURVES:
            return _OF_CURVES[private.curve.name]
        case _:
            raise UsageError("the file in `client_key` must hold a private key (PEM, without a password)")
