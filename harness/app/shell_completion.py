"""`harness completion`: print a script that completes `harness` in bash, zsh or fish.

The script has the words and flags of all shipped commands. Tab starts no Python.
"""

from __future__ import annotations

import sys
from argparse import Action, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.app.command_line import actions, command, first_words, parser_for
from harness.models.presets import PRESETS
from harness.policy.loader import SHIPPED
from harness.session.exits import Exit
from harness.shipped import COMMANDS, HELP, TOPICS

_KNOWN_VALUES = {"--policy": SHIPPED, "--provider": tuple(PRESETS)}
"""Values to offer for flags that accept others too."""


def completion_command(arguments: Namespace, environment: Mapping[str, str]) -> int:  # noqa: ARG001 - as all commands
    """Write the completion script of the shell that the action names, and return the exit code."""
    script = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[arguments.action]
    sys.stdout.write("\n".join(script()) + "\n")
    return Exit.DONE


def bash_script() -> Iterator[str]:
    """Yield the lines of the script for bash. Where it offers no words, bash completes file names."""
    values = {name: words for flag in _all_flags() for name in flag.option_strings if (words := _values(flag))}
    valued = sorted({name for flag in _all_flags() if flag.nargs != 0 for name in flag.option_strings} - set(values))
    yield "# To load it: source <(harness completion bash)"
    yield "_harness() {"
    yield "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words="
    yield "    if [[ $current == = ]]; then current="
    yield "    elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi"
    yield '    case "$COMP_CWORD ${COMP_WORDS[*]:1:COMP_CWORD-1}" in'
    yield f"        '1 ') words={_quoted(' '.join((*first_words(), 'help')))} ;;"
    yield f"        '2 help') words={_quoted(' '.join((*first_words(), *TOPICS)))} ;;"
    for word in first_words():
        if actions(word):
            yield f"        '2 {word}') words={_quoted(' '.join(actions(word)))} ;;"
    for name in filter(None, COMMANDS):
        if words := _operands(name):
            yield f"        '{len(name.split()) + 1} {name}') words={_quoted(' '.join(words))} ;;"
    yield "    esac"
    yield '    [[ $current != -* ]] || case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in'
    for name in sorted(COMMANDS, reverse=True):  # the empty name is last, since its pattern matches everything
        pattern = "*" if not name else f"'{name}'" if " " in name else f"'{name} '*"
        yield f"        {pattern}) words={_quoted(' '.join(_flag_names(name)))} ;;"
    yield "    esac"
    yield "    case $previous in"
    for flag, words in values.items():
        yield f"        {flag}) words={_quoted(' '.join(words))} ;;"
    yield f"        {'|'.join(valued)}) words= ;;"
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"
    yield "complete -o default -F _harness harness"


def zsh_script() -> Iterator[str]:
    """Yield the lines of the script for zsh, which may also be a file `_harness` in a folder of `fpath`."""
    yield "#compdef harness"
    yield "# To load it: source <(harness completion zsh)"
    yield "_harness() {"
    yield "    local -a offered"
    yield "    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then"
    yield from _zsh_offer(_described_words(), 8)
    yield "        return"
    yield "    fi"
    yield "    case $words[2] in"
    yield "    help)"
    yield from _zsh_offer(_described_topics(), 8)
    yield "        ;;"
    for word in first_words():
        yield f"    {word})"
        if not actions(word):
            yield "        shift words; (( CURRENT-- ))"
            yield from _zsh_flags(word)
            yield "        ;;"
            continue
        yield "        if (( CURRENT == 3 )); then"
        yield from _zsh_offer(_described_actions(word), 12)
        yield "            return"
        yield "        fi"
        yield "        shift 2 words; (( CURRENT -= 2 ))"
        yield "        case $words[1] in"
        for action in actions(word):
            yield f"        {action})"
            yield from _zsh_flags(f"{word} {action}")
            yield "            ;;"
        yield "        esac"
        yield "        ;;"
    yield "    *)"
    yield from _zsh_flags("")
    yield "        ;;"
    yield "    esac"
    yield "}"
    yield "if [[ $funcstack[1] == _harness ]]; then _harness; else compdef _harness harness; fi"


