"""OAuth 2.1 for servers at a URL: the tokens of a session's requests, and the login itself, both by the SDK's provider.

A session only uses and renews the tokens of an earlier login. It discovers nothing, registers nothing and opens no
browser: where that would be needed, it reports that the server wants a login.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack
from typing import Literal

import anyio
import anyio.to_thread
import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_field_from_www_auth, union_scopes
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.plugins.mcp.client.connection import NAME, keep_sdk_quiet, words_of
from harness.plugins.mcp.client.http_client import http_client
from harness.plugins.mcp.logins import LoginFile, StoredLogin
from harness.plugins.mcp.server_declaration import ServerDeclaration
from harness.record import replace

REFUSED, FORBIDDEN = 401, 403


class TokenFile:
    """The SDK's storage: writes the login that belongs to the provider's context."""

    def __init__(self, file: LoginFile, url: str, learn: Callable[[str], None]) -> None:
        self.file = file
        self.login = StoredLogin(url=url)
        self.context: OAuthContext | None = None
        self._learn = learn

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens of the login."""
        return OAuthToken.model_validate(self.login.tokens) if self.login.tokens else None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client of the login."""
        return OAuthClientInformationFull.model_validate(self.login.client) if self.login.client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: a registration is stored with the tokens."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the new tokens with all that is needed to renew them. Raises OSError."""
        context = self.context
        if context is None:
            raise RuntimeError("the storage has no context")
        login = StoredLogin(
            url=self.login.url,
            tokens=_fields(tokens),
            client=self.client_fields(context),
            authorization=_fields(context.oauth_metadata),
            resource=_fields(context.protected_resource_metadata),
            issuer=context.auth_server_url or "",
            expires=0.0 if tokens.expires_in is None else time.time() + tokens.expires_in,
        )
        self.take(login)
        await anyio.to_thread.run_sync(self.file.write, login)

    def client_fields(self, context: OAuthContext) -> dict[str, JsonValue]:
        """Return the fields of the client to store with the tokens."""
        return _fields(context.client_info)

    def take(self, login: StoredLogin) -> None:
        """Keep a login, and have its secrets masked."""
        self.login = login
        for secret in login.secrets:
            self._learn(secret)


class StoredLoginAuth(OAuthClientProvider):
    """Sends the token of a stored login, and renews it when it has expired or is refused."""

    requires_response_body = False

    def __init__(
        self, file: LoginFile, url: str, learn: Callable[[str], None], wants_login: Callable[[bool], None]
    ) -> None:
        """Use the login in `file` for requests to `url`. `learn` receives each secret, so that it can be masked.

        `wants_login` is called when the server refuses a request. Its argument is whether the token is accepted, and
        only its scope is too small.
        """
        self._tokens = TokenFile(file, url, learn)
        super().__init__(url, _metadata("http://127.0.0.1/"), self._tokens)
        self._tokens.context = self.context
        self._wants_login = wants_login

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        refused = ""
        while True:
            async with self.context.lock:
                await self._load()
                if self._is_due(refused):
                    with await anyio.to_thread.run_sync(self._entered_lock):
                        await self._load()  # another process may have renewed them
                        if self._is_due(refused):
                            await self._handle_refresh_response((yield await self._refresh_token()))
                token = self._token
            if refused and token in ("", refused):
                break
            self._add_auth_header(request)
            response = yield request
            if response.status_code != REFUSED or not token or refused:
                break
            refused = token
        if response.status_code == REFUSED:
            self._wants_login(False)
        elif is_scope_too_small(response):
            login = replace(self._tokens.login, scope=extract_field_from_www_auth(response, "scope") or "")
            await anyio.to_thread.run_sync(self._tokens.file.write, login)
            self._wants_login(True)

    @property
    def _token(self) -> str:
        return self.context.current_tokens.access_token if self.context.current_tokens else ""

    def _is_due(self, refused: str) -> bool:
        """Return whether the tokens can and must be renewed. `refused` is the token that the server has refused."""
        is_old = self.context.token_expiry_time is not None and time.time() > self.context.token_expiry_time
        return self.context.can_refresh_token() and (is_old or self._token == refused)

    def _entered_lock(self) -> ExitStack:
        with ExitStack() as stack:
            stack.enter_context(self._tokens.file.locked())
            return stack.pop_all()

    async def _load(self) -> None:
        """Take the login from the file, if it is another than before."""
        login = await anyio.to_thread.run_sync(self._tokens.file.read) or StoredLogin(url=self._tokens.login.url)
        if login == self._tokens.login:
            return
        self._tokens.take(login)
        context = self.context
        context.current_tokens = await self._tokens.get_tokens()
        context.client_info = await self._tokens.get_client_info()
        context.oauth_metadata = OAuthMetadata.model_validate(login.authorization) if login.authorization else None
        context.protected_resource_metadata = (
            ProtectedResourceMetadata.model_validate(login.resource) if login.resource else None
        )
        context.auth_server_url = login.issuer or None
        context.token_expiry_time = login.expires or None


