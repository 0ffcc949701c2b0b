"""The page of a report: PAGE shows every part in its place, and `report` fills it."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from harness import __version__
from harness.actions import JsonValue
from harness.audit.batch_results import task_of
from harness.audit.calls import AuditedLogs, CallStanding
from harness.log.findings import Findings, Soundness
from harness.log.order import LogRecord
from harness.log.reader import records
from harness.plugins.insight.questions import BURST, BURST_SECONDS
from harness.plugins.insight.report.charts import bar, legend, patterns, pictures
from harness.plugins.insight.report.figures import MAX_TALK, MOST_PATHS, Figures, SessionFigures, figures_of
from harness.plugins.insight.report.lists import LISTS, ReportDetail
from harness.plugins.insight.report.markup import block, digest, filled, html, line, moment, number, table
from harness.plugins.insight.report.style import STYLE, content_policy
from harness.plugins.insight.report.timeline import timeline
from harness.plugins.insight.stats import Cost
from harness.text.amounts import counted, duration

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>$title</title>
<meta http-equiv="Content-Security-Policy" content="$content_policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
<style>$style</style>
</head>
<body>
<main>
<h1>$title</h1>
<p>A report on $logs with $sessions, $calls and $records; the last record is of <strong>$last_time</strong>. The log is the \
record, this page a view of it. What a model, a person or a program wrote is shown as it was logged; characters that could \
hide or move text are written as escapes.</p>
$only<nav aria-label="Contents"><ul>$contents</ul></nav>
$patterns
$alarms
$talk
<h2 id="unknown">Unknown calls</h2>
$unknown_note$unknown_calls
<h2 id="refused">Refused ($refused)</h2>
$refused_calls
<h2 id="asked">Questions and approvals ($asked)</h2>
$asked_calls
<h2 id="outside">Outside, network</h2>
<p>Calls that read or could write outside the workspace, or could reach the network, as their verdicts let them. \
What $reads_unknown read is not known.</p>
$outside_calls$connections
<h2 id="sessions">Sessions</h2>
$session_table
<h2 id="figures">Figures</h2>
<dl class="figures">$cards</dl>
$bar
<h2 id="changed">Files changed ($changes)</h2>
<p>What the file tools wrote.</p>
$changed_files$restored
<h2 id="commands">Commands that could write ($commands)</h2>
<p>What commands changed is not recorded file by file. Told is where they could, as their verdicts say.</p>
$writing_commands
<h2 id="read">Files read ($read)</h2>
<p>Of a folder, all below it may be meant. What $reads_unknown read is not known, or not all of it.</p>
$read_files$shown_pictures
<h2 id="looked-at">What was looked at</h2>
$looked_at
<h2 id="charts">Pictures</h2>
$legend
$pictures
<h2 id="policies">Policies in force</h2>
$policies
<h2 id="timeline">Time line</h2>
<p>Everything in the order of the log. <code>+</code> ran well, <code>!</code> ran and failed, or was no valid call, \
<code>x</code> refused, <code>#</code> blocked, <code>-</code> not run, <code>?</code> unknown, <code>??</code> ran though \
nothing allows it, <code>.</code> the log ends before it was begun.</p>
$timeline
$grown
<p class="quiet">Made by harness $version from the logs alone. It holds no script and refers to nothing outside itself; made \
again from the same logs, it is the same page.</p>
</main>
</body>
</html>
"""
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
TIMELINE_CALLS = 2_000
"""So many calls are shown whole, unless all are asked for."""
CHARACTERS = 4_000
"""So much of one text is shown, unless all of it is asked for."""
MOST_TALKS = 5
"""Of so many sessions prompt and answer stand above all lists."""


