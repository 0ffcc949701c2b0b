"""Checks: the person's own programs (hooks) that examine calls and sessions. They may tighten, and never allow.

Read these first:

    checks.py            `Checks`: the hooks to ask at each event, and the effects of their answers
    hook_declaration.py  one `[[hook]]` of the configuration
    hook_run.py          one run of a hook's program, from its input to its answer, or the effect of a missing one

Then:

    hook_form.py         the form of input and output as JSON, and the form that ships

Not here: the gate's use of an answer (gate/call_checks.py), and the gate before other agents (a plugin).
"""
