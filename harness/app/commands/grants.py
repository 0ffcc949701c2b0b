"""/grants: list the user's grants beyond the policy, narrow them or revoke them."""

from __future__ import annotations

from harness.app.commands.conversation import Conversation
from harness.errors import UsageError, nearest
from harness.grant_pattern import GrantScope
from harness.plugin import HelpGroup, SlashCommand
from harness.policy.session_grants import Grant
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.amounts import count_of
from harness.text.visible import visible_line


def grants(conversation: Conversation, rest: str) -> None:
    """List the grants in force, narrow one, or revoke one or all. Raises UsageError and LogError."""
    action, _, name = rest.partition(" ")
    held_grants = conversation.agent.gate.grants.grants
    match action, name.strip():
        case "", _:
            _list(conversation, held_grants)
        case "revoke", "all":
            for grant in held_grants:
                _revoke(conversation, grant)
            if not held_grants:
                conversation.say("there is nothing to revoke", Tone.QUIET)
        case "revoke", identity if identity:
            _revoke(conversation, _grant_named(held_grants, identity))
        case "answer", identity if identity:
            _answer(conversation, _grant_named(held_grants, identity))
        case "narrow", said if len(words := said.split()) > 1:
            _narrow(conversation, _grant_named(held_grants, words[0]), words[1:])
        case _:
            raise UsageError(
                "usage: /grants, /grants revoke ID|all, /grants answer ID, or /grants narrow ID offline|host HOSTS|WORDS|"
                "PATH (a folder ends in /), as in: /grants narrow grant-1 -m unittest"
            )


def _grant_named(held_grants: tuple[Grant, ...], identity: str) -> Grant:
    match = next((grant for grant in held_grants if identity in (grant.id, *grant.id.split("-")[1:2])), None)
    if match is None:
        suggestion = nearest(identity, [grant.id for grant in held_grants]) if held_grants else "; there are none"
        raise UsageError(f"unknown grant {visible_line(identity, 50)!r}{suggestion}")
    return match


_COLUMNS = (
    Column(name="grant"),
    Column(name="what", folds=True),
    Column(name="where", folds=True, leaves=True),
    Column(name="for", folds=True),
    Column(name="given at", folds=True, spare=1),
)


def _list(conversation: Conversation, held_grants: tuple[Grant, ...]) -> None:
    if held_grants:
        root = conversation.place.workspace.root
        rows = (TableRow(cells=_cells(grant, root)) for grant in held_grants)
        conversation.screen.table(Table(columns=_COLUMNS, rows=tuple(rows)))
    for words in filter(None, map(asleep_words, held_grants)):
        conversation.say_line(words, Tone.WARNING)
    if not held_grants:
        conversation.say("nothing is granted beyond the policy", Tone.QUIET)
    if conversation.plans and held_grants:
        conversation.say("in plan mode only those to read count", Tone.QUIET)


def _cells(grant: Grant, root: str) -> tuple[str, ...]:
    is_of_session = grant.scope is GrantScope.SESSION
    lifetime = (
        "this session" if is_of_session else f"until {grant.until}" if grant.until else "always in this workspace"
    )
    origin = f"call {grant.origin.line}" if is_of_session else str(grant.origin)
    return grant.id, grant.pattern.name, grant.pattern.walls(root), lifetime, origin


def asleep_words(grant: Grant) -> str:
    """Return the reason why a grant is suspended, and the command that reactivates it. Empty for an active grant."""
    places = count_of(len(grant.changed), "protected place")
    return f"{grant.id} sleeps: a command changed {places}; /grants answer {grant.id}" if grant.changed else ""


def _answer(conversation: Conversation, grant: Grant) -> None:
    """Ask the user about the changed protected places that suspended a grant."""
    if not grant.changed:
        raise UsageError(f"{grant.id} does not sleep")
    conversation.agent.log.session = conversation.session.identity
    conversation.agent.gate.places.ask_again(grant)


def _revoke(conversation: Conversation, grant: Grant) -> None:
    conversation.agent.log.session = conversation.session.identity
    if not conversation.agent.gate.grants.revoke(grant):  # else the trace reports why it stays for later sessions
        conversation.say_line(f"revoked: {grant.id}  {grant.pattern.text}", Tone.GOOD)


def _narrow(conversation: Conversation, grant: Grant, words: list[str]) -> None:
    conversation.agent.log.session = conversation.session.identity
    less = conversation.agent.gate.grants.narrow(grant, words)
    if isinstance(less, str):
        raise UsageError(f"{grant.id} is not narrowed: {visible_line(less, 2_000)}")
    conversation.say_line(f"narrowed: {less.id}  {less.pattern.text}", Tone.GOOD)


COMMANDS = (
    SlashCommand(
        name="/grants",
        arguments="[revoke|narrow|answer ID]",
        summary="your permissions beyond the policy",
        group=HelpGroup.RULES,
        run=grants,
        max_arguments=None,
    ),
)