def report(
    logs: AuditedLogs,
    findings: Sequence[Findings],
    *,
    gone: Sequence[str] = (),
    title: str = "",
    only: str = "",
    full: bool = False,
    most_calls: int = TIMELINE_CALLS,
    grown: Callable[[], Sequence[str]] = lambda: (),
) -> Iterator[str]:
    """Yield the page about `logs`, whose verification came to `findings`, in pieces; memory does not grow with the logs.

    `gone` is as in `looked_at`. `title` is hostile like all else: empty for the usual one. `only` is the
    session that `logs` keeps to, where it does: the page says so. The time line shows `most_calls`
    calls; with `full` nothing is cut. `grown` is asked at the end for
    the logs that were written to in the meantime.

    Raises LogError if a log cannot be read.
    """
    figures = figures_of(logs)
    most = None if full else most_calls
    is_whole = most is None or figures.calls <= most
    show = ReportDetail(figures, characters=None if full else CHARACTERS, is_whole=is_whole)
    standings, restored = figures.standings, figures.kinds["restored"]
    unknown = standings[CallStanding.UNKNOWN]
    yield from filled(
        PAGE,
        title=line(title or TITLE, 300),
        content_policy=content_policy(),
        style=STYLE,
        logs=counted(len(findings), "action log"),
        sessions=counted(len(figures.sessions), "session"),
        calls=counted(figures.calls, "call"),
        records=counted(sum(one.found.records for one in findings), "verified record"),
        last_time=line(figures.last_time, 40) or "no known time",
        only=html(ONLY, session=line(only, 60)) if only else "",
        contents=(f'<li><a href="#{anchor}">{words}</a></li>' for anchor, words in _CONTENTS),
        patterns=patterns(),
        alarms=alarms(figures, findings, gone),
        talk=talk(figures),
        unknown_note=html(UNKNOWN, count=number(unknown)) if unknown else NONE_UNKNOWN,
        refused=number(standings[CallStanding.REFUSED] + standings[CallStanding.BLOCKED]),
        asked=number(figures.questions.asked),
        reads_unknown=counted(figures.reads_unknown, "call"),
        session_table=session_table(figures, is_linked=is_whole),
        cards=cards(figures),
        bar=bar(standings, figures.calls) if figures.calls else "",
        changes=number(figures.changes),
        restored=html(RESTORED, count=number(restored)) if restored else "",
        commands=number(figures.commands),
        read=number(len(figures.read)),
        looked_at=looked_at(findings, _unread(findings), gone),
        legend=legend(),
        pictures=pictures(logs, figures),
        policies=policies(logs, show),
        timeline=timeline(logs.records(), show, None if is_whole else most),
        grown=_grown(grown),
        version=line(__version__, 40),
        **{slot: one.html(logs, show) for slot, one in LISTS.items()},
    )


ONLY = """\
<p class="note">Told is only what belongs to session <code>$session</code>; verified was the whole log.</p>
"""
NONE_UNKNOWN = """\
<p class="whole">None: every call that was begun has an end in the log.</p>
"""
UNKNOWN = """\
<p class="alarm"><strong>? $count begun, end not known.</strong> They may have run, wholly or in part: \
look at what they would have changed.</p>
"""
RESTORED = """\
<p>$count records tell of files that were put back: see the time line.</p>
"""
GROWN = """\
<p class="alarm"><strong>Written to while this page was made:</strong> $logs. Its figures and its lists may differ by that.</p>
"""


def _grown(grown: Callable[[], Sequence[str]]) -> Iterator[str]:
    """Yield which logs were written to, asked when all else was told."""
    if paths := grown():
        yield html(GROWN, logs=", ".join(f"<code>{line(path, 1000)}</code>" for path in paths))


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
        yield f" <strong>But {counted(unseen, 'log')} had no head to compare with:</strong> what was cut off "
        yield 'or rewritten would be missing here. See <a href="#looked-at">what was looked at</a>.'
    yield "</p>\n"


