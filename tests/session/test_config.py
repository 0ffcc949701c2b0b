"""The user's configuration: every key, every refusal with file, line and key, and who wins over whom."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import all_rows

from harness.errors import UsageError
from harness.model import Prices
from harness.models.endpoint import Deadlines, Endpoint, ReplyBounds
from harness.models.presets import PRESETS, Api
from harness.record import replace
from harness.session.config.config_file import (
    ConfigFile,
    Setting,
    load_config,
    parse_config,
)
from harness.session.config.declared import PRICE_CHECKS, SETTINGS
from harness.session.config.model_settings import MODEL_SETTINGS, said_by_flags
from harness.session.config.settings import DEFAULT_MODEL, OPENAI_URL, Settings, resolve

FULL = """\
plugins = ["words"]  # and every other key there is
provider = "ollama"
model = "some-model"
base_url = "https://llm.example.org/v1"
api = "responses"
azure_api_version = "2025-01-01"
key_variable = "CORP_KEY"
attempts = 3
retry_seconds = 60
context_tokens = 128_000
system = "prompt.md"
instructions = false
sign_key = "/home/me/.ssh/logs"
calls = "text"
tools = ["bash", "todo"]
pictures = true
task_template = "task.md"
result_template = "result.md"
[terminal]
dead_seconds = 0.5
vi = true
notify = "osc9"
theme = "light"
ascii = true
screen_reader = true
status = ["model", "context"]
diffs = "short"
enter = "queue"

[deadlines]
connect = 5
first_event = 60.5
idle = 30
total = 600

[bounds]
bytes = 1000
events = 2000
calls = 3
argument_characters = 4000
event_bytes = 900

[prices."some-model"]
input = 1.25
output = 10
cached_input = 0
cache_write = 1.5

[prices.other]
input = 1
output = 2

[agents]
unjudged = "warn"
"""

OF_MODEL = """\
max_output_tokens = 4_000
effort = "low"
temperature = 0.5
top_p = 0.9
seed = -7
stop = ["END"]
verbosity = "low"
service_tier = "flex"

[extra_body]
top_k = 40
prompt_cache_key = "team"

[extra_headers]
X-Team = "tools"

[models.fast]
model = "some-small-model"
provider = "ollama"
calls = "text"
context_tokens = 8000
pictures = false
effort = "none"
extra_body = {top_k = 5}
[models.here]
[models."far.away".extra_headers]
x-a = "b"
"""


def parse(text: str) -> ConfigFile:
    return parse_config(text.encode(), "c.toml")


def problem(text: str) -> str:
    """Return the message with which `text` is refused."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    return str(caught.value)


def test_every_key_is_taken_with_its_line() -> None:
    file = parse(FULL)
    assert {name: (setting.value, setting.origin) for name, setting in file.values.items()} == {
        "plugins": (("words",), "c.toml:1"),
        "provider": ("ollama", "c.toml:2"),
        "model": ("some-model", "c.toml:3"),
        "base_url": ("https://llm.example.org/v1", "c.toml:4"),
        "api": ("responses", "c.toml:5"),
        "azure_api_version": ("2025-01-01", "c.toml:6"),
        "key_variable": ("CORP_KEY", "c.toml:7"),
        "attempts": (3, "c.toml:8"),
        "retry_seconds": (60, "c.toml:9"),
        "context_tokens": (128_000, "c.toml:10"),
        "system": ("prompt.md", "c.toml:11"),
        "instructions": (False, "c.toml:12"),
        "sign_key": ("/home/me/.ssh/logs", "c.toml:13"),
        "calls": ("text", "c.toml:14"),
        "tools": (("bash", "todo"), "c.toml:15"),
        "pictures": (True, "c.toml:16"),
        "task_template": ("task.md", "c.toml:17"),
        "result_template": ("result.md", "c.toml:18"),
        "terminal.dead_seconds": (0.5, "c.toml:20"),
        "terminal.vi": (True, "c.toml:21"),
        "terminal.notify": ("osc9", "c.toml:22"),
        "terminal.theme": ("light", "c.toml:23"),
        "terminal.ascii": (True, "c.toml:24"),
        "terminal.screen_reader": (True, "c.toml:25"),
        "terminal.status": (("model", "context"), "c.toml:26"),
        "terminal.diffs": ("short", "c.toml:27"),
        "terminal.enter": ("queue", "c.toml:28"),
        "deadlines.connect": (5, "c.toml:31"),
        "deadlines.first_event": (60.5, "c.toml:32"),
        "deadlines.idle": (30, "c.toml:33"),
        "deadlines.total": (600, "c.toml:34"),
        "bounds.bytes": (1000, "c.toml:37"),
        "bounds.events": (2000, "c.toml:38"),
        "bounds.calls": (3, "c.toml:39"),
        "bounds.argument_characters": (4000, "c.toml:40"),
        "bounds.event_bytes": (900, "c.toml:41"),
        "agents.unjudged": ("warn", "c.toml:54"),
    }
    assert file.prices == {
        "some-model": Setting(
            value=Prices(input=1.25, output=10.0, cached_input=0.0, cache_write=1.5), origin="c.toml:43"
        ),
        "other": Setting(value=Prices(input=1.0, output=2.0), origin="c.toml:49"),
    }


def test_the_full_file_above_leaves_no_key_out() -> None:
    table = tomllib.loads(FULL)
    prices = table.pop("prices")
    tables = {name: value for name, value in table.items() if isinstance(value, dict)}
    keys = {*(table.keys() - tables), *(f"{name}.{key}" for name, value in tables.items() for key in value)}
    assert keys == set(SETTINGS)
    assert set(prices["some-model"]) == set(PRICE_CHECKS)