class NewLogin(OAuthClientProvider):
    """Logs the user in when the server refuses a request: finds the authorization server, and asks in a browser."""

    requires_response_body = False

    def __init__(
        self,
        file: LoginFile,
        declaration: ServerDeclaration,
        *,
        secret: str,
        redirect: str,
        learn: Callable[[str], None],
        ask: Callable[[str], Mapping[str, str]],
    ) -> None:
        """Prepare a login for `file`.

        `secret` is that of the declared client, if it has one. `ask` gets the address for the browser, and returns the
        fields of the answer that arrived at `redirect`; it runs in another thread.
        """
        document = declaration.client if declaration.client.startswith("https://") else None
        tokens = TokenFile(file, declaration.url, learn)
        super().__init__(
            declaration.url, _metadata(redirect), tokens, self._open, self._answer, client_metadata_url=document
        )
        tokens.context = self.context
        self._declared: OAuthClientInformationFull | None = None
        before = file.read()
        if declaration.client and document is None:
            self._declared = OAuthClientInformationFull(
                client_id=declaration.client,
                client_secret=secret or None,
                issuer=(before.issuer if before is not None else "") or None,  # another one never gets the secret
            )
        self._further_scope = before.scope if before is not None else ""
        self._ask = ask
        self._address = ""
        self._problem = ""
        """Reason why the login failed, which the SDK loses."""

    @property
    def is_done(self) -> bool:
        """Whether the user has logged in."""
        return self.context.current_tokens is not None

    async def _initialize(self) -> None:
        """Begin without tokens, and with the declared client."""
        self.context.client_info = self._declared
        self._initialized = True

    def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        return followed(super()._auth_flow(request), self._note)

    def _note(self, end: httpx2.Response | Exception | None) -> None:
        if isinstance(end, Exception):
            self._problem = self._problem or words_of(end)

    async def _perform_authorization(self) -> httpx2.Request:
        """Ask for the scope that a session lacked too, and choose the way to send the secret of a declared client."""
        context = self.context
        scope = context.client_metadata.scope
        context.client_metadata.scope = union_scopes(scope, self._further_scope or None)
        if self._declared is not None and self._declared.client_secret:
            self._declared.token_endpoint_auth_method = way_of_secret(context.oauth_metadata)
        return await super()._perform_authorization()

    async def _open(self, address: str) -> None:
        self._address = address

    async def _answer(self) -> AuthorizationCodeResult:
        fields = await anyio.to_thread.run_sync(self._ask, self._address, abandon_on_cancel=True)
        return AuthorizationCodeResult(code=fields["code"], state=fields.get("state"), iss=fields.get("iss"))

    def run(self, seconds: float) -> int:
        """Connect, and log in if the server wants that. Return the number of its tools. Raises UsageError.

        `seconds` is the time limit of a request.
        """
        keep_sdk_quiet()
        try:
            return anyio.run(self._tool_count, seconds)
        except Exception as error:  # noqa: BLE001 - every failure is one of the login
            raise UsageError(self._problem or words_of(error)) from None

    async def _tool_count(self, seconds: float) -> int:
        url = self.context.server_url
        async with (
            http_client({}, seconds, url, self) as http,
            Client(streamable_http_client(url, http_client=http), mode="auto", cache=None, client_info=NAME) as client,
        ):
            return len((await client.list_tools()).tools)


async def followed(
    flow: AsyncGenerator[httpx2.Request, httpx2.Response], end: Callable[[httpx2.Response | Exception | None], None]
) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
    """Run a flow of the SDK. `end` receives its last response, or the error, whose reason the SDK loses."""
    response: httpx2.Response | None = None
    try:
        outgoing = await flow.__anext__()
        while True:
            response = yield outgoing
            outgoing = await flow.asend(response)
    except StopAsyncIteration:
        end(response)
    except Exception as error:
        end(error)
        raise
    finally:
        await flow.aclose()


def way_of_secret(metadata: OAuthMetadata | None) -> Literal["client_secret_basic", "client_secret_post"]:
    """Return the way to send a client's secret to an authorization server."""
    ways = None if metadata is None else metadata.token_endpoint_auth_methods_supported
    return "client_secret_basic" if ways is None or "client_secret_basic" in ways else "client_secret_post"


def is_scope_too_small(response: httpx2.Response) -> bool:
    """Return whether the server accepts the token, and wants one with further rights (RFC 6750, section 3.1)."""
    return response.status_code == FORBIDDEN and extract_field_from_www_auth(response, "error") == "insufficient_scope"


def _metadata(redirect: str) -> OAuthClientMetadata:
    return OAuthClientMetadata(redirect_uris=[AnyUrl(redirect)], client_name="harness")


def _fields(model: BaseModel | None) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {} if model is None else model.model_dump(mode="json", exclude_none=True)
    return fields
