"""The pages of docs/agents/: of each agent what we know of it, by the program's own tables and what was played."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from broken_hook import BROKEN, TABLE, rows_of
from places import ROOT

from harness.plugins.agents.commands.agent_starts import AGENT_STARTS
from harness.plugins.agents.commands.each_call import OWN_SECONDS
from harness.plugins.agents.event import HookEvent, When
from harness.plugins.agents.foreign_call import NAMES, ForeignKind
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer, agent_named
from harness.session.waiting import WAITS_SECONDS

FOLDER = Path(ROOT, "docs", "agents")
PLAIN = Path(ROOT, "tests", "plugins", "agents", "real", "what_runs.txt")
MOST_WORDS = 280
FAILS: Mapping[str, tuple[str, str]] = {
    "exit 1": ("exit 1", ""),
    "exit 3": ("exit 3", ""),
    "killed": ("killed", ""),
    "no program": ("gone", ""),
    "refuses without a word": ("wordless refusal", "says why"),
    "no JSON": ("half an answer", "one write"),
    "too slow": ("late", f"refuses after {OWN_SECONDS:g} s"),
    "the policy is gone": ("no policy", ""),
    "the policy has a fault": ("faulty policy", ""),
    "nothing can be logged": ("no log", ""),
}
"""The ways of both tables: as a page has them, and what ours does about one that cannot be played with it."""
_OURS_ALONE = ("the policy is gone", "the policy has a fault", "nothing can be logged")
_ENDS = (("continue", False), ("halt", True))
"""Parts of an answer that end the turn."""
_COUNTS = {
    ForeignKind.LIST: f"`{NAMES[ForeignKind.LIST]}`, names alone",
    ForeignKind.SEARCH: f"`{NAMES[ForeignKind.SEARCH]}`, all below",
    ForeignKind.PATCH: f"`{NAMES[ForeignKind.PATCH]}`, new files `{NAMES[ForeignKind.WRITE]}`",
}


def page(name: str) -> str:
    """Return the page of an agent."""
    agent = agent_named(name)
    tried = f"## Calls whose hook fails\n\n{_fails(agent)}\n\n" if name in AGENT_STARTS else ""
    parts = (
        f"# {agent.title}\n\n<!--tests/plugins/agents/real/write_pages.py-->\n\n{_place(agent)}",
        f"## Answers\n\n{_answers(agent)}",
        f"## Commands\n\n{_walls(agent)}",
        *([f"## Switched off\n\n{_switches(agent)}"] if agent.off_values else ()),
        f"## Tools\n\n{_tools(agent)}",
        f"{tried}## Not seen\n\n" + "\n".join(f"- {one}" for one in agent.unseen),
    )
    return "\n\n".join(parts) + "\n"


def words(text: str) -> int:
    """Count the words of a page, without the bars of its tables."""
    return sum(1 for word in text.split() if word.strip("|-#"))


def _place(agent: GuardedAgent) -> str:
    place = agent.settings
    moved = f" (`{place.home_variable}` moves it)" if place.home_variable else ""
    project = f"; with `--project` `{place.project}`" if place.project else ""
    return f"{_source(agent)} Hook: `~/{place.user}`{moved}{project}."


def _source(agent: GuardedAgent) -> str:
    """Return from where the page has its facts."""
    if agent.name not in AGENT_STARTS:
        return f"From [its documents]({agent.documents}), not tried."
    package, _, version = AGENT_STARTS[agent.name].package.rpartition("@")
    return f"Tried: {version} (npm `{package}`)."


def _said(answer: HookAnswer) -> str:
    """Return an answer as a page has it: what decides in it."""
    if answer.code:
        return f"exit {answer.code}"
    if not answer.stdout:
        return "silence"
    told = json.loads(answer.stdout)
    told |= told.get("hookSpecificOutput", {})
    decision = next(str(told[key]) for key in ("permissionDecision", "decision", "permission") if key in told)
    ends = next((f", `{name}: {json.dumps(value)}`" for name, value in _ENDS if told.get(name) is value), "")
    return f"`{decision}`{ends}"


def _event(transcript: str = "") -> HookEvent:
    return HookEvent(when=When.BEFORE, session="s", cwd="/", transcript=transcript)


def _answers(agent: GuardedAgent) -> str:
    waits = f"{WAITS_SECONDS / 60:g} minutes for `harness approve`"
    if agent.ask is None:
        asked = ("-", f"it waits {waits}" if agent.waits else "it refuses, with the rule that would allow it")
    elif agent.asks(_event(), {}):
        asked = (_said(agent.ask("why", None)), "it asks; without a person it refuses")
    else:
        asked = (_said(agent.ask("why", None)), f"it asks at its terminal, or waits {waits}")
    block = agent.block("why")
    is_end = any(name in block.stdout for name, _ in _ENDS) and block != agent.deny("why")
    ends = "its turn ends" if is_end else "its turn goes on"
    rows = (
        ("auto", _said(agent.allow(None)), "it runs the call"),
        ("confirm", *asked),
        ("deny", _said(agent.deny("why")), "the model reads why"),
        ("block", _said(block), f"{ends}; later calls are refused"),
    )
    return _table(("decision", "our answer", "then"), rows)


def _walls(agent: GuardedAgent) -> str:
    if _rewrites(agent):
        where = "in our walls" if agent.ask is None or agent.asks_rewritten else "in our walls, unless the agent asked"
    elif _rewrites_unsandboxed(agent):
        own = f"{agent.title}'s own sandbox is off (`--sandbox danger-full-access`), by its transcript"
        where = f"in our walls only where {own}"
    else:
        where = "outside our walls, since no hook can replace a command: a policy that requires walls refuses them"
    moves = " `cd` persists." if agent.keeps_folder else ""
    patches = " A command that is only `apply_patch` counts as a patch." if agent.patches_in_shell else ""
    return f"Permitted commands run {where}.{moves}{patches}"


def _switches(agent: GuardedAgent) -> str:
    keys = " or ".join(f"`{key} = {json.dumps(value)}`" for key, value in agent.off_values.items())
    files = dict.fromkeys(f"~/{file.path}" if file.is_user else file.path for file in agent.switch_files)
    run = "overrides that" if agent.held_start else "then does not start it"
    kept = " During a session our hook refuses it." if "ConfigChange" in json.dumps(agent.settings_content("")) else ""
    return f"By {keys} in {_code(files)}. `harness hook run` {run}.{kept}"


def _rewrites(agent: GuardedAgent) -> bool:
    return agent.rewrites(_event(), {})


def _rewrites_unsandboxed(agent: GuardedAgent) -> bool:
    with tempfile.NamedTemporaryFile("w") as transcript:
        json.dump({"type": "turn_context", "payload": {"sandbox_policy": {"type": "danger-full-access"}}}, transcript)
        transcript.flush()
        return agent.rewrites(_event(transcript.name), {})


def _tools(agent: GuardedAgent) -> str:
    rows = [
        (f"`{name}`", _COUNTS.get(tool.kind, f"`{NAMES.get(tool.kind)}`"), _code(tool.takes), _code(tool.ignores))
        for name, tool in agent.tools.items()
        if tool.kind is not ForeignKind.INWARD
    ]
    inward = _code(name for name, tool in agent.tools.items() if tool.kind is ForeignKind.INWARD)
    return (
        f"{_table(('tool', 'counts as', 'judged', 'passed over'), rows)}\n\n"
        "Other tools and arguments: judged by the tool's own name."
        + (f" Like reading the workspace: {inward}." if inward else "")
    )


def _fails(agent: GuardedAgent) -> str:
    plain, ours = rows_of(PLAIN), rows_of(TABLE)[agent.name]
    others = [row for row in plain if row.partition(" ")[0] == agent.name]
    heads = [f"`{keys.split()[-1]}`" if (keys := row.removeprefix(agent.name)) else "any hook" for row in others]
    rows: dict[tuple[str, ...], list[str]] = {}
    for way, (told, done) in FAILS.items():
        if way in BROKEN or others:
            cells = ["-" if way in _OURS_ALONE else _ran(way in plain[row]) for row in others]
            rows.setdefault((*cells, _ran(way in ours) if way in BROKEN else done), []).append(told)
    return _table(("failure", *heads, "ours"), [(", ".join(ways), *row) for row, ways in rows.items()])


def _ran(runs: bool) -> str:
    return "**runs**" if runs else "stopped"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join((lines[0], "|---" * len(head) + "|", *lines[1:]))
