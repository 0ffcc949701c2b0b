"""Which key is sent where: every provider gets its own key or none, and what is missing is said before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import all_rows

from harness.errors import UsageError
from harness.models.anthropic_messages import AnthropicMessages
from harness.models.endpoint import Deadlines, Endpoint, ReplyBounds, shown_address
from harness.models.openai_chat import OpenAIChat
from harness.models.openai_responses import OpenAIResponses
from harness.models.presets import PRESETS
from harness.session.config.config_file import ConfigFile, parse_config
from harness.session.config.provider import NO_KEY, NO_PROVIDER, OPENAI_ONLY, endpoint_of, model_from, not_for
from harness.session.config.settings import OPENAI_URL, Settings, resolve
from harness.session.environment_secrets import secrets_of

LOCAL = "http://127.0.0.1:9/v1"
URL = "https://llm.example.org/v1"
KEYS = {preset.key_variable: f"key-in-{preset.key_variable}" for preset in PRESETS.values() if preset.key_variable}
WITH_KEYS = [preset.name for preset in PRESETS.values() if preset.key_variable]
SHARED = [name for name in WITH_KEYS if PRESETS[name].base_url]
"""Those whose address all their users share."""


def settings(flags: Mapping[str, str], environment: Mapping[str, str], file: str = "") -> Settings:
    return resolve(flags, environment, parse_config(file.encode(), "c.toml") if file else ConfigFile(path="c.toml"))


def endpoint(flags: Mapping[str, str], environment: Mapping[str, str], file: str = "") -> Endpoint:
    return endpoint_of(settings(flags, environment, file), environment)


def refusal(flags: Mapping[str, str], environment: Mapping[str, str], file: str = "") -> str:
    with pytest.raises(UsageError) as caught:
        endpoint(flags, environment, file)
    return str(caught.value)


AZURE = {"AZURE_OPENAI_API_KEY": "a", "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}
# What is given (flags, variables, file), and which key goes to which address.
SENT: dict[str, tuple[dict[str, str], dict[str, str], str, tuple[str, str]]] = {
    "OpenAI": ({}, {"OPENAI_API_KEY": "k"}, "", (OPENAI_URL, "k")),
    "blanks around a key": ({}, {"OPENAI_API_KEY": " k\n"}, "", (OPENAI_URL, "k")),
    "an address and no key": ({"base_url": LOCAL}, {}, "", (LOCAL, NO_KEY)),
    "an address and OpenAI's key, as the SDK has it": ({"base_url": URL}, {"OPENAI_API_KEY": "k"}, "", (URL, "k")),
    "both in variables": ({}, {"OPENAI_BASE_URL": URL, "OPENAI_API_KEY": "k"}, "", (URL, "k")),
    "a provider by name, with all keys set": (
        {"provider": "openai"}, KEYS, "", (OPENAI_URL, "key-in-OPENAI_API_KEY"),
    ),
    "a local one gets no key": (
        {"provider": "ollama", "model": "m"}, KEYS, "", (str(PRESETS["ollama"].base_url), NO_KEY),
    ),
    "a local one elsewhere neither": (
        {"provider": "ollama", "model": "m", "base_url": URL}, KEYS, "", (URL, NO_KEY),
    ),
    "the file's server and key": (
        {}, {"CORP_KEY": "c", **KEYS}, f'base_url = "{URL}"\nkey_variable = "CORP_KEY"', (URL, "c"),
    ),
    "a flag's server never gets the file's key": (
        {"base_url": "https://other.example/v1"},
        {"CORP_KEY": "c"},
        f'base_url = "{URL}"\nkey_variable = "CORP_KEY"',
        ("https://other.example/v1", NO_KEY),
    ),
    "Azure by version": (
        {"provider": "azure", "model": "d"}, {**AZURE, "OPENAI_API_VERSION": "2025-01-01", "OPENAI_API_KEY": "k"}, "",
        ("https://x.openai.azure.com", "a"),
    ),
    "Azure by address": (
        {"provider": "azure", "model": "d"}, {**AZURE, "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com/openai/v1"},
        "", ("https://x.openai.azure.com/openai/v1", "a"),
    ),
}  # fmt: skip


@all_rows(("flags", "environment", "file", "expected"), SENT.values(), ids=SENT)
def test_endpoint_pairs_each_address_with_its_key(
    flags: dict[str, str], environment: dict[str, str], file: str, expected: tuple[str, str]
) -> None:
    found = endpoint(flags, environment, file)
    assert (found.base_url, found.api_key) == expected


@all_rows("name", SHARED)
def test_a_provider_gets_its_own_key_out_of_all(name: str) -> None:
    found = endpoint({"provider": name, "model": "m"}, KEYS)
    assert (found.base_url, found.api_key, found.quirks) == (
        PRESETS[name].base_url,
        KEYS[PRESETS[name].key_variable],
        PRESETS[name].quirks,
    )


@all_rows("name", [name for name in SHARED if str(PRESETS[name].base_url).startswith("https")])
def test_key_of_another_provider_is_not_used(name: str) -> None:
    others = {variable: key for variable, key in KEYS.items() if variable != PRESETS[name].key_variable}
    told = refusal({"provider": name, "model": "m"}, others)
    assert PRESETS[name].key_variable in told
    assert "is not sent there" in told


@all_rows("name", [name for name in WITH_KEYS if name != "openai"])
def test_provider_key_is_not_sent_to_openai(name: str) -> None:
    flags = {"provider": name, "model": "m", "base_url": OPENAI_URL}
    version = {"OPENAI_API_VERSION": "2025-01-01"} if name == "azure" else {}
    assert "is OpenAI" in refusal(flags, {**KEYS, **version})


@all_rows("name", [name for name in SHARED if str(PRESETS[name].base_url).startswith("https")])
def test_openai_key_is_not_sent_to_another_provider(name: str) -> None:
    flags = {"provider": "openai", "base_url": str(PRESETS[name].base_url)}
    assert f"the key in OPENAI_API_KEY is for OpenAI, and {shown_address(str(PRESETS[name].base_url))}" in refusal(
        flags, KEYS
    )


REFUSED: dict[str, tuple[dict[str, str], dict[str, str], str, str]] = {
    "nothing at all": ({}, {}, "", NO_PROVIDER),
    "a key of blanks": ({}, {"OPENAI_API_KEY": "  "}, "", NO_PROVIDER),
    "only another's key": ({"provider": "openai"}, {"GROQ_API_KEY": "k"}, "", "OpenAI wants a key: export OPENAI_API_KEY"),
    "the file's key is not set": (
        {}, {"OPENAI_API_KEY": "k"}, f'base_url = "{URL}"\nkey_variable = "CORP_KEY"',
        "https://llm.example.org/v1 wants a key: export CORP_KEY=... (c.toml:2)",
    ),
    "a provider's models have names": ({"provider": "ollama"}, {}, "", "which model of Ollama"),
    "no address": ({"provider": "azure"}, AZURE | {"AZURE_OPENAI_ENDPOINT": ""}, "", "set AZURE_OPENAI_ENDPOINT or give"),
    "neither way to Azure": ({"provider": "azure", "model": "m"}, AZURE, "", "Azure is reached by an API version"),
    "Azure's version for another": (
        {}, {"OPENAI_API_KEY": "k"}, 'azure_api_version = "2025-01-01"', "c.toml:1: azure_api_version is only for",
    ),
    "OpenAI's key under another's name": (
        {"model": "m"}, KEYS,
        'provider = "azure"\nbase_url = "https://x.openai.azure.com/openai/v1"\nkey_variable = "OPENAI_API_KEY"',
        "the key in OPENAI_API_KEY is for OpenAI",
    ),
}  # fmt: skip


@all_rows(("flags", "environment", "file", "message"), REFUSED.values(), ids=REFUSED)
def test_missing_or_contradictory_settings_are_refused(
    flags: dict[str, str], environment: dict[str, str], file: str, message: str
) -> None:
    told = refusal(flags, environment, file)
    assert message in told
    assert not any(key in told for key in environment.values() if key.startswith("key-in-"))


@given(
    flags=st.fixed_dictionaries(
        {"model": st.just("m")},
        optional={"provider": st.sampled_from(list(PRESETS)), "base_url": st.sampled_from([URL, LOCAL, OPENAI_URL])},
    ),
    variables=st.fixed_dictionaries(
        {},
        optional={
            "HARNESS_PROVIDER": st.sampled_from(list(PRESETS)),
            "HARNESS_BASE_URL": st.sampled_from([URL, OPENAI_URL, *(PRESETS[name].base_url or "" for name in SHARED)]),
            "OPENAI_BASE_URL": st.sampled_from([URL, OPENAI_URL]),
        },
    ),
    file=st.fixed_dictionaries(
        {},
        optional={
            "provider": st.sampled_from(list(PRESETS)),
            "base_url": st.sampled_from([URL, OPENAI_URL, *(PRESETS[name].base_url or URL for name in SHARED)]),
        },
    ),
)
def test_provider_key_never_reaches_a_foreign_address(
    flags: dict[str, str], variables: dict[str, str], file: dict[str, str]
) -> None:
    """OPENAI_API_KEY beside an address without a provider is the one that people mean."""
    environment = {**KEYS, **variables, "OPENAI_API_VERSION": "2025-01-01"}
    text = "".join(f'{key} = "{value}"\n' for key, value in file.items())
    try:
        found = settings(flags, environment, text)
        sent = endpoint_of(found, environment)
    except UsageError:
        return
    owners = {p.name for p in PRESETS.values() if p.key_variable and KEYS[p.key_variable] == sent.api_key}
    there = {p.name for p in PRESETS.values() if (p.base_url or OPENAI_URL) == sent.base_url and p.name != "azure"}
    if owners and there and sent.base_url != LOCAL and not str(sent.base_url).startswith("http://"):
        assert owners & there or (found.provider.value == "" and "openai" in owners)


@given(
    flags=st.fixed_dictionaries(
        {"model": st.just("m")},
        optional={"provider": st.sampled_from(list(PRESETS)), "base_url": st.sampled_from([URL, LOCAL, OPENAI_URL])},
    ),
    variables=st.fixed_dictionaries(
        {},
        optional={
            name: st.sampled_from(["https://a.example/v1", "https://b.example/v1"])
            for name in ("HARNESS_BASE_URL", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "LITELLM_PROXY_API_BASE")
        },
    ),
    provider=st.none() | st.sampled_from(list(PRESETS)),
    base_url=st.none() | st.just("https://corp.example/v1"),
)
def test_key_of_the_file_never_reaches_an_unintended_address(
    flags: dict[str, str], variables: dict[str, str], provider: str | None, base_url: str | None
) -> None:
    """Meant is the address beside it; else that of the provider beside it, its own variable included; else OpenAI."""
    environment = {"CORP_KEY": "corporate", "OPENAI_API_VERSION": "2025-01-01", **variables}
    lines = ['key_variable = "CORP_KEY"']
    lines += [f'provider = "{provider}"'] if provider else []
    lines += [f'base_url = "{base_url}"'] if base_url else []
    try:
        sent = endpoint(flags, environment, "\n".join(lines))
    except UsageError:
        return
    if sent.api_key != "corporate":
        return
    preset = PRESETS[provider or "openai"]
    own = preset.base_url_variable or ("OPENAI_BASE_URL" if provider == "openai" else "")
    meant = {base_url} if base_url else {preset.base_url or OPENAI_URL, variables.get(own, OPENAI_URL)}
    assert sent.base_url in meant


def test_file_settings_reach_the_endpoint() -> None:
    file = "attempts = 2\nretry_seconds = 9\n[deadlines]\nidle = 7\n[bounds]\ncalls = 5\n"
    assert endpoint({"base_url": LOCAL}, {}, file) == Endpoint(
        base_url=LOCAL,
        api_key=NO_KEY,
        attempts=2,
        retry_seconds=9.0,
        deadlines=Deadlines(idle=7.0),
        bounds=ReplyBounds(calls=5),
    )


@all_rows(("api", "adapter"), [("chat", OpenAIChat), ("responses", OpenAIResponses), ("messages", AnthropicMessages)])
def test_the_adapter_of_the_api(api: str, adapter: type) -> None:
    model = model_from(settings({"base_url": LOCAL, "api": api, "model": "m"}, {}), {})
    assert (type(model), model.name) == (adapter, "m")


def test_the_second_adapter_is_imported_only_when_it_is_chosen() -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom harness.session.config.settings import resolve\n"
        "from harness.session.config.config_file import ConfigFile\n"
        "from harness.session.config.provider import model_from\n"
        "model_from(resolve({'base_url': 'http://127.0.0.1:9'}, {}, ConfigFile(path='c')), {})\n"
        "print([n for n in sys.modules if 'responses' in n or n.partition('.')[0] == 'openai'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_secrets_are_recognized_by_name_and_by_the_configured_key() -> None:
    environment = {"OPENAI_API_KEY": "a", "GIT_AUTHOR_NAME": "b", "CORP_LLM": "c", "PATH": "d", "MY_TOKEN": "e"}
    assert secrets_of(environment, "CORP_LLM") == ["a", "e", "c"]
    assert secrets_of(environment, "OPENAI_API_KEY") == ["a", "e"]


@all_rows(
    "name",
    [
        "DB_PASSWORD",
        "npm_token",
        "SESSION_COOKIE",
        "SLACK_WEBHOOK",
        "PGPASSFILE_PASS",
        "MYSQL_PWD",
        "AWS_ACCESS_KEY_ID",
    ],
)
def test_a_variable_that_sounds_secret_is_masked(name: str) -> None:
    assert secrets_of({name: "value"}) == ["value"]


@all_rows("name",
    ["PWD", "OLDPWD", "SSH_AUTH_SOCK", "AUTH_URL", "TOKEN_ENDPOINT", "SSL_KEY_FILE", "TOKENIZERS_PARALLELISM",
     "GIT_AUTHOR_NAME", "PASSWORD_STORE_DIR", "HOME"])  # fmt: skip
def test_location_of_a_secret_is_not_masked(name: str) -> None:
    assert secrets_of({name: "value"}) == []


@all_rows(
    ("url", "shown"),
    [
        ("https://u:p@h/v1/", "https://h/v1"),
        ("https://h/v1?api-key=k", "https://h/v1"),
        ("https://u:p@ss@h/v1", "https://h/v1"),
        ("htps://u:p@h/v1", "htps://h/v1"),
        ("http://[::1]:8/v1", "http://[::1]:8/v1"),
    ],
)
def test_address_is_shown_without_secrets(url: str, shown: str) -> None:
    assert shown_address(url) == shown


GROQ = "https://api.groq.com/openai/v1"
# What is given (flags, variables, file), and whether what the SDK reads of OpenAI's own goes there.
OPENAI_S: dict[str, tuple[dict[str, str], dict[str, str], str, bool]] = {
    "OpenAI": ({}, {}, "", True),
    "OpenAI by name": ({"provider": "openai"}, {}, "", True),
    "OpenAI by name, behind a proxy of one's own": ({"provider": "openai", "base_url": URL}, {}, "", True),
    "an address that nobody knows, with OpenAI's key": ({"base_url": URL}, {}, "", True),
    "the same by a variable": ({}, {"OPENAI_BASE_URL": URL}, "", True),
    "on this machine": ({"base_url": "http://localhost:4000/v1"}, {}, "", True),
    "another provider by name": ({"provider": "groq"}, {}, "", False),
    "a local one by name": ({"provider": "vllm"}, {}, "", False),
    "another provider by its address": ({"base_url": GROQ}, {}, "", False),
    "the same by a variable of OpenAI's": ({}, {"OPENAI_BASE_URL": GROQ}, "", False),
    "an address with a key of its own": ({}, {}, f'base_url = "{URL}"\nkey_variable = "CORP_KEY"\n', False),
}


@all_rows(("flags", "environment", "file", "sent"), OPENAI_S.values(), ids=OPENAI_S)
def test_openai_variables_apply_to_openai_only(
    flags: dict[str, str], environment: dict[str, str], file: str, sent: bool
) -> None:
    found = settings({"model": "m", **flags}, {**KEYS, **environment}, file)
    assert not_for(found) == (() if sent else OPENAI_ONLY)
