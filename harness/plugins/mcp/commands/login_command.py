"""`harness mcp login` and `logout`: logs the user in at a server at a URL, in a browser, and forgets that."""

from __future__ import annotations

import sys
import time
import webbrowser
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from urllib.parse import parse_qs, urlsplit

from harness.errors import UsageError, nearest
from harness.plugins.mcp.commands.list_command import configured
from harness.plugins.mcp.login_answer import LoginAnswer
from harness.plugins.mcp.logins import LoginFile
from harness.plugins.mcp.mcp_servers import check_installed
from harness.plugins.mcp.pins import pins_folder
from harness.plugins.mcp.server_declaration import KEY, ServerDeclaration, is_loopback
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.exits import Exit
from harness.session.own_folders import fix_modes
from harness.session.state import State
from harness.terminal.console import complain
from harness.text.amounts import count_of
from harness.text.visible import visible_line

ANSWER_SECONDS = 600.0
"""Seconds that the user gets to log in."""
_BROWSERS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Variables of which one is set if a browser can be opened here."""


def login_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Log in at a server, and return 0. Raises UsageError."""
    check_installed()
    from harness.plugins.mcp.client.oauth import NewLogin

    state = State.of(environment)
    fix_modes(state, complain)
    declaration = _declared(arguments, environment)
    redactor = redactor_for(
        state, environment, (*secrets_of(environment), *declaration.secrets(environment)), tell=complain
    )
    with LoginAnswer() as answer:
        login = NewLogin(
            LoginFile(pins_folder(state), declaration.name, declaration.url),
            declaration,
            secret=environment.get(declaration.client_secret, "") if declaration.client_secret else "",
            redirect=answer.address,
            learn=redactor.learn,
            ask=partial(_answer_of_user, answer, declaration, environment),
        )
        try:
            count = login.run(declaration.seconds)
        except UsageError as error:
            raise UsageError(f"{declaration.name}: {redactor.redact(visible_line(str(error), 1_000))}") from None
    if not login.is_done:
        _say(f"{declaration.name}: the server lists its tools without a login")
    else:
        _say(f"{declaration.name}: logged in; the server lists {count_of(count, 'tool')}")
    return Exit.DONE


def logout_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Forget the login at a server, and return 0. It need not be configured any more."""
    was_there = LoginFile(pins_folder(State.of(environment)), arguments.name, "").forget()
    _say(f"{arguments.name}: {'the login is forgotten here' if was_there else 'there was no login'}")
    return Exit.DONE


def _declared(arguments: Namespace, environment: Mapping[str, str]) -> ServerDeclaration:
    """Return the declaration of the chosen server. Raises UsageError if it takes no login."""
    configuration = configured(arguments, environment)
    servers = configuration.extensions.in_section(KEY)
    declaration: ServerDeclaration | None = servers.get(arguments.name)
    if declaration is None:
        for note in configuration.notes:
            complain(note)
        raise UsageError(f"no MCP server {arguments.name} is configured{nearest(arguments.name, servers)}")
    if not declaration.takes_login:
        reason = "is started here"
        if declaration.url:
            reason = "has a client that logs in by itself" if declaration.issuer else "has a token of its own"
        way = f": `harness mcp check {arguments.name}` tries it" if declaration.issuer else ""
        raise UsageError(f"the MCP server {arguments.name} {reason}, and takes no login{way}")
    return declaration


def _answer_of_user(
    answer: LoginAnswer, declaration: ServerDeclaration, environment: Mapping[str, str], address: str
) -> Mapping[str, str]:
    """Show the address of the login, open it in a browser if there is one, and return the answer's fields.

    Raises UsageError.
    """
    parts = urlsplit(address)
    if parts.scheme != "https" and not (is_loopback(parts.hostname or "") and declaration.is_here):
        raise UsageError(f"the page of the login is not reached by https: {parts.scheme}://{parts.netloc}")
    answer.expect(parse_qs(parts.query)["state"][0])
    server = urlsplit(declaration.url).netloc
    elsewhere = "" if parts.netloc == server else f", which {server} names for it"
    _say(f"{declaration.name} at {server} wants a login at {parts.netloc}{elsewhere}. Open this page:")
    _say(address)
    until = time.strftime("%H:%M", time.localtime(time.time() + ANSWER_SECONDS))
    _say(f"waiting for the browser, until {until}; Ctrl-C ends it")
    if any(environment.get(name) for name in _BROWSERS):
        webbrowser.open(address)
    fields = answer.wait(ANSWER_SECONDS)
    if fields is None:
        raise UsageError(f"no answer came from the browser within {ANSWER_SECONDS:g} seconds")
    if "code" not in fields:
        reason = fields.get("error_description") or fields.get("error") or "it names no reason"
        raise UsageError(f"{parts.netloc} refused the login: {visible_line(reason, 300)}")
    return fields


def _say(text: str) -> None:
    sys.stdout.write(f"{visible_line(text, 5_000)}\n")
    sys.stdout.flush()
