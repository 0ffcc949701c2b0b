"""The calls of a log judged again by the very policies that the log holds: whether the same comes out; runs nothing.

What comes out depends on the disk as it is now (where a path leads, which files there are). Hence another outcome is told,
and breaks nothing: whether the log is whole does not depend on the day on which it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.cli.rejudging import JudgedAgain, LoggedSetting, Rejudging, is_path
from harness.cli.state import State
from harness.errors import PolicyError
from harness.log_order import LogRecord
from harness.policy import Policy
from harness.policy_file import TOOL_NAMES, combine, parse_policy, tightening_only
from harness.record import Record
from harness.redaction.marks import is_redacted
from harness.rules import Layer
from harness.visible import visible_line

MAX_TOLD = 20
"""Of many calls with another outcome, so many are named, and the others counted."""


class Redecided(Record):
    """What judging the calls of one log again came to."""

    same: int
    otherwise: int
    unjudged: int
    """Calls that could not be judged again: arguments or policies that the log does not hold."""
    lines: tuple[str, ...]
    """The first of the calls with another outcome, and why others could not be judged."""

    def told(self, path: str, *, as_json: bool) -> str:
        """Return this as text, or as one object on a line."""
        if as_json:
            counts: dict[str, JsonValue] = {"same": self.same, "otherwise": self.otherwise, "unjudged": self.unjudged}
            return json.dumps({"file": path, "redecided": counts, "findings": list(self.lines)}, sort_keys=True) + "\n"
        summary = (
            f"Judged again, by the policies in the log: {self.same} calls come out the same, {self.otherwise} otherwise"
        )
        told = "".join(f"{visible_line(line, 500)}\n" for line in self.lines)
        return f"{told}{summary}, {self.unjudged} cannot be judged.\n"


def redecided(path: str, state: State, environment: Mapping[str, str]) -> Redecided:
    """Judge every decided call of a log again. Raises LogError if it cannot be read, UsageError if the heads file cannot."""
    policies: dict[tuple[str, str], Policy | str] = {}

    def policy_of(_log: str, session: LoggedSetting) -> Policy | str:
        key = (session.name, str(session.started.get("policy_sha256")))  # which may change within a session
        if key not in policies:
            policies[key] = recorded_policy(session.started, state)
        return policies[key]

    same = otherwise = unjudged = 0
    lines: list[str] = []
    problems: dict[str, None] = {}
    rejudging = Rejudging(policy_of, environment)
    for judged in rejudging.calls(path):
        if judged.verdict is None:
            unjudged += 1
            if len(problems) < MAX_TOLD:
                problems[f"NOT JUDGED: {judged.problem}"] = None
        elif judged.verdict.decision.word == judged.decision.get("decision"):
            same += 1
        else:
            otherwise += 1
            if otherwise <= MAX_TOLD:
                lines.append(_line(judged, judged.verdict.decision.word))
    left = [f"OTHERWISE: and {otherwise - MAX_TOLD} more like it"] if otherwise > MAX_TOLD else []
    return Redecided(
        same=same, otherwise=otherwise, unjudged=unjudged, lines=(*lines, *left, *problems, *rejudging.notes)
    )


def _line(judged: JudgedAgain, word: str) -> str:
    was, summary = judged.decision.get("decision"), visible_line(str(judged.decision.get("summary")), 100)
    return f"OTHERWISE: call {judged.call} of session {judged.session} was {was}, and would be {word}: {summary}"


def recorded_policy(started: LogRecord, state: State) -> Policy | str:
    """Return the policy of a session, made of the texts in its first record; or why it cannot be made."""
    files, tools = started.get("policy_files"), started.get("tools")
    extra = (
        [tool for tool in tools if isinstance(tool, str) and tool not in TOOL_NAMES] if isinstance(tools, list) else []
    )
    layers = []
    for file in files if isinstance(files, list) else ():
        layer = _layer(file, extra) if isinstance(file, dict) else "a policy file is no object"
        if isinstance(layer, str):
            return layer
        layers.append(layer)
    try:
        policy = combine(layers)
    except PolicyError as error:
        return f"the log holds no policy that could be used: {error}"
    # Its own files, and those of the harness, were out of reach; the harness's are taken to be where they are now.
    own = (os.path.realpath(source.path) for source in policy.sources if is_path(source.path))
    return policy.guarding(*own, *state.guarded)


def _layer(file: Mapping[str, JsonValue], extra_tools: list[str]) -> Policy | str:
    """Return one layer of a policy, or why it cannot be made."""
    path, text, word = str(file.get("path")), file.get("text"), file.get("layer")
    if not isinstance(text, str):
        return f"the log does not hold the text of the policy {path}"
    data = text.encode("utf-8", "surrogatepass")
    if hashlib.sha256(data).hexdigest() != file.get("sha256"):
        masked = "a secret in it was masked" if is_redacted(text) else "it has another digest"
        return f"the text of the policy {path} is not what it was: {masked}"
    layers = {layer.value: layer for layer in Layer}
    if not isinstance(word, str) or word not in layers:
        return f"the policy {path} is of no known layer"
    try:
        policy = parse_policy(data, path, layer=layers[word], extra_tools=extra_tools)
    except PolicyError as error:
        return f"the policy of the log does not load here: {error}"
    return policy if file.get("trusted") is True else tightening_only(policy)
