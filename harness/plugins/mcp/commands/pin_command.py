"""`harness mcp pin` and `unpin`: the user reviews a server's descriptions of its tools, and answers at a terminal."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping

from harness.errors import UsageError
from harness.files.diffs import compare
from harness.gate.approval import Approver
from harness.gate.registry import ToolRegistry
from harness.interrupt import Interrupt
from harness.plugins.mcp.pins import PinFile, ToolPin, pins_folder
from harness.plugins.mcp.tool_description import ToolDescription
from harness.session.config.settings import settings_from
from harness.session.exits import Exit
from harness.session.front import terminal_is_there
from harness.session.state import State
from harness.session.trust import is_wanted
from harness.terminal.approver import TerminalApprover
from harness.terminal.console import look_from
from harness.terminal.screen import Notices, Screen
from harness.text.visible import visible_line

ASKS = "mcp"
"""Name of the tool in the prompt. It is not a tool of the model."""


def pin_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Ask about each chosen tool, and pin or unpin it. Return 0, or 7 if the user refused one. Raises HarnessError.

    With `--yes DIGEST`, pin the tool with that digest without a question.
    """
    digest = vars(arguments).get("yes")
    if digest is not None:
        return _pinned_by_digest(PinFile(pins_folder(State.of(environment)), arguments.name), arguments.tool, digest)
    if not terminal_is_there():
        raise UsageError(f"harness mcp {arguments.action} asks a person: it needs a terminal")
    pins = PinFile(pins_folder(State.of(environment)), arguments.name)
    ask = _approver(arguments, environment)
    pinning = arguments.action == "pin"
    code = Exit.DONE
    for tool, pin in sorted(_chosen(pins, arguments.tool).items()):
        is_confirmed = _pinned(pins, tool, pin, ask) if pinning else _unpinned(pins, tool, pin, ask)
        code = code if is_confirmed else Exit.REFUSED
    return code


def _chosen(pins: PinFile, tool: str | None) -> Mapping[str, ToolPin]:
    """Return the pin of one tool, or all pins. Raises UsageError if there is none."""
    known_pins = pins.read()
    if tool is None and known_pins:
        return known_pins
    if tool is None or tool not in known_pins:
        subject = "the server" if tool is None else f"the tool {visible_line(tool)} of the server"
        raise UsageError(
            f"{subject} {pins.server} is not known here: it is when `harness mcp check` or the proxy has listed its tools"
        )
    return {tool: known_pins[tool]}


def _pinned_by_digest(pins: PinFile, tool: str | None, digest: str) -> int:
    """Pin the tool that has this digest in the server's last list. Raises UsageError if none has it."""
    descriptions = {name: pin.listed or pin.pinned for name, pin in _chosen(pins, tool).items()}
    now = next((each for each in descriptions.values() if each is not None and each.sha256 == digest.lower()), None)
    if now is None:
        raise UsageError(
            f"no tool of the server {pins.server} has this sha256 now: `harness mcp check {pins.server}` prints those that are"
        )
    _keep(pins, now)
    return Exit.DONE


def _keep(pins: PinFile, now: ToolDescription) -> None:
    try:
        pins.pin(now)
    except OSError as error:
        raise UsageError(f"{pins.path} cannot be written: {error.strerror}") from None
    _say(f"{pins.server} {now.name}: pinned, sha256 {now.sha256}")


def _pinned(pins: PinFile, tool: str, pin: ToolPin, ask: Approver) -> bool:
    now = pin.listed
    if now is None:
        _say(f"{pins.server} {tool}: pinned, and nothing changed since")
        return True
    is_confirmed = is_wanted(
        ask,
        tool=ASKS,
        summary=f"pin {tool} of the server {pins.server}",
        preview=news_of(pin, now),
        reason="what a server says of its tools is read by the model as if it were yours",
        by="once for exactly this; a change takes the tool away until you have seen it",
    )
    if not is_confirmed:
        return False
    current = pins.read().get(tool, ToolPin()).listed
    if current is None or current.sha256 != now.sha256:
        raise UsageError(f"{tool} was changed while you looked at it: look again")
    _keep(pins, now)
    return True


def _unpinned(pins: PinFile, tool: str, pin: ToolPin, ask: Approver) -> bool:
    if pin.pinned is None:
        _say(f"{pins.server} {tool}: not pinned")
        return True
    is_confirmed = is_wanted(
        ask,
        tool=ASKS,
        summary=f"unpin {tool} of the server {pins.server}",
        preview=f"{tool} of the server {pins.server}: its next call is asked about as the first one was",
        reason="this is asked so that no program does it for you",
        by="`harness mcp pin` takes it back",
    )
    if not is_confirmed:
        return False
    try:
        pins.unpin(tool)
    except OSError as error:
        raise UsageError(f"{pins.path} cannot be written: {error.strerror}") from None
    _say(f"{pins.server} {tool}: no longer pinned")
    return True


def news_of(pin: ToolPin, now: ToolDescription) -> str:
    """Return the text to review before a pin: the complete description, or its changes since the last pin."""
    if pin.pinned is None:
        return f"new; its server says of it:\n{now.text.rstrip()}"
    difference = compare(pin.pinned.plain_text.encode("utf-8", "replace"), now.plain_text.encode("utf-8", "replace"))
    if not difference.lines:  # for example, a masked part of the command line changed
        return f"changed in what no text shows; all of it:\n{now.text.rstrip()}"
    if not difference.is_whole:
        return f"changed, too much to show as a difference; all of it now:\n{now.text.rstrip()}"
    return "\n".join(("changed since you saw it:", *difference.lines))


def _approver(arguments: Namespace, environment: Mapping[str, str]) -> Approver:
    terminal = settings_from(arguments, environment, None).terminal
    screen = Screen(sys.stdout, look_from(terminal, environment), notices=Notices(terminal.notify.value))
    return TerminalApprover(
        screen,
        Interrupt(),
        ToolRegistry(()).confinement,
        environment=environment,
        dead_seconds=terminal.dead_seconds.value,
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{visible_line(text, 1_000)}\n")
    sys.stdout.flush()
