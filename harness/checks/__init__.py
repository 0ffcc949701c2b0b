"""Checks: the user's own programs (hooks) that examine calls and sessions. A hook may make a verdict stricter, never
milder.

Read these first:

    checks.py            `Checks`: the hooks to ask at each event, and the effects of their answers
    hook_declaration.py  one `[[hook]]` of the configuration
    hook_run.py          one run of a hook's program, from its input to its answer, or the effect of a missing one

Then:

    hook_form.py         the JSON forms of input and output, and the form that harness ships

Elsewhere: the gate's use of an answer (gate/call_checks.py), and the gate for other agents (a plugin).
"""
