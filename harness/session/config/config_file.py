"""The user's configuration file, checked key by key. An unknown or invalid key, or an API key, is an error."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, NoReturn, TypeVar, cast

from harness.actions import JsonValue
from harness.errors import UsageError, nearest
from harness.model import Prices
from harness.paths import is_within
from harness.record import Record, replace
from harness.safe_files import why_not_private
from harness.session.config.declared import NO_KEYS, PRICE_CHECKS, Value, checks_of, is_key_like, table_names
from harness.session.config.extension_tables import EXTENSION_TABLES, ExtensionTable, extension_tables
from harness.session.config.model_settings import MODEL_SETTINGS, flattened, setting_type_problem, unified
from harness.text.fields import Check
from harness.text.toml_places import key_lines, read_toml

ValueT_co = TypeVar("ValueT_co", covariant=True)


class Setting(Record, Generic[ValueT_co]):
    """A value and its source."""

    value: ValueT_co
    origin: str
    """`flag --model`, `environment HARNESS_MODEL`, FILE:LINE, `preset groq` or `default`."""


PRICES = "prices"


def unknown_key(key: str, allowed_keys: Iterable[str]) -> str:
    """Return the message for an unknown key. It suggests a similar key, or says that API keys are not read from files."""
    words = tuple(allowed_keys)
    if is_key_like(key) and not any(word.startswith(key) for word in words):  # context_token is a typing error
        return NO_KEYS
    return f"unknown key{nearest(key, words)}"


class Profile(Record):
    """A table `[models.NAME]`: the settings for a model that the user calls NAME."""

    name: str
    origin: str
    values: Mapping[str, Setting[Value]]
    """Top-level settings that a profile may have, such as model, server and form of calls (see `_OF_PROFILE`)."""
    of_model: Mapping[str, Setting[JsonValue]]

    @property
    def model(self) -> Setting[str]:
        """Name of the model: its `model` key, otherwise the profile's own name."""
        model = self.values.get("model")
        return (
            Setting(value=str(model.value), origin=model.origin)
            if model
            else Setting(value=self.name, origin=self.origin)
        )

    def value_of(self, name: str) -> str:
        """Return the text of one setting, or an empty string if the profile does not have it."""
        return str(self.values[name].value) if name in self.values else ""

    @property
    def names_server(self) -> bool:
        """Whether the profile names a server."""
        return not self.values.keys().isdisjoint(_SERVER)

    def with_model(self, model: Setting[str]) -> Profile:
        """Return a profile without a name for another model of this server, with only the server's settings."""
        of_server = {key: setting for key, setting in self.values.items() if key in (*_SERVER, *_NEEDS_SERVER)}
        return replace(self, name="", values={**of_server, "model": model}, of_model={})


_SERVER = ("provider", "base_url")
_NEEDS_SERVER = ("api", "azure_api_version", "key_variable")
_OF_PROFILE = ("model", *_SERVER, *_NEEDS_SERVER, "calls", "context_tokens", "pictures")
PROFILES = "models"
MAX_LINKS = 40
"""Maximum number of symbolic links on the way to the file, as in Linux (path_resolution(7))."""


class ConfigFile(Record):
    """Content of the file. Each value has been checked on its own."""

    path: str
    is_found: bool = False
    values: Mapping[str, Setting[Value]] = {}
    """Values by key. Keys of tables have the form `table.key`."""
    of_model: Mapping[str, Setting[JsonValue]] = {}
    """Settings of the model, by their names in model_settings.py."""
    profiles: Mapping[str, Profile] = {}
    prices: Mapping[str, Setting[Prices]] = {}
    """Prices by model."""
    extensions: tuple[ExtensionTable, ...] = ()
    """Tables that extend a session; session/extensions/ checks them."""


def load_config(path: str, workspace: str | None) -> ConfigFile:
    """Read the file at `path`; a missing one is empty.

    `workspace` is the folder of the calls, absolute and with links followed; `None` for a command that makes no calls.

    Raises UsageError if the file cannot be read, if it belongs to another user or others may write it, or if it, or a
    link on the way to it, is in the workspace. Raises UsageError with file, line and key for invalid content.
    """
    if not os.path.lexists(path):
        return ConfigFile(path=path)
    return parse_config(read_own(path, workspace), path)


