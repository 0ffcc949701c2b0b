"""Decides: a policy and an action give a verdict. Pure, but for the loader of files.

Read these first, in this order:
    rules.py       a rule, and when it covers or touches a part of an action
    matcher.py     one condition of a rule, and all that others ask it; matchers.py has the kinds, patterns.py their patterns
    policy.py      a `Policy`: the rules and defaults of all files together
    verdict.py     `evaluate`: the only place that decides; built_in.py stands above every rule

Then what goes with them:
    effects.py         what a judged command may write and reach: what policies grant
    session_grants.py  what a person grants at a question, for a session or for good
    destruction.py     what cannot be taken back, in words for the question
    tool_defaults.py   the decisions for calls that no rule matches
    loader.py          a file to a `Policy`; rule_examples.py tries the examples of its rules
    lint.py            what is surely not meant in a policy file

Nothing in here runs, asks or writes. What a command line means is read in harness/shell.
"""
