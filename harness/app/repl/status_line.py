"""The status line: model, policy, cost and permissions of a session, as far as they fit."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Decision
from harness.app.commands.conversation import Conversation
from harness.app.commands.mode import Mode, mode_of
from harness.gate.grants_in_force import OF_MODES
from harness.policy.policy import Policy
from harness.record import Record
from harness.session.config.declared import STATUS_PARTS
from harness.terminal.row_text import cells, fitted
from harness.terminal.styles import Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line
from harness.tool_kinds import Does, shipped_that
from harness.tools.command_walls import is_unbound

Part = tuple[str, Tone]

BETWEEN = " | "
_LONGEST_NAME, _LONGEST_BRANCH = 40, 24


class Status(Record):
    """State of a session for the status line."""

    model: str
    policy: str
    turns: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the provider read from a cache."""
    output_tokens: int = 0
    cost: float | None = None
    """Cost of the conversation in dollars. `None` if unknown; then it is not shown."""
    context_tokens_used: int | None = None
    context_tokens: int | None = None
    """The model's context length. `None` if unknown."""
    confinement: str = ""
    """The confinement level in a word or two. Empty if it is not shown."""
    grants: int = 0
    jobs: int = 0
    """Number of commands that run in the background."""
    loosened: tuple[str, ...] = ()
    """Settings that relax the gate, in words: `UNCONFINED allowed`."""
    mode: Mode = Mode.ASK
    vi: str = ""
    """Editing mode of vi's keys. Empty without them."""
    branch: str = ""
    """Git branch, or a commit's id. Empty if there is none."""
    hint: str = ""
    """Hint about the keys that apply now."""


def status_parts(status: Status, width: int, names: Sequence[str] = STATUS_PARTS) -> tuple[Part, ...]:
    """Return the parts of the status line with these names, with a total of at most `width` terminal cells.

    If they do not fit, the least important parts are left out. Relaxed settings come first and stay longest. If a
    single part does not fit, it is cut and ends in dots.
    """
    parts = [part for part in _parts(status, names) if part[1]]
    while len(parts) > 1 and _width(parts) > width:
        least_important = min(range(len(parts)), key=lambda place: parts[place][0])
        del parts[least_important]
    visible_parts: list[Part] = []
    for _, text, tone in parts:
        if visible_parts:
            visible_parts.append((BETWEEN, Tone.QUIET))
        visible_parts.append((fitted(text, width), tone))
    return tuple(visible_parts)


def status_text(status: Status, width: int, names: Sequence[str] = STATUS_PARTS) -> str:
    """Return the status line as plain text, for a display that cannot repaint."""
    return "".join(text for text, _ in status_parts(status, width, names))


_MODES = {
    Mode.ASK: ("mode ask", Tone.QUIET),
    Mode.EDITS: ("EDITS run unasked", Tone.WARNING),
    Mode.WALLS: ("WALLS: what fits them runs unasked", Tone.WARNING),
    Mode.PLAN: ("PLAN: nothing is changed", Tone.GOOD),
}


def _parts(status: Status, names: Sequence[str]) -> list[tuple[int, str, Tone]]:
    """Return the parts with these names and their importance, in display order.

    Relaxed settings and the hint about keys always belong to them.
    """
    loosened = ", ".join(status.loosened)
    cached = f" ({100 * status.cached_tokens // status.input_tokens}% cached)" if status.cached_tokens else ""
    tokens = f"{_short(status.input_tokens)} tokens in{cached}, {_short(status.output_tokens)} out"
    parts = {
        "mode": (90, *_MODES[status.mode]),
        "vi": (72, f"vi {status.vi}" if status.vi else "", Tone.PLAIN),
        "model": (80, visible_line(status.model, _LONGEST_NAME), Tone.PLAIN),
        "policy": (50, f"policy {visible_line(status.policy, _LONGEST_NAME)}" if status.policy else "", Tone.PLAIN),
        "walls": (60, visible_line(status.confinement, _LONGEST_NAME), Tone.PLAIN),
        "grants": (70, count_of(status.grants, "grant") if status.grants else "", Tone.WARNING),
        "jobs": (71, count_of(status.jobs, "job") if status.jobs else "", Tone.WARNING),
        "branch": (62, fitted(visible_line(status.branch, 500), _LONGEST_BRANCH), Tone.PLAIN),
        "context": (65, _context(status), Tone.WARNING if _share(status) >= 80 else Tone.PLAIN),
        "cost": (40, f"${status.cost:.4f}" if status.cost is not None else "", Tone.PLAIN),
        "turns": (20, count_of(status.turns, "turn") if status.turns else "", Tone.QUIET),
        "tokens": (30, tokens if status.input_tokens or status.output_tokens else "", Tone.QUIET),
    }
    return [
        (99, visible_line(f"! {loosened or 'loosened'}", 500) if status.loosened else "", Tone.BAD),
        *(parts[name] for name in names),
        (75, status.hint, Tone.QUIET),
    ]


def _context(status: Status) -> str:
    if status.context_tokens_used is None:
        return ""
    if not status.context_tokens:
        return f"{_short(status.context_tokens_used)} tokens of context"
    return f"{_share(status)}% of context"


def _share(status: Status) -> int:
    """Return the used share of the context in percent, rounded up."""
    if not status.context_tokens or status.context_tokens_used is None:
        return 0
    return -(-100 * status.context_tokens_used // status.context_tokens)


def _short(number: int) -> str:
    """Return a number in at most five characters: 999, 12.3k, 200k, 1.2M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size or (unit == "M" and number >= 999_500):
            share = number / size
            return f"{share:.1f}{unit}" if share < 99.95 else f"{share:.0f}{unit}"
    return str(number)


def _width(parts: list[tuple[int, str, Tone]]) -> int:
    return sum(cells(text) for _, text, _ in parts) + len(BETWEEN) * (len(parts) - 1)


_CHANGING = (*shipped_that(Does.RUNS, Does.WRITES), "default")


def status_of(conversation: Conversation, branch: str) -> Status:
    """Return the present status of the conversation, with the branch of its workspace."""
    session = conversation.session
    last = session.last_usage
    total = conversation.spending
    return Status(
        model=conversation.agent.model.name,
        policy=conversation.running.policy.name,
        turns=len(conversation.spent),
        input_tokens=total.usage.input_tokens,
        cached_tokens=total.usage.cached_tokens,
        output_tokens=total.usage.output_tokens,
        cost=total.cost,
        context_tokens_used=last.input_tokens + last.output_tokens or None,
        context_tokens=conversation.agent.context_tokens,
        confinement="" if is_unbound(conversation.tools.level) else conversation.tools.level,
        grants=sum(grant.id not in OF_MODES for grant in conversation.agent.gate.grants.grants),
        jobs=len(conversation.tools.jobs.running),
        loosened=tuple(loosened(conversation.agent.gate.policy, conversation.tools.level)),
        mode=mode_of(conversation),
        branch=branch,
    )


def loosened(policy: Policy, level: str) -> list[str]:
    """Return settings that allow more than a user may expect, in words: no questions, or no confinement."""
    words = ["commands are NOT CONFINED"] if is_unbound(level) else []
    for tool in _CHANGING:
        decisions = [default.decision for default in policy.defaults if default.tool == tool]
        if decisions and max(decisions) is Decision.AUTO:
            words.append(f"{'any other tool' if tool == 'default' else tool} runs UNASKED")
    return words
