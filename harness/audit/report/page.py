"""The frame of a report and what it says in short: head, alarms, sessions, figures, policies; HTML in pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from harness import __version__
from harness.actions import JsonValue
from harness.audit.approvals import BURST, BURST_SECONDS
from harness.audit.calls import AuditedLogs, task_of
from harness.audit.report.calls import Shown
from harness.audit.report.charts import bar
from harness.audit.report.figures import MAX_TALK, MOST_PATHS, Figures, SessionFigures
from harness.audit.report.style import STYLE, content_policy
from harness.audit.report.tables import table
from harness.audit.report.text import block, digest, line, many, moment, number
from harness.audit.standing import CallStanding
from harness.audit.stats import Cost
from harness.log.clocks import in_words
from harness.log.findings import Findings, Soundness
from harness.log.order import LogRecord

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.audit.report.tables import Cells

_CONTENTS = (
    ("unknown", "unknown calls"),
    ("refused", "refused"),
    ("asked", "questions and approvals"),
    ("outside", "outside, network"),
    ("sessions", "sessions"),
    ("figures", "figures"),
    ("changed", "files changed"),
    ("commands", "commands that could write"),
    ("read", "files read"),
    ("looked-at", "what was looked at"),
    ("charts", "pictures"),
    ("policies", "policies"),
    ("timeline", "time line"),
)
TITLE = "What the harness did"
MOST_TALKS = 5
"""Of so many sessions prompt and answer stand above all lists."""


def page_start(title: str, figures: Figures, logs: Sequence[Findings], only: str = "") -> Iterator[str]:
    """Yield the page up to its first heading. `title` is hostile like all else: empty for the usual one."""
    name = line(title or TITLE, 300)
    yield f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{name}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{content_policy()}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="color-scheme" content="light dark">\n'
    yield '<meta name="robots" content="noindex">\n<meta name="referrer" content="no-referrer">\n'
    yield f"<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{name}</h1>\n"
    records = sum(log.found.records for log in logs)
    yield f"<p>A report on {many(len(logs), 'action log')} with {many(len(figures.sessions), 'session')}, "
    yield f"{many(figures.calls, 'call')} and {many(records, 'verified record')}; the last record is of "
    yield f"<strong>{line(figures.last_time, 40) or 'no known time'}</strong>. The log is the record, this page a view of it. "
    yield "What a model, a person or a program wrote is shown as it was logged; characters that could hide or move text are "
    yield "written as escapes.</p>\n"
    if only:
        yield f'<p class="note">Told is only what belongs to session <code>{line(only, 60)}</code>; '
        yield "verified was the whole log.</p>\n"
    links = "".join(f'<li><a href="#{anchor}">{words}</a></li>' for anchor, words in _CONTENTS)
    yield f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n'


def alarms(figures: Figures, logs: Sequence[Findings], gone: Sequence[str]) -> Iterator[str]:
    """Yield what an auditor must see before all else."""
    told = [*_about_logs(logs, gone), *_about_calls(figures)]
    if told:
        listed = "".join(f"<li>{one}</li>" for one in told)
        yield f'<div class="alarm"><strong>What to look at</strong><ul>{listed}</ul></div>\n'
        return
    unseen = sum(1 for log in logs if log.soundness is Soundness.NO_HEAD)
    kind = "note" if unseen else "whole"
    yield f'<p class="{kind}"><strong>Nothing stands out:</strong> no call is unknown, none was refused or blocked, '
    yield "none is known to have left the workspace, none could reach the network, every question had a yes that took "
    yield "its time, and every session ended."
    if unseen:
        yield f" <strong>But {many(unseen, 'log')} had no head to compare with:</strong> what was cut off "
        yield 'or rewritten would be missing here. See <a href="#looked-at">what was looked at</a>.'
    yield "</p>\n"


def _about_calls(figures: Figures) -> Iterator[str]:
    """Yield what stands out among calls, answers and sessions, the worst first."""
    stands = figures.standings
    questions = sum(count for (answer, _), count in figures.answers.items() if answer != "yes")
    quick = f"by a person came in under a second: hardly read; {number(figures.quick_yes)} of them yes"
    bursts = f"by a person came in bursts, {BURST} or more within {in_words(BURST_SECONDS)}: hardly read one by one"
    unended = sum(1 for one in figures.sessions.values() if not one.stop)
    for count, sign, noun, words, anchor in (
        (stands[CallStanding.UNACCOUNTED], "??", "call", "ran, and nothing in the log allows it", "timeline"),
        (stands[CallStanding.UNKNOWN], "?", "call", "begun, end not known: may have run", "unknown"),
        (stands[CallStanding.BLOCKED], "#", "call", "blocked: the run halted", "refused"),
        (stands[CallStanding.REFUSED], "x", "call", "refused", "refused"),
        (questions, "!", "question", "without a yes", "asked"),
        (figures.outside, "!", "call", "outside the workspace", "outside"),
        (figures.network, "!", "call", "could reach the network", "outside"),
        (figures.quick, "!", "answer", quick, "asked"),
        (figures.in_bursts, "!", "approval", bursts, "asked"),
        (unended, "!", "session", "never said that it ended", "sessions"),
    ):
        if count:
            see = f'See <a href="#{anchor}">{dict(_CONTENTS)[anchor]}</a>.'
            yield f"<strong>{sign} {many(count, noun)}</strong> {words}. {see}"


def _about_logs(logs: Sequence[Findings], gone: Sequence[str]) -> Iterator[str]:
    """Yield which of the logs cannot be relied on."""
    broken = sum(1 for log in logs if log.soundness is Soundness.BROKEN)
    added = sum(log.added for log in logs if log.soundness is not Soundness.BROKEN)
    if broken:
        yield f"<strong>BROKEN:</strong> {broken} of {many(len(logs), 'log')} did not verify. Do not rely on what follows."
    if gone:
        yield f"<strong>GONE:</strong> {many(len(gone), 'log')} that had been noted: what they told is missing here."
    if added:
        yield (
            f"<strong>ADDED: {many(added, 'record')}</strong> behind the end of a log that was closed: anyone may have "
            'written them. See <a href="#looked-at">what was looked at</a>.'
        )


def session_rows(figures: Figures, *, is_linked: bool) -> Iterator[str]:
    """Yield the table of sessions."""
    yield '<h2 id="sessions">Sessions</h2>\n'
    rows = (_session_row(one, is_linked=is_linked) for one in figures.sessions.values())
    yield from table("every session, in the order of the logs", _SESSION_HEADS, rows)


def talk(figures: Figures) -> Iterator[str]:
    """Yield what was asked and what was answered last, of a few sessions; of more, their table has it."""
    for one in figures.sessions.values() if len(figures.sessions) <= MOST_TALKS else ():
        more = f" (the first of {many(one.prompts, 'prompt')})" if one.prompts > 1 else ""
        yield f'<div class="said"><span class="word">Session {one.place} was asked{more}:</span>{block(one.prompt, MAX_TALK)}'
        yield f'<span class="word">It answered:</span>{block(one.answer, MAX_TALK)}</div>\n'


_SESSION_HEADS = (
    "session", "began (UTC), took", "how it ended, cost", "calls", "refused", "asked, answered", "mode, place, account",
    "model, harness", "policy, walls",
)  # fmt: skip


def _session_row(one: SessionFigures, *, is_linked: bool) -> Cells:
    name = f"<code>{line(one.name, 40)}</code>"
    name = f'<a href="#s{one.place}">{name}</a>' if is_linked else name
    if task := task_of(one.log):
        name = f'<span class="word">{line(task, 64)}</span> {name}'
    about = one.about
    stop = line(one.stop, 60) or '<span class="mark">! never said</span>'
    return (
        f'<th scope="row" class="t">{one.place}: {name}</th>',
        f'<td class="t">{moment(one.began.get("time"))}<br>{in_words(one.seconds)}</td>',
        f"<td>{stop}<br>{_cost(one.cost)}</td>",
        f'<td class="n">{number(one.calls)}</td>',
        f'<td class="n">{number(one.refused)}</td>',
        f'<td class="why">{line(one.prompt, 160)}<br><span class="quiet">{line(one.answer, 160)}</span></td>',
        f'<td class="why">{line(about["mode"], 40)} {line(about["workspace"], 200)}<br>{line(one.who, 200)}</td>',
        f"<td>{line(about['model'], 100)}<br>{line(about['harness'], 40)}</td>",
        f'<td class="why">{line(about["policy"], 100)} {digest(one.policy_sha256[:16])}<br>{line(one.confinement, 200)}</td>',
    )


def figure_cards(figures: Figures) -> Iterator[str]:
    """Yield the summary figures."""
    stands = figures.standings
    yes = sum(count for (answer, _), count in figures.answers.items() if answer == "yes")
    nobody = sum(count for (answer, _), count in figures.answers.items() if answer == "nobody")
    at_least = "at least " if len(figures.paths) >= MOST_PATHS else ""
    cards = [
        (
            "calls",
            number(figures.calls),
            f"{many(figures.kinds['user_message'], 'prompt')}, {many(figures.kinds['model_request'], 'request')}",
        ),
        ("ran without a human", number(stands[CallStanding.UNASKED]), "the policy said auto"),
        ("asked", number(figures.asked), f"nobody was there for {number(nobody)}{_median(figures)}"),
        (
            "approved",
            number(yes),
            f"{number(figures.human_yes)} by a person, {number(yes - figures.human_yes)} otherwise",
        ),
        ("refused", number(stands[CallStanding.REFUSED]), _refused_note(figures)),
        ("blocked", number(stands[CallStanding.BLOCKED]), "the run halted"),
        ("unknown", number(stands[CallStanding.UNKNOWN]), "begun, end not known"),
        ("not run", number(stands[CallStanding.NEVER]), "invalid, or its turn never came"),
        ("ran and failed", number(figures.failed), "exit code, timeout, interrupt or crash"),
        (
            "files changed",
            f"{at_least}{number(len(figures.paths))}",
            f"{many(figures.changes, 'change')} by file tools",
        ),
        ("tokens in", number(figures.input_tokens), f"{number(figures.cached_tokens)} from a cache"),
        ("tokens out", number(figures.output_tokens), "as the provider counted"),
        ("cost", _cost(figures.cost).removeprefix("cost "), _cost_note(figures)),
        ("time", in_words(figures.seconds), "all sessions together"),
        ("errors, limits", number(figures.kinds["error"] + figures.kinds["limit"]), "told in the time line"),
    ]
    yield '<h2 id="figures">Figures</h2>\n<dl class="figures">'
    yield "".join(f"<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>" for name, value, note in cards)
    yield f"</dl>\n{bar(stands, figures.calls) if figures.calls else ''}\n"


def _cost(cost: Cost) -> str:
    return "cost unknown" if cost.dollars is None else f"${cost.dollars:.4f}"


def _cost_note(figures: Figures) -> str:
    if not figures.cost.unknown:
        return "by the prices configured then"
    return f"of {many(figures.cost.unknown, 'request')} the log does not say it"


def _median(figures: Figures) -> str:
    median = figures.waited.quantile(0.5)
    return "" if median is None else f"; median wait {median:g} s"


def _refused_note(figures: Figures) -> str:
    """Say whether the run went on: not where somebody answered that it should stop."""
    stops = sum(count for (answer, _), count in figures.answers.items() if answer == "stop")
    return (
        f"{number(stops)} of them by a stop, which ended the run" if stops else "by a policy, a person, or nobody there"
    )


def policies(source: AuditedLogs, show: Shown) -> Iterator[str]:
    """Yield every policy that was in force, with its files and their texts, each once. Raises LogError."""
    yield '<h2 id="policies">Policies in force</h2>\n'
    seen: set[str] = set()
    texts: set[str] = set()
    for _, record in source.records(("session_started", "policy_changed")):
        if "policy_sha256" not in record or str(record["policy_sha256"]) in seen:
            continue
        seen.add(str(record["policy_sha256"]))
        yield f"<h3>{line(record.get('policy'), 200) or '(without a name)'}</h3><p>digest {digest(record['policy_sha256'])}, "
        used = sum(
            1 for one in show.figures.sessions.values() if one.policy_sha256 == str(record["policy_sha256"])[:300]
        )
        begun = f"in force at the beginning of {many(used, 'session')}" if used else "in force within a session"
        yield f"{begun}</p>\n"
        files = record.get("policy_files")
        for file in files if isinstance(files, list) else ():
            yield from _policy_file(file, texts, show)
    if not seen:
        yield '<p class="quiet">The logs name none.</p>\n'


def _policy_file(file: JsonValue, texts: set[str], show: Shown) -> Iterator[str]:
    told: LogRecord = file if isinstance(file, dict) else {"path": file}
    untrusted = ' <span class="mark">! not trusted: its auto rules did not count</span>'
    yield f"<p>{line(told.get('layer'), 60)}: <code>{line(told.get('path'), 1000)}</code> {digest(told.get('sha256'))}"
    yield f"{'' if told.get('trusted') is True else untrusted}</p>"
    text, sha256 = told.get("text"), str(told.get("sha256"))
    if not isinstance(text, str):
        yield '<p class="cut">The log does not hold its text.</p>\n'
    elif sha256 in texts:
        yield '<p class="quiet">Its text stands above.</p>\n'
    else:
        texts.add(sha256)
        has_digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == sha256
        note = (
            "the text has this digest"
            if has_digest
            else "the text does NOT have this digest (secrets in it may be masked)"
        )
        yield f"<details><summary>the text ({note})</summary>{block(text, show.characters)}</details>\n"


def page_end(grown: Sequence[str]) -> Iterator[str]:
    """Yield the end of the page. `grown` are logs that were written to while it was made."""
    if grown:
        names = ", ".join(f"<code>{line(path, 1000)}</code>" for path in grown)
        yield f'<p class="alarm"><strong>Written to while this page was made:</strong> {names}. '
        yield "Its figures and its lists may differ by that.</p>\n"
    yield f'<p class="quiet">Made by harness {line(__version__, 40)} from the logs alone. It holds no script and refers to '
    yield "nothing outside itself; made again from the same logs, it is the same page.</p>\n</main>\n</body>\n</html>\n"