def _about_calls(figures: Figures) -> Iterator[str]:
    """Yield what stands out among calls, answers and sessions, the worst first."""
    stands = figures.standings
    questions = sum(count for (answer, _), count in figures.answers.items() if answer != "yes")
    quick = f"by a person came in under a second: hardly read; {number(figures.questions.quick_yes)} of them yes"
    bursts = f"by a person came in bursts, {BURST} or more within {duration(BURST_SECONDS)}: hardly read one by one"
    unended = sum(1 for one in figures.sessions.values() if not one.stop)
    for count, sign, noun, words, anchor in (
        (stands[CallStanding.UNACCOUNTED], "??", "call", "ran, and nothing in the log allows it", "timeline"),
        (stands[CallStanding.UNKNOWN], "?", "call", "begun, end not known: may have run", "unknown"),
        (stands[CallStanding.BLOCKED], "#", "call", "blocked: the run halted", "refused"),
        (stands[CallStanding.REFUSED], "x", "call", "refused", "refused"),
        (figures.kinds["places_changed"], "!", "call", "changed what other programs run or obey later", "timeline"),
        (questions, "!", "question", "without a yes", "asked"),
        (figures.outside, "!", "call", "outside the workspace", "outside"),
        (figures.network, "!", "call", "could reach the network", "outside"),
        (figures.questions.quick, "!", "answer", quick, "asked"),
        (figures.questions.in_bursts, "!", "approval", bursts, "asked"),
        (unended, "!", "session", "never said that it ended", "sessions"),
    ):
        if count:
            see = f'See <a href="#{anchor}">{dict(_CONTENTS)[anchor]}</a>.'
            yield f"<strong>{sign} {counted(count, noun)}</strong> {words}. {see}"


def _about_logs(logs: Sequence[Findings], gone: Sequence[str]) -> Iterator[str]:
    """Yield which of the logs cannot be relied on."""
    broken = sum(1 for log in logs if log.soundness is Soundness.BROKEN)
    added = sum(log.added for log in logs if log.soundness is not Soundness.BROKEN)
    if broken:
        yield f"<strong>BROKEN:</strong> {broken} of {counted(len(logs), 'log')} did not verify. Do not rely on what follows."
    if gone:
        yield f"<strong>GONE:</strong> {counted(len(gone), 'log')} that had been noted: what they told is missing here."
    if added:
        yield (
            f"<strong>ADDED: {counted(added, 'record')}</strong> behind the end of a log that was closed: anyone may have "
            'written them. See <a href="#looked-at">what was looked at</a>.'
        )


def talk(figures: Figures) -> Iterator[str]:
    """Yield what was asked and what was answered last, of a few sessions; of more, their table has it."""
    for one in figures.sessions.values() if len(figures.sessions) <= MOST_TALKS else ():
        more = f" (the first of {counted(one.prompts, 'prompt')})" if one.prompts > 1 else ""
        yield f'<div class="said"><span class="word">Session {one.place} was asked{more}:</span>{block(one.prompt, MAX_TALK)}'
        yield f'<span class="word">It answered:</span>{block(one.answer, MAX_TALK)}</div>\n'


def session_table(figures: Figures, *, is_linked: bool) -> Iterator[str]:
    """Yield the table of sessions."""
    # A helper stands below whoever asked it: its session begins while theirs goes on.
    rows = (_session_row(one, is_linked=is_linked) for one in figures.sessions.values())
    return table("every session, in the order of the logs", _SESSION_HEADS, rows)


_SESSION_HEADS = (
    "session", "began (UTC), took", "how it ended, cost", "calls", "refused", "asked, answered", "mode, place, account",
    "model, harness", "policy, walls",
)  # fmt: skip


def _session_row(one: SessionFigures, *, is_linked: bool) -> Sequence[str]:
    name = f"<code>{line(one.name, 40)}</code>"
    name = f'<a href="#s{one.place}">{name}</a>' if is_linked else name
    if task := task_of(one.log):
        name = f'<span class="word">{line(task, 64)}</span> {name}'
    tokens = ""
    if one.helper_of:
        name = f"&#8627; helper {number(one.helper)} of <code>{line(one.helper_of, 40)}</code><br>{name}"
        tokens = f"<br>{number(one.input_tokens)} tokens in, {number(one.output_tokens)} out"
    about = one.about
    stop = line(one.stop, 60) or '<span class="mark">! never said</span>'
    return (
        f'<th scope="row" class="t">{one.place}: {name}</th>',
        f'<td class="t">{moment(one.began.get("time"))}<br>{duration(one.seconds)}</td>',
        f"<td>{stop}<br>{_cost(one.cost)}{tokens}</td>",
        f'<td class="n">{number(one.calls)}</td>',
        f'<td class="n">{number(one.refused)}</td>',
        f'<td class="why">{line(one.prompt, 160)}<br><span class="quiet">{line(one.answer, 160)}</span></td>',
        f'<td class="why">{line(about["mode"], 40)} {line(about["workspace"], 200)}<br>{line(one.who, 200)}</td>',
        f"<td>{line(about['model'], 100)}<br>{line(about['harness'], 40)}</td>",
        f'<td class="why">{line(about["policy"], 100)} {digest(one.policy_sha256[:16])}<br>{line(one.confinement, 200)}</td>',
    )


