"""/policy and /tools: show the policy, explain decisions, and reload or replace the policy."""

from __future__ import annotations

import os
from collections.abc import Sequence

from harness.app.commands.conversation import Conversation
from harness.app.policy.explain import TONES, explanation, hooks_about, parts_table
from harness.app.policy.judged_call import tool_use, typed_action
from harness.errors import HarnessError, ToolError, UsageError, nearest
from harness.files.own_temporary import OwnTemporary
from harness.limits import strictest
from harness.messages import ToolCall
from harness.paths import short_place
from harness.plugin import Effect, HelpGroup, SlashCommand
from harness.policy.loader import PACKS, SHIPPED, load_policy, shipped_policy_path
from harness.policy.policy import Policy
from harness.policy.rules import Layer
from harness.policy.verdict import evaluate
from harness.process.own_code import own_code
from harness.session.own_folders import keep_own_folders
from harness.session.policies import assemble, describe, source_name, with_plan_mode, without_shipped_folder
from harness.session.session_rules import check_prices
from harness.session.session_tools import check_confinement
from harness.session.state import PROJECT_POLICY
from harness.session.trust import CHANGED, ask_trust, is_as_shown
from harness.terminal.completion import Offered
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.visible import visible_line
from harness.tool_kinds import BASH, OPTIONAL_NAMES, READ_FILE, WRITE_FILE, is_from_outside
from harness.tools.bash import BashTool
from harness.tools.command_walls import confinement_words

ACTIONS = ("show", "explain", "use", "reload", "trust")

SAID = {
    "default": "asks before what changes something",
    "ci": "asks nobody: what is not allowed is refused",
    "workspace": "asks nobody: what fits the workspace walls runs",
    "readonly": "nothing is changed",
    "demo": "that of the demonstration",
}
"""Short descriptions of the shipped policies."""


_TOOLS = (
    Column(name="tool"),
    Column(name="verdict", toned=True),
    Column(name="decided by", folds=True),
    Column(name="what it does", folds=True),
)
_RULES = (
    Column(name="verdict", toned=True),
    Column(name="of what", folds=True),
    Column(name="at", folds=True),
    Column(name="why", folds=True, leaves=True),
)


def tools(conversation: Conversation, rest: str) -> None:  # noqa: ARG001 - the signature of a command
    """List the tools, each with the policy's default decision."""
    rows = []
    for spec in conversation.agent.registry.specs:
        verdict = evaluate(conversation.agent.gate.policy, tool_use(spec.name))
        word = verdict.decision.word
        cells = spec.name, word, short_place(verdict.deciding.by), spec.description.partition(". ")[0]
        rows.append(TableRow(cells=cells, tone=TONES[word]))
    conversation.screen.table(Table(columns=_TOOLS, rows=tuple(rows)))
    if skills := conversation.place.words.skills:
        conversation.say_line(f"  skills that the model may read: {', '.join(skills)}", max_characters=1_000)


def policy(conversation: Conversation, rest: str) -> None:
    """Show the policy, explain a decision, use another policy, reload the files, or trust the project's policy.

    Raises HarnessError.
    """
    action, _, argument = rest.partition(" ")
    if argument.strip() and action in ("show", "reload", "trust"):
        raise UsageError(f"usage: /policy {action}, without further words")
    match action:
        case "" if conversation.open_menu("/policy"):
            conversation.say_line(
                f"policy: {describe(conversation.agent.gate.policy, conversation.place.state)}", Tone.QUIET
            )
        case "" | "show":
            _show(conversation)
        case "use":
            _use(conversation, argument.strip())
        case "explain":
            _explain(conversation, argument.strip())
        case "reload":
            _reload(conversation, "reloaded")
        case "trust":
            _trust(conversation)
        case _:
            raise UsageError(f"/policy: unknown action {visible_line(action, 50)!r}{nearest(action, ACTIONS)}")