def read_own(path: str, workspace: str | None) -> bytes:
    """Return the content of a user's own file that affects keys, conversations, or the model's instructions.

    Raises UsageError if it cannot be read, if it belongs to another user or others may write it, and if `refuse_place`
    does.
    """
    refuse_place(path, workspace)
    return _read(path)


def refuse_place(path: str, workspace: str | None) -> None:
    """Raise UsageError if `path`, or a link on the way to it, is in `workspace` or in a folder that any user may write."""
    for place in _way(path):
        if workspace is not None and is_within(place, workspace):
            raise UsageError(
                f"{path}: the file is inside the workspace ({place}), where calls could change it: work in another folder, "
                "or set XDG_CONFIG_HOME to one outside"
            )
        if os.path.isdir(place) and _is_open_to_all(os.stat(place)):
            raise UsageError(f"{path}: any user may replace the file: chmod o-w {place}")


def _is_open_to_all(folder: os.stat_result) -> bool:
    return bool(folder.st_mode & stat.S_IWOTH) and not folder.st_mode & stat.S_ISVTX


def parse_config(data: bytes, file: str) -> ConfigFile:
    """Parse `data`, TOML in UTF-8, without reading a file. `file` is its name in messages.

    Raises UsageError like `load_config`.
    """
    try:
        text, table = read_toml(data)
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from None
    return replace(_Loader(file, text).config(table), extensions=extension_tables(text, table, file))


def _way(path: str) -> Iterator[str]:
    """Yield every path on the way to `path`: each folder and link, and the targets of links. Raises UsageError."""
    parts = os.path.abspath(path).split("/")[::-1]
    at, links = "/", 0
    while parts:
        part = parts.pop()
        if part in ("", "."):
            continue
        at = os.path.dirname(at) if part == ".." else os.path.join(at, part)
        yield at
        if part != ".." and os.path.islink(at):
            links += 1
            if links > MAX_LINKS:
                raise UsageError(f"{path}: cannot be read: too many links")
            target = os.readlink(at)
            parts += target.split("/")[::-1]
            at = "/" if target.startswith("/") else os.path.dirname(at)


def _read(path: str) -> bytes:
    """Return the content of a file that only its user (or root) may write. Raises UsageError."""
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )  # O_NONBLOCK: opening a FIFO must not block
        try:
            problem = _owner_problem(os.fstat(descriptor), os.stat(os.path.dirname(os.path.realpath(path))))
            if problem:
                raise UsageError(f"{path}: {problem}")
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) else error}") from None


def _owner_problem(status: os.stat_result, folder: os.stat_result) -> str:
    """Return the reason why another user could have written the file, or an empty string. Root counts as the user."""
    if problem := why_not_private(status, owners=(os.geteuid(), 0)):
        return problem
    if status.st_nlink > 1:
        return "has further hard links, so that it can be written under another name"
    if _is_open_to_all(folder):
        return "any user may replace the file: chmod o-w its folder"
    return ""


