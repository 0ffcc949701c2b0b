"""Warnings about a policy that loads but does not express its author's intention.

Only definite mistakes are reported, since users who see one wrong warning ignore the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from harness.actions import Access, Act, Decision, PathAccess, Place
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.built_in import inspect_facet
from harness.policy.command_matchers import CommandMatcher
from harness.policy.matcher import Matcher
from harness.policy.plain_commands import plain_rule_command
from harness.policy.policy import Policy
from harness.policy.rules import Origin, Rule
from harness.policy.spellings import STAR
from harness.policy.tool_defaults import UNCOVERED
from harness.policy.tool_matchers import ToolMatcher
from harness.programs.runners import BUILDERS, READS_CODE, RUNNING_WORDS, SUBCOMMAND_PROGRAMS, is_one_of
from harness.programs.synonyms import option_synonyms, synonyms
from harness.record import Record, replace
from harness.tool_kinds import SHIPPED_TOOLS, Does, shipped_that, tool_kind

_FOLDERS_OF_A_MACHINE = {
    "etc": frozenset("passwd shadow group gshadow sudoers sudoers.d hosts fstab crontab ssl".split()),
    "dev": frozenset("null zero mem kmem sda shm tty stdin stdout stderr fd".split()),
    "usr": frozenset("bin sbin lib lib32 lib64 libexec local share include".split()),
    "proc": frozenset("self cpuinfo meminfo mounts sys net".split()),
}
_COMMANDS = shipped_that(Does.RUNS)
_FOLDERS_OF_PEOPLE = frozenset(("home", "Users"))


class PolicyWarning(Record):
    """One thing that a policy's author should look at."""

    rule: str
    """The rule's id. Empty for a warning about [tools]."""
    origin: Origin
    problem: str

    def __str__(self) -> str:
        """Return the warning as one line: file, line number, rule and problem."""
        place = f"[[rule]] {self.rule}" if self.rule else "[tools]"
        return f"{self.origin}: warning: {place}: {self.problem}"


def warnings(policy: Policy) -> tuple[PolicyWarning, ...]:
    """Return the warnings about a loaded policy: first about [tools], then about each rule in order.

    A file that it extends is compared with it, but has its own check.
    """
    problems_found = [*_tools(policy)]
    first: dict[Hashable, Rule] = {}
    strict = StrictRules(policy.rules)
    without_match = {(source.path, name) for source in policy.sources for name in source.without_match}
    for rule in sorted(policy.rules, key=lambda rule: not rule.origin.root):  # those of extended files first
        twin = first.setdefault(_meaning(rule), rule)
        problems = [
            *_reach(policy, rule, twin, strict),
            *_breadth(rule),
            *_patterns(rule),
            *_grants(rule),
            *_spellings(strict, rule),
        ]
        shows_nothing = (rule.origin.file, rule.id) in without_match
        if rule.decision is not Decision.AUTO and shows_nothing and _is_about_parts(rule):
            problems.append("a strict rule without `match`: nothing shows that it catches what it should")
        problems_found += [PolicyWarning(rule=rule.id, origin=rule.origin, problem=problem) for problem in problems]
    return tuple(warning for warning in problems_found if not warning.origin.root)


def _is_about_parts(rule: Rule) -> bool:
    """Return whether a rule matches parts of calls. A rule about whole tools needs no example."""
    return any(not isinstance(matcher, ToolMatcher) for matcher in rule.matchers)


def _tools(policy: Policy) -> Iterator[PolicyWarning]:
    """Yield the gaps and useless entries in the [tools] of each named file and those that it extends.

    Gaps are reported only for a file that sets a tool to auto. Other files only tighten the policy.
    """
    for unit in dict.fromkeys(default.origin.unit for default in policy.defaults):
        defaults = [default for default in policy.defaults if default.origin.unit == unit]
        stated = {default.tool: default for default in sorted(defaults, key=lambda default: default.strictness)}
        for default in defaults:
            if default.strictness < (strictest := stated[default.tool]).strictness:
                problem = f"{default.tool} says nothing: a stricter line counts ({strictest.origin})"
                yield PolicyWarning(rule="", origin=default.origin, problem=problem)
        first = min((default.origin for default in stated.values()), key=lambda origin: (origin.root, origin.line))
        named_tools = {tool for rule in policy.rules if rule.origin.unit == unit for tool in rule.tools}
        missing = [tool for tool in SHIPPED_TOOLS if tool not in stated and tool not in named_tools]
        opens = any(default.decision is Decision.AUTO for default in stated.values())
        if opens and missing and "default" not in stated:
            problem = (
                f"no line names {', '.join(missing)}, and there is no `default`: confirm, so refused with nobody to ask"
            )
            yield PolicyWarning(rule="", origin=first, problem=problem)
        uncovered = stated.get(UNCOVERED)
        for runs in dict.fromkeys(stated.get(tool, stated.get("default")) for tool in _COMMANDS):
            if uncovered is None or runs is None or runs.decision < uncovered.decision:
                continue
            problem = f"uncovered says nothing: {runs.subject} is {runs.decision.word} by default"
            yield PolicyWarning(rule="", origin=uncovered.origin, problem=problem)