def _show(conversation: Conversation) -> None:
    """Write the policy in force: its files, defaults and rules. Long lines wrap and are never cut."""
    policy = conversation.agent.gate.policy

    for source in policy.sources:
        note = "" if source.trusted else "  (not trusted: only what tightens counts)"
        conversation.say_line(f"{source_name(source)}  sha256 {source.sha256[:16]}{note}", Tone.QUIET)
    rows = [
        (default.decision.word, f"{default.subject} by default", str(default.origin), "") for default in policy.defaults
    ]
    rows += [("auto" if readers.on else "no", "readers", str(readers.origin), "") for readers in policy.readers]
    rows += [(rule.decision.word, f"rule {rule.id}", str(rule.origin), rule.reason) for rule in policy.rules]
    table_rows = (
        TableRow(cells=tuple(map(without_shipped_folder, row)), tone=TONES.get(row[0], Tone.QUIET)) for row in rows
    )
    conversation.screen.table(Table(columns=_RULES, rows=tuple(table_rows)))
    sandbox = policy.sandbox
    places = ", ".join(sandbox.write) or "nothing"
    if sandbox.caches:
        places += f" (a package manager its own cache: {', '.join(sandbox.caches)})"
    hosts = "any host" if sandbox.network else ", ".join(sandbox.hosts) or "no host"
    conversation.say_line(f"  a command that you approve may write {places}; its question can name {hosts} to reach")
    conversation.say_line(f"  {confinement_words(conversation.tools.level)}")


def _explain(conversation: Conversation, call_text: str) -> None:
    """Print the decision of the policy in force on a command, on reading and writing a path, or on a tool call."""
    if not call_text:
        raise UsageError("usage: /policy explain COMMAND, PATH, or [--tool] TOOL and its arguments as JSON")
    workspace, policy = conversation.place.workspace, conversation.agent.gate.policy
    is_path = os.path.lexists(os.path.join(workspace.root, os.path.expanduser(call_text)))
    flag, _, call = call_text.partition(" ")
    tool_name, _, arguments = (call if flag == "--tool" else call_text).strip().partition(" ")
    tools = (READ_FILE.name, WRITE_FILE.name) if is_path else (BASH.name,)
    if is_from_outside(tool_name):
        tools, call_text = (tool_name,), arguments.strip() or "{}"
    elif flag == "--tool":
        tools, call_text = (tool_name,), arguments.strip()

    def temporary() -> OwnTemporary | None:
        return next((tool.temporary() for tool in conversation.tools.tools if isinstance(tool, BashTool)), None)

    for tool in tools:
        try:
            if is_from_outside(tool):
                action = conversation.agent.registry.prepare(ToolCall(id="explain", name=tool, arguments=call_text))
            else:
                action, _ = typed_action(tool, call_text, workspace, conversation.place.environment, temporary)
        except ToolError as error:
            raise UsageError(str(error)) from None
        verdict = conversation.agent.gate.judge(action)
        hooks = hooks_about(conversation.place.extensions.hooks.values(), action, verdict)
        for line in explanation(tool, call_text, action, verdict, hooks):
            conversation.say(line.text, line.tone)
        conversation.say("")
        conversation.screen.table(parts_table(action, verdict, policy))


def assembled(conversation: Conversation) -> Policy:
    """Return the policy built from the present content of its files. Raises HarnessError.

    The policy in force is not changed.
    """
    policy_names, pinned = conversation.policy_named, conversation.policy_sha256
    for name in (*SHIPPED, *PACKS):
        own_code().check(shipped_policy_path(name))
    place, running = conversation.place, conversation.running
    policy = assemble(place.state, place.workspace.root, names=policy_names, fallback="default", pinned=pinned)
    keep_own_folders(place.workspace, place.state)
    check_confinement(policy, conversation.tools.tools)
    check_prices(running.settings, strictest((running.rules.limits, policy.limits)))
    return policy.guarding(*running.policy.guarded)


def _use(conversation: Conversation, name: str) -> None:
    """Use another policy from now on, as with `--policy NAME`. Raises HarnessError, without any change."""
    if not name:
        raise UsageError(f"usage: /policy use NAME or FILE; shipped are {', '.join(SHIPPED)}")
    before = conversation.policy_named, conversation.policy_sha256
    conversation.policy_named, conversation.policy_sha256 = name, None
    try:
        _reload(conversation, "another")
    except HarnessError:
        conversation.policy_named, conversation.policy_sha256 = before
        raise