class _Loader:
    """Checks the content of one file. Knows the lines of its keys for messages."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.lines = {(_names(table), key): line for (table, _, key), line in reversed(key_lines(text).items())}

    def config(self, table: Mapping[str, object]) -> ConfigFile:
        tables = (*filter(None, table_names()), PRICES, PROFILES, *EXTENSION_TABLES)
        plain = {name: value for name, value in table.items() if name not in (*tables, *MODEL_SETTINGS)}
        values = self.checked((), plain, checks_of(""), (*tables, *MODEL_SETTINGS))
        for name in filter(None, table_names()):
            settings = self.checked((name,), self.table((), table, name), checks_of(name))
            values |= {f"{name}.{key}": setting for key, setting in settings.items()}
        price_tables, profiles = self.table((), table, PRICES), self.table((), table, PROFILES)
        return ConfigFile(
            path=self.file,
            is_found=True,
            values=values,
            prices={model: self.prices(price_tables, model) for model in price_tables},
            of_model=self.of_model((), table),
            profiles={name: self.profile(profiles, name) for name in profiles},
        )

    def of_model(self, place: tuple[str, ...], table: Mapping[str, object]) -> dict[str, Setting[JsonValue]]:
        """Return the settings of a model in one table and its nested tables."""
        settings: dict[str, Setting[JsonValue]] = {}
        for name in table.keys() & set(MODEL_SETTINGS):
            for key, value in flattened(name, table[name]).items():
                inner = (*place, name) if key != name else place
                field = key.removeprefix(f"{name}.")
                if problem := setting_type_problem(key, value):
                    self.fail(inner, field, problem)
                settings[unified(key)] = Setting(value=cast("JsonValue", value), origin=self.origin(inner, field))
        return settings

    def profile(self, profiles: Mapping[str, object], name: str) -> Profile:
        place = (PROFILES, name)
        table = self.table((PROFILES,), profiles, name)
        checks = {key: check for key, check in checks_of("").items() if key in _OF_PROFILE}
        plain = {key: value for key, value in table.items() if key not in MODEL_SETTINGS}
        values = self.checked(place, plain, checks, MODEL_SETTINGS)
        profile = Profile(name=name, origin=self.origin(place, ""), values=values, of_model=self.of_model(place, table))
        for key in _NEEDS_SERVER:
            if key in values and not profile.names_server:
                self.fail(place, key, "belongs to a server: name the provider or the base_url beside it")
        return profile

    def checked(
        self,
        place: tuple[str, ...],
        table: Mapping[str, object],
        checks: Mapping[str, Check],
        tables: tuple[str, ...] = (),
    ) -> dict[str, Setting[Value]]:
        """Return the values of one table, each with its line."""
        settings: dict[str, Setting[Value]] = {}
        for key, value in table.items():
            if key not in checks:
                self.fail(place, key, unknown_key(key, (*checks, *tables)))
            problem = checks[key](value)
            checked_value = tuple(value) if isinstance(value, list) else value
            if problem or not isinstance(checked_value, str | int | float | tuple):
                self.fail(place, key, problem)
            settings[key] = Setting(value=checked_value, origin=self.origin(place, key))
        return settings

    def table(self, place: tuple[str, ...], parent: Mapping[str, object], key: str) -> Mapping[str, object]:
        value = parent.get(key, {})
        if not isinstance(value, dict):
            self.fail(place, key, f"must be a table: [{'.'.join((*place, key))}]")
        return value

    def prices(self, price_table: Mapping[str, object], model: str) -> Setting[Prices]:
        place = (PRICES, model)
        price_settings = self.checked(place, self.table((PRICES,), price_table, model), PRICE_CHECKS)
        for required in ("input", "output"):
            if required not in price_settings:
                self.fail(place, "", f"has no {required}: dollars per million tokens")
        prices = Prices(**{key: float(str(setting.value)) for key, setting in price_settings.items()})
        return Setting(value=prices, origin=self.origin(place, ""))

    def origin(self, place: tuple[str, ...], key: str) -> str:
        """Return FILE:LINE of a key. If the key has no line of its own, return that of its table."""
        looked = ((place, key), (place, ""), (place[:-1], place[-1] if place else ""), (place[:-2], "".join(place[:1])))
        within = [line for (table, _), line in self.lines.items() if place and table[: len(place)] == place]
        line = next((self.lines[at] for at in looked if at in self.lines), min(within, default=1))
        return f"{self.file}:{line}"

    def fail(self, place: tuple[str, ...], key: str, problem: str) -> NoReturn:
        quoted = [name if name.replace("_", "").isalnum() else f'"{name}"' for name in place]
        header = f"[{'.'.join(quoted)}]" if place else ""
        raise UsageError(f"{self.origin(place, key)}: {' '.join(part for part in (header, key) if part)}: {problem}")


def _names(table: str) -> tuple[str, ...]:
    """Split the header of a table, in the form that `key_lines` returns (such as `prices."gpt-5`), into names."""
    return tuple("".join(groups) for groups in re.findall(r"\"([^\"]*)\"?|'([^']*)'?|([A-Za-z0-9_-]+)", table))
