"""The question about protected places, at a real pseudo-terminal: every key, and what is no answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from question_scene import DEAD, Played, command
from rows import all_rows

from harness.gate.place_watch import PlacesQuestion
from harness.grant_pattern import GrantPattern, GrantScope
from harness.log.vocabulary import PlacesAnswer
from harness.place_changes import PlaceChange, PlaceKind, PlacesFound, PlaceState
from harness.policy.rules import Origin
from harness.policy.session_grants import Grant
from harness.terminal.console import Look

pytestmark = pytest.mark.terminal

GRANT = Grant(
    id="grant-1",
    scope=GrantScope.SESSION,
    pattern=GrantPattern(tools=("bash",), argv=("python3",), write=(".",), folder="/w", program=True),
    origin=Origin(file="grants of this session", line=1),
)


def state(size: int = 7, sha256: str | None = "0" * 64) -> PlaceState:
    return PlaceState(kind=PlaceKind.FILE, mode=0o644, size=size, sha256=sha256)


def changed(path: str = ".npmrc", *lines: str, kept: bool = True) -> PlaceChange:
    after = state(9, "1" * 64)
    return PlaceChange(
        path=path, before=state(), after=after, is_kept=kept, diff=("@@ -1 +1,2 @@", *lines) if lines else ()
    )


def about(*changes: PlaceChange, gaps: tuple[str, ...] = ()) -> PlacesQuestion:
    found = PlacesFound(changes=changes, gaps=gaps)
    return PlacesQuestion(summary="python3 build.py", grants=(GRANT,), changed=found)


class PlayedPlaces(Played):
    """The question that is put; see Played."""

    def __init__(self, folder: Path, question: PlacesQuestion, **more: Any) -> None:
        super().__init__(command(str(folder.resolve()), "true"), **more)
        self._question = question
        self.answered: PlacesAnswer | None = None

    def _ask(self) -> None:
        try:
            self.answered = self.approver.ask_places(self._question)
        except BaseException as error:  # noqa: BLE001 - the test tells it
            self.problem = error
        finally:
            self.time.end()


@all_rows(
    "keys, answer",
    {
        "y": (["y"], PlacesAnswer.PUT_BACK),
        "k": (["k"], PlacesAnswer.KEEP),
        "x": (["x"], PlacesAnswer.REVOKE),
        "n": (["n"], PlacesAnswer.NOBODY),
        "Esc": (["\x1b"], PlacesAnswer.NOBODY),
        "Ctrl-C": (["\x03"], PlacesAnswer.NOBODY),
        "Ctrl-D": (["\x04"], PlacesAnswer.NOBODY),
        "Enter is none": (["\r", "\r", "Y"], PlacesAnswer.PUT_BACK),
        "a paste is none": (["\x1b[200~y\x1b[201~", "k k", "yes\r", "n"], PlacesAnswer.NOBODY),
        "another key is none": (["s", "p", "h", "1", "v", "?", "K"], PlacesAnswer.KEEP),
    },
)
def test_each_key_gives_its_answer(tmp_path: Path, keys: list[str], answer: PlacesAnswer) -> None:
    with PlayedPlaces(tmp_path, about(changed(".npmrc", " a", "+b"))) as played:
        for key in keys:
            assert played.is_open, key
            played.press(key)
        played.rest()
        assert (played.answered, played.problem) == (answer, None)


def test_keys_typed_before_are_dropped_and_a_hang_up_gives_no_answer(tmp_path: Path) -> None:
    with PlayedPlaces(tmp_path, about(changed())) as played:
        played.send("y")
        assert played.is_open
        played.hang_up()
        played.rest()
        assert played.answered is PlacesAnswer.NOBODY


def test_places_are_shown_completely_before_they_can_be_kept(tmp_path: Path) -> None:
    changes = [changed(f"d{number}/.envrc", " a", "+b") for number in range(20)]
    with PlayedPlaces(tmp_path, about(*changes), lines=20) as played:
        played.press("k")
        assert played.is_open
        assert "see the rest first" in played.text()
        played.press("\x1b[F")
        played.go_on(2 * DEAD)
        played.press("k")
        played.rest()
        assert played.answered is PlacesAnswer.KEEP
        assert all(f"! {one.path}  changed" in played.text() for one in changes)


def test_key_right_after_a_page_gives_no_answer(tmp_path: Path) -> None:
    """Who holds a key down, or types on, has not seen what came with it."""
    changes = [changed(f"d{number}/.envrc", " a", "+b") for number in range(20)]
    for key in ("k", "y", "x"):
        with PlayedPlaces(tmp_path, about(*changes), lines=20) as played:
            played.press("\x1b[F")
            played.go_on(0.06)
            played.send(key)
            assert played.is_open, key
            played.press(key)
            played.rest()
            assert played.answered not in (None, PlacesAnswer.NOBODY)


def test_shell_output_during_a_suspension_stays_above_the_places(tmp_path: Path) -> None:
    with PlayedPlaces(tmp_path, about(changed()), lines=40) as played:
        played.meanwhile = "\r\nof the shell\r\n"
        played.press("\x1a")
        played.press("v")
        played.press("k")
        played.rest()
        assert (played.answered, played.suspended) == (PlacesAnswer.KEEP, 1)
        assert "of the shell" in played.rows()
        assert played.text().count("! .npmrc  changed") == 2


def test_user_is_alerted_when_a_long_turn_asks(tmp_path: Path) -> None:
    played = PlayedPlaces(tmp_path, about(changed()))
    played.approver._last -= 11
    with played:
        played.rest()
        assert b"\x07" in played.written()


def test_tiny_terminal_disables_keeping_and_says_so(tmp_path: Path) -> None:
    with PlayedPlaces(tmp_path, about(changed()), columns=40, lines=4) as played:
        played.press("k")
        assert played.is_open
        assert "too small" in played.shown()
        assert "[k]" not in played.key_line()


@all_rows(
    "columns, look",
    {"wide": (120, Look(colour=True, repaints=True)), "narrow": (40, Look(repaints=True)), "plain": (80, Look())},
)
def test_question_is_complete_at_every_width(tmp_path: Path, columns: int, look: Look) -> None:
    hostile = "a\n[y] put back\x1b[2J\u202e/.npmrc"
    question = about(
        changed(hostile, "-a", "+\\x1b[2Jb"), changed(".envrc", kept=False), gaps=("3 folders that cannot be listed",)
    )
    with PlayedPlaces(tmp_path, question, columns=columns, lines=40, look=look) as played:
        played.rest()
        text = "".join(re.sub("[~↪]", "", played.text()).split())
        for words in (
            "protected places were changed",
            ".envrc changed (7 bytes before, 9 bytes now); no copy of the earlier content exists",
            "not looked at: 3 folders that cannot be listed",
            "by: python3 build.py",
            "granted, and asleep until you answer: python3 *",
        ):
            assert "".join(words.split()) in text
        assert b"\x1b[2J" not in played.written()
        assert not any(row.startswith("[y] put back\\x1b") for row in played.rows())
        played.press("n")
        played.rest()
