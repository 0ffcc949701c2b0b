"""The model of a run: the configured model, which may be recorded, or a replayed cassette."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.models.divergence import Divergence
from harness.models.recorder import RecordingModel
from harness.models.replayer import ReplayingModel
from harness.paths import is_within_any
from harness.record import field_names
from harness.session.own_folders import output_path, workspace_folders
from harness.session.provider_models import ProviderModels
from harness.terminal.console import Console
from harness.terminal.styles import Tone

if TYPE_CHECKING:
    from harness.log.action_log import ActionLog
    from harness.model import Model


class RunModel:
    """The model of a run with the flags `--record` and `--replay`."""

    def __init__(self, arguments: Namespace) -> None:
        """Check the flags. Raises UsageError if both are given, or if the cassette's path is not allowed."""
        self.record: str | None = arguments.record
        """Real path of the new cassette. `None` without `--record`."""
        if self.record is not None:
            self.record = output_path(self.record, workspace_folders(arguments), shown_as=f"--record {self.record}")
        self._replay: str | None = arguments.replay
        if self.record is not None and self._replay is not None:
            raise UsageError("--record and --replay cannot be given together: the cassette holds all of it already")
        self._recording: RecordingModel | None = None
        self._replaying: ReplayingModel | None = None
        self._log: ActionLog | None = None

    def of(self, models: ProviderModels) -> Model | None:
        """Return the recording or the replaying model. `None` for the configured model.

        Raises UsageError for a cassette that cannot be read or created.
        """
        place = models.tools.place
        if self._replay is not None:

            def record(divergence: Divergence) -> None:
                if self._log is not None:  # no request is sent before the log is open
                    with place.interrupt.hold():
                        fields = {name: getattr(divergence, name) for name in field_names(Divergence)}
                        self._log.append("diverged", fields)

            self._replaying = ReplayingModel(
                self._replay, record, workspace=place.workspace.root, redactor=place.redactor
            )
            place.redactor.note(self._replaying.marks)
            return self._replaying
        if self.record is not None:
            if is_within_any(self.record, place.state.guarded):
                raise UsageError(
                    f"--record {self.record}: this folder is for the harness's own files; choose another place"
                )

            root, api = place.workspace.root, place.settings.api.value.value
            self._recording = RecordingModel(models.first_model(), self.record, place.redactor, workspace=root, api=api)
            return self._recording
        return None

    def begin(self, log: ActionLog) -> None:
        """Set the log in which divergences from a cassette are recorded."""
        self._log = log

    @property
    def header_fields(self) -> dict[str, JsonValue]:
        """Fields of the log's first record about the cassette."""
        return {"replay": self._replaying.log_fields, "server": "a cassette"} if self._replaying else {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user before the run."""
        return self._replaying.notes if self._replaying else ()

    @property
    def problem(self) -> str:
        """Reason why a recording is incomplete. Empty if it is complete."""
        return self._recording.problem if self._recording else ""

    def tell_end(self, console: Console) -> None:
        """Close a recording. Report unused replies of a cassette."""
        if self._recording is not None:
            self._recording.close()
        if self._replaying is not None and self._replaying.unused:
            console.line(f"harness: the cassette has {self._replaying.unused} more replies", Tone.WARNING)
