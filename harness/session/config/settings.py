"""The user's settings in force. Order of precedence: flags, environment, the user's file, presets, defaults.

Files in the workspace have no influence. Settings contain the name of the API key's variable, never the key itself.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, TypeVar

from harness.actions import JsonValue
from harness.errors import UsageError, nearest
from harness.model import Prices
from harness.models.endpoint import Deadlines, ReplyBounds
from harness.models.presets import PRESETS, Api, Preset, preset_of
from harness.models.sight import takes_images
from harness.record import Record, field_names
from harness.session.config.config_file import ConfigFile, Profile, Setting, load_config
from harness.session.config.declared import SETTINGS, Value, address_problem
from harness.session.config.model_settings import joined, said_by_flags
from harness.session.config.model_table import ModelTable, load_table
from harness.session.state import State

ValueT = TypeVar("ValueT")

DEFAULT_MODEL = "gpt-5"
"""Default model, if no provider other than OpenAI is named."""
OPENAI = "openai"
OPENAI_URL = "https://api.openai.com/v1"
"""Default address. Always passed to the SDK, which would otherwise use OPENAI_BASE_URL."""

DEFAULT = "default"
_OF_SERVER = ("provider", "base_url", "api", "azure_api_version")
_NO_TABLE = ModelTable()
_NOTHING_TOLD: Mapping[str, JsonValue] = {}


class TerminalSettings(Record):
    """Settings of the prompt's look and questions."""

    dead_seconds: Setting[float]
    """Seconds after a prompt appears during which keys have no effect."""
    vi: Setting[bool]
    """Whether lines are edited with the keys of vi."""
    notify: Setting[str]
    """Notification about a waiting question or the end of a turn: one of NOTICES."""
    enter: Setting[str]
    """Effect of Enter during a turn: steer or queue."""
    status: Setting[tuple[str, ...]]
    """Parts of the status line, in order."""
    diffs: Setting[str]
    """Extent of the diffs below the lines of calls: full, short or none."""
    theme: Setting[str]
    """Colours: auto, dark, light or none."""
    ascii: Setting[bool]
    screen_reader: Setting[bool]
    """Whether output is only appended, never overwritten."""


class Settings(Record):
    """All settings in force, each with its source."""

    file: ConfigFile
    table: ModelTable
    """The user's table of models. The configuration file overrides it."""
    flags: Mapping[str, str]
    """Values of the flags on the command line, by the setting's name."""
    answer_settings: Mapping[str, JsonValue]
    """Settings of the model's answers from flags."""
    model_profile: Profile | None
    """The profile of the model. After `/model NAME` without a profile NAME, the previous profile's server settings."""
    provider: Setting[str]
    """Name of a preset. Empty if no provider is named."""
    base_url: Setting[str]
    """Address of the server. Empty if the provider has no common address and the user gives none."""
    api: Setting[Api]
    azure_api_version: Setting[str]
    calls: Setting[str]
    """Form of the model's calls: functions, or text."""
    key_variable: Setting[str]
    """Environment variable with the API key. Empty if the server needs none."""
    key_set: bool
    model: Setting[str]
    """Name of the model. Empty if none is named and the provider has no default."""
    attempts: Setting[int]
    retry_seconds: Setting[float]
    deadlines: Mapping[str, Setting[float]]
    """Deadlines by the fields of Deadlines, in seconds."""
    bounds: Mapping[str, Setting[int]]
    """Bounds by the fields of ReplyBounds."""
    of_model: Mapping[str, Setting[JsonValue]]
    """Settings of the model's answers, by their names in model_settings.py."""
    context_tokens: Setting[int | None]
    """The model's context length in tokens. `None` if unknown."""
    most_output: Setting[int | None]
    """The model's maximum reply in tokens. `None` if unknown."""
    pictures: Setting[bool]
    """Whether pictures are sent to the model."""
    prices: Setting[Prices | None]
    """The model's prices. `None` if unknown."""
    tools: Setting[tuple[str, ...]]
    """Names of the chosen tools, with `+` if so written. Empty without a choice."""
    system: Setting[str]
    """Path of the template for the system prompt. Empty without one."""
    task_template: Setting[str]
    """Path of the template for the prompt of a run. Empty without one."""
    result_template: Setting[str]
    """Path of the template for tool results. Empty without one."""
    instructions: Setting[bool]
    """Whether AGENTS.md is read."""
    agents: Mapping[str, Setting[str]]
    """Settings about other agents, by their names in the table `agents`."""
    terminal: TerminalSettings
    sign_key: Setting[str]
    """Path of the SSH key that signs the heads of logs. Empty if they are not signed."""
    plugins: Setting[tuple[str, ...]]
    """Names of installed plugins to load (harness/session/named_plugins.py)."""

    def with_model(self, name: str, environment: Mapping[str, str]) -> Settings:
        """Return the settings for the model `name`: from its profile, or at the current server. Raises UsageError.

        A profile that names a server overrides flags for the server, since the choice of the profile is newer.
        """
        model_name = Setting(value=name, origin="/model")
        nothing = Profile(name="", origin=model_name.origin, values={}, of_model={})
        profile = self.file.profiles.get(name) or (self.model_profile or nothing).with_model(model_name)
        elsewhere = _OF_SERVER if profile.names_server else ()
        flags = {key: value for key, value in self.flags.items() if key not in (*elsewhere, "model")}
        return resolve(flags, environment, self.file, self.table, self.answer_settings, profile)

    @property
    def profile(self) -> str:
        """Name of the model's profile. Empty without one."""
        return self.model_profile.name if self.model_profile else ""

    def prices_of(self, model: str) -> Setting[Prices | None]:
        """Return the prices of a model from the file, or else from the table."""
        return prices_of(self.file, self.table, model)

    @property
    def named_preset(self) -> Preset | None:
        """Preset of the named provider. `None` if no provider is named."""
        return PRESETS.get(self.provider.value)

    @property
    def preset(self) -> Preset | None:
        """The named preset, or else the one with this address. Used for quirks and a title, never to choose a key."""
        return self.named_preset or preset_of(self.base_url.value)