def cards(figures: Figures) -> Iterator[str]:
    """Yield the summary figures."""
    stands = figures.standings
    yes = sum(count for (answer, _), count in figures.answers.items() if answer == "yes")
    nobody = sum(count for (answer, _), count in figures.answers.items() if answer == "nobody")
    at_least = "at least " if len(figures.paths) >= MOST_PATHS else ""
    told = [
        (
            "calls",
            number(figures.calls),
            f"{counted(figures.kinds['user_message'], 'prompt')}, {counted(figures.kinds['model_request'], 'request')}",
        ),
        ("ran without a human", number(stands[CallStanding.UNASKED]), "the policy said auto"),
        ("asked", number(figures.questions.asked), f"nobody was there for {number(nobody)}{_median(figures)}"),
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
            f"{counted(figures.changes, 'change')} by file tools",
        ),
        ("tokens in", number(figures.input_tokens), f"{number(figures.cached_tokens)} from a cache"),
        ("tokens out", number(figures.output_tokens), "as the provider counted"),
        ("cost", _cost(figures.cost).removeprefix("cost "), _cost_note(figures)),
        ("time", duration(figures.seconds), "all sessions together"),
        ("errors, limits", number(figures.kinds["error"] + figures.kinds["limit"]), "told in the time line"),
    ]
    for name, value, note in told:
        yield f"<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>"


def _cost(cost: Cost) -> str:
    return "cost unknown" if cost.dollars is None else f"${cost.dollars:.4f}"


def _cost_note(figures: Figures) -> str:
    if not figures.cost.unknown:
        return "by the prices configured then"
    return f"of {counted(figures.cost.unknown, 'request')} the log does not say it"


def _median(figures: Figures) -> str:
    median = figures.questions.median
    return "" if median is None else f"; median wait {median:g} s"


def _refused_note(figures: Figures) -> str:
    """Say whether the run went on: not where somebody answered that it should stop."""
    stops = sum(count for (answer, _), count in figures.answers.items() if answer == "stop")
    return (
        f"{number(stops)} of them by a stop, which ended the run" if stops else "by a policy, a person, or nobody there"
    )


def policies(logs: AuditedLogs, show: ReportDetail) -> Iterator[str]:
    """Yield every policy that was in force, with its files and their texts, each once. Raises LogError."""
    seen: set[str] = set()
    texts: set[str] = set()
    for _, record in logs.records(("session_started", "policy_changed")):
        if "policy_sha256" not in record or str(record["policy_sha256"]) in seen:
            continue
        seen.add(str(record["policy_sha256"]))
        yield f"<h3>{line(record.get('policy'), 200) or '(without a name)'}</h3><p>digest {digest(record['policy_sha256'])}, "
        used = sum(
            1 for one in show.figures.sessions.values() if one.policy_sha256 == str(record["policy_sha256"])[:300]
        )
        begun = f"in force at the beginning of {counted(used, 'session')}" if used else "in force within a session"
        yield f"{begun}</p>\n"
        files = record.get("policy_files")
        for file in files if isinstance(files, list) else ():
            yield from _policy_file(file, texts, show)
    if not seen:
        yield '<p class="quiet">The logs name none.</p>\n'


def _policy_file(file: JsonValue, texts: set[str], show: ReportDetail) -> Iterator[str]:
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


