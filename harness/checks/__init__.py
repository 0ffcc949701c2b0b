"""Checks: the person's own programs (hooks) that look at calls and sessions. They may tighten, and never allow.

Read these first:
    checks.py            `Checks`: which hook is asked when, and what follows from its answer
    hook_declaration.py  one `[[hook]]` of the configuration
    hook_run.py          one run of a hook's program, from its input to its answer, or to what follows from there being none

Then:
    hook_form.py         what goes in and what comes out as JSON: our own form
    claude_form.py       the same in the form of Claude Code's hooks

Not here: what the gate makes of an answer (gate/call_checks.py), and the gate before other agents (hook/).
"""