class _Rank(IntEnum):
    """Precedence of the sources. A profile ranks right beside the source that chooses it."""

    NOBODY = 0
    FILE = 1
    PROFILE_OF_FILE = 2
    PROFILE_OF_ENVIRONMENT = 3
    ENVIRONMENT = 4
    PROFILE_OF_FLAG = 5
    FLAG = 6


_PROFILE_OF = {
    _Rank.FILE: _Rank.PROFILE_OF_FILE,
    _Rank.ENVIRONMENT: _Rank.PROFILE_OF_ENVIRONMENT,
    _Rank.FLAG: _Rank.PROFILE_OF_FLAG,
}


class _Said(Record):
    """The value of a setting in one layer."""

    rank: _Rank
    value: Value
    origin: str


def settings_from(arguments: Namespace, environment: Mapping[str, str], workspace: str | None) -> Settings:
    """Return the settings in force in `workspace` (absolute, links followed; `None`: no calls run). Raises UsageError."""
    places = {name: declared.flag.removeprefix("--").replace("-", "_") for name, declared in SETTINGS.items()}
    flags = {name: str(value) for name, place in places.items() if place and (value := getattr(arguments, place, None))}
    table = load_table(State.of(environment).models, workspace)
    flag_settings = said_by_flags(getattr(arguments, "effort", None), getattr(arguments, "set", None) or ())
    return resolve(flags, environment, load_config(config_path(environment), workspace), table, flag_settings)


def config_path(environment: Mapping[str, str]) -> str:
    """Return the path of the user's configuration, which may not exist: $XDG_CONFIG_HOME/harness/config.toml."""
    return State.of(environment).config_file


def resolve(
    flags: Mapping[str, str],
    environment: Mapping[str, str],
    file: ConfigFile,
    table: ModelTable = _NO_TABLE,
    flag_settings: Mapping[str, JsonValue] = _NOTHING_TOLD,
    profile: Profile | None = None,
) -> Settings:
    """Return the settings in force, without reading a file.

    `flags` are the values of flags, by the setting's name. `flag_settings` are settings of answers from flags. A
    `profile` ranks as if a flag had named it; `None` means the profile with the model's name.

    INVARIANT: provider, address and key belong together. The highest layer that names a provider or an address
    chooses the server. Values of lower layers for another server do not count: provider, base_url and key_variable, and
    api and azure_api_version if that layer names the server. Otherwise a single flag could send one provider's key to
    another one's address.

    Raises UsageError for an invalid value, but not for a missing one, which is only needed to send requests.
    """
    return _Layers(flags, environment, file, flag_settings, profile).settings(table)