def what_to_do(conversation: Conversation) -> Sequence[Offered]:
    """Return the possible arguments of /policy for the menu, with the available policies."""
    active_paths = {source.path for source in conversation.running.policy.sources if not source.root}
    user_policy = conversation.place.state.user_policy
    shipped_policies = [(name, shipped_policy_path(name), SAID[name]) for name in SHIPPED]
    shipped_policies += [(user_policy, user_policy, "yours")] if os.path.lexists(user_policy) else []
    uses = [
        (f"use {name}", f"{'holds now; ' if path in active_paths else ''}{description}")
        for name, path, description in shipped_policies
    ]
    actions = (("show", "all of it, rule by rule"), ("explain ", "what it says of a command or a file"), *uses)
    rest = (("reload", "read its files again"), ("trust", f"trust {PROJECT_POLICY} as it is now"))
    return [Offered(text=text, label=text.strip(), description=details) for text, details in (*actions, *rest)]


def _reload(conversation: Conversation, reason: str) -> None:
    before, new_policy = conversation.running.policy, assembled(conversation)
    if new_policy.sha256 == before.sha256:
        conversation.say("the policy's files say what they said before", Tone.QUIET)
        return
    # INVARIANT: in plan mode, the policy of plan mode stays on top of the new policy.
    put = with_plan_mode(new_policy) if conversation.plans else new_policy
    conversation.running.change_policy(conversation.session, new_policy, reason, judged_by=put)
    if conversation.plans:
        conversation.policy_before_plan = new_policy
    conversation.say_line(f"policy: {describe(new_policy, conversation.place.state)}", Tone.QUIET)
    rules = {(rule.layer, rule.id): rule for rule in before.rules}
    for rule in new_policy.rules:
        old = rules.pop((rule.layer, rule.id), None)
        if old is None or old.decision is not rule.decision:
            was = "new" if old is None else f"was {old.decision.word}"
            conversation.say_line(without_shipped_folder(f"  {rule.decision.word:8} {rule.label}  ({was})"))
    for rule in rules.values():
        line = f"  gone     {rule.label}  (was {rule.decision.word})"
        conversation.say_line(without_shipped_folder(line), Tone.WARNING)
    chosen, offered = conversation.tools.chosen, conversation.agent.registry.names
    if later := [name for name in chosen.optional(new_policy) if name in OPTIONAL_NAMES and name not in offered]:
        conversation.say_line(f"  {', '.join(later)}: offered when harness is started again", Tone.WARNING)


def _trust(conversation: Conversation) -> None:
    """Ask whether to trust the present content of the project's policy.

    The question shows the rules that relax decisions.
    """
    state, path = conversation.place.state, os.path.join(conversation.place.workspace.root, PROJECT_POLICY)
    if not os.path.lexists(path):
        raise UsageError(f"no {PROJECT_POLICY} in this workspace")
    project = load_policy(path, layer=Layer.PROJECT)
    if state.is_trusted(project.sha256):
        conversation.say("its content is trusted already", Tone.QUIET)
    elif not ask_trust(state, path, project, conversation.approver):
        conversation.say("it is not trusted: only what tightens counts", Tone.QUIET)
        return
    elif not is_as_shown(path, project):
        conversation.say(f"{PROJECT_POLICY} {CHANGED}", Tone.WARNING)
    # The file is read again. Content written since the question has another digest and is not trusted.
    _reload(conversation, "trusted")


COMMANDS = (
    SlashCommand(
        name="/policy",
        arguments="[explain|use|reload|trust]",
        summary="the policy in force, or another one",
        group=HelpGroup.RULES,
        run=policy,
        offers=what_to_do,
        max_arguments=None,
    ),
    SlashCommand(
        name="/tools",
        summary="the model's tools with their decisions",
        group=HelpGroup.RULES,
        run=tools,
        effect=Effect.SHOWS,
    ),
)