def test_every_setting_of_a_model_is_taken_with_its_line() -> None:
    file = parse(OF_MODEL)
    assert {name: (setting.value, setting.origin) for name, setting in file.of_model.items()} == {
        "max_output_tokens": (4000, "c.toml:1"),
        "effort": ("low", "c.toml:2"),
        "temperature": (0.5, "c.toml:3"),
        "top_p": (0.9, "c.toml:4"),
        "seed": (-7, "c.toml:5"),
        "stop": (["END"], "c.toml:6"),
        "verbosity": ("low", "c.toml:7"),
        "service_tier": ("flex", "c.toml:8"),
        "extra_body.top_k": (40, "c.toml:11"),
        "extra_body.prompt_cache_key": ("team", "c.toml:12"),
        "extra_headers.x-team": ("tools", "c.toml:15"),
    }
    assert {name.partition(".")[0] for name in file.of_model} == set(MODEL_SETTINGS)


def test_every_profile_is_taken_with_its_lines() -> None:
    profiles = parse(OF_MODEL).profiles
    assert {
        name: (
            told_of(profile.model),
            {key: said.value for key, said in profile.values.items()},
            {key: told_of(said) for key, said in profile.of_model.items()},
        )
        for name, profile in profiles.items()
    } == {
        "fast": (
            ("some-small-model", "c.toml:18"),
            {
                "model": "some-small-model",
                "provider": "ollama",
                "calls": "text",
                "context_tokens": 8000,
                "pictures": False,
            },
            {"effort": ("none", "c.toml:23"), "extra_body.top_k": (5, "c.toml:24")},
        ),
        "here": (("here", "c.toml:25"), {}, {}),
        "far.away": (("far.away", "c.toml:26"), {}, {"extra_headers.x-a": ("b", "c.toml:27")}),
    }


def told_of(setting: Setting[Any]) -> tuple[Any, str]:
    return setting.value, setting.origin


NEVER = "keys are never read from files"
REFUSED = {
    "a key that is not known": ('modle = "x"', "c.toml:1: modle: unknown key; did you mean model?"),
    "one in a table": ("\n[deadlines]\nconect = 1", "c.toml:3: [deadlines] conect: unknown key; did you mean connect?"),
    "a table that is not known": ("[deadline]\nidle = 1", "c.toml:1: deadline: unknown key; did you mean deadlines?"),
    "a limit of policies": ("max_turns = 3", "c.toml:1: max_turns: unknown key; known: provider, model"),
    "a log folder": ('log = "/tmp"', "c.toml:1: log: unknown key"),
    "a policy": ('policy = "p.toml"', "c.toml:1: policy: unknown key"),
    "no TOML": ("model = ", "c.toml: is not TOML: Invalid value (at end of document)"),
    "a key twice": ('model = "a"\nmodel = "b"', "c.toml: is not TOML: Cannot overwrite a value"),
    "a number for a text": ("\nmodel = 3", "c.toml:2: model: must be a string, not a number"),
    "a date": ("model = 2020-01-01", "c.toml:1: model: must be a string, not a date"),
    "a list": ("model = []", "c.toml:1: model: must be a string, not a list"),
    "an empty text": ('model = " "', "c.toml:1: model: must not be empty"),
    "two lines": ('model = "a\\nb"', "c.toml:1: model: must not be empty, and on one line"),
    "a provider that is not there": (
        'provider = "opnai"',
        "c.toml:1: provider: unknown 'opnai'; did you mean openai?",
    ),
    "an API that is not there": ('api = "chatt"', "c.toml:1: api: unknown 'chatt'; did you mean chat?"),
    "an address without a scheme": (
        'base_url = "localhost:1"',
        "c.toml:1: base_url: must begin with http:// or https://",
    ),
    "an address without a host": ('base_url = "https:///v1"', "c.toml:1: base_url: names no host"),
    "an address of two hosts": ('base_url = "https://a\\\\@b/v1"', "c.toml:1: base_url: names no host"),
    "a host in disguise": ('base_url = "https://api%2Eopenai.com/v1"', "c.toml:1: base_url: names no host"),
    "an address with a password": ('base_url = "https://u:p@h/v1"', "c.toml:1: base_url: must hold no user, password"),
    "an address with a query": ('base_url = "https://h/v1?key=1"', "c.toml:1: base_url: must hold no user, password"),
    "an address with a blank": ('base_url = "https://h/v 1"', "c.toml:1: base_url: holds a blank"),
    "no attempt": ("attempts = 0", "c.toml:1: attempts: must be a whole number from 1 to 100"),
    "half an attempt": ("attempts = 1.5", "c.toml:1: attempts: must be a whole number from 1 to 100"),
    "true attempts": ("attempts = true", "c.toml:1: attempts: must be a whole number from 1 to 100"),
    "no time": ("retry_seconds = 0", "c.toml:1: retry_seconds: must be a number above 0, at most 1000000"),
    "no number": ("[deadlines]\nidle = nan", "c.toml:2: [deadlines] idle: must be a number above 0"),
    "without end": ("[deadlines]\nidle = inf", "c.toml:2: [deadlines] idle: must be a number above 0"),
    "below nothing": ("[deadlines]\ntotal = -1", "c.toml:2: [deadlines] total: must be a number above 0"),
    "half a byte": ("[bounds]\nbytes = 0.5", "c.toml:2: [bounds] bytes: must be a whole number from 1 to"),
    "a table as a value": ("deadlines = 3", "c.toml:1: deadlines: must be a table: [deadlines]"),
    "tools in one text": ('tools = "bash"', 'c.toml:1: tools: must be a list of strings, such as ["a", "b"]'),
    "a small context": ("context_tokens = 10", "c.toml:1: context_tokens: must be a whole number from 1000 to"),
    "a word for a switch": ('instructions = "no"', "c.toml:1: instructions: must be true or false, not a string"),
    "a price alone": (
        '\n[prices."gpt-5"]\ninput = 1',
        'c.toml:2: [prices."gpt-5"]: has no output: dollars per million',
    ),
    "a price below nothing": (
        '[prices."a.b"]\ninput = 1\noutput = -2',
        'c.toml:3: [prices."a.b"] output: must be a number of at least 0',
    ),
    "a price's slip": (
        "[prices.m]\ninput = 1\noutput = 2\ncached = 1",
        "c.toml:4: [prices.m] cached: unknown key; did you mean cached_input?",
    ),
    "prices of no model": ("[prices]\ninput = 1", "c.toml:2: [prices] input: must be a table: [prices.input]"),
    "a number of turns": ("turns = 5", "c.toml:1: turns: unknown key"),
    "no number of tokens": ('max_output_tokens = "5"', "c.toml:1: max_output_tokens: must be a whole number from 1 to"),
    "too hot": ("temperature = 3", "c.toml:1: temperature: must be a number from 0 to 2"),
    "no share at all": ("top_p = 0", "c.toml:1: top_p: must be a number above 0, at most 1"),
    "one stop without a list": ('stop = "END"', "c.toml:1: stop: must be a list of"),
    "a slip in a setting of the model": (
        "temprature = 1",
        "c.toml:1: temprature: unknown key; did you mean temperature?",
    ),
    "a body that is no table": ("extra_body = 3", "c.toml:1: extra_body: must be a table: [extra_body]"),
    "a key in the body": ('[extra_body]\napi_key = "sk-1234"', f"c.toml:2: [extra_body] api_key: {NEVER}"),
    "a key deep in the body": ('[extra_body]\na = [{token = "1234"}]', f"c.toml:2: [extra_body] a: {NEVER}"),
    "a date in the body": (
        "[extra_body]\na = 2020-01-01",
        "c.toml:2: [extra_body] a: must be a text, a number, true or false, a list or a table",
    ),
    "what the program writes itself": (
        "[extra_body]\nmessages = []",
        "c.toml:2: [extra_body] messages: is a field that the program writes itself",
    ),
    "a setting in the body": (
        "[extra_body]\ntemperature = 1",
        "c.toml:2: [extra_body] temperature: is a setting of its own: temperature = ...",
    ),
    "a header of the program's": (
        '[extra_headers]\nHost = "h"',
        "c.toml:2: [extra_headers] Host: is a header that the program writes itself",
    ),
    "a header of two lines": (
        '[extra_headers]\nx-a = "a\\nb"',
        "c.toml:2: [extra_headers] x-a: must be a text of printable ASCII characters",
    ),
    "a header with a blank": (
        '[extra_headers]\n"x a" = "b"',
        "c.toml:2: [extra_headers] x a: is not a valid header name",
    ),
    "a profile's slip": (
        '[models.fast]\nmodle = "m"',
        "c.toml:2: [models.fast] modle: unknown key; did you mean model?",
    ),
    "a setting of a profile": ("[models.fast]\nseed = 1.5", "c.toml:2: [models.fast] seed: must be a whole number"),
    "a key of no server": (
        '[models.fast]\nkey_variable = "CORP_KEY"',
        "c.toml:2: [models.fast] key_variable: belongs to a server: name the provider or the base_url beside it",
    ),
    "a profile that is no table": ("[models]\nfast = 1", "c.toml:2: [models] fast: must be a table: [models.fast]"),
    "a key in a profile": ('[models.fast]\napi_key = "1234"', f"c.toml:2: [models.fast] api_key: {NEVER}"),
    "a key": ('api_key = "sk-1234"', f"c.toml:1: api_key: {NEVER}"),
    "a key by another name": ('OPENAI_API_KEY = "sk-1234"', f"c.toml:1: OPENAI_API_KEY: {NEVER}"),
    "a token": ('auth_token = "sk-1234"', f"c.toml:1: auth_token: {NEVER}"),
    "a table of keys": ('[keys]\nopenai = "sk-1234"', f"c.toml:1: keys: {NEVER}"),
    "a slip that looks like a token": (
        "context_token = 5000",
        "c.toml:1: context_token: unknown key; did you mean context",
    ),
    "a key for the name of one": (
        'key_variable = "sk-1234"',
        "c.toml:1: key_variable: must be the NAME of an environment",
    ),
    "a small key": ('key_variable = "gsk_1234"', "c.toml:1: key_variable: must be the NAME of an environment"),
}


