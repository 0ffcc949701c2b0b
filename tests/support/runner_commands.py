"""A GitHub Actions runner's reading of a step's output, written anew from how actions/runner does it; for tests alone."""

from __future__ import annotations

import re
from typing import NamedTuple

REGISTERED = frozenset(
    "stop-commands add-mask add-matcher remove-matcher add-path debug echo error group endgroup notice save-state set-env "
    "set-output warning".split()
)
BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


class Found(NamedTuple):
    """A command that the runner obeyed."""

    name: str
    properties: dict[str, str]
    data: str


class Step:
    """One step: one stop flag for both of its streams (ActionCommandManager.cs)."""

    def __init__(self) -> None:
        self.obeyed: list[Found] = []
        self._registered = set(REGISTERED)
        self._token: str | None = None

    def read(self, text: str) -> None:
        """Read some whole lines of a stream."""
        for line in re.split("\r\n|\r|\n", text):
            found = self._newer(line) or self._older(line)
            if found is None:
                continue
            if self._token is not None:
                if found.name.lower() == self._token.lower():
                    self._registered.discard(self._token)
                    self._token = None
            elif found.name == "stop-commands":
                self._token = found.data
                self._registered.add(self._token)
            else:
                self.obeyed.append(found)

    @property
    def stopped(self) -> bool:
        return self._token is not None

    def _newer(self, line: str) -> Found | None:
        line = line.lstrip(BLANKS)
        if not line.startswith("::") or (end := line.find("::", 2)) < 0:
            return None
        return self._found(
            line[2:end], line[end + 2 :], ",", {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
        )

    def _older(self, line: str) -> Found | None:
        start = line.find("##[")
        end = line.find("]", start)
        if start < 0 or end < 0:
            return None
        codes = {"%3B": ";", "%0D": "\r", "%0A": "\n", "%5D": "]", "%25": "%"}
        return self._found(line[start + 3 : end], line[end + 1 :], ";", codes)

    def _found(self, info: str, data: str, between: str, codes: dict[str, str]) -> Found | None:
        name, _, told = info.partition(" ")
        if name.lower() not in {known.lower() for known in self._registered}:
            return None
        pairs = [one.split("=", 1) for one in told.strip().split(between) if "=" in one]
        return Found(name, {key: _plain(value, codes) for key, value in pairs}, _plain(data, codes))


def _plain(text: str, codes: dict[str, str]) -> str:
    for code, char in codes.items():
        text = text.replace(code, char)
    return text


def outputs_in(text: str) -> dict[str, str]:
    """Return the outputs that a file of $GITHUB_OUTPUT sets. Raises ValueError where the runner would refuse it."""
    found: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        name, sign, delimiter = line.partition("<<")
        if not sign:
            name, sign, value = line.partition("=")
            if not sign:
                raise ValueError(line)
            found[name] = value
            continue
        held: list[str] = []
        for inner in lines:
            if inner == delimiter:
                break
            held.append(inner)
        else:
            raise ValueError(f"no end of {name}")
        found[name] = "\n".join(held)
    return found