class _Layers:
    """All layers, and the steps that combine them into settings."""

    def __init__(
        self,
        flags: Mapping[str, str],
        environment: Mapping[str, str],
        file: ConfigFile,
        flag_settings: Mapping[str, JsonValue],
        profile: Profile | None,
    ) -> None:
        self.flags, self.environment, self.file, self.answer_settings = flags, environment, file, flag_settings
        self.profile, self.profile_rank = profile, _Rank.PROFILE_OF_FLAG if profile else _Rank.NOBODY
        if profile is None and (model_name := next(iter(self.values_of("model")), None)):
            self.profile = file.profiles.get(str(model_name.value))
            self.profile_rank = _PROFILE_OF[model_name.rank] if self.profile else _Rank.NOBODY
        self.provider = self.first("provider", _provider_problem)
        self.base_url = self.first("base_url", address_problem)
        if self.provider and self.base_url and self.base_url.rank > self.provider.rank:
            self.provider = None
        if self.provider and self.base_url and self.base_url.rank < self.provider.rank:
            self.base_url = None
        self.preset = PRESETS[str(self.provider.value)] if self.provider else None
        own_address = self.own_address()
        self.by_own_variable = own_address is not None and (
            self.base_url is None or self.base_url.rank < own_address.rank
        )
        if self.by_own_variable:
            self.base_url = own_address
        self.refuse_another_server()
        chosen = self.provider or self.base_url
        self.chosen = chosen.rank if chosen else _Rank.NOBODY

    def values_of(self, name: str) -> list[_Said]:
        """Return all values of a setting, highest precedence first."""
        declared, layer_values = SETTINGS[name], []
        if flag := self.flags.get(name):
            flag_value = not declared.default if isinstance(declared.default, bool) else flag
            layer_values.append(_Said(rank=_Rank.FLAG, value=flag_value, origin=f"flag {declared.flag}"))
        if variable := self.variable(declared.variable):
            layer_values.append(variable)
        if self.profile and (of_profile := self.profile.values.get(name)):
            layer_values.append(_Said(rank=self.profile_rank, value=of_profile.value, origin=of_profile.origin))
        if written := self.file.values.get(name):
            layer_values.append(_Said(rank=_Rank.FILE, value=written.value, origin=written.origin))
        return sorted(layer_values, key=lambda word: -word.rank)

    def refuse_another_server(self) -> None:
        """Raise UsageError if a profile names a server, and a layer of higher precedence names another one."""
        if self.profile is None or not self.profile.names_server:
            return
        for layer_value in (self.provider, self.base_url):
            if (
                layer_value
                and layer_value.rank > self.profile_rank
                and not self.speaks_of_server(self.profile_rank, keeps_key=True)
            ):
                raise UsageError(
                    f"{layer_value.origin}: names another server than {self.profile.origin}, the profile of the model"
                )

    def speaks_of_server(self, rank: _Rank, *, keeps_key: bool = False) -> bool:
        """Return whether the provider and address in a layer, with defaults for missing ones, are the chosen server.

        An address from the provider's own variable (OPENAI_BASE_URL) does not separate a layer from the provider, except
        with `keeps_key` for OpenAI: a key that the layer names is for the address that the layer itself implies.
        """
        provider, base_url = self.said_by(rank, "provider"), self.said_by(rank, "base_url")
        if provider and self.provider and provider != self.provider.value:
            return False
        preset = PRESETS[provider or OPENAI]
        if self.by_own_variable and not base_url and not (keeps_key and preset.name == OPENAI):
            return preset is (self.preset or PRESETS[OPENAI])
        address = base_url or preset.base_url or (OPENAI_URL if preset.name == OPENAI else "")
        return address.rstrip("/") == self.address().value.rstrip("/")

    def said_by(self, rank: _Rank, name: str) -> str:
        """Return one layer's value of a setting, or an empty string."""
        return next((str(layer_value.value) for layer_value in self.values_of(name) if layer_value.rank is rank), "")

    def names_server(self, rank: _Rank) -> bool:
        """Return whether a layer names any server."""
        return any(self.said_by(rank, name) for name in ("provider", "base_url"))

    def variable(self, name: str) -> _Said | None:
        value = self.environment.get(name, "").strip() if name else ""
        return _Said(rank=_Rank.ENVIRONMENT, value=value, origin=f"environment {name}") if value else None

    def first(self, name: str, problem: Callable[[str], str]) -> _Said | None:
        """Return the value of a setting with the highest precedence. Raises UsageError if it is invalid."""
        layer_value = next(iter(self.values_of(name)), None)
        if layer_value and (text := problem(str(layer_value.value))):
            raise UsageError(f"{layer_value.origin}: {text}")
        return layer_value

    def own_address(self) -> _Said | None:
        """Return the value of the provider's own address variable. OPENAI_BASE_URL counts for OpenAI only."""
        preset = self.preset or PRESETS[OPENAI]
        layer_value = self.variable("OPENAI_BASE_URL" if preset.name == OPENAI else preset.base_url_variable)
        if layer_value and (text := address_problem(str(layer_value.value))):
            raise UsageError(f"{layer_value.origin}: {text}")
        return layer_value

    def of_server(self, name: str) -> _Said | None:
        """Return the value of a setting that belongs to a server. Layers that name another server do not count."""
        for layer_value in self.values_of(name):
            at_home = layer_value.rank >= self.chosen or not self.names_server(layer_value.rank)
            if at_home or self.speaks_of_server(layer_value.rank):
                return layer_value
        return None

    def of_model(self) -> dict[str, Setting[JsonValue]]:
        """Return the settings of answers. Flags override the profile, which overrides the file.

        If the file names a server, its settings apply only to models there.
        """
        of_any = not self.names_server(_Rank.FILE)
        at_home = self.chosen <= _Rank.FILE or of_any or self.speaks_of_server(_Rank.FILE)
        settings = dict(self.file.of_model) if at_home else {}
        by_flags = {
            name: Setting(value=value, origin="flag --effort" if name == "effort" else f"flag --set {name}")
            for name, value in self.answer_settings.items()
        }
        for name, newer in (*(self.profile.of_model.items() if self.profile else ()), *by_flags.items()):
            value = joined(settings[name].value, newer.value) if name in settings else newer.value
            settings[name] = Setting(value=value, origin=newer.origin)
        return settings

    def settings(self, table: ModelTable) -> Settings:
        model = self.model()
        key = self.key_variable()
        return Settings(
            file=self.file,
            table=table,
            flags=self.flags,
            answer_settings=self.answer_settings,
            model_profile=self.profile,
            provider=_setting(self.provider, ""),
            base_url=self.address(),
            api=self.api(),
            azure_api_version=self.azure_api_version(),
            calls=self.plain("calls", str),
            key_variable=key,
            key_set=bool(key.value and self.environment.get(key.value, "").strip()),
            model=model,
            attempts=self.plain("attempts", int),
            retry_seconds=self.plain("retry_seconds", float),
            deadlines={name: self.plain(f"deadlines.{name}", float) for name in field_names(Deadlines)},
            bounds={name: self.plain(f"bounds.{name}", int) for name in field_names(ReplyBounds)},
            of_model=self.of_model(),
            context_tokens=self.context_tokens(table, model.value),
            most_output=_table_value(table, model.value, "max_output", int),
            pictures=self.pictures(table, model.value),
            prices=prices_of(self.file, table, model.value),
            tools=self.plain("tools", _names),
            system=self.template("system"),
            task_template=self.template("task_template"),
            result_template=self.template("result_template"),
            instructions=self.plain("instructions", bool),
            agents={"unjudged": self.plain("agents.unjudged", str)},
            terminal=TerminalSettings(
                dead_seconds=self.plain("terminal.dead_seconds", float),
                vi=self.plain("terminal.vi", bool),
                notify=self.plain("terminal.notify", str),
                enter=self.plain("terminal.enter", str),
                status=self.plain("terminal.status", _names),
                diffs=self.plain("terminal.diffs", str),
                theme=self.plain("terminal.theme", str),
                ascii=self.plain("terminal.ascii", bool),
                screen_reader=self.plain("terminal.screen_reader", bool),
            ),
            sign_key=self.sign_key(),
            plugins=self.plain("plugins", _names),
        )

    def plain(self, name: str, convert: Callable[[Any], ValueT]) -> Setting[ValueT]:
        """Return a setting that depends on no other: its value of highest precedence, or its default."""
        layer_value = next(iter(self.values_of(name)), None)
        if layer_value is not None:
            return Setting(value=convert(layer_value.value), origin=layer_value.origin)
        return Setting(value=convert(SETTINGS[name].default), origin=DEFAULT)

    def address(self) -> Setting[str]:
        if self.base_url:
            return _setting(self.base_url, "")
        if self.preset is not None and self.preset.base_url:
            return Setting(value=self.preset.base_url, origin=f"preset {self.preset.name}")
        if self.preset is None:
            return Setting(value=OPENAI_URL, origin=DEFAULT)
        return Setting(value=OPENAI_URL if self.preset.name == OPENAI else "", origin=f"preset {self.preset.name}")

    def api(self) -> Setting[Api]:
        layer_value = self.of_server("api")
        if layer_value is None:
            if self.preset is None:
                return Setting(value=Api.CHAT, origin=DEFAULT)
            return Setting(value=self.preset.api, origin=f"preset {self.preset.name}")
        words = [api.value for api in Api]
        if layer_value.value not in words:
            raise UsageError(
                f"{layer_value.origin}: unknown API {layer_value.value!r}{nearest(str(layer_value.value), words)}"
            )
        return Setting(value=Api(layer_value.value), origin=layer_value.origin)

    def azure_api_version(self) -> Setting[str]:
        own_value = self.variable(self.preset.api_version_variable) if self.preset else None
        return _setting(own_value or self.of_server("azure_api_version"), "")

    def key_variable(self) -> Setting[str]:
        """Return the variable of the API key. The value in the file or a profile counts only for its own server."""
        for rank, values in ((self.profile_rank, self.profile and self.profile.values), (_Rank.FILE, self.file.values)):
            written = values.get("key_variable") if values else None
            if written and self.speaks_of_server(rank, keeps_key=True):
                return Setting(value=str(written.value), origin=written.origin)
        if self.preset is None:
            return Setting(value="OPENAI_API_KEY", origin=DEFAULT)
        return Setting(value=self.preset.key_variable, origin=f"preset {self.preset.name}")

    def model(self) -> Setting[str]:
        if self.profile:
            return self.profile.model
        layer_value = next(iter(self.values_of("model")), None)
        return _setting(layer_value, DEFAULT_MODEL if self.preset is None or self.preset.name == OPENAI else "")

    def template(self, name: str) -> Setting[str]:
        """Return the path of a template. A path in the configuration file is relative to that file."""
        path_setting = self.plain(name, str)
        if path_setting.value and not path_setting.origin.startswith("flag "):
            return Setting(
                value=os.path.join(os.path.dirname(self.file.path), path_setting.value), origin=path_setting.origin
            )
        return path_setting

    def sign_key(self) -> Setting[str]:
        """Return the path of the signing key. `~/` is the home folder; a relative path is relative to the file."""
        written = self.plain("sign_key", str)
        path, home = written.value, self.environment.get("HOME", "")
        if not path or (path.startswith("~/") and not home):
            return written
        path = os.path.join(home, path[2:]) if path.startswith("~/") else path
        return Setting(value=os.path.join(os.path.dirname(self.file.path), path), origin=written.origin)

    def pictures(self, table: ModelTable, model: str) -> Setting[bool]:
        layer_value = next(iter(self.values_of("pictures")), None)
        table_value = _table_value(table, model, "pictures", bool)
        if layer_value is not None:
            return Setting(value=bool(layer_value.value), origin=layer_value.origin)
        if table_value.value is not None:
            return Setting(value=table_value.value, origin=table_value.origin)
        return sight_of(self.preset or preset_of(self.address().value), model)

    def context_tokens(self, table: ModelTable, model: str) -> Setting[int | None]:
        setting = self.plain("context_tokens", lambda value: int(value or 0))
        return _table_value(table, model, "context", int) if setting.origin == DEFAULT else setting