@all_rows(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_invalid_configuration_is_refused_with_file_line_and_key(text: str, message: str) -> None:
    told = problem(text)
    assert told.startswith(message)
    assert "1234" not in told, "a key is never shown"


def test_invalid_utf_8_configuration_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^c\.toml: is not UTF-8: byte 9$"):
        parse_config(b'model = "\xff"', "c.toml")


@all_rows(
    "header", ['[prices."m"]', "[prices.'m']", "[ prices . m ]", "[prices.m] # why", 'prices."m" = {', "prices.m = {"]
)
def test_the_line_of_a_model_is_found_however_it_is_written(header: str) -> None:
    text = f"{header}\ninput = 1\noutput = 2\n" if "]" in header else f"{header}input = 1, output = 2}}\n"
    assert parse("\n\n" + text).prices["m"].origin == "c.toml:3"


@given(st.text(max_size=60) | st.sampled_from(FULL.splitlines()).flatmap(lambda line: st.just(line[:-1])))
def test_any_text_is_taken_or_refused_with_its_name(text: str) -> None:
    try:
        parse_config(text.encode("utf-8", "surrogatepass"), "c.toml")
    except UsageError as error:
        assert str(error).startswith("c.toml:")  # noqa: PT017 - what is not refused is fine too


# --- where the file lies, and who may write it ---


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration as it should be."""
    path = tmp_path / "config" / "config.toml"
    path.parent.mkdir()
    path.write_text('model = "m"\n')
    path.chmod(0o600)
    (tmp_path / "workspace").mkdir()
    return path


def load(path: Path) -> ConfigFile:
    return load_config(str(path), str(path.parent.parent / "workspace"))


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load(path)
    return str(caught.value)


def test_a_file_that_is_as_it_should_be(file: Path) -> None:
    assert load(file) == ConfigFile(
        path=str(file), is_found=True, values={"model": Setting(value="m", origin=f"{file}:1")}
    )


def test_missing_configuration_file_is_empty(tmp_path: Path) -> None:
    path = str(tmp_path / "config.toml")
    assert load_config(path, "/nowhere") == ConfigFile(path=path, is_found=False)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert refusal(file) == f"{file}: others than you may write it: chmod go-w"


def test_folder_writable_by_anyone_is_refused(file: Path) -> None:
    file.parent.chmod(0o777)
    assert "any user may replace the file" in refusal(file)
    file.parent.chmod(0o1777)
    assert load(file).is_found


def test_parent_folder_writable_by_anyone_is_refused(file: Path) -> None:
    file.parent.parent.chmod(0o777)
    assert f"any user may replace the file: chmod o-w {file.parent.parent}" in refusal(file)


def test_a_file_with_another_name(file: Path) -> None:
    os.link(file, file.parent / "other")
    assert refusal(file) == f"{file}: has further hard links, so that it can be written under another name"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_file_of_another_user_is_refused(file: Path) -> None:
    os.chown(file, 65534, 65534)
    assert "belongs to user 65534, not to you" in refusal(file)


def test_configuration_must_be_an_existing_file(file: Path) -> None:
    file.unlink()
    file.mkdir()
    assert refusal(file) == f"{file}: is not a file"
    file.rmdir()
    os.mkfifo(file)
    assert refusal(file) == f"{file}: is not a file"
    file.unlink()
    file.symlink_to(file)
    assert "cannot be read" in refusal(file)
    file.unlink()
    file.symlink_to("nowhere")
    assert refusal(file) == f"{file}: cannot be read: No such file or directory"


def test_configuration_inside_the_workspace_is_refused(file: Path) -> None:
    """The folder itself, the end of a link, a link on the way, and a link in the workspace that leads out of it."""
    workspace = file.parent.parent / "workspace"
    inside = workspace / "config.toml"
    inside.write_text('model = "evil"\n')
    with pytest.raises(UsageError, match="is inside the workspace"):
        load_config(str(inside), str(workspace))
    good = file.rename(file.parent.parent / "good.toml")
    file.symlink_to(inside)
    assert "is inside the workspace" in refusal(file)
    file.unlink()
    inside.unlink()
    inside.symlink_to(good)
    file.symlink_to(inside)
    assert "is inside the workspace" in refusal(file), "who owns the link chooses the file"
    file.unlink()
    file.symlink_to(f"../workspace/../{good.name}")
    assert "is inside the workspace" in refusal(file)
    file.unlink()
    file.symlink_to(good)
    assert load(file).values["model"].value == "m"
    file.unlink()
    file.parent.rmdir()
    file.parent.symlink_to(workspace)
    assert "is inside the workspace" in refusal(file)


# --- who wins over whom ---

FILE = 'model = "of-file"\n'
URL = "https://llm.example.org/v1"
KEY = {"OPENAI_API_KEY": "sk-of-openai", "GROQ_API_KEY": "gsk-of-groq"}


def settings(
    flags: Mapping[str, str] = {},
    environment: Mapping[str, str] = {},
    file: str = "",
    told: Mapping[str, Any] = {},
) -> Settings:
    return resolve(flags, environment, parse(file) if file else ConfigFile(path="c.toml"), flag_settings=told)


def told(found: Settings, *names: str) -> list[tuple[object, str]]:
    return [(getattr(found, name).value, getattr(found, name).origin) for name in names]


@all_rows("written", ['provider = "openai"\nkey_variable = "CORP_KEY"', 'key_variable = "CORP_KEY"'])
def test_another_address_in_the_environment_sets_the_key_of_the_file_aside(written: str) -> None:
    """The file named its key for OpenAI; OPENAI_BASE_URL names another server."""
    assert told(settings(file=written), "key_variable") == [("CORP_KEY", "c.toml:" + str(len(written.splitlines())))]
    found = settings(environment={"OPENAI_BASE_URL": URL}, file=written)
    assert found.key_variable.value == "OPENAI_API_KEY"


MODELS = {
    "nobody": ({}, {}, "", (DEFAULT_MODEL, "default")),
    "the file": ({}, {}, FILE, ("of-file", "c.toml:1")),
    "the environment over the file": ({}, {"HARNESS_MODEL": "e"}, FILE, ("e", "environment HARNESS_MODEL")),
    "a flag over both": ({"model": "f"}, {"HARNESS_MODEL": "e"}, FILE, ("f", "flag --model")),
    "an empty variable is none": ({}, {"HARNESS_MODEL": " "}, FILE, ("of-file", "c.toml:1")),
    "no guess for another provider": ({"provider": "ollama"}, {}, "", ("", "default")),
    "the default is OpenAI's": ({"provider": "openai"}, {}, "", (DEFAULT_MODEL, "default")),
}


@all_rows(("flags", "environment", "file_text", "expected"), MODELS.values(), ids=MODELS)
def test_model_is_chosen_by_precedence_with_its_origin(
    flags: dict[str, str], environment: dict[str, str], file_text: str, expected: tuple[str, str]
) -> None:
    assert told(settings(flags, environment, file_text), "model") == [expected]


LOCAL = str(PRESETS["ollama"].base_url)
IN_FILE = f'base_url = "{URL}"\nkey_variable = "CORP_KEY"\napi = "responses"\n'
OLLAMA_IN_FILE = 'provider = "ollama"\napi = "responses"\n'
DEFAULT_KEY = ("OPENAI_API_KEY", "default")
SERVERS: dict[str, tuple[dict[str, str], dict[str, str], str, list[tuple[object, str]]]] = {
    # provider, base_url, key_variable, api
    "nobody": (
        {}, {}, "",
        [("", "default"), (OPENAI_URL, "default"), DEFAULT_KEY, (Api.CHAT, "default")],
    ),
    "OpenAI's own variable": (
        {}, {"OPENAI_BASE_URL": URL}, "",
        [("", "default"), (URL, "environment OPENAI_BASE_URL"), DEFAULT_KEY, (Api.CHAT, "default")],
    ),
    "ours over OpenAI's": (
        {}, {"OPENAI_BASE_URL": "http://a", "HARNESS_BASE_URL": URL}, "",
        [("", "default"), (URL, "environment HARNESS_BASE_URL"), DEFAULT_KEY, (Api.CHAT, "default")],
    ),
    "the file": (
        {}, {}, IN_FILE,
        [("", "default"), (URL, "c.toml:1"), ("CORP_KEY", "c.toml:2"), (Api.RESPONSES, "c.toml:3")],
    ),
    "an address in the environment leaves the file's key at home": (
        {}, {"OPENAI_BASE_URL": "http://a"}, IN_FILE,
        [("", "default"), ("http://a", "environment OPENAI_BASE_URL"), DEFAULT_KEY, (Api.CHAT, "default")],
    ),
    "an address by flag too": (
        {"base_url": "http://a"}, {}, IN_FILE,
        [("", "default"), ("http://a", "flag --base-url"), DEFAULT_KEY, (Api.CHAT, "default")],
    ),
    "a provider by flag leaves the file's address and key at home": (
        {"provider": "openai"}, {}, IN_FILE,
        [("openai", "flag --provider"), (OPENAI_URL, "preset openai"), ("OPENAI_API_KEY", "preset openai"),
         (Api.CHAT, "preset openai")],
    ),
    "a provider by variable too": (
        {}, {"HARNESS_PROVIDER": "ollama"}, IN_FILE,
        [("ollama", "environment HARNESS_PROVIDER"), (LOCAL, "preset ollama"), ("", "preset ollama"),
         (Api.CHAT, "preset ollama")],
    ),
    "an address by flag leaves the file's provider at home": (
        {"base_url": URL}, {}, OLLAMA_IN_FILE,
        [("", "default"), (URL, "flag --base-url"), DEFAULT_KEY, (Api.CHAT, "default")],
    ),
    "provider and address of one layer belong together": (
        {"provider": "ollama", "base_url": URL}, {}, "",
        [("ollama", "flag --provider"), (URL, "flag --base-url"), ("", "preset ollama"), (Api.CHAT, "preset ollama")],
    ),
    "OPENAI_BASE_URL is not for other providers": (
        {}, {"OPENAI_BASE_URL": URL}, 'provider = "ollama"',
        [("ollama", "c.toml:1"), (LOCAL, "preset ollama"), ("", "preset ollama"), (Api.CHAT, "preset ollama")],
    ),
    "but it is for OpenAI": (
        {"provider": "openai"}, {"OPENAI_BASE_URL": URL}, "",
        [("openai", "flag --provider"), (URL, "environment OPENAI_BASE_URL"), ("OPENAI_API_KEY", "preset openai"),
         (Api.CHAT, "preset openai")],
    ),
    "a provider with a variable of its own": (
        {"provider": "azure"}, {"AZURE_OPENAI_ENDPOINT": URL, "OPENAI_BASE_URL": "http://a"}, "",
        [("azure", "flag --provider"), (URL, "environment AZURE_OPENAI_ENDPOINT"),
         ("AZURE_OPENAI_API_KEY", "preset azure"), (Api.CHAT, "preset azure")],
    ),
    "OpenAI's variable leaves the file's key at home": (
        {}, {"OPENAI_BASE_URL": "http://a"}, 'provider = "openai"\n' + IN_FILE,
        [("openai", "c.toml:1"), ("http://a", "environment OPENAI_BASE_URL"), ("OPENAI_API_KEY", "preset openai"),
         (Api.RESPONSES, "c.toml:4")],
    ),
    "a provider's own variable fills in the address": (
        {}, {"AZURE_OPENAI_ENDPOINT": URL}, 'provider = "azure"\nkey_variable = "MY_KEY"\n',
        [("azure", "c.toml:1"), (URL, "environment AZURE_OPENAI_ENDPOINT"), ("MY_KEY", "c.toml:2"),
         (Api.CHAT, "preset azure")],
    ),
    "a provider without an address": (
        {"provider": "azure"}, {"OPENAI_BASE_URL": "http://a"}, "",
        [("azure", "flag --provider"), ("", "preset azure"), ("AZURE_OPENAI_API_KEY", "preset azure"),
         (Api.CHAT, "preset azure")],
    ),
    "an API alone is for every server": (
        {"base_url": URL}, {"HARNESS_API": "responses"}, 'api = "chat"',
        [("", "default"), (URL, "flag --base-url"), DEFAULT_KEY, (Api.RESPONSES, "environment HARNESS_API")],
    ),
    "an API that was meant for another server": (
        {"provider": "openai"}, {}, OLLAMA_IN_FILE,
        [("openai", "flag --provider"), (OPENAI_URL, "preset openai"), ("OPENAI_API_KEY", "preset openai"),
         (Api.CHAT, "preset openai")],
    ),
    "a key alone is for OpenAI itself": (
        {}, {}, 'key_variable = "WORK_KEY"',
        [("", "default"), (OPENAI_URL, "default"), ("WORK_KEY", "c.toml:1"), (Api.CHAT, "default")],
    ),
    "and for nobody else": (
        {"base_url": URL}, {}, 'key_variable = "WORK_KEY"',
        [("", "default"), (URL, "flag --base-url"), DEFAULT_KEY, (Api.CHAT, "default")],
    ),
}  # fmt: skip


@all_rows(("flags", "environment", "file_text", "expected"), SERVERS.values(), ids=SERVERS)
def test_server_is_chosen_by_precedence_with_its_origin(
    flags: dict[str, str], environment: dict[str, str], file_text: str, expected: list[tuple[object, str]]
) -> None:
    found = settings(flags, environment, file_text)
    assert told(found, "provider", "base_url", "key_variable", "api") == expected


PROFILES = """\
provider = "openai"
key_variable = "WORK_KEY"
temperature = 1
seed = 5
[extra_body]
a = 1
[models.cold]
model = "gpt-5-mini"
temperature = 0
[models.local]
model = "qwen3"
provider = "ollama"
calls = "text"
seed = 9
[models.far]
base_url = "https://llm.example.org/v1"
key_variable = "FAR_KEY"
"""
OF_FILE = {"temperature": 1, "seed": 5, "extra_body.a": 1}
PROFILED: dict[str, tuple[dict[str, str], dict[str, str], dict[str, Any], tuple[str, str, str], dict[str, Any]]] = {
    # model, address, key; settings of the model
    "no profile": ({}, {}, {}, (DEFAULT_MODEL, OPENAI_URL, "WORK_KEY"), OF_FILE),
    "flags over the file": (
        {}, {}, {"seed": 6, "extra_body.b": 2}, (DEFAULT_MODEL, OPENAI_URL, "WORK_KEY"),
        {**OF_FILE, "seed": 6, "extra_body.b": 2},
    ),
    "a profile at the same server": (
        {"model": "cold"}, {}, {}, ("gpt-5-mini", OPENAI_URL, "WORK_KEY"), {**OF_FILE, "temperature": 0},
    ),
    "flags over a profile": (
        {"model": "cold"}, {}, {"temperature": 2}, ("gpt-5-mini", OPENAI_URL, "WORK_KEY"), {**OF_FILE, "temperature": 2},
    ),
    "a profile by the environment": (
        {}, {"HARNESS_MODEL": "cold"}, {}, ("gpt-5-mini", OPENAI_URL, "WORK_KEY"), {**OF_FILE, "temperature": 0},
    ),
    "a model by flag over a profile by the environment": (
        {"model": "m"}, {"HARNESS_MODEL": "cold"}, {}, ("m", OPENAI_URL, "WORK_KEY"), OF_FILE,
    ),
    "another server: what the file says of its own is set aside": (
        {"model": "local"}, {}, {}, ("qwen3", LOCAL, ""), {"seed": 9},
    ),
    "another server with its own key": ({"model": "far"}, {}, {}, ("far", URL, "FAR_KEY"), {}),
    "a provider by flag sets the settings of the file aside": (
        {"provider": "ollama", "model": "m"}, {}, {"seed": 3}, ("m", LOCAL, ""), {"seed": 3},
    ),
    "a profile by flag over an address in the environment": (
        {"model": "local"}, {"OPENAI_BASE_URL": "http://a"}, {}, ("qwen3", LOCAL, ""), {"seed": 9},
    ),
}  # fmt: skip


@all_rows(("flags", "environment", "by_flags", "expected", "of_model"), PROFILED.values(), ids=PROFILED)
def test_profile_and_flags_have_their_precedence(
    flags: dict[str, str],
    environment: dict[str, str],
    by_flags: dict[str, Any],
    expected: tuple[str, str, str],
    of_model: dict[str, Any],
) -> None:
    found = settings(flags, environment, PROFILES, by_flags)
    assert (found.model.value, found.base_url.value, found.key_variable.value) == expected
    assert {name: setting.value for name, setting in found.of_model.items()} == of_model


@all_rows("flags", [{"provider": "groq"}, {"base_url": "https://a.example/v1"}])
def test_a_profile_and_a_flag_that_name_two_servers(flags: dict[str, str]) -> None:
    """Where the conversation goes must not depend on which of two words the person forgot."""
    with pytest.raises(
        UsageError, match=r"^flag --\S+: names another server than c\.toml:\d+, the profile of the model$"
    ):
        settings({"model": "local", **flags}, {}, PROFILES)


OF_OPENAI = """\
provider = "openai"
key_variable = "WORK_KEY"
api = "responses"
effort = "low"
[models.mini]
model = "gpt-5-mini"
provider = "openai"
calls = "text"
[models.other]
provider = "anthropic-messages"
"""
OF_ADDRESS = f'base_url = "{URL}"\nkey_variable = "WORK_KEY"\napi = "responses"\neffort = "low"\n'
OF_AZURE = 'provider = "azure"\nkey_variable = "WORK_KEY"\napi = "responses"\neffort = "low"\n'
KEPT = ("WORK_KEY", Api.RESPONSES, ["effort"])
ASIDE: tuple[str, Api, list[str]] = ("OPENAI_API_KEY", Api.CHAT, [])
MEANT: dict[str, tuple[dict[str, str], dict[str, str], str, tuple[str, Api, list[str]]]] = {
    "nobody names one": ({}, {}, OF_OPENAI, KEPT),
    "a flag": ({"provider": "openai"}, {}, OF_OPENAI, KEPT),
    "a variable": ({}, {"HARNESS_PROVIDER": "openai"}, OF_OPENAI, KEPT),
    "a profile": ({"model": "mini"}, {}, OF_OPENAI, KEPT),
    "a profile, and a flag beside it": ({"model": "mini", "provider": "openai"}, {}, OF_OPENAI, KEPT),
    "its address": ({"base_url": "https://api.openai.com/v1/"}, {}, OF_OPENAI, KEPT),
    "an address": ({"base_url": URL}, {}, OF_ADDRESS, KEPT),
    "a key and settings of nobody in particular": (
        {"provider": "openai"}, {}, 'key_variable = "WORK_KEY"\napi = "responses"\neffort = "low"', KEPT,
    ),
    "a resource that a variable says": (
        {"provider": "azure"}, {"AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com"}, OF_AZURE, KEPT,
    ),
    "another provider": ({"provider": "groq"}, {}, OF_OPENAI, ("GROQ_API_KEY", Api.CHAT, [])),
    "a profile of another provider": ({"model": "other"}, {}, OF_OPENAI, ("ANTHROPIC_API_KEY", Api.MESSAGES, [])),
    "another end of one address": (
        {"provider": "anthropic-messages"}, {},
        'provider = "anthropic"\nkey_variable = "WORK_KEY"\neffort = "low"', ("ANTHROPIC_API_KEY", Api.MESSAGES, []),
    ),
    "another address": ({"base_url": "http://a"}, {}, OF_ADDRESS, ASIDE),
    "the same provider at another address": ({"provider": "openai", "base_url": "http://a"}, {}, OF_OPENAI, ASIDE),
    "OpenAI's variable moves the provider: no key goes there": (
        {"provider": "openai"}, {"OPENAI_BASE_URL": "http://a"}, OF_OPENAI, ("OPENAI_API_KEY", Api.RESPONSES, ["effort"]),
    ),
    "it moves a profile's as well": (
        {"model": "mini"}, {"OPENAI_BASE_URL": "http://a"}, OF_OPENAI, ("OPENAI_API_KEY", Api.RESPONSES, ["effort"]),
    ),
}  # fmt: skip


@all_rows(("flags", "environment", "file_text", "expected"), MEANT.values(), ids=MEANT)
def test_file_settings_apply_to_the_server_of_the_file_only(
    flags: dict[str, str], environment: dict[str, str], file_text: str, expected: tuple[str, Api, list[str]]
) -> None:
    found = settings(flags, environment, file_text)
    assert (found.key_variable.value, found.api.value, [*found.of_model]) == expected


def test_changed_model_drops_profile_settings_and_keeps_its_server() -> None:
    file = f'''\
effort = "low"
[models.fast]
model = "small"
effort = "high"
temperature = 0.5
calls = "text"
context_tokens = 8000
pictures = false
[models.far]
base_url = "{URL}"
key_variable = "FAR_KEY"
seed = 9
'''
    begun = settings({}, {}, file)
    after = begun.with_model("fast", {}).with_model("gpt-5", {})
    asked = Setting(value="gpt-5", origin="/model")
    assert after == replace(begun, model=asked, model_profile=after.model_profile)
    there = begun.with_model("far", {}).with_model("other", {}).with_model("third", {})
    assert told(there, "model", "base_url", "key_variable") == [
        ("third", "/model"), (URL, "c.toml:10"), ("FAR_KEY", "c.toml:11"),
    ]  # fmt: skip
    assert (there.profile, {name: one.value for name, one in there.of_model.items()}) == ("", {"effort": "low"})
    assert there.with_model("fast", {}).base_url.value == OPENAI_URL


KEY_HEADERS = (
    "X-Api-Key api-key ApiKey Ocp-Apim-Subscription-Key X-Auth-Key X-Auth-Token X-Access-Token Authorization "
    "Proxy-Authorization cf-aig-authorization Helicone-Auth X-OAuth Cookie X-Goog-Api-Key x-functions-key X-Client-Secret "
    "X-Password X-AccessToken X-ServiceKeys PRIVATE-TOKEN X-Bearer"
).split()
PLAIN_HEADERS = "anthropic-beta X-Team HTTP-Referer X-Title X-Author X-Keyboard x-session-id X-Monkey Tokenizer".split()


@all_rows("name", KEY_HEADERS, ids=KEY_HEADERS)
def test_headers_and_body_fields_cannot_carry_a_key(name: str) -> None:
    assert problem(f'[extra_headers]\n{name} = "1234"').startswith(f"c.toml:2: [extra_headers] {name}: {NEVER}")
    with pytest.raises(UsageError, match=NEVER):
        said_by_flags(None, [f"extra_headers.{name}=1234"])
    with pytest.raises(UsageError, match=NEVER):
        said_by_flags(None, [f"extra_body.{name}=1234"])


@all_rows("name", PLAIN_HEADERS, ids=PLAIN_HEADERS)
def test_another_header_is_taken(name: str) -> None:
    assert said_by_flags(None, [f"extra_headers.{name}=a"]) == {f"extra_headers.{name.lower()}": "a"}


BY_FLAGS: dict[str, tuple[str | None, list[str], dict[str, Any] | str]] = {
    "nothing": (None, [], {}),
    "an effort": ("low", [], {"effort": "low"}),
    "a number": (None, ["temperature=0.2"], {"temperature": 0.2}),
    "a text": (None, ["service_tier=flex"], {"service_tier": "flex"}),
    "a text that looks like a number": (None, ["verbosity=1"], {"verbosity": "1"}),
    "one stop": (None, ["stop=END"], {"stop": ["END"]}),
    "two": (None, ['stop=["a", "b"]'], {"stop": ["a", "b"]}),
    "further fields": (
        None,
        ["extra_body.top_k=40", "extra_body.mode=on"],
        {"extra_body.top_k": 40, "extra_body.mode": "on"},
    ),
    "a field of a field": (
        None,
        [
            "extra_body.metadata.user_id=5",
            'extra_body.metadata."a.b"=on',
            "extra_body.top={k = 1}",
            "extra_body.top.l=2",
        ],
        {"extra_body.metadata": {"user_id": 5, "a.b": "on"}, "extra_body.top": {"k": 1, "l": 2}},
    ),
    "a field of a number": (
        None,
        ["extra_body.a=1", "extra_body.a.b=2"],
        {"extra_body.a": {"b": 2}},
    ),
    "a header with a dot": (None, ["extra_headers.X.A=1"], {"extra_headers.x.a": "1"}),
    "a field without a name": (None, ["extra_body.=1"], "--set extra_body.: invalid field name"),
    "a name of two lines": (None, ["extra_body.[a]\n[b]\nc=1"], "--set extra_body.[a]\n[b]\nc: invalid field name"),
    "a name that is none": (None, ["extra_body.a b=1"], "--set extra_body.a b: invalid field name"),
    "a key deep down": (None, ["extra_body.a.api_key=1234"], "--set extra_body.a: keys are never read from files"),
    "a header": (None, ["extra_headers.X-A=1"], {"extra_headers.x-a": "1"}),
    "the last word counts": ("low", ["effort=high"], {"effort": "high"}),
    "no value": (None, ["seed"], "--set 'seed': must be NAME=VALUE, such as temperature=0.2"),
    "a slip": (None, ["sed=1"], "--set sed: unknown model setting; did you mean seed?"),
    "a field of no table": (None, ["seed.x=1"], "--set seed.x: unknown model setting"),
    "no number": (None, ["seed=many"], "--set seed: must be a whole number"),
    "a key": (None, ["extra_body.api_key=1234"], "--set extra_body.api_key: keys are never read from files"),
}


@all_rows(("effort", "pairs", "expected"), BY_FLAGS.values(), ids=BY_FLAGS)
def test_settings_of_a_model_by_flags(effort: str | None, pairs: list[str], expected: dict[str, Any] | str) -> None:
    if isinstance(expected, dict):
        assert said_by_flags(effort, pairs) == expected
        return
    with pytest.raises(UsageError) as caught:
        said_by_flags(effort, pairs)
    assert str(caught.value).startswith(expected)


def test_request_tables_are_merged_with_the_newer_value_first() -> None:
    file = """\
[extra_body.metadata]
team = "a"
user_id = 1
[models.m.extra_body]
metadata = {user_id = 2}
"""
    told = said_by_flags(None, ["extra_body.metadata.more=3"])
    found = settings({"model": "m"}, {}, file, told).of_model
    assert {name: one.value for name, one in found.items()} == {
        "extra_body.metadata": {"team": "a", "user_id": 2, "more": 3}
    }


def test_defaults_are_those_of_the_endpoint() -> None:
    found = settings()
    assert {name: (number.value, number.origin) for name, number in found.deadlines.items()} == {
        name: (getattr(Deadlines(), name), "default") for name in ("connect", "first_event", "idle", "total")
    }
    assert {name: whole.value for name, whole in found.bounds.items()} == {
        name: getattr(ReplyBounds(), name)
        for name in ("bytes", "event_bytes", "events", "calls", "argument_characters")
    }
    assert told(found, "attempts", "retry_seconds", "context_tokens", "prices", "system", "instructions") == [
        (Endpoint().attempts, "default"),
        (Endpoint().retry_seconds, "default"),
        (None, "default"),
        (None, "default"),
        ("", "default"),
        (True, "default"),
    ]


def test_file_only_settings_are_read() -> None:
    found = resolve({"base_url": URL}, {}, parse_config(FULL.encode(), "/conf/c.toml"))
    assert told(
        found, "attempts", "retry_seconds", "context_tokens", "prices", "system", "instructions", "sign_key"
    ) == [
        (3, "/conf/c.toml:8"),
        (60.0, "/conf/c.toml:9"),
        (128_000, "/conf/c.toml:10"),
        (Prices(input=1.25, output=10.0, cached_input=0.0, cache_write=1.5), "/conf/c.toml:43"),
        ("/conf/prompt.md", "/conf/c.toml:11"),
        (False, "/conf/c.toml:12"),
        ("/home/me/.ssh/logs", "/conf/c.toml:13"),
    ]
    assert (found.deadlines["idle"], found.bounds["calls"]) == (
        Setting(value=30.0, origin="/conf/c.toml:33"),
        Setting(value=3, origin="/conf/c.toml:39"),
    )


@all_rows(
    ("written", "meant"),
    [("/keys/k", "/keys/k"), ("keys/k", "/conf/keys/k"), ("~/.ssh/k", "/home/me/.ssh/k"), ("~you/k", "/conf/~you/k")],
)
def test_signing_key_is_relative_to_the_file_or_home(written: str, meant: str) -> None:
    file = parse_config(f'sign_key = "{written}"\n'.encode(), "/conf/c.toml")
    assert resolve({}, {"HOME": "/home/me"}, file).sign_key == Setting(value=meant, origin="/conf/c.toml:1")
    assert resolve({}, {}, ConfigFile(path="/conf/c.toml")).sign_key == Setting(value="", origin="default")


def test_instructions_are_switched_off_by_a_flag_too() -> None:
    assert told(settings({"instructions": "True"}), "instructions") == [(False, "flag --no-instructions")]


def test_prices_are_those_of_the_model() -> None:
    assert settings({"model": "other"}, {}, FULL).prices.value == Prices(input=1.0, output=2.0)
    assert settings({"model": "third"}, {}, FULL).prices.value is None


SENSELESS = {
    "a provider": ({"provider": "opnai"}, {}, "flag --provider: unknown provider 'opnai'; did you mean openai?"),
    "a provider's variable": ({}, {"HARNESS_PROVIDER": "x"}, "environment HARNESS_PROVIDER: unknown provider 'x'"),
    "an API": ({}, {"HARNESS_API": "rest"}, "environment HARNESS_API: unknown API 'rest'"),
    "an address": ({"base_url": "h"}, {}, "flag --base-url: must begin with http:// or https://, not 'h'"),
    "OpenAI's": ({}, {"OPENAI_BASE_URL": "h"}, "environment OPENAI_BASE_URL: must begin with http:// or https://"),
    "Azure's": (
        {"provider": "azure"},
        {"AZURE_OPENAI_ENDPOINT": "h"},
        "environment AZURE_OPENAI_ENDPOINT: must begin with http:// or https://",
    ),
}


@all_rows(("flags", "environment", "message"), SENSELESS.values(), ids=SENSELESS)
def test_invalid_value_is_refused_with_its_origin(
    flags: dict[str, str], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        settings(flags, environment)
    assert str(caught.value).startswith(message)


def test_settings_contain_no_key() -> None:
    found = settings({}, KEY)
    assert (found.key_set, "sk-of-openai" in repr(found)) == (True, False)
