"""The loader: turns a policy file (TOML) and those that it extends into a `Policy`. It checks keys and examples.

A file with anything unknown is rejected: PolicyError names the file, the line, the key and the nearest known word. Only
`load_policy` reads files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

from harness.actions import Decision
from harness.declared_types import check_arguments
from harness.errors import PolicyError, nearest
from harness.limits import MAX_COMMAND_SECONDS, Limits
from harness.policy.effects import DEFAULT_HIDE, DEFAULT_WRITE, SandboxTable, place_problem
from harness.policy.extended import Find, PolicyFile, PolicyText, text_and_table, with_extended
from harness.policy.hosts import host_patterns
from harness.policy.lists import Lists
from harness.policy.matcher import Examples, RuleKeys
from harness.policy.matchers import MATCHERS, read_matchers
from harness.policy.policy import Policy, PolicySource, combine
from harness.policy.rule_examples import example_problem, examples_of, rule_problem
from harness.policy.rules import Layer, Opens, Origin, Rule
from harness.policy.tool_defaults import UNCOVERED, Readers, ToolDefault
from harness.record import replace
from harness.safe_files import read_regular
from harness.text.fields import check_of, kind_of
from harness.text.toml_places import key_lines
from harness.tool_kinds import OPTIONAL_NAMES, SHIPPED_TOOLS, Does, is_from_outside, tool_kind

Table: TypeAlias = Mapping[str, object]

TOP_KEYS = ("version", "name", "extends", "lists", "tools", "unattended", "limits", "sandbox", "rule")
EXAMPLE_KEYS = ("match", "not_match")
RULE_KEYS = (
    "id", "decision", *(key for kind in MATCHERS for key in kind.keys), "write", "network", "reason", "hint", *EXAMPLE_KEYS
)  # fmt: skip
TOOLS_KEYS = ("default", UNCOVERED, "readers")
"""Keys under [tools] that are not names of tools."""
UNATTENDED_KEYS = ("confirm",)
SANDBOX_KEYS = ("required", "network", "write", "hide", "show")
LIMIT_KEYS = ("turns", "seconds", "tokens", "cost", "refusals", "bad_calls", "command_seconds", "result_characters")
DECISION_WORDS = {decision.word: decision for decision in Decision}
STRICT_WORDS = {word: decision for word, decision in DECISION_WORDS.items() if decision is not Decision.AUTO}

WALLS = "walls"
"""Default of a tool that runs commands: those that fit run inside the workspace walls, the others need approval."""
MAX_POLICY_BYTES = 1_000_000
"""Maximum size of a policy file, in bytes. A repository's file may have any size."""


SHIPPED = ("default", "ci", "workspace", "readonly", "demo")
"""Names of the shipped policies."""
PACKS = ("python", "node", "go", "rust", "java", "terraform", "kubernetes", "data")
"""Names of the shipped packs: rules for one kind of project, to be extended together with a policy."""


