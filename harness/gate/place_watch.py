"""Changes that a command makes to protected places, found by comparing the places before and after its run.

The walls cannot protect a file that does not exist yet, and Landlock alone none in a writable folder, so the user reviews
the changes. Until the user has answered, the grant under which the program ran is suspended. Without a user, the places
are restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from harness.gate.grants_in_force import GrantsInForce
from harness.gate.records import CallRecords
from harness.gate.registry import ToolRegistry
from harness.gate.ruling import Permit
from harness.gate.tool import NotedBefore, PlacesOfTool, WatchedTool
from harness.log.vocabulary import PlacesAnswer
from harness.messages import ToolResult
from harness.place_changes import PlaceChange, PlaceReturn, PlacesFound
from harness.policy.opened_places import maintains
from harness.policy.session_grants import Grant
from harness.record import Record, replace
from harness.text.visible import visible_line

MOST_TOLD = 10
"""Maximum number of places named to the model."""


class PlacesQuestion(Record):
    """A question about changed protected places."""

    summary: str
    """Short description of the run. Empty for a run of an earlier session."""
    grants: tuple[Grant, ...]
    """The grants under which the command ran. They are suspended now. Empty if it ran by a rule or an approval."""
    changed: PlacesFound


AskPlaces: TypeAlias = Callable[[PlacesQuestion], PlacesAnswer]


def nobody_to_ask(question: PlacesQuestion) -> PlacesAnswer:  # noqa: ARG001 - what asks
    """Answer for an absent user: the grants are suspended, and the places are restored."""
    return PlacesAnswer.NOBODY


class PlaceWatch:
    """Compares the protected places before and after calls that may write."""

    def __init__(
        self,
        grants: GrantsInForce,
        records: CallRecords,
        tools: Callable[[], ToolRegistry],
        ask: AskPlaces,
        monotonic: Callable[[], float],
    ) -> None:
        """Make a watch.

        `tools` returns the tools on offer, `ask` asks the user, and `monotonic` is a clock in seconds.
        """
        self._grants = grants
        self._records = records
        self._tools = tools
        self._ask = ask
        self._monotonic = monotonic

    def note(self, permit: Permit) -> NotedBefore | None:
        """Return the state of the places before a call that may write; `None` for any other call."""
        tool, effects = self._tools()[permit.action.tool], permit.verdict.effects
        if effects.looks_only or effects.opens_places or not isinstance(tool, WatchedTool):
            return None
        walls = self._grants.walls_here(permit.action.tool)
        unheld = set(walls.exposed).intersection(walls.forbidden or ())
        also = (*effects.keep, *effects.hold, *(f"{walls.root}/{name}" for name in sorted(unheld)))
        return tool.places.note(also, walls.forbidden)

    def settle(
        self, permit: Permit, noted: NotedBefore | None, result: ToolResult
    ) -> tuple[ToolResult, Sequence[PlaceChange]]:
        """Compare the places with `noted`.

        After changes, suspend the grants, record that, ask, and carry out the answer.

        Return the result with a note for the model, and the entry points that a granted program changed, which are not
        asked about here.
        Raises LogError.
        """
        tool, effects = self._tools()[permit.action.tool], permit.verdict.effects
        paths: set[str] = set()
        while noted is not None and isinstance(tool, WatchedTool):
            walls = self._grants.walls_here(permit.action.tool)
            changed = noted.compared(walls.forbidden)
            entry_points = changed.entry_points if permit.verdict.programs else ()
            fresh = tuple(
                change
                for change in changed.changes
                if change.path not in paths
                and not maintains(f"{walls.root}/{change.path}", effects.changes, effects.named_paths)
            )
            if not fresh:
                return result, entry_points
            answer, note = self._suspend_and_ask(tool.places, permit, replace(changed, changes=fresh))
            result = replace(result, content=f"{result.content}\n[{note}]")
            if answer is PlacesAnswer.KEEP or (answer is PlacesAnswer.NOBODY and self._ask is not nobody_to_ask):
                return result, entry_points
            paths.update(each.path for each in fresh)  # restoring these may reveal changes that they hid
        return result, ()

    def _suspend_and_ask(self, places: PlacesOfTool, permit: Permit, changed: PlacesFound) -> tuple[PlacesAnswer, str]:
        """Suspend the grants, ask, and carry out the answer. Return the answer and the note for the model."""
        grants, problem = self._grants.put_to_sleep(permit.verdict.programs, changed.changes)
        call = permit.proposal.number
        self._records.places_changed(call, grants, changed, problem)
        question = PlacesQuestion(summary=self._records.brief(permit.action), grants=grants, changed=changed)
        answer, returns = self._ask_and_do(places, question, call)
        return answer, _note_for_model(changed, answer, returns, is_suspended=bool(grants))

    def ask_again(self, grant: Grant) -> PlacesAnswer:
        """Ask about a suspended grant, and carry out the answer. Raises LogError."""
        offered = self._tools()
        tool: object = next((offered[name] for name in grant.pattern.tools if name in offered.names), None)
        if not isinstance(tool, WatchedTool):
            return PlacesAnswer.NOBODY
        changed = PlacesFound(changes=tool.places.with_differences(grant.changed), gaps=())
        return self._ask_and_do(tool.places, PlacesQuestion(summary="", grants=(grant,), changed=changed), None)[0]

    def _ask_and_do(
        self, places: PlacesOfTool, question: PlacesQuestion, call: int | None
    ) -> tuple[PlacesAnswer, tuple[PlaceReturn, ...]]:
        started = self._monotonic()
        try:
            answer = self._ask(question)
        except KeyboardInterrupt:
            answer = PlacesAnswer.NOBODY
        seconds = self._monotonic() - started
        puts_back = answer in (PlacesAnswer.PUT_BACK, PlacesAnswer.REVOKE) or self._ask is nobody_to_ask
        returns = places.put_back(question.changed.changes) if puts_back else ()
        self._records.places_answered(call, question.grants, answer.value, seconds, returns)
        for grant in question.grants:
            match answer:
                case PlacesAnswer.PUT_BACK | PlacesAnswer.KEEP:
                    self._grants.wake(grant.id)
                case PlacesAnswer.REVOKE:
                    self._grants.revoke(grant)
                case PlacesAnswer.NOBODY:
                    pass
        return answer, returns


def words_of(noted: NotedBefore | None) -> str:
    """Return the note about watched places that follows the confinement in the intent. Empty if none are watched."""
    return "" if noted is None else f"; {noted.words}"


def _note_for_model(
    places: PlacesFound, answer: PlacesAnswer, returns: Sequence[PlaceReturn], *, is_suspended: bool
) -> str:
    """Return the note for the model about changed places and the user's answer. `is_suspended`: a grant is suspended."""
    names = ", ".join(f"{visible_line(change.path, 200)} {change.description}" for change in places.changes[:MOST_TOLD])
    more = len(places.changes) - MOST_TOLD
    sentence = (
        f"protected places changed: {names}{f' and {more} more' if more > 0 else ''}; other programs run or obey them"
    )
    if answer is PlacesAnswer.KEEP:
        return f"{sentence}. The person keeps the changes."
    if answer is PlacesAnswer.NOBODY and not returns:
        later = ": such commands need approval again from now on" if is_suspended else ""
        return f"{sentence}. Nobody has answered{later}."
    stays = ", ".join(visible_line(change.change.path, 200) for change in returns[:MOST_TOLD] if change.problem)
    but = f", but for {stays}" if stays else ""
    done = "They were put back" if answer is PlacesAnswer.NOBODY else "The person put them back"
    return f"{sentence}. {done}{but}; do not change them again."
