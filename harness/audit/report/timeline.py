"""The time line of a report: every record in the log's order, folded by session and turn; holds the calls in flight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.audit.calls import ABOUT_CALLS, joined
from harness.audit.report.calls import Shown, raw_if_odd, whole_call
from harness.audit.report.text import block, line, moment, number, shown
from harness.log.order import LogRecord


class Timeline:
    """Writes records as they come; what is open is closed when another session or turn begins."""

    def __init__(self, show: Shown, most_calls: int | None) -> None:
        """`most_calls`: after so many calls it stops, and says so; None for all."""
        self._show = show
        self._most_calls = most_calls
        self._session: tuple[str, str] | None = None
        self._seen: set[tuple[str, str]] = set()
        self._started: dict[tuple[str, str], LogRecord] = {}
        self._flying: dict[tuple[str, str], dict[str, dict[str, LogRecord]]] = {}
        self._in_turn = False
        self._in_prompt = False
        self._calls = 0
        self._left_out = 0

    def written(self, records: Iterable[tuple[str, LogRecord]]) -> Iterator[str]:
        """Yield the HTML of these records."""
        for log, record in records:
            if self._most_calls is not None and self._calls >= self._most_calls:
                self._left_out += 1
                continue
            yield from self._record(log, record)
        # Once it is cut, the ends of the calls in flight were passed over: they would look as if they had none.
        for log, session in [] if self._left_out else list(self._flying):
            yield from self._unended(log, session)
        yield from self._close_session()
        if self._left_out:
            rest = max(0, self._show.figures.calls - self._calls)
            yield '<p class="alarm"><strong>The time line is cut here.</strong> It shows the first '
            yield f"{number(self._calls)} calls; {number(rest)} calls and {number(self._left_out)} records are left out. "
            yield "Everything above counts and lists all of them. "
            yield "A page made with <code>--full</code> holds them too; <code>--session ID</code> makes one of one session.</p>"

    def _record(self, log: str, record: LogRecord) -> Iterator[str]:
        session = str(record["session"])
        if self._session != (log, session):
            yield from self._close_session()
            yield from self._open_session(log, session, record)
        kind = str(record["kind"])
        if kind == "session_started":
            self._started[log, session] = record
        if kind in ABOUT_CALLS:
            yield from self._about_call(log, session, kind, record)
            return
        if kind == "session_ended":
            yield from self._unended(log, session)
        if kind in ("user_message", "session_ended"):
            yield from self._close_turn()
            yield "</details>" if self._in_prompt else ""
            self._in_prompt = False
        if kind == "model_request":
            yield from self._close_turn()
            purpose = f" ({line(record['purpose'], 40)})" if "purpose" in record else ""
            yield f'<details class="turn" open><summary>turn {line(record.get("turn"), 20)}{purpose} <span class="quiet">'
            yield f"&mdash; {line(record.get('messages'), 20)} messages sent, {moment(record['time'])}</span></summary>\n"
            yield raw_if_odd(record, self._show.characters)
            self._in_turn = True
            return
        yield from self._plain(kind, record)
        yield raw_if_odd(record, self._show.characters)

    def _about_call(self, log: str, session: str, kind: str, record: LogRecord) -> Iterator[str]:
        flying = self._flying.setdefault((log, session), {})
        name = shown(record.get("call"))[:200]
        flying.setdefault(name, {})[kind] = record
        if kind == "outcome":
            yield from self._call(log, session, name, flying.pop(name))

    def _call(self, log: str, session: str, name: str, found: dict[str, LogRecord]) -> Iterator[str]:
        self._calls += 1
        started = self._started.get((log, session), {})
        call = joined(found, log=log, session=session, number=name, started=started)
        yield from whole_call(call, self._show)

    def _unended(self, log: str, session: str) -> Iterator[str]:
        for name, found in self._flying.pop((log, session), {}).items():
            if self._session != (log, session):
                yield from self._close_session()
                yield from self._open_session(log, session, {})
            yield from self._call(log, session, name, found)

    def _open_session(self, log: str, session: str, first: LogRecord) -> Iterator[str]:
        key = log, session
        figures = self._show.figures.sessions.get(key)
        place = figures.place if figures else 0
        again = key in self._seen
        named = "" if again or not place else f' id="s{place}"'
        self._seen.add(key)
        self._session = key
        about = f"{line(figures.about['mode'], 40)} in {line(figures.about['workspace'], 200)}, " if figures else ""
        calls = f"{number(figures.calls)} calls" if figures else ""
        head = f"Session {place or '?'}: {line(session, 60)}{' (goes on)' if again else ''}"
        yield f'<details class="session" open{named}><summary><h3>{head}</h3> '
        yield f'<span class="quiet">&mdash; {about}{calls}, {moment(first.get("time"))}</span></summary>\n'

    def _close_session(self) -> Iterator[str]:
        yield from self._close_turn()
        if self._in_prompt:
            yield "</details>"
        if self._session is not None:
            yield "</details>\n"
        self._in_prompt, self._session = False, None

    def _close_turn(self) -> Iterator[str]:
        if self._in_turn:
            yield "</details>"
        self._in_turn = False

    def _plain(self, kind: str, record: LogRecord) -> Iterator[str]:
        """Yield what is no call."""
        characters = self._show.characters
        if kind == "user_message":
            self._in_prompt = True
            told = shown(record.get("text"))
            yield f'<details class="prompt" open><summary><span class="word">&gt;</span> {line(told, 160)}</summary>\n'
            if len(told) > 160 or "\n" in told:
                yield f'<div class="said">{block(told, characters)}</div>'
            return
        if kind == "model_response":
            if record.get("text"):
                yield f'<div class="said"><span class="word">The model:</span>{block(record["text"], characters)}</div>'
            told = f"{line(record.get('calls'), 20)} calls, {line(record.get('finish_reason'), 40)}, "
            told += f"{line(record.get('input_tokens'), 20)} tokens in, {line(record.get('output_tokens'), 20)} out"
            told += f", {line(record['ms'], 20)} ms" if "ms" in record else ""
            yield f'<p class="quiet">Reply: {told}.</p>\n'
            return
        is_bad = kind in ("error", "limit", "recovered")
        fields = {name: value for name, value in record.items() if name not in _COMMON}
        names = "".join(
            f"<dt>{line(name, 60)}</dt><dd>{_value(value, characters)}</dd>" for name, value in fields.items()
        )
        head = f'{"! " if is_bad else ""}{line(kind, 60)} <span class="quiet">&mdash; {moment(record["time"])}</span>'
        yield f'<details{" open" if is_bad else ""}><summary>{head}</summary><dl class="facts">{names}</dl></details>\n'


_COMMON = frozenset(("v", "seq", "time", "mono_ns", "session", "kind", "prev"))


def _value(value: object, characters: int | None) -> str:
    told = shown(value)
    return block(told, characters) if len(told) > 120 or "\n" in told else line(told, 120)