def _zsh_offer(described: Iterable[tuple[str, str]], indent: int) -> Iterator[str]:
    yield f"{' ' * indent}offered=("
    for word, text in described:
        yield f"{' ' * (indent + 4)}{_quoted(f'{word}:{text}')}"
    yield f"{' ' * indent})"
    yield f"{' ' * indent}_describe word offered"


def _zsh_flags(name: str) -> Iterator[str]:
    yield "            _arguments \\"
    for flag in _flags(name):
        text = _one_line(flag.help).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
        words = _values(flag)
        offer = f"{{compadd {' '.join(words)}; _files}}" if not flag.choices else f"({' '.join(words)})"
        value = "" if flag.nargs == 0 else f":value:{offer if words else '_files'}"
        for option in flag.option_strings:
            sign = "=" if value and option.startswith("--") else ""
            yield f"                {_quoted(f'*{option}{sign}[{text}]{value}')} \\"
    operands = " ".join(_operands(name))
    yield f"                {_quoted(f'1:word:({operands})' if operands else '*:file:_files')}"


def fish_script() -> Iterator[str]:
    """Yield the lines of the script for fish."""
    yield "# To load it: harness completion fish | source"
    yield "function __harness_is"
    yield "    set -l words (commandline -opc)"
    yield "    set -e words[1]"
    yield '    test "$words" = "$argv"'
    yield "end"
    yield "function __harness_begins"
    yield "    set -l words (commandline -opc)"
    yield "    set -e words[1]"
    yield '    string match -q -- "$argv *" "$words "'
    yield "end"
    for word, text in _described_words():
        yield _fish_word("__harness_is", word, text)
    for word, text in _described_topics():
        yield _fish_word("__harness_is help", word, text)
    for word in first_words():
        for action, text in _described_actions(word):
            yield _fish_word(f"__harness_is {word}", action, text)
    for name in COMMANDS:
        for operand in _operands(name):
            yield _fish_word(f"__harness_is {name}", operand, "")
        condition = (
            f"__harness_begins {name}"
            if name
            else "; and ".join(f"not __harness_begins {word}" for word in first_words())
        )
        for flag in _flags(name):
            spelling = " ".join(
                f"-l {option[2:]}" if option[1] == "-" else f"-s {option[1]}" for option in flag.option_strings
            )
            value = "" if flag.nargs == 0 else " -r"
            if words := _values(flag):
                value = f" -{'x' if flag.choices else 'r'} -a {_fish_quoted(' '.join(words))}"
            yield f"complete -c harness -n {_fish_quoted(condition)} {spelling}{value} -d {_fish_quoted(_one_line(flag.help))}"


def _fish_word(condition: str, word: str, text: str) -> str:
    return f"complete -c harness -f -n {_fish_quoted(condition)} -a {word} -d {_fish_quoted(text)}"


def _described_words() -> Iterator[tuple[str, str]]:
    for commands in HELP.values():
        yield from commands.items()
    yield "help", "describe a command or a topic"


def _described_topics() -> Iterator[tuple[str, str]]:
    for commands in HELP.values():
        yield from commands.items()
    yield from ((name, "a topic") for name in TOPICS)


def _described_actions(word: str) -> Iterator[tuple[str, str]]:
    return ((action, _one_line(command(f"{word} {action}").help)) for action in actions(word))


def _flags(name: str) -> Sequence[Action]:
    return [argument for argument in parser_for(name).arguments() if argument.option_strings]


def _all_flags() -> Sequence[Action]:
    return [flag for name in COMMANDS for flag in _flags(name)]


def _flag_names(name: str) -> list[str]:
    return [option for flag in _flags(name) for option in flag.option_strings]


def _values(flag: Action) -> tuple[str, ...]:
    """Return the words to offer as the value of a flag. Empty for a flag without value, and for free text."""
    return tuple(flag.choices or ()) or _KNOWN_VALUES.get(flag.option_strings[-1], ())


def _operands(name: str) -> tuple[str, ...]:
    """Return the words that may follow a command, if its parser limits them."""
    return next(
        (
            tuple(argument.choices)
            for argument in parser_for(name).arguments()
            if argument.choices and not argument.option_strings
        ),
        (),
    )


def _one_line(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