def shipped_policy_path(name: str) -> str:
    """Return the path of a shipped policy.

    The folder of policies is inside the package in the wheel, and beside the package in the repository.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, "policies", f"{name}.toml")
    return inside if os.path.exists(inside) else os.path.join(os.path.dirname(package), "policies", f"{name}.toml")


def load_policy(
    path: str | os.PathLike[str],
    *,
    layer: Layer = Layer.FILE,
    extra_tools: Sequence[str] = (),
    examples: bool = True,
) -> Policy:
    """Return the policy in the TOML file at `path`, or the shipped policy of that name, with the files it extends.

    A name in SHIPPED or PACKS is the shipped file even if the current folder has a file of that name. `extra_tools` are
    further tools that the file may mention. Without `examples`, the examples of its rules are not checked: for a caller
    who knows from the digest that they were checked before. Those of shipped files that it extends are never checked.

    Raises PolicyError, whose text names file, line and key, if any part is invalid.
    """
    check_arguments(load_policy, locals())
    path = os.fspath(path)
    names = (*SHIPPED, *PACKS)
    if path in names:
        path = shipped_policy_path(path)
    elif _is_bare(path) and not os.path.lexists(path):
        raise PolicyError(f"unknown policy {path!r}: neither a file nor a shipped policy{nearest(path, names)}")
    try:
        content = _content(path)
    except ValueError as error:
        raise PolicyError(f"{path}: {error}") from None
    written = [path]

    def find(name: str, file: str) -> PolicyText:
        if name in names:
            return _shipped(name, file)
        path = os.path.join(os.path.dirname(file), name)
        if _is_bare(name):
            raise ValueError(f"is neither a file (*.toml) nor a shipped policy{nearest(name, names)}")
        written.append(path)
        return PolicyText(path=os.path.realpath(path), content=_content(path))

    files = with_extended(path, content, find)
    policy = _parsed_once(files, layer, tuple(extra_tools), examples)
    # A link is guarded, too: another file in its place would be another policy.
    return policy.guarding(*(guarded for name in written for guarded in (os.path.realpath(name), _entry(name))))


def _shipped(name: str, _file: str) -> PolicyText:
    """Return the shipped policy or pack of a name. Raises ValueError if there is none."""
    if name not in (*SHIPPED, *PACKS):
        raise ValueError("is not shipped, and this policy is a text without a folder for other files")
    path = shipped_policy_path(name)
    return PolicyText(path=path, content=_content(path))


def _is_bare(name: str) -> bool:
    """Return whether a text can only be the name of a shipped policy, not a path."""
    return "/" not in name and not name.endswith(".toml")


def _entry(path: str) -> str:
    """Return the path of a folder's entry, with the links in the folder's path followed, but not the entry itself."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _content(path: str) -> bytes:
    """Return the content of a policy file. Raises ValueError."""
    try:
        data = read_regular(path, MAX_POLICY_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_POLICY_BYTES:
        raise ValueError(f"is larger than {MAX_POLICY_BYTES} bytes")
    return data


def parse_policy(
    data: bytes,
    file: str,
    *,
    layer: Layer = Layer.FILE,
    extra_tools: Sequence[str] = (),
    examples: bool = True,
    find: Find | None = None,
) -> Policy:
    """Return the policy in `data` (TOML in UTF-8). `file` is its name in messages. It reads shipped files only.

    `find` returns the files that it extends. Without `find` it can extend shipped policies and packs only.

    Raises PolicyError like `load_policy`.
    """
    check_arguments(parse_policy, locals())
    return _parsed(with_extended(file, data, find or _shipped), layer, tuple(extra_tools), examples)


def _parsed(files: tuple[PolicyFile, ...], layer: Layer, extra_tools: tuple[str, ...], examples: bool) -> Policy:
    """Return the policy of a file, the first of `files`, and of those that it extends."""
    shipped = os.path.dirname(shipped_policy_path(SHIPPED[0]))
    root = files[0].path
    policies: list[Policy] = []
    lists: dict[str, Lists] = {}
    for file in reversed(files):  # a file comes after those that extend it
        loader = _Loader(
            file,
            layer,
            (*SHIPPED_TOOLS, *OPTIONAL_NAMES, *extra_tools),
            examples=examples and (file.path == root or os.path.dirname(file.path) != shipped),
            root="" if file.path == root else root,
        )
        loader.lists = lists[file.path] = loader.named_lists([lists[path] for path in file.extends])
        policies.append(loader.policy())
    policies.reverse()
    return replace(combine(policies), name=policies[0].name)


_parsed_once = lru_cache(maxsize=16)(_parsed)
"""`_parsed` for files that a process may load many times. Their contents are a part of the key."""


def _default_words(tool: str) -> Mapping[str, Decision]:
    """Return the values that the default of a tool can have."""
    if tool == UNCOVERED:
        return STRICT_WORDS
    return DECISION_WORDS | {WALLS: Decision.CONFIRM} if tool_kind(tool).does is Does.RUNS else DECISION_WORDS


class _Loader:
    """The loading of one file, with the facts for error messages."""

    def __init__(self, file: PolicyFile, layer: Layer, tools: Sequence[str], *, examples: bool, root: str) -> None:
        self.source = PolicySource(layer=layer, path=file.path, content=file.content, extends=file.extends, root=root)
        self.file = file.path
        text, self.top = text_and_table(PolicyText(path=file.path, content=file.content))
        self.lines: Mapping[tuple[str, int, str], int] = key_lines(text)
        self.layer = layer
        self.tools = tools
        self.examples = examples
        self.lists = Lists()

    def policy(self) -> Policy:
        table = self.top
        self.check_keys(table, TOP_KEYS, "", 0)
        version = table.get("version")
        if type(version) is not int or version != 1:
            self.fail("", 0, "version", "must be 1" if "version" in table else "is missing: write `version = 1`")
        name = (
            self.string(table, "name", "", 0) if "name" in table else os.path.basename(self.file).removesuffix(".toml")
        )
        unattended = self.table(table, "unattended")
        self.check_keys(unattended, UNATTENDED_KEYS, "unattended", 0)
        rule_tables = self.rule_tables(table)
        rules = self.rules(rule_tables)
        without_match = frozenset(rule.id for rule, item in zip(rules, rule_tables, strict=True) if "match" not in item)
        return Policy(
            name=name,
            rules=rules,
            defaults=self.defaults(self.table(table, "tools")),
            limits=self.limits(self.table(table, "limits")),
            unattended=self.unattended(unattended),
            sources=(replace(self.source, without_match=without_match),),
            readers=self.readers(self.table(table, "tools")),
            sandbox_tables=self.sandbox_tables(table),
        )

    def named_lists(self, extended: Sequence[Lists]) -> Lists:
        """Return the lists that the file's rules can name."""
        table = self.table(self.top, "lists")
        lists = Lists({name: self.strings(table, name, 0, "lists") for name in table}, extended)
        for name in table:
            try:
                lists.settle(name)
            except ValueError as error:
                self.fail("lists", 0, name, str(error))
        return lists

    def origin(self, table: str, index: int, key: str) -> Origin:
        """Return the place of a key, as `line` finds it."""
        return Origin(file=self.file, line=self.line(table, index, key), root=self.source.root)

    def line(self, table: str, index: int, key: str) -> int:
        """Return the line of a key. If unknown, the line of its table, or of the table written as a value."""
        places = ((table, index, key), (table, index, ""), ("", 0, table))
        return next((self.lines[place] for place in places if place in self.lines), 1)

    def fail(self, table: str, index: int, key: str, problem: str) -> NoReturn:
        line = self.line(table, index, key)
        place = f"[{table}] {key}" if table and key else key or f"[{table}]"
        if table == "rule":
            place = f"[[rule]] {key}" if key else "[[rule]]"
        raise PolicyError(f"{self.file}:{line}: {place}: {problem}")

    def check_keys(self, table: Iterable[str], known_keys: Sequence[str], name: str, index: int) -> None:
        for key in table:
            if key not in known_keys:
                self.fail(name, index, key, f"unknown key{nearest(key, known_keys)}")

    def table(self, parent: Table, key: str) -> Table:
        value = parent.get(key, {})
        if not isinstance(value, dict):
            self.fail("", 0, key, f"must be a table: [{key}]")
        return value

    def value(self, table: Table, key: str, holds: str, name: str, index: int = 0) -> Any:
        """Return the value of a key, or `None` if it is missing. `holds` is its type, as written in text/fields.py."""
        if key in table and (problem := check_of(holds)(table[key])):
            self.fail(name, index, key, problem)
        return table.get(key)

    def string(self, table: Table, key: str, name: str, index: int) -> str:
        return self.value(table, key, "filled", name, index) or ""

    def strings(self, table: Table, key: str, index: int, name: str = "rule") -> tuple[str, ...]:
        value = tuple(self.value(table, key, "list of text", name, index) or ())
        if key in table and not value and key != "flags" and name == "rule":
            self.fail(name, index, key, "must not be empty")
        return value

    def places(self, table: Table, key: str, index: int, name: str) -> tuple[str, ...]:
        """Return the folders and files that a key lists. They are writable by commands, or hidden from them."""
        places = self.strings(table, key, index, name)
        for place in places:
            problem = place_problem(place)
            if problem:
                self.fail(name, index, key, f"{place!r} {problem}")
        return places

    def hosts(self, table: Table, name: str, index: int) -> tuple[str, ...]:
        """Return the hosts that `network` lists, each in the form of a host pattern."""
        texts = self.strings(table, "network", index, name)
        try:
            return tuple(dict.fromkeys(pattern.text for pattern in host_patterns(texts)))
        except ValueError as error:
            self.fail(name, index, "network", str(error))

    def shown_places(self, table: Table) -> tuple[str, ...] | None:
        """Return the places that are hidden by default but not under this policy. `None` without the key `show`."""
        if "show" not in table:
            return None
        places = self.places(table, "show", 0, "sandbox")
        for place in places:
            if place.rstrip("/") not in DEFAULT_HIDE:
                self.fail("sandbox", 0, "show", f"{place!r} is not hidden by default{nearest(place, DEFAULT_HIDE)}")
        return places

    def sandbox_tables(self, parent: Table) -> tuple[SandboxTable, ...]:
        """Return the [sandbox]; empty if it is missing."""
        if "sandbox" not in parent:
            return ()
        table = self.table(parent, "sandbox")
        self.check_keys(table, SANDBOX_KEYS, "sandbox", 0)
        network = table.get("network")
        return (
            SandboxTable(
                origin=self.origin("sandbox", 0, "required"),
                layer=self.layer,
                required=bool(self.value(table, "required", "flag", "sandbox")),
                network=None if isinstance(network, list) else self.value(table, "network", "flag", "sandbox"),
                hosts=self.hosts(table, "sandbox", 0) if isinstance(network, list) else None,
                write=self.places(table, "write", 0, "sandbox") if "write" in table else None,
                hide=self.places(table, "hide", 0, "sandbox"),
                show=self.shown_places(table),
            ),
        )

    def decision(self, value: object, table: str, index: int, key: str, decisions: Mapping[str, Decision]) -> Decision:
        if not isinstance(value, str):
            self.fail(table, index, key, f"must be one of {', '.join(decisions)}, not {kind_of(value)}")
        if value not in decisions:
            self.fail(table, index, key, f"unknown decision {value!r}{nearest(value, decisions)}")
        return decisions[value]

    def readers(self, table: Table) -> tuple[Readers, ...]:
        """Return the `readers` under [tools]; empty if it is missing."""
        if "readers" not in table:
            return ()
        on = bool(self.value(table, "readers", "flag", "tools"))
        return (Readers(on=on, origin=self.origin("tools", 0, "readers"), layer=self.layer),)

    def defaults(self, table: Table) -> tuple[ToolDefault, ...]:
        self.check_keys([key for key in table if not is_from_outside(key)], (*self.tools, *TOOLS_KEYS), "tools", 0)
        return tuple(
            ToolDefault(
                tool=tool,
                decision=self.decision(value, "tools", 0, tool, _default_words(tool)),
                in_walls=value == WALLS,
                origin=self.origin("tools", 0, tool),
                layer=self.layer,
            )
            for tool, value in table.items()
            if tool != "readers"
        )

    def unattended(self, table: Table) -> Decision:
        strict = {word: DECISION_WORDS[word] for word in ("deny", "block")}
        return self.decision(table.get("confirm", "deny"), "unattended", 0, "confirm", strict)

    def limits(self, table: Table) -> Limits:
        self.check_keys(table, LIMIT_KEYS, "limits", 0)
        return Limits(
            max_turns=self.whole_number(table, "turns"),
            max_seconds=self.number(table, "seconds"),
            max_tokens=self.whole_number(table, "tokens"),
            max_cost=self.number(table, "cost"),
            max_refusals=self.whole_number(table, "refusals"),
            max_bad_calls=self.whole_number(table, "bad_calls"),
            command_seconds=self.number(table, "command_seconds", maximum=f"{MAX_COMMAND_SECONDS:.0f}"),
            result_characters=self.whole_number(table, "result_characters", minimum=1_000),
        )

    def number(self, table: Table, key: str, maximum: str = "1e12") -> float | None:
        value = self.value(table, key, f"number above 0, at most {maximum}", "limits")
        return None if value is None else float(value)

    def whole_number(self, table: Table, key: str, minimum: int = 1) -> int | None:
        value: int | None = self.value(table, key, f"whole of at least {minimum}", "limits")
        return value

    def rule_tables(self, table: Table) -> list[Table]:
        value = table.get("rule", [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail("", 0, "rule", "rules are written as [[rule]], with two brackets")
        return value

    def rules(self, tables: Sequence[Table]) -> tuple[Rule, ...]:
        rules: dict[str, Rule] = {}
        for index, item in enumerate(tables):
            rule = self.rule(item, index)
            if rule.id in rules:
                self.fail("rule", index, "id", f"{rule.id!r} is taken by the rule at line {rules[rule.id].origin.line}")
            rules[rule.id] = rule
        return tuple(rules.values())

    def rule(self, table: Table, index: int) -> Rule:
        self.check_keys(table, RULE_KEYS, "rule", index)
        table = {key: self.with_lists(key, value, index) for key, value in table.items()}
        for required in ("id", "decision"):
            if required not in table:
                self.fail("rule", index, "", f"has no {required}")
        decision = self.decision(table["decision"], "rule", index, "decision", DECISION_WORDS)
        if decision in (Decision.DENY, Decision.BLOCK) and "reason" not in table:
            self.fail("rule", index, "decision", f"a rule that says {decision.word} needs a reason")
        keys = RuleKeys(
            table,
            auto=decision is Decision.AUTO,
            tools=self.tools,
            fail=lambda key, text: self.fail("rule", index, key, text),
        )
        rule = Rule(
            id=keys.text("id"),
            decision=decision,
            origin=self.origin("rule", index, ""),
            layer=self.layer,
            matchers=tuple(read_matchers(keys)),
            opens=self.opens(table, index, in_walls="walls" in keys),
            reason=keys.text("reason"),
            hint=keys.text("hint"),
        )
        problem = rule_problem(rule)
        if problem is not None:
            self.fail("rule", index, *problem)
        if self.examples:
            self.run_examples(rule, keys)
        return rule

    def with_lists(self, key: str, value: object, index: int) -> object:
        """Return a rule's value with its named lists in place."""
        try:
            return self.lists.value(key, value)
        except ValueError as error:
            self.fail("rule", index, key, str(error))

    def opens(self, table: Table, index: int, *, in_walls: bool) -> Opens:
        """Return a rule's grants to the commands that it covers. The workspace walls include the workspace."""
        network = table.get("network")
        hosts = self.hosts(table, "rule", index) if isinstance(network, list) else ()
        by_flag = not isinstance(network, list) and bool(self.value(table, "network", "flag", "rule", index))
        write = self.places(table, "write", index, "rule")
        write = tuple(dict.fromkeys((*DEFAULT_WRITE, *write))) if in_walls else write
        return Opens(write=write, network=by_flag, hosts=hosts)

    def run_examples(self, rule: Rule, keys: RuleKeys) -> None:
        """Check the examples of a rule, in the form that its matchers require."""
        form = examples_of(rule)
        for key in EXAMPLE_KEYS:
            if form is Examples.ARGUMENTS:
                examples: Any = keys.value(key) if key in keys else []
                if not isinstance(examples, list) or not all(isinstance(example, dict) for example in examples):
                    keys.fail(key, 'must be a list of arguments, such as [{path = "src/a.py"}]')
            else:
                examples = keys.texts(key)
            for example in examples:
                try:
                    problem = example_problem(rule, example)
                except ValueError as error:
                    keys.fail(key, f"{example!r} {error}")
                if key == "match" and problem is not None:
                    keys.fail(key, f"the rule does not match its example {example!r}: {problem}")
                if key == "not_match" and problem is None:
                    keys.fail(key, f"the rule matches its counter-example {example!r}")
