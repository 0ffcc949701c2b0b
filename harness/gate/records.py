"""The records that the gate writes into the log, one method for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from harness.actions import Action, Facet, JsonValue, describe_facet
from harness.digest import digest_of
from harness.gate.approval import Approval
from harness.gate.judged_json import effect_fields, facet_fields
from harness.grant_pattern import pattern_fields
from harness.log.action_log import ActionLog
from harness.log.attachments import attachment_fields
from harness.log.changed_files import changes_field
from harness.log.schema import extra_fields
from harness.log.vocabulary import Answer
from harness.messages import ToolCall, ToolResult
from harness.record import Record, field_names
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.gate.call_checks import CheckAnswer
    from harness.place_changes import PlaceReturn, PlacesFound
    from harness.policy.policy import Policy
    from harness.policy.session_grants import Grant
    from harness.policy.verdict import Verdict


class GateState(Record):
    """State of a gate, besides its log and its grants, with which another process continues the session."""

    proposed: int = 0
    """Number of proposed calls."""
    unseen: tuple[tuple[str, str], ...] = ()
    """Changes of entry points that the user has not seen: a summary and the diff of each."""


class Advice(Record):
    """Rules that would let a refused call run; for the author of the policy, never for the model."""

    toml: str = ""
    """Rules to add, in the form of a policy file. Empty if no further rule lets the call run."""
    reason: str = ""
    """Reason why there are no rules to add."""


MAX_LOGGED_ARGUMENTS = 64_000
"""Maximum number of characters of raw arguments in a record. Longer arguments are cut; digest and length are kept."""
MAX_CUT_ARGUMENTS = 1000
"""Number of characters that a record keeps of longer arguments."""
MOST_LOGGED_PLACES = 100
"""Maximum number of protected places that a record names. `place_count` is the number of all."""


class Proposal(Record):
    """A proposed tool call, with its number in the log."""

    number: int
    call: ToolCall
    turn: int = 0
    step: int = 0
    """Number of the call in its turn, from 1."""
    arguments_sha256: str = ""
    """Digest of the complete arguments as received.

    The records of decision and intent repeat it to identify the call.
    """


class CallRecords:
    """Writes the records about calls. Methods that write raise LogError if the log cannot be written."""

    def __init__(self, log: ActionLog) -> None:
        """Write to `log`."""
        self._log = log

    def redact(self, text: str) -> str:
        """Return `text` with secrets masked.

        INVARIANT: texts are masked before they are cut, since half a secret matches no pattern.
        """
        return self._log.redactor.redact(text)

    def brief(self, action: Action) -> str:
        """Return the summary of an action in one short line."""
        return visible_line(self.redact(action.summary))

    def describe(self, facet: Facet) -> str:
        """Return a short description of a facet, with secrets masked."""
        return describe_facet(facet, self.redact)

    def proposed(
        self,
        proposal: Proposal,
        *,
        edited_from: Proposal | None,
        by_person: bool,
        agent: Mapping[str, JsonValue] | None = None,
    ) -> None:
        """Record a proposed call. `agent` has the facts from another agent that proposed it, if one did."""
        whose: dict[str, JsonValue] = {} if edited_from is None else {"edited_from": edited_from.number}
        if agent is not None:
            whose["agent"] = dict(agent)
        if by_person:
            whose["by"] = "person"
        arguments = proposal.call.arguments
        logged: dict[str, JsonValue] = {"arguments": arguments}
        if len(arguments) > MAX_LOGGED_ARGUMENTS:
            logged = {"arguments": self.redact(arguments)[:MAX_CUT_ARGUMENTS], "arguments_characters": len(arguments)}
        self._log.append(
            "call_proposed",
            {
                "call": proposal.number,
                "turn": proposal.turn,
                "step": proposal.step,
                "id": proposal.call.id,
                "tool": proposal.call.name,
                "arguments_sha256": proposal.arguments_sha256,
                **logged,
                **whose,
            },
        )

    def decided(self, proposal: Proposal, action: Action, verdict: Verdict, policy_sha256: str) -> None:
        """Record the verdict on a call."""
        deciding = verdict.deciding
        read_only = {"default_of": action.default_of} if action.default_of else {}
        self._log.append(
            "decision",
            {
                "call": proposal.number,
                "tool": action.tool,
                "arguments_sha256": proposal.arguments_sha256,
                "summary": self.brief(action),
                "decision": verdict.decision.word,
                "source": deciding.source.value,
                "by": deciding.by,
                "rule": deciding.rule,
                "file": None if deciding.origin is None else deciding.origin.file,
                "line": None if deciding.origin is None else deciding.origin.line,
                "layer": deciding.layer.value,
                "reason": deciding.reason,
                "facets": facet_fields(verdict, self.describe),
                "facet_count": len(verdict.facets),
                "effects": effect_fields(verdict.effects),
                "policy_sha256": policy_sha256,
                **read_only,
            },
        )

    def checked(self, answer: CheckAnswer, proposal: Proposal | None = None) -> None:
        """Record the answer of a hook. `proposal` is the call that it is about, if any."""
        fields: dict[str, JsonValue] = {} if proposal is None else {"call": proposal.number}
        fields |= {
            "event": answer.event.value,
            "hook": answer.hook,
            "program_sha256": answer.program_sha256,
            "answer": answer.word,
            "reason": answer.reason,
            "duration_ms": answer.duration_ms,
        }
        if answer.origin is not None:
            fields |= {"file": answer.origin.file, "line": answer.origin.line}
        if answer.has_failed:
            fields["failed"] = True
        for name, text in (("note", answer.note), ("ignored", answer.ignored)):
            if text:
                fields[name] = text
        self._log.append("hook_answered", fields)

    def undecided(self, proposal: Proposal, reason: str) -> None:
        """Record that a call was not judged."""
        self._log.append(
            "decision",
            {
                "call": proposal.number,
                "tool": proposal.call.name,
                "arguments_sha256": proposal.arguments_sha256,
                "decision": "none",
                "by": "",
                "reason": reason,
            },
        )

    def record_question(self, proposal: Proposal, action: Action, verdict: Verdict, by: str = "") -> None:
        """Record that an approval prompt is about to be shown, with a digest of its text. Syncs the log to disk.

        `by` is `client` if another program shows it.
        """
        shown_sha256 = sha256_of("\n".join((action.preview, *verdict.notes)))
        asker: dict[str, JsonValue] = {"by": by} if by else {}
        self._log.append("approval_asked", {"call": proposal.number, "shown_sha256": shown_sha256, **asker}, sync=True)

    def record_approval(self, proposal: Proposal, approval: Approval, seconds: float, following: int) -> None:
        """Record an answer. `following` is the number of the replacement call, if the answer is an edit."""
        more_fields: dict[str, JsonValue] = {"edited_to": following} if approval.answer is Answer.EDIT else {}
        if approval.who:
            more_fields["who"] = approval.who
        if approval.scope is not None:
            more_fields["scope"] = approval.scope.value
        if approval.days is not None:
            more_fields["days"] = approval.days
        if approval.opens:
            more_fields["opens"] = [opening.value for opening in approval.opens]
        self._log.append(
            "approval_answered",
            {
                "call": proposal.number,
                "answer": approval.answer.value,
                "by": approval.by,
                "words": approval.words,
                "seconds": round(seconds, 3),
                **more_fields,
            },
        )

    def grant(self, grant: Grant, change: str, call: int | None = None, not_kept: str = "", of: str = "") -> None:
        """Record a change of a grant: `added`, `kept`, `revoked`, `narrowed` or `mode`.

        `of` is the ID of the grant that a narrowed one replaces. `not_kept` is the reason why the workspace's store
        could not save the grant or its end.
        """
        fields: dict[str, JsonValue] = {
            "grant": grant.id,
            "change": change,
            "scope": grant.scope.value,
            "text": grant.pattern.text,
            **pattern_fields(grant.pattern),
            "file": grant.origin.file,
            "line": grant.origin.line,
        }
        if call is not None:
            fields["call"] = call
        if not_kept:
            fields["not_kept"] = not_kept
        if of:
            fields["of"] = of
        if grant.until:
            fields["until"] = grant.until
        if grant.changed:
            fields["asleep"] = True
        self._log.append("grant", fields)

    def intent_of(
        self, proposal: Proposal, action: Action, verdict: Verdict, policy_sha256: str, confinement: str
    ) -> dict[str, JsonValue]:
        """Return the fields of an intent record: the call, its effects, and the confinement that enforces them."""
        fields: dict[str, JsonValue] = {
            "call": proposal.number,
            "tool": action.tool,
            "arguments_sha256": proposal.arguments_sha256,
            "policy_sha256": policy_sha256,
            "preview_sha256": sha256_of(action.preview),
            "effects": effect_fields(verdict.effects),
            "confinement": confinement,
        }
        if action.cwd:
            fields["cwd"] = action.cwd
        if action.seconds is not None:
            fields["timeout_seconds"] = action.seconds
        if action.change is not None:
            change = action.change
            fields["change"] = {name: getattr(change, name) for name in field_names(type(change))}
        return fields

    def intended(self, intent: Mapping[str, JsonValue]) -> None:
        """Record an intent, and sync the log to disk."""
        self._log.append("intent", intent, sync=True)

    def places_changed(self, call: int, grants: Sequence[Grant], changed: PlacesFound, not_kept: str) -> None:
        """Record changes of protected places and the suspended grants, and sync the log to disk."""
        from harness.place_changes import change_fields

        fields: dict[str, JsonValue] = {
            "call": call,
            "grants": [grant.id for grant in grants],
            "places": [change_fields(change) for change in changed.changes[:MOST_LOGGED_PLACES]],
            "place_count": len(changed.changes),
            "not_looked_at": list(changed.gaps),
        }
        if not_kept:
            fields["not_kept"] = not_kept
        self._log.append("places_changed", fields, sync=True)

    def places_answered(
        self, call: int | None, grants: Sequence[Grant], answer: str, seconds: float, returns: Sequence[PlaceReturn]
    ) -> None:
        """Record the answer about changed places, and the restored places.

        `call` is `None` if the changes were made in an earlier session.
        """
        back: list[JsonValue] = [place_return.change.path for place_return in returns if not place_return.problem]
        unchanged: list[JsonValue] = [
            {"path": place_return.change.path, "why": place_return.problem}
            for place_return in returns
            if place_return.problem
        ]
        self._log.append(
            "places_answered",
            {
                **({} if call is None else {"call": call}),
                "grants": [grant.id for grant in grants],
                "answer": answer,
                "by": "nobody" if answer == "nobody" else "person",
                "seconds": round(seconds, 3),
                "put_back": back[:MOST_LOGGED_PLACES],
                "not_put_back": unchanged[:MOST_LOGGED_PLACES],
            },
        )

    def advised(self, proposal: Proposal, advice: Advice) -> None:
        """Record the rules that would let a refused call run. Records no rules if the call contains a secret."""
        arguments = proposal.call.arguments
        if self.redact(arguments) != arguments or self.redact(advice.toml) != advice.toml:
            advice = Advice(reason="the call holds a secret, and no rule that holds it is written down")
        fields = {"toml": advice.toml} if advice.toml else {"why": advice.reason}
        self._log.append("advice", {"call": proposal.number, **fields})

    def record_end(
        self,
        proposal: Proposal,
        result: ToolResult,
        *,
        ran: bool,
        seen_by: str = "",
        changes: Mapping[str, JsonValue] | None = None,
    ) -> None:
        """Record the outcome of a call. If it ran, sync the log to disk.

        `changes` are those of a command to files; `None` if they were not looked for. `seen_by`: source of the outcome
        if the gate did not run the call: the name of an agent, or `harness exec`.
        """
        fields: dict[str, JsonValue] = {
            "call": proposal.number,
            "tool": proposal.call.name,
            "status": result.status.value,
            "content": result.content,
        }
        if seen_by:
            fields["seen_by"] = seen_by
        if result.error_code:
            fields["error_code"] = result.error_code
        if ran:
            fields |= {
                "duration_ms": result.duration_ms,
                "output_bytes": result.output_bytes,
                "truncated": result.truncated,
                "exit_code": result.exit_code,
                **({"terminal": True} if result.terminal else {}),
            }
        if result.changed_path is not None:
            fields |= {
                "changed_path": result.changed_path,
                "before_sha256": result.before_sha256,
                "after_sha256": result.after_sha256,
            }
        if changes is not None:
            fields["changes"] = changes_field(changes, self._log.path, self._log.redactor)
        fields |= extra_fields(result.extra)
        fields |= attachment_fields(result.attachments)
        self._log.append("outcome", fields, sync=ran)


def sha256_of(text: str) -> str:
    """Return the SHA-256 digest of a text in the log's form."""
    return digest_of(text.encode("utf-8", "surrogatepass"))


def policy_fields(policy: Policy) -> dict[str, JsonValue]:
    """Return the fields of a record about a new policy in force."""
    files: list[JsonValue] = [
        {
            "layer": source.layer.value,
            "path": source.path,
            "sha256": source.sha256,
            "trusted": source.trusted,
            "text": source.content.decode("utf-8", "replace"),  # complete, so that audits need not find the file
            **({"extends": [*source.extends]} if source.extends else {}),
            **({"root": source.root} if source.root else {}),
        }
        for source in policy.sources
    ]
    return {"policy": policy.name, "policy_sha256": policy.sha256, "policy_files": files}