_CLASSES = {Soundness.WHOLE: "whole", Soundness.NO_HEAD: "note"}
MOST_BOXES = 3
"""So many logs have a box each; more are a table."""
_VERDICTS = {Soundness.NO_HEAD: "NO HEAD TO COMPARE WITH"}


def _unread(logs: Iterable[Findings]) -> dict[str, int]:
    """Return by path, of the logs of which the end cannot be read, the first line that is no record. Raises LogError."""
    first: dict[str, int] = {}
    for log in logs:
        if log.found.broken_line is not None:
            deque(records(log.path, stopped=partial(first.__setitem__, log.path)), maxlen=0)
    return first


def looked_at(logs: Sequence[Findings], unread: Mapping[str, int], gone: Sequence[str]) -> Iterator[str]:
    """Yield which logs were looked at, what judging each showed, and what it does not prove; HTML.

    `unread` gives, by path, the first line of a log that is no record at all: it and what follows is on no page. `gone` are
    logs that were noted where these were looked for, and are not there.
    """
    for path in gone:
        yield f'<div class="alarm"><strong>GONE</strong> <code>{line(path, 2000)}</code><br>It was noted, and is not '
        yield "there any more.</div>\n"
    if len(logs) > MOST_BOXES:
        yield from _table_of(logs, unread)
        return
    for log in logs:
        yield from _log_box(log, unread.get(log.path))


def _table_of(logs: Sequence[Findings], unread: Mapping[str, int]) -> Iterator[str]:
    """Yield a table of logs, and below it what judging them proves, each text once."""
    yield from table("every log", _LOG_HEADS, (_log_row(log, unread.get(log.path)) for log in logs))
    proofs: dict[tuple[str, str], int] = {}
    for log in logs:
        proof = log.proved.removeprefix(f"of {log.found.records} records, "), log.not_proved
        proofs[proof] = proofs.get(proof, 0) + 1
    for (proved, not_proved), count in proofs.items():
        yield f'<div class="note">Of <strong>{number(count)}</strong> of these logs:<br>Proved: {line(proved, 2000)}.<br>'
        yield f"Not proved: {line(not_proved, 2000)}.</div>\n"


def _log_row(log: Findings, unread: int | None) -> Sequence[str]:
    is_good = log.soundness in _CLASSES and not log.added
    name = line(_VERDICTS.get(log.soundness, log.soundness.name))
    state = f'<span class="word">{name}</span>' if is_good else f'<span class="mark">! {name}</span>'
    task = f'<span class="word">{line(task, 64)}</span> ' if (task := task_of(log.path)) else ""
    found = [line(one, 2000) for one in log.lines]
    if unread is not None:
        found.append(f"Line {unread} is no record: from there on this log is LEFT OUT of this page.")
    return (
        f'<td class="what">{task}<code>{line(log.path, 2000)}</code></td>',
        f"<td>{state}</td>",
        f'<td class="n">{number(log.found.records)}</td>',
        f'<td class="what">{digest(log.found.head)}</td>',
        f'<td class="why">{"<br>".join(found)}</td>',
    )


_LOG_HEADS = ("log", "verdict", "verified records", "head", "what was found")


def _log_box(log: Findings, unread: int | None) -> Iterator[str]:
    kind = "alarm" if log.added else _CLASSES.get(log.soundness, "alarm")
    yield f'<div class="{kind}"><strong>{_VERDICTS.get(log.soundness, log.soundness.name)}</strong> '
    yield f"<code>{line(log.path, 2000)}</code>"
    yield "".join(f"<br>{line(one, 2000)}" for one in log.lines)
    if log.found.broken_line is not None:
        yield "<br>What this page tells of that line and all after it proves nothing."
    if unread is not None:
        yield f"<br>Line {unread} is no record: from there on this log is LEFT OUT of this page."
    yield f"<br>{number(log.found.records)} verified records, head {digest(log.found.head)}"
    yield f"<br>Proved: {line(log.proved, 2000)}.<br>Not proved: {line(log.not_proved, 2000)}.</div>\n"