def _reach(policy: Policy, rule: Rule, twin: Rule, strict: StrictRules) -> Iterator[str]:
    """Yield the main reason why a rule never decides a call. `twin` is the first rule with the same meaning."""
    if twin is not rule:
        yield f"says the same as rule {twin.label}"
    elif (stricter := strict.catching(rule)) is not None:
        yield (
            f"is never reached: all that it matches is {stricter.decision.word} by rule {stricter.label}, "
            f"and {rule.decision.word} does not lift that"
        )
    elif rule.decision is Decision.AUTO and (default := _same_default(policy, rule)):
        yield f"only repeats {default}"


def _meaning(rule: Rule) -> Hashable:
    """Return a key for the effect of a rule, without its texts for people. Rules with equal keys decide alike."""
    matchers = frozenset(matcher.meaning(auto=rule.is_auto) for matcher in rule.matchers)
    opens = frozenset(rule.opens.write), rule.opens.network, frozenset(rule.opens.hosts)
    return rule.decision, rule.layer, matchers, opens


class StrictRules:
    """An index of the strict rules of a policy, to compare a rule only with those that may catch it."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = sorted(
            (rule for rule in rules if rule.decision is not Decision.AUTO), key=lambda rule: -rule.decision
        )
        """The strict rules, strictest first. Rules with the same decision are in file order."""
        self._places: dict[Hashable, list[int]] = {}
        """Indexes of the rules that need one of some words, by each word of one set (see `_needed`)."""
        self._needing_none: list[int] = []
        """Indexes of the rules that need no word. They are compared with every rule."""
        needed_by = [_needed(rule.matchers) for rule in self._rules]
        count = Counter(word for needed in needed_by for words in needed for word in words)
        for place, needed in enumerate(needed_by):
            if not needed:
                self._needing_none.append(place)
                continue
            for word in min(needed, key=lambda words: sum(count[word] for word in words)):
                self._places.setdefault(word, []).append(place)

    def catching(self, rule: Rule) -> Rule | None:
        """Return the strictest rule that is stricter than `rule` and matches all that `rule` matches, or `None`."""
        words = frozenset[Hashable]().union(*_needed(_all_matchers(rule)))
        places = {*self._needing_none, *(place for word in words for place in self._places.get(word, ()))}
        stricter = (self._rules[place] for place in sorted(places) if self._rules[place].decision > rule.decision)
        return next((other for other in stricter if catches(other, rule)), None)


def _needed(matchers: Sequence[Matcher]) -> list[frozenset[Hashable]]:
    """Return sets of words, patterns and similar elements that a rule with these matchers needs.

    A rule caught by it has an element of each set. So it is enough to index a rule under one of its sets, best under
    the rarest. Example: among a hundred rules about git, the one that denies `git push` is indexed under `push` alone,
    and is not compared with a rule about `git log`.

    INVARIANT: `catches` is false for a rule without any element of one of these sets.
    """
    return [words for matcher in matchers for words in matcher.needed() if words]


def _all_matchers(rule: Rule) -> tuple[Matcher, ...]:
    """Return the matchers of a rule, and a matcher for the tools that run commands if it has `argv` but no `tool`."""
    if rule.argv is None or rule.tools:
        return rule.matchers
    return (*rule.matchers, ToolMatcher(names=_COMMANDS))


def catches(strict: Rule, rule: Rule) -> bool:
    """Return whether `strict`, a rule with a stricter decision, matches all that `rule` matches. False if in doubt."""
    matchers = _all_matchers(rule)
    return all(any(matcher.implies(other, auto=rule.is_auto) for matcher in matchers) for other in strict.matchers)


def _same_default(policy: Policy, rule: Rule) -> str:
    """Return a description of the defaults that make an auto rule useless, or an empty string.

    An auto rule is useless if all its tools are auto by default.
    """
    defaults = sorted(policy.defaults, key=lambda default: default.strictness)
    defaults_by_tool = {default.tool: default for default in defaults if default.layer is rule.layer}
    if defaults_by_tool.pop(UNCOVERED, None) and rule.argv is not None:
        return ""  # commands without a model are not auto by default
    tools = rule.tools or (_COMMANDS if rule.argv is not None else (*defaults_by_tool, "default"))
    tool_defaults = [defaults_by_tool.get(tool, defaults_by_tool.get("default")) for tool in tools]
    if any(default is None or default.decision is not Decision.AUTO for default in tool_defaults):
        return ""
    places = dict.fromkeys(
        f"for {default.subject} ({default.origin})" for default in tool_defaults if default is not None
    )
    return f"the default {', '.join(places)}: auto"


def _breadth(rule: Rule) -> Iterator[str]:
    """Yield the reasons why an auto rule for commands is wider than its author can intend."""
    if rule.decision is not Decision.AUTO or rule.argv is None or rule.walled:
        return
    tokens, rest = rule.argv.tokens, rule.argv.rest
    for program in tokens[0]:
        if len(tokens) == 1 and not rest and is_one_of(program, READS_CODE):
            yield f"{program} without a script runs whatever is piped into it: name the script"
        elif len(tokens) == 1 and rest and is_one_of(program, SUBCOMMAND_PROGRAMS):
            yield f'{program} with a bare "..." allows each of its subcommands: name those that are meant'
        elif rest and is_one_of(program, BUILDERS):
            yield f'"..." behind {program} allows each of its targets: name those that are meant'
    if rest:
        for words in _runners_in(tokens):
            yield f'{words} runs whatever the words behind it name: "..." allows all of it'


def _runners_in(tokens: Sequence[Sequence[str]]) -> Iterator[str]:
    for words in sorted(RUNNING_WORDS):
        if len(words) == len(tokens) and all(word in token for word, token in zip(words, tokens, strict=True)):
            yield " ".join(words)


def _spellings(strict: StrictRules, rule: Rule) -> Iterator[str]:
    """Yield a sentence about the spellings of its commands that a strict rule does not hit.

    A spelling that another rule hits, at least as strictly, is left out.
    """
    if rule.is_auto or rule.argv is None:
        return
    passed = []
    for words in dict.fromkeys(_spelled(rule.argv)):
        matcher = CommandMatcher(argv=ArgvPattern(tokens=tuple((word,) for word in words), rest=False))
        hit = strict.catching(replace(rule, decision=Decision.AUTO, matchers=(matcher,)))
        if hit is None or hit.decision < rule.decision:
            passed.append(f"`{' '.join(words)}`")
    if passed:
        yield f"does not hit {', '.join(passed)}, which the program takes for the same"


def _spelled(argv: ArgvPattern) -> Iterator[tuple[str, ...]]:
    """Yield the commands of a pattern in which one word or option is written in another way."""
    plain = tuple(token[0].replace(STAR, "") for token in argv.tokens)
    program, flag = plain[0], argv.flags[:1] if argv.flags else ()
    for place, token in enumerate(argv.tokens[1:], 1):
        for word in token:
            for other in synonyms(program, word):
                yield (*plain[:place], *other, *plain[place + 1 :], *flag)
    for option in argv.flags or ():
        name, equals, value = option.partition("=")
        for other_name in option_synonyms(program, plain[1:], name):
            yield (*plain, f"{other_name}{equals}{value.replace(STAR, '')}")


def _patterns(rule: Rule) -> Iterator[str]:
    """Yield the problems with patterns of a rule that can never match, or whose match has no effect."""
    if (files := rule.files) is None:
        return
    only_read = all(tool_kind(tool).does is Does.READS for tool in rule.tools)
    if rule.tools and only_read and Access.READ not in files.access:
        words = " and ".join(access.value for access in files.access)
        yield f"can never match: {' and '.join(rule.tools)} never do what `access` asks for ({words})"
    for pattern in files.patterns.patterns:
        if files.exceptions is not None and pattern in files.exceptions.patterns:
            yield f"the pattern {pattern!r} can never match: it stands in `except` too"
        elif _looks_absolute(pattern):
            yield (
                f"the pattern {pattern!r} can never match outside the workspace: its first slash is the workspace folder "
                "(a name without a slash matches anywhere)"
            )
        elif rule.decision is Decision.AUTO and Access.WRITE in files.access and (name := _protected(pattern)):
            yield f"the pattern {pattern!r} lets nothing be written unasked: writing {name} is asked about (built-in)"


def _grants(rule: Rule) -> Iterator[str]:
    """Yield the reasons why commands of an auto rule run but cannot work: no writable place, or no network."""
    if rule.decision is not Decision.AUTO or rule.argv is None:
        return
    words = tuple(token[0] for token in rule.argv.tokens)
    command = plain_rule_command(words)
    if command is None:
        return
    if command.act in (Act.CHANGES, Act.RUNS) and not rule.opens.write:
        does = "runs code" if command.act is Act.RUNS else "changes files"
        yield f'{" ".join(words)} {does} and may write nothing here: say what, as in write = ["."]'
    if command.act is Act.CHANGES and command.network and not rule.opens.reaches:
        yield f"{' '.join(words)} may not reach the network here: say network = true if it should"


def _looks_absolute(pattern: str) -> bool:
    """Return whether a pattern looks like an absolute path on a usual machine.

    False for `/etc/` alone, which may be a folder of the workspace.
    """
    if not pattern.startswith("/"):
        return False
    first, _, rest = pattern[1:].partition("/")
    second = rest.partition("/")[0]
    if first in _FOLDERS_OF_PEOPLE:
        return "/" in rest
    return second in _FOLDERS_OF_A_MACHINE.get(first, ())


def _protected(pattern: str) -> str:
    """Return the part of a pattern that the built-in `protected` asks about before a write, or an empty string."""
    for part in pattern.strip("/").split("/"):
        path = PathAccess(
            written=part, real=f"/workspace/{part}", names=(part,), access=Access.WRITE, place=Place.INSIDE
        )
        finding = inspect_facet(path, ())
        if part and not set(part) & set("*?[\\") and finding is not None and finding.id == "protected":
            return part
    return ""
