"""The conversation grows in one way, and comes back out of the records of its session, whatever ended it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples

from harness.actions import JsonValue
from harness.history import History, pairing_problem
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.transcript import NOT_RUN, UNKNOWN, Rebuilt, message_json, message_of, rebuilt
from harness.messages import Message, Role, ToolCall
from harness.models.endpoint import Endpoint
from harness.models.openai_chat import ChatDialect
from harness.models.scripted import request_problem

MARK = "[redacted:known:00000000]"


def call(identity: str, name: str = "bash", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=identity, name=name, arguments=arguments)


def user(text: str) -> Message:
    return Message(role=Role.USER, content=text)


def said(text: str, *calls: ToolCall, echo: str = "") -> Message:
    return Message(role=Role.ASSISTANT, content=text, tool_calls=calls, echo=echo)


def result(identity: str, text: str) -> Message:
    return Message(role=Role.TOOL, content=text, tool_call_id=identity)


def strict_problem(messages: Sequence[Message]) -> str:
    """Return what a server that checks everything would refuse in the messages after the system message."""
    history = History("system")
    history.messages += messages
    problem = request_problem(json.loads(ChatDialect("m", Endpoint()).request(history.messages, ())))
    roles = [message.role for message in messages if message.role is not Role.TOOL]
    if any(a is b is Role.USER for a, b in pairwise(roles)) or roles[:1] not in ([], [Role.USER]):
        problem = problem or "roles do not alternate"
    return problem or pairing_problem(messages)


class TestHistory:
    def test_a_turn(self) -> None:
        history = History("be good")
        history.ask("look")
        history.reply("looking", [call("1"), call("2")], ["a", "b"], echo='{"r":1}')
        history.reply("seen")
        assert history.messages == [
            Message(role=Role.SYSTEM, content="be good"),
            user("look"),
            said("looking", call("1"), call("2"), echo='{"r":1}'),
            result("1", "a"),
            result("2", "b"),
            said("seen"),
        ]

    def test_consecutive_user_messages_are_merged(self) -> None:
        history = History("")
        history.ask("one")
        history.ask("two")
        assert history.messages[1:] == [user("one\n\ntwo")]

    def test_a_second_reply_without_anything_between_is_joined(self) -> None:
        history = History("")
        history.ask("one")
        history.reply("a", echo="{}")
        history.reply("b", [call("1")], ["r"], echo="[]")
        assert history.messages[1:] == [user("one"), said("a\n\nb", call("1"), echo="[]"), result("1", "r")]

    @all_rows("text", ["", " \n"])
    def test_empty_reply_is_not_added(self, text: str) -> None:
        history = History("")
        history.ask("one")
        history.reply(text, echo="{}")
        history.ask("two")
        assert history.messages[1:] == [user("one\n\ntwo")]

    @all_rows("results", [[], ["a", "b"]])
    def test_reply_needs_one_result_per_call(self, results: list[str]) -> None:
        history = History("")
        history.ask("one")
        with pytest.raises(ValueError, match="zip"):
            history.reply("x", [call("1")], results)
        assert history.messages[1:] == [user("one")]

    @all_rows(
        ("turns", "expected"),
        [
            pytest.param([], (0, 0), id="nothing said"),
            pytest.param([("a", 0)], (0, 1), id="unanswered"),
            pytest.param([("a", 2), ("b", 2)], (3, 6), id="the second"),
        ],
    )
    def test_the_last_turn(self, turns: list[tuple[str, int]], expected: tuple[int, int]) -> None:
        history = History("")
        for number, (text, rounds) in enumerate(turns):
            history.ask(text)
            if rounds:
                history.reply("", [call(f"c{number}")], ["r"])
        assert history.last_turn == expected

    def test_splice_merges_adjacent_messages(self) -> None:
        history = History("s")
        for text in ("one", "two", "three"):
            history.ask(text)
            history.reply(f"re {text}")
        history.splice(1, 4)
        assert history.messages[1:] == [user("one\n\nthree"), said("re three")]
        history.splice(0, 1, [user("summary"), user("one")])
        assert history.messages[1:] == [user("summary\n\none"), said("re three")]
        history.splice(0, 2)
        assert history.messages == [Message(role=Role.SYSTEM, content="s")]

    @all_rows(
        ("start", "stop", "messages"),
        [
            pytest.param(1, 2, (), id="the reply without its result"),
            pytest.param(2, 3, (), id="the result without its call"),
            pytest.param(0, 2, (user("x"),), id="the call, and a message in its place"),
            pytest.param(3, 3, (said("", call("9")),), id="a call without a result put in"),
            pytest.param(3, 3, (result("9", "x"),), id="a result without a call put in"),
            pytest.param(0, 0, (Message(role=Role.SYSTEM, content="obey"),), id="a second system message"),
            pytest.param(3, 3, (said("", call("7"), call("7")), result("7", ""), result("7", "")), id="equal ids"),
            pytest.param(3, 3, (said("", call("")), result("", "")), id="no id"),
            pytest.param(-1, 0, (), id="before the beginning"),
            pytest.param(2, 1, (), id="backwards"),
            pytest.param(0, 4, (), id="past the end"),
        ],
    )
    def test_invalid_splice_is_refused(self, start: int, stop: int, messages: tuple[Message, ...]) -> None:
        history = History("s")
        history.ask("one")
        history.reply("", [call("1")], ["r"])
        before = list(history.messages)
        with pytest.raises(ValueError, match=r"."):
            history.splice(start, stop, messages)
        assert history.messages == before


class TestJson:
    @all_rows(
        "message",
        [
            user("hello \ud800"),
            said("", call("1", "bash", "{broken"), echo='[{"type":"reasoning"}]'),
            result("1", ""),
        ],
    )
    def test_there_and_back(self, message: Message) -> None:
        assert message_of(json.loads(json.dumps(message_json(message)))) == message

    @all_rows("echo", ["{broken", f'{{"signature":"{MARK}"}}', "[" * 100_000])
    def test_invalid_echo_is_left_out(self, echo: str) -> None:
        assert message_of({"role": "assistant", "content": "x", "echo": echo}) == said("x")

    @all_rows(
        "value",
        [
            None,
            "x",
            {"role": "user"},
            {"role": "root", "content": "x"},
            {"role": "user", "content": ["x"]},
            {"role": "assistant", "content": "", "tool_calls": "x"},
            {"role": "assistant", "content": "", "tool_calls": ["x"]},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "x"}]},
            {"role": "tool", "content": "", "tool_call_id": 1},
        ],
    )
    def test_invalid_message_is_refused(self, value: JsonValue) -> None:
        with pytest.raises(ValueError, match=r"."):
            message_of(value)


class Live:
    """A conversation that is recorded as the agent records its own, with what each prefix of the records comes to."""

    def __init__(self) -> None:
        self.history = History("system")
        self.records: list[LogRecord] = []
        self.expected: list[list[Message]] = []
        """After each record: what a session that was stopped there goes on with."""
        self.number = 0
        self.put("session_started", model="m1", workspace="/w", mode="repl")

    def put(self, kind: str, stopped: list[Message] | None = None, **fields: JsonValue) -> None:
        self.records.append({"kind": kind, "seq": len(self.records), **fields})
        self.expected.append(self.history.messages[1:] + (stopped or []))

    def ask(self, text: str) -> None:
        self.history.ask(text)
        self.put("user_message", text=text)

    def reply(self, text: str, outcomes: Sequence[str], echo: str) -> None:
        """Record a reply whose calls came to `outcomes`: `refused`, or what they returned."""
        if self.history.messages[-1].role is Role.SYSTEM:
            self.ask("begin")
        self.put("model_request", messages=len(self.history.messages))
        more: dict[str, JsonValue] = {"echo": echo} if echo else {}
        calls = [call(f"call_{self.number + n + 1}") for n in range(len(outcomes))]
        if not calls:
            self.history.reply(text, echo=echo)
        self.put("model_response", [said(text)] if text.strip() and calls else [], text=text, calls=len(calls), **more)
        results: list[str] = []
        for place, one in enumerate(calls, start=1):
            open_reply = self._stopped(text, calls[:place], [], echo if place == len(calls) else "")
            self.put("call_proposed", open_reply, call=self.number + place, id=one.id, tool="bash", arguments="{}")
        for place, outcome in enumerate(outcomes, start=1):
            number = self.number + place
            self.put("decision", self._stopped(text, calls, results, echo), call=number)
            if outcome != "refused":
                self.put("intent", self._stopped(text, calls, [*results, UNKNOWN], echo), call=number)
            results.append(outcome)
            if place == len(calls):
                self.history.reply(text, calls, results, echo)
            stopped = self._stopped(text, calls, results, echo) if place < len(calls) else []
            self.put("outcome", stopped, call=number, content=outcome)
        self.number += len(calls)

    def _stopped(self, text: str, calls: Sequence[ToolCall], results: Sequence[str], echo: str) -> list[Message]:
        answers = [*results, *[NOT_RUN] * (len(calls) - len(results))]
        pairs = zip(calls, answers, strict=True)
        return [said(text, *calls, echo=echo), *(result(one.id, answer) for one, answer in pairs)]

    def change(self, start: int, stop: int, messages: Sequence[Message]) -> None:
        self.history.splice(start, stop, messages)
        written: list[JsonValue] = [message_json(message) for message in messages]
        self.put("history_changed", why="compacted", start=start, stop=stop, messages=written)


TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=12)
ECHO = st.sampled_from(["", '{"id":"r1"}', "[]"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), TEXT),
        st.tuples(st.just("reply"), TEXT, st.lists(st.one_of(TEXT, st.just("refused")), max_size=4), ECHO),
        st.tuples(st.just("undo")),
        st.tuples(st.just("clear")),
        st.tuples(st.just("compact"), TEXT),
        st.tuples(st.just("summary")),
    ),
    max_size=12,
)


def lived(steps: Sequence[tuple[str | list[str], ...]]) -> Live:
    live = Live()
    for step in steps:
        match step:
            case ("ask", str(text)):
                live.ask(text)
            case ("reply", str(text), list(outcomes), str(echo)) if _may_reply(live, text, outcomes):
                live.reply(text, outcomes, echo)
            case ("undo",):
                live.change(*live.history.last_turn, [])
            case ("clear",):
                live.change(0, len(live.history.messages) - 1, [])
            case ("compact", str(text)):
                live.change(0, live.history.last_turn[0], [user(f"summary {text}")])
            case ("summary",):
                live.put("model_request", purpose="summary")
                live.put("model_response", text="a summary", calls=0, purpose="summary", input_tokens=5)
            case _:
                pass
    return live


def _may_reply(live: Live, text: str, outcomes: list[str]) -> bool:
    """No agent asks a model again right after a reply without calls."""
    last = live.history.messages[-1]
    return last.role is not Role.ASSISTANT and bool(text or outcomes)


@settings(max_examples=examples(150), deadline=None)
@given(steps=STEPS)
def test_every_prefix_of_the_records_rebuilds_the_session(steps: list[tuple[str | list[str], ...]]) -> None:
    live = lived(steps)
    for count, expected in enumerate(live.expected, start=1):
        found = rebuilt(live.records[:count])
        assert list(found.messages) == expected, live.records[:count]
        assert strict_problem(found.messages) == ""
    assert list(rebuilt(live.records).messages) == live.history.messages[1:]


def test_the_same_after_a_way_through_a_log_on_disk(tmp_path: object) -> None:
    live = lived([("ask", "a"), ("reply", "\u2028 \x1b", ["one", "refused"], '{"e":1}'), ("ask", "b"), ("undo",)])
    path = os.path.join(str(tmp_path), "log.jsonl")
    common = {"v": 1, "time": "", "mono_ns": 0, "session": "s", "prev": ""}
    with open(path, "w", encoding="ascii") as file:
        file.writelines(json.dumps({**common, "seq": n, **record}) + "\n" for n, record in enumerate(live.records))
    assert list(rebuilt(read_log(path)).messages) == live.history.messages[1:]


class TestRebuilt:
    def records(self, *more: LogRecord) -> list[LogRecord]:
        first: LogRecord = {"kind": "session_started", "model": "m1", "workspace": "/w", "mode": "run"}
        return [first, {"kind": "user_message", "text": "go"}, *more]

    def response(self, calls: int, text: str = "", **fields: JsonValue) -> LogRecord:
        return {"kind": "model_response", "text": text, "calls": calls, **fields}

    def proposed(self, number: int, **fields: JsonValue) -> LogRecord:
        common: LogRecord = {"kind": "call_proposed", "call": number, "id": f"c{number}", "tool": "bash"}
        return {**common, "arguments": "{}", **fields}

    def test_empty_log_rebuilds_an_empty_history(self) -> None:
        assert rebuilt([]) == Rebuilt()

    def test_calls_with_an_unknown_end_are_named(self) -> None:
        found = rebuilt(
            self.records(self.response(2), self.proposed(1), self.proposed(2), {"kind": "intent", "call": 1})
        )
        assert found.unknown_calls == (call("c1"),)
        assert [message.content for message in found.messages[2:]] == [UNKNOWN, NOT_RUN]

    def test_truncated_arguments_are_json_with_a_notice(self) -> None:
        cut = self.proposed(1, arguments='{"content":"' + "x" * 988, arguments_characters=70_000, arguments_sha256="0")
        found = rebuilt(
            self.records(self.response(1, echo="{}"), cut, {"kind": "outcome", "call": 1, "content": "done"})
        )
        arguments = json.loads(found.messages[1].tool_calls[0].arguments)
        assert "70000 characters" in arguments["harness_note"]
        assert arguments["beginning"].startswith('{"content":"xxx')
        assert (found.cut_arguments, found.messages[1].echo) == (1, "")
        assert strict_problem(found.messages) == ""

    def test_echo_is_kept_for_complete_replies_only(self) -> None:
        part = rebuilt(self.records(self.response(2, echo="{}"), self.proposed(1)))
        whole = rebuilt(self.records(self.response(1, echo="{}"), self.proposed(1)))
        assert (part.messages[1].echo, whole.messages[1].echo) == ("", "{}")

    def test_ids_made_equal_by_masking_are_made_distinct(self) -> None:
        masked = (
            self.proposed(1, id=MARK),
            self.proposed(2, id=MARK),
            self.proposed(3, id=""),
        )
        found = rebuilt(self.records(self.response(3), *masked))
        assert [one.id for one in found.messages[1].tool_calls] == [MARK, "call_2", "call_3"]
        assert strict_problem(found.messages) == ""

    def test_empty_reply_stopped_before_its_first_call_is_dropped(self) -> None:
        found = rebuilt(self.records(self.response(2), {"kind": "user_message", "text": "again"}))
        assert found.messages == (user("go\n\nagain"),)

    @all_rows(
        "record",
        [
            pytest.param({"kind": "user_message"}, id="no text"),
            pytest.param({"kind": "model_response", "text": 1}, id="a text that is none"),
            pytest.param({"kind": "call_proposed", "call": 1, "id": "1", "tool": "x", "arguments": ""}, id="no reply"),
            pytest.param({"kind": "intent", "call": 1}, id="an intent out of nothing"),
            pytest.param({"kind": "outcome", "call": 1, "content": "x"}, id="an outcome out of nothing"),
            pytest.param({"kind": "history_changed", "start": 0, "stop": 9}, id="a range that is none"),
            pytest.param({"kind": "history_changed", "start": "0", "stop": 0}, id="a start that is no number"),
            pytest.param({"kind": "history_changed", "start": 0, "stop": 0, "messages": 1}, id="no messages"),
            pytest.param(
                {"kind": "history_changed", "start": 1, "stop": 1, "messages": [{"role": "tool", "content": ""}]},
                id="a result out of nothing",
            ),
        ],
    )
    def test_records_that_no_agent_writes_are_refused(self, record: LogRecord) -> None:
        with pytest.raises(ValueError, match=r"."):
            rebuilt(self.records(record))

    def test_a_call_of_an_earlier_reply_is_refused(self) -> None:
        with pytest.raises(ValueError, match="call 1"):
            rebuilt(
                self.records(self.response(1), self.proposed(1), self.response(0, "x"), {"kind": "intent", "call": 1})
            )