def prices_of(file: ConfigFile, table: ModelTable, model: str) -> Setting[Prices | None]:
    """Return the prices of a model from the file, or else from the table. `None` if neither has them."""
    if written := file.prices.get(model):
        return Setting(value=written.value, origin=written.origin)
    return _table_value(table, model, "prices", Prices)


def _table_value(table: ModelTable, model: str, name: str, of: type[ValueT]) -> Setting[ValueT | None]:
    """Return the table's value of `name`, a field of ModelFacts. `None` without one."""
    row = table.models.get(model)
    value = getattr(row.facts, name) if row is not None else None
    return (
        Setting(value=value, origin=table.origin(model))
        if isinstance(value, of)
        else Setting(value=None, origin=DEFAULT)
    )


def sight_of(preset: Preset | None, model: str) -> Setting[bool]:
    """Return whether pictures are sent to a model by default."""
    name = preset.name if preset is not None else ""
    return Setting(value=takes_images(name, model), origin=f"preset {name}" if name else DEFAULT)


def _names(value: Value) -> tuple[str, ...]:
    """Return the names in a list, or in a flag's text with commas between them."""
    return value if isinstance(value, tuple) else tuple(filter(None, map(str.strip, str(value).split(","))))


def _setting(layer_value: _Said | None, default: str) -> Setting[str]:
    return (
        Setting(value=str(layer_value.value), origin=layer_value.origin)
        if layer_value
        else Setting(value=default, origin=DEFAULT)
    )


def _provider_problem(name: str) -> str:
    return "" if name in PRESETS else f"unknown provider {name!r}{nearest(name, PRESETS)}"
