"""Watched run: the protected places of a workspace around one command that an agent's shell runs with a ticket."""

from __future__ import annotations

from collections.abc import Sequence

from harness.files.before_images import BeforeImages
from harness.files.protected_places import ProtectedPlaces
from harness.place_changes import PlaceReturn, PlacesFound
from harness.plugins.agents.tickets import Ticket
from harness.policy.opened_places import held_places, maintains
from harness.record import Record, replace
from harness.text.visible import visible_line

MAX_NAMED = 10
"""Maximum number of places named to the agent."""


class RestoredPlaces(Record):
    """Protected places that a command changed, and the results of restoring them."""

    places: PlacesFound
    returns: tuple[PlaceReturn, ...]

    @property
    def words(self) -> str:
        """A sentence for the agent."""
        names = ", ".join(visible_line(change.path, 200) for change in self.places.changes[:MAX_NAMED])
        return f"protected places were changed and put back: {names}; do not change them again"


class WatchedRun:
    """The protected places of a ticket's workspace, as they are before its command."""

    def __init__(self, ticket: Ticket, images: str) -> None:
        """Record the state of the places. The folder `images` stores copies of those that the command changes."""
        self._ticket = ticket
        self._places = ProtectedPlaces(ticket.watched, BeforeImages(images))
        self._noted = self._places.note(ticket.kept_paths)

    @property
    def holdable_paths(self) -> Sequence[str]:
        """The absolute paths of the places that the command must leave as they are."""
        ticket = self._ticket
        return held_places(self._places.holdable_paths, ticket.watched, ticket.changes, writes_git=ticket.writes_git)

    def restore(self) -> RestoredPlaces | None:
        """Restore the places that the command changed without a permission. Return `None` if there are none."""
        places = self._noted.compared()
        ticket = self._ticket
        changes = tuple(
            change
            for change in places.changes
            if not maintains(f"{ticket.watched}/{change.path}", ticket.changes, ticket.named_paths)
        )
        if not changes:
            return None
        return RestoredPlaces(places=replace(places, changes=changes), returns=self._places.put_back(changes))
