"""The page of a report. The template `page.html` has the layout, and `report` fills it."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from harness import __version__
from harness.actions import JsonValue
from harness.app.pages import line, moment, number, templates
from harness.audit.batch_results import task_of
from harness.audit.calls import STANDING_NAMES, AuditedLogs, CallStanding
from harness.audit.findings import Findings, Soundness
from harness.log.order import LogRecord
from harness.log.reader import records
from harness.plugins.insight.questions import BURST, BURST_SECONDS
from harness.plugins.insight.report.charts import bar, charts
from harness.plugins.insight.report.figures import MAX_TALK, MOST_PATHS, Figures, SessionFigures, figures_of
from harness.plugins.insight.report.lists import LISTS, ReportDetail
from harness.plugins.insight.report.spans import BREAK, Block, Cell, PageSpan, PageTable, block, cell, code, digest
from harness.plugins.insight.report.style import STYLE, content_policy
from harness.plugins.insight.report.timeline import timeline
from harness.plugins.insight.stats import Cost
from harness.record import Record
from harness.text.amounts import count_of, duration

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
    ("charts", "charts"),
    ("policies", "policies"),
    ("timeline", "time line"),
)
TITLE = "What the harness did"
TIMELINE_CALLS = 2_000
"""Default maximum number of calls in the time line."""
CHARACTERS = 4_000
"""Default maximum number of characters of one text."""
MOST_TALKS = 5
"""Maximum number of sessions whose prompts and answers are shown at the top of the page."""


def report(
    logs: AuditedLogs,
    findings: Sequence[Findings],
    *,
    missing_logs: Sequence[str] = (),
    title: str = "",
    only: str = "",
    full: bool = False,
    most_calls: int = TIMELINE_CALLS,
    grown: Callable[[], Sequence[str]] = lambda: (),
) -> Iterator[str]:
    """Return the page about `logs`, in pieces. `findings` are the results of verifying the logs.

    The logs are never in memory as a whole. `missing_logs` is as in `looked_at`. `title` is untrusted text; empty for
    the default title. `only` is the single session to report, which the page names; empty for all. The time line shows
    `most_calls` calls; `full` lifts this and every other limit. `grown` is called at the end and returns the logs that
    were written to in the meantime.

    Raises LogError if a log cannot be read.
    """
    figures = figures_of(logs)
    max_calls = None if full else most_calls
    is_whole = max_calls is None or figures.calls <= max_calls
    show = ReportDetail(figures, characters=None if full else CHARACTERS, is_whole=is_whole)
    standings = figures.standings
    return (
        templates(__package__)
        .get_template("page.html")
        .generate(
            title=line(title or TITLE, 300),
            content_policy=content_policy(),
            style=STYLE,
            logs=count_of(len(findings), "action log"),
            sessions=count_of(len(figures.sessions), "session"),
            calls=count_of(figures.calls, "call"),
            records=count_of(sum(item.verification.records for item in findings), "verified record"),
            last_time=line(figures.last_time, 40) or "no known time",
            only=line(only, 60),
            contents=_CONTENTS,
            alarms=[*_about_logs(findings, missing_logs), *_about_calls(figures)],
            unseen=count_of(unseen, "log") if (unseen := _without_head(findings)) else "",
            talks=talks(figures),
            unknown=standings[CallStanding.UNKNOWN],
            refused=standings[CallStanding.REFUSED] + standings[CallStanding.BLOCKED],
            asked=figures.questions.question_count,
            reads_unknown=count_of(figures.reads_unknown, "call"),
            session_table=session_table(figures, is_linked=is_whole),
            cards=cards(figures),
            whole_bar=bar(standings, figures.calls) if figures.calls else None,
            changes=figures.changes,
            restored=figures.kinds["restored"],
            commands=figures.commands,
            read=len(figures.read),
            looked_at=looked_at(findings, _unread(findings), missing_logs),
            legend=[(item.value, STANDING_NAMES[item]) for item in CallStanding],
            charts=charts(figures),
            policies=policies(logs, show),
            timeline=timeline(logs.records(), show, None if is_whole else max_calls),
            grown=grown,
            version=line(__version__, 40),
            tables={slot: item.table(logs, show) for slot, item in LISTS.items()},
        )
    )


def _without_head(logs: Sequence[Findings]) -> int:
    return sum(1 for log in logs if log.soundness is Soundness.NO_HEAD)


def _about_calls(figures: Figures) -> Iterator[Sequence[PageSpan]]:
    """Yield the conspicuous facts about calls, answers and sessions, the worst first."""
    stands = figures.standings
    questions = sum(count for (answer, _), count in figures.answers.items() if answer != "yes")
    quick = f"by a person came in under a second: hardly read; {number(figures.questions.quick_yes)} of them yes"
    bursts = f"by a person came in bursts, {BURST} or more within {duration(BURST_SECONDS)}: hardly read one by one"
    unended = sum(1 for session in figures.sessions.values() if not session.stop)
    for count, sign, noun, words, anchor in (
        (figures.kinds["ran_unjudged"], "!!", "call", "of another agent ran, and was not allowed", "timeline"),
        (
            stands[CallStanding.UNACCOUNTED] - figures.kinds["ran_unjudged"],
            "??",
            "call",
            "ran, and nothing in the log allows it",
            "timeline",
        ),
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
            yield (
                PageSpan(f"{sign} {count_of(count, noun)}", "strong"),
                PageSpan(f" {words}. See "),
                _see(anchor),
                PageSpan("."),
            )


def _see(anchor: str) -> PageSpan:
    return PageSpan(dict(_CONTENTS)[anchor], link=anchor)


def _about_logs(logs: Sequence[Findings], missing_logs: Sequence[str]) -> Iterator[Sequence[PageSpan]]:
    """Yield the unreliable logs."""
    broken = sum(1 for log in logs if log.soundness is Soundness.BROKEN)
    added = sum(log.added for log in logs if log.soundness is not Soundness.BROKEN)
    if broken:
        of_all = f" {broken} of {count_of(len(logs), 'log')} did not verify. Do not rely on what follows."
        yield PageSpan("BROKEN:", "strong"), PageSpan(of_all)
    if missing_logs:
        yield (
            PageSpan("GONE:", "strong"),
            PageSpan(f" {count_of(len(missing_logs), 'log')} that had been noted: what they told is missing here."),
        )
    if added:
        behind_text = " behind the end of a log that was closed: anyone may have written them. See "
        yield (
            PageSpan(f"ADDED: {count_of(added, 'record')}", "strong"),
            PageSpan(behind_text),
            _see("looked-at"),
            PageSpan("."),
        )


class Talk(Record):
    """Prompt and last answer of a session."""

    place: int
    more: str
    prompt: Block
    answer: Block


def talks(figures: Figures) -> Iterator[Talk]:
    """Yield the talk of each session. Empty for more than MOST_TALKS sessions, whose table has the talks."""
    for session in figures.sessions.values() if len(figures.sessions) <= MOST_TALKS else ():
        more = f" (the first of {count_of(session.prompts, 'prompt')})" if session.prompts > 1 else ""
        prompt, answer = block(session.prompt, MAX_TALK), block(session.answer, MAX_TALK)
        yield Talk(place=session.place, more=more, prompt=prompt, answer=answer)


def session_table(figures: Figures, *, is_linked: bool) -> PageTable:
    """Return the table of sessions."""
    # A helper's row is below the session that started it, since it begins while that session runs.
    rows = (_session_row(session, is_linked=is_linked) for session in figures.sessions.values())
    return PageTable(caption="every session, in the order of the logs", heads=_SESSION_HEADS, rows=rows)


_SESSION_HEADS = (
    "session", "began (UTC), took", "how it ended, cost", "calls", "refused", "asked, answered", "mode, place, account",
    "model, harness", "policy, walls",
)  # fmt: skip


def _session_row(session: SessionFigures, *, is_linked: bool) -> Sequence[Cell]:
    name: list[PageSpan | str] = [f"{session.place}: "]
    tokens: list[PageSpan | str] = []
    if session.helper_of:
        name += [f"\u21b3 helper {number(session.helper)} of ", code(session.helper_of, 40), BREAK]
        tokens = [BREAK, f"{number(session.input_tokens)} tokens in, {number(session.output_tokens)} out"]
    if task := task_of(session.log):
        name += [PageSpan(line(task, 64), "word"), " "]
    name.append(PageSpan(line(session.name, 40), "code", f"s{session.place}" if is_linked else ""))
    started = session.start_fields
    stop = line(session.stop, 60) or PageSpan("! never said", "mark")
    policy = f"{line(started['policy'], 100)} "
    return (
        cell(*name, kind="t", is_head=True),
        cell(moment(session.began.get("time")), BREAK, duration(session.seconds), kind="t"),
        cell(stop, BREAK, _cost(session.cost), *tokens),
        cell(number(session.calls), kind="n"),
        cell(number(session.refused), kind="n"),
        cell(line(session.prompt, 160), BREAK, PageSpan(line(session.answer, 160), "quiet"), kind="why"),
        cell(
            f"{line(started['mode'], 40)} {line(started['workspace'], 200)}",
            BREAK,
            line(session.account, 200),
            kind="why",
        ),
        cell(line(started["model"], 100), BREAK, line(started["harness"], 40)),
        cell(policy, digest(session.policy_sha256[:16]), BREAK, line(session.confinement, 200), kind="why"),
    )


def cards(figures: Figures) -> Sequence[tuple[str, str, str]]:
    """Return the summary figures: name, value, note."""
    stands = figures.standings
    yes = sum(count for (answer, _), count in figures.answers.items() if answer == "yes")
    nobody = sum(count for (answer, _), count in figures.answers.items() if answer == "nobody")
    at_least = "at least " if len(figures.paths) >= MOST_PATHS else ""
    return [
        (
            "calls",
            number(figures.calls),
            f"{count_of(figures.kinds['user_message'], 'prompt')}, {count_of(figures.kinds['model_request'], 'request')}",
        ),
        ("ran without a human", number(stands[CallStanding.UNASKED]), "the policy said auto"),
        ("asked", number(figures.questions.question_count), f"nobody was there for {number(nobody)}{_median(figures)}"),
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
            f"{count_of(figures.changes, 'change')} by file tools",
        ),
        ("tokens in", number(figures.input_tokens), f"{number(figures.cached_tokens)} from a cache"),
        ("tokens out", number(figures.output_tokens), "as the provider counted"),
        ("cost", _cost(figures.cost).removeprefix("cost "), _cost_note(figures)),
        ("time", duration(figures.seconds), "all sessions together"),
        ("errors, limits", number(figures.kinds["error"] + figures.kinds["limit"]), "told in the time line"),
    ]


def _cost(cost: Cost) -> str:
    return "cost unknown" if cost.dollars is None else f"${cost.dollars:.4f}"


def _cost_note(figures: Figures) -> str:
    if not figures.cost.unknown:
        return "by the prices configured then"
    return f"of {count_of(figures.cost.unknown, 'request')} the log does not say it"


def _median(figures: Figures) -> str:
    median = figures.questions.median
    return "" if median is None else f"; median wait {median:g} s"


def _refused_note(figures: Figures) -> str:
    """Return a note on the sources of refusals, or on the number of stops, after which the run ended."""
    stops = sum(count for (answer, _), count in figures.answers.items() if answer == "stop")
    return (
        f"{number(stops)} of them by a stop, which ended the run" if stops else "by a policy, a person, or nobody there"
    )


class PolicyInReport(Record):
    """A policy that was in force, with its files."""

    name: str
    digest: PageSpan
    first_use: str
    files: Iterable[PolicyFileInReport]


class PolicyFileInReport(Record):
    """A file of a policy."""

    title: Sequence[PageSpan]
    note: str
    """Note on the text of the file."""
    text: Block | None = None
    """Text of the file. `None` if the log lacks it, or it is shown above."""
    look: str = "cut"
    """Style of `note` if `text` is `None`."""


def policies(logs: AuditedLogs, show: ReportDetail) -> Iterator[PolicyInReport]:
    """Yield every policy that was in force, with its files. Each text is shown once. Raises LogError."""
    digests: set[str] = set()
    texts: set[str] = set()
    for _, record in logs.records(("session_started", "policy_changed")):
        if "policy_sha256" not in record or str(record["policy_sha256"]) in digests:
            continue
        digests.add(str(record["policy_sha256"]))
        used = sum(
            1
            for session in show.figures.sessions.values()
            if session.policy_sha256 == str(record["policy_sha256"])[:300]
        )
        files = record.get("policy_files")
        yield PolicyInReport(
            name=line(record.get("policy"), 200) or "(without a name)",
            digest=digest(record["policy_sha256"]),
            first_use=f"in force at the beginning of {count_of(used, 'session')}"
            if used
            else "in force within a session",
            files=[_policy_file(file, texts, show) for file in (files if isinstance(files, list) else ())],
        )


def _policy_file(file: JsonValue, texts: set[str], show: ReportDetail) -> PolicyFileInReport:
    fields: LogRecord = file if isinstance(file, dict) else {"path": file}
    spans = [
        PageSpan(f"{line(fields.get('layer'), 60)}: "),
        code(fields.get("path"), 1000),
        PageSpan(" "),
        digest(fields.get("sha256")),
    ]
    if fields.get("trusted") is not True:
        spans += [PageSpan(" "), PageSpan("! not trusted: its auto rules did not count", "mark")]
    text, sha256 = fields.get("text"), str(fields.get("sha256"))
    if not isinstance(text, str):
        return PolicyFileInReport(title=spans, note="The log does not hold its text.")
    if sha256 in texts:
        return PolicyFileInReport(title=spans, note="Its text stands above.", look="quiet")
    texts.add(sha256)
    has_digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == sha256
    wrong = "the text does NOT have this digest (secrets in it may be masked)"
    note = "the text has this digest" if has_digest else wrong
    return PolicyFileInReport(title=spans, note=note, text=block(text, show.characters))


_CLASSES = {Soundness.WHOLE: "whole", Soundness.NO_HEAD: "note"}
MOST_BOXES = 3
"""Maximum number of logs with their own boxes. More logs are shown in a table instead."""
_VERDICTS = {Soundness.NO_HEAD: "NO HEAD TO COMPARE WITH"}


def _unread(logs: Iterable[Findings]) -> dict[str, int]:
    """Return the number of the first invalid line, by path, of each log that cannot be read to its end.

    Raises LogError.
    """
    first: dict[str, int] = {}
    for log in logs:
        if log.verification.broken_line is not None:
            deque(records(log.path, stopped=partial(first.__setitem__, log.path)), maxlen=0)
    return first


class LogBox(Record):
    """A box on the page."""

    kind: str
    """Class in the style sheet."""
    lines: Sequence[Sequence[PageSpan]]


class LookedAt(Record):
    """The examined logs, the findings on each, and the limits of their proof."""

    missing_logs: Sequence[str]
    """Paths of logs that the heads file notes but that no longer exist."""
    boxes: Sequence[LogBox] = ()
    """One box per log, if there are few logs."""
    table: PageTable | None = None
    """Table of the logs, if there are many."""
    proofs: Sequence[Sequence[Sequence[PageSpan]]] = ()
    """Texts on the proof of the logs in the table. Equal texts are merged, with the number of their logs."""


def looked_at(logs: Sequence[Findings], unread: Mapping[str, int], missing_logs: Sequence[str]) -> LookedAt:
    """Return the part of the page about the logs themselves.

    `unread` has, by path, the number of a log's first invalid line. The page leaves out that line and all after it.
    """
    missing = [line(path, 2000) for path in missing_logs]
    if len(logs) <= MOST_BOXES:
        return LookedAt(missing_logs=missing, boxes=[_log_box(log, unread.get(log.path)) for log in logs])
    proofs: dict[tuple[str, str], int] = {}
    for log in logs:
        proof = log.proved.removeprefix(f"of {log.verification.records} records, "), log.not_proved
        proofs[proof] = proofs.get(proof, 0) + 1
    rows = (_log_row(log, unread.get(log.path)) for log in logs)
    return LookedAt(
        missing_logs=missing,
        table=PageTable(caption="every log", heads=_LOG_HEADS, rows=rows),
        proofs=[_proof(proved, not_proved, count) for (proved, not_proved), count in proofs.items()],
    )


def _proof(proved: str, not_proved: str, count: int) -> Sequence[Sequence[PageSpan]]:
    head = PageSpan("Of "), PageSpan(number(count), "strong"), PageSpan(" of these logs:")
    return head, *_proved(proved, not_proved)


def _proved(proved: str, not_proved: str) -> tuple[Sequence[PageSpan], Sequence[PageSpan]]:
    return (PageSpan(f"Proved: {line(proved, 2000)}."),), (PageSpan(f"Not proved: {line(not_proved, 2000)}."),)


_LOG_HEADS = ("log", "verdict", "verified records", "head", "what was found")
_LEFT_OUT = "Line {} is no record: from there on this log is LEFT OUT of this page."


def _log_row(log: Findings, unread: int | None) -> Sequence[Cell]:
    is_good = log.soundness in _CLASSES and not log.added
    name = line(_VERDICTS.get(log.soundness, log.soundness.name))
    lines = [line(entry, 2000) for entry in log.lines]
    if unread is not None:
        lines.append(_LEFT_OUT.format(unread))
    task = (PageSpan(line(words, 64), "word"), PageSpan(" ")) if (words := task_of(log.path)) else ()
    broken = [part for entry in lines for part in (BREAK, PageSpan(entry))][1:]
    return (
        cell(*task, code(log.path, 2000), kind="what"),
        cell(PageSpan(name, "word") if is_good else PageSpan(f"! {name}", "mark")),
        cell(number(log.verification.records), kind="n"),
        cell(digest(log.verification.head), kind="what"),
        cell(*broken, kind="why"),
    )


def _log_box(log: Findings, unread: int | None) -> LogBox:
    verdict = PageSpan(_VERDICTS.get(log.soundness, log.soundness.name), "strong")
    paragraphs: list[Sequence[PageSpan]] = [(verdict, PageSpan(" "), code(log.path, 2000))]
    paragraphs += [(PageSpan(line(entry, 2000)),) for entry in log.lines]
    if log.verification.broken_line is not None:
        paragraphs.append((PageSpan("What this page tells of that line and all after it proves nothing."),))
    if unread is not None:
        paragraphs.append((PageSpan(_LEFT_OUT.format(unread)),))
    paragraphs.append(
        (PageSpan(f"{number(log.verification.records)} verified records, head "), digest(log.verification.head))
    )
    paragraphs += _proved(log.proved, log.not_proved)
    return LogBox(kind="alarm" if log.added else _CLASSES.get(log.soundness, "alarm"), lines=paragraphs)
