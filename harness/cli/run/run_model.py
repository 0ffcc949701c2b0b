"""Who answers in a run: the model that the settings name, that one recorded, or a recording in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.cli.trace import Tone
from harness.errors import UsageError
from harness.paths import is_within
from harness.record import field_names

if TYPE_CHECKING:
    from harness.cli.console import Console
    from harness.cli.parts import SessionParts
    from harness.model import Model
    from harness.models.divergence import Divergence
    from harness.models.recording import RecordingModel
    from harness.models.replaying import ReplayingModel


class RunModel:
    """What `--record` and `--replay` make of a run's model."""

    def __init__(self, *, record: str | None, replay: str | None) -> None:
        """Take the paths of cassettes, that of a new one with links followed. Raises UsageError where both are given."""
        if record is not None and replay is not None:
            raise UsageError("--record and --replay cannot be given together: the cassette holds all of it already")
        self.on_divergence: Callable[[Mapping[str, JsonValue]], None] = _ignore
        """Told once, where a replayed conversation is first another than the recorded one."""
        self._record = record
        self._replay = replay
        self._recording: RecordingModel | None = None
        self._replaying: ReplayingModel | None = None

    def of(self, parts: SessionParts) -> Model:
        """Return the model of these parts. Raises UsageError for a cassette that cannot be read, or made."""
        if self._replay is not None:
            from harness.models.replaying import ReplayingModel

            self._replaying = ReplayingModel(
                self._replay, self._diverged, workspace=parts.workspace.root, redactor=parts.redactor
            )
            parts.redactor.note(self._replaying.marks)
            return self._replaying
        model = parts.named_model()
        if self._record is not None:
            if any(is_within(self._record, kept) for kept in parts.state.guarded):
                raise UsageError(f"--record {self._record}: that lies among the harness's own files")
            from harness.models.recording import RecordingModel

            self._recording = RecordingModel(
                model,
                self._record,
                parts.redactor,
                workspace=parts.workspace.root,
                api=parts.settings.api.value.value,
            )
            return self._recording
        return model

    @property
    def about(self) -> dict[str, JsonValue]:
        """What the log's first record says of it."""
        return {"replay": self._replaying.about, "server": "a cassette"} if self._replaying else {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know before the run."""
        return self._replaying.notes if self._replaying else ()

    @property
    def problem(self) -> str:
        """Why a recording holds less than what happened, or nothing."""
        return self._recording.problem if self._recording else ""

    def tell_end(self, console: Console) -> None:
        """Close a recording; say which replies of a cassette nobody asked for."""
        if self._recording is not None:
            self._recording.close()
        if self._replaying is not None and self._replaying.unused:
            console.line(f"harness: the cassette has {self._replaying.unused} more replies", Tone.WARNING)

    def _diverged(self, divergence: Divergence) -> None:
        self.on_divergence({name: getattr(divergence, name) for name in field_names(type(divergence))})


def _ignore(fields: Mapping[str, JsonValue]) -> None:
    pass
