"""The table of servers: each row is fit for use, and an address finds its row by its host alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from places import ROOT
from program import Program
from rows import all_rows

from harness.models.endpoint import CacheMarks, Quirks
from harness.models.presets import PRESETS, Api, Preset, preset_of
from harness.models.scripted import replies, say
from harness.record import replace

ROWS = [pytest.param(preset, id=name) for name, preset in PRESETS.items()]
LEAST_ROWS = 17


def test_preset_titles_and_addresses_are_unique() -> None:
    assert len(PRESETS) >= LEAST_ROWS
    assert len({preset.title for preset in PRESETS.values()}) == len(PRESETS)
    urls = [preset.base_url for preset in PRESETS.values() if preset.base_url]
    assert len(set(urls)) == len(urls) - 1, "Anthropic's two ends have one address"


@all_rows("preset", ROWS)
def test_a_row_is_fit_for_use(preset: Preset) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", preset.name)
    for variable in (preset.key_variable, preset.base_url_variable, preset.api_version_variable):
        assert re.fullmatch(r"[A-Z][A-Z0-9_]*|", variable)
    assert preset.base_url is None or preset.base_url.startswith(("https://", "http://localhost:"))
    assert all(host == host.lower() and "/" not in host for host in preset.hosts)


@all_rows("preset", ROWS)
def test_local_server_is_guessed_by_its_port_and_others_by_host(preset: Preset) -> None:
    is_local = (preset.base_url or "").startswith("http://localhost:")
    assert bool(preset.hosts) is not is_local


@all_rows(
    "preset",
    [preset for preset in PRESETS.values() if preset.base_url and preset.api is not Api.MESSAGES],
    ids=lambda p: p.name,
)
def test_address_finds_its_preset_and_a_guess_has_no_quirks(preset: Preset) -> None:
    assert preset_of(preset.base_url) == (preset if preset.hosts else replace(preset, quirks=Quirks()))


ADDRESSES: dict[str | None, str | None] = {
    None: "openai",
    "https://api.openai.com/v1": "openai",
    "HTTPS://API.Mistral.AI:443/v1": "mistral",
    "https://api.mistral.ai.": "mistral",
    "https://eu.api.mistral.ai/v1": "mistral",
    "https://key@api.mistral.ai/v1": "mistral",
    "https://api.mistral.ai?x=1": "mistral",
    "https://mine.openai.azure.com/openai/v1/": "azure",
    "https://mine.services.ai.azure.com": "azure",
    "https://api.together.xyz/v1": "together",
    "http://127.0.0.1:11434/v1": "ollama",
    "http://[::1]:8080": "llamacpp",
    "http://localhost:8000/v1": "vllm",
    "http://localhost:9999/v1": None,
    "http://localhost/v1": None,
    "http://192.168.0.7:11434/v1": None,
    "https://api.mistral.ai.example.com/v1": None,
    "https://notapi.mistral.ai.example/v1": None,
    "https://evilopenai.azure.com.example/v1": None,
    "https://xapi.openai.com/v1": None,
    "https://api.mistral.ai@example.com/v1": None,
    "https://example.com/api.mistral.ai": None,
    "https://example.com\\@api.mistral.ai/v1": None,
    "https://example.com#@api.mistral.ai": None,
    "ftp://api.mistral.ai": None,
    "api.mistral.ai": None,
    "": None,
}


@all_rows(("address", "name"), ADDRESSES.items())
def test_an_address_finds_its_row_by_its_host_alone(address: str | None, name: str | None) -> None:
    found = preset_of(address)
    assert (found.name if found is not None else None) == name


def test_quirks_of_some_servers_are_set() -> None:
    assert PRESETS["mistral"].quirks == Quirks(usage=False, echo=(), nine_character_ids=True)
    assert PRESETS["deepseek"].quirks.echo == ("reasoning_content",)
    assert PRESETS["openai"].quirks.echo == ()
    assert PRESETS["litellm"].quirks.cache_marks is CacheMarks.RESULTS
    assert PRESETS["azure"].api_version_variable == "OPENAI_API_VERSION"


ONE_MORE = """\
        Preset(
            name="corner",
            title="Corner Shop",
            base_url="{url}",
            key_variable="CORNER_API_KEY",
            quirks=Quirks(stream=False),
        ),
"""


def test_new_server_needs_only_one_table_entry(tmp_path: Path, program: Program) -> None:
    """In a copy of the program: it is known by name, told of, and asked as its entry says."""
    for name in ("harness", "policies"):
        shutil.copytree(f"{ROOT}/{name}", tmp_path / "copy" / name, ignore=shutil.ignore_patterns("__pycache__"))
    table = tmp_path / "copy" / "harness" / "models" / "presets.py"
    start = "    for preset in (\n"
    url = program.serve(replies(say("hello")))
    table.write_text(table.read_text().replace(start, start + ONE_MORE.format(url=url), 1))
    program.environment |= {"PYTHONPATH": str(tmp_path / "copy"), "CORNER_API_KEY": "sk-of-the-corner"}

    def done(*arguments: str) -> tuple[int, str]:
        ended = subprocess.run(
            program.command(*arguments),
            cwd=program.workspace,
            env=program.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    code, told = done("config", "show", "--provider", "corner", "--model", "m")
    assert (code, url in told, "CORNER_API_KEY" in told) == (0, True, True), told
    code, told = done("config", "show", "--provider", "cornr", "--model", "m")
    assert (code, "corner" in told) == (2, True), told
    code, told = done("run", "--provider", "corner", "--model", "m", "say hello")
    assert (code, "hello" in told) == (0, True), told
    assert [request.get("stream") for request in program.players[-1].requests] == [False]
