"""The decision: a policy and an action give a verdict. Pure, except for the loader of files.

Read these first, in this order:

    rules.py       a rule, and whether it covers or touches a part of an action
    matcher.py     one condition of a rule, with all its answers; matchers.py has the kinds, patterns.py their patterns
    policy.py      a `Policy`: the rules and defaults of all files together
    verdict.py     `evaluate`: the only place that decides; built_in.py is above every rule

Then their parts:

    effects.py         the places that a judged command may write and reach: the grants of policies
    session_grants.py  a person's grants at a question, for the session or permanently
    destruction.py     irreversible effects, in words for the question
    rule_index.py      finds the rules that could match a call, so that a decision takes as long with a thousand rules
    tool_defaults.py   the decisions for calls that no rule matches
    loader.py          loads a file into a `Policy`; rule_examples.py checks the examples of its rules
    lint.py            warnings about mistakes in a policy file

This code runs no call, asks no question and writes no file. harness/shell parses command lines.
"""
