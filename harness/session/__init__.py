"""A session: its parts, and the common needs of all front ends.

Read these first:

    running_session.py  starts a session; built from session_place, session_rules and session_tools, in this order
    front.py            the front of a session: the prompt, a run, an editor, or none
    state.py            the folders of the program; own_folders.py protects them from commands
    policies.py         the policies in force; trust.py asks about those of a workspace
    advice.py           rules that would allow a refused call; rule_subjects.py: possible subjects of a rule
    session_log.py      opens and closes the action log
    config/             the settings of a person
    extensions/         tools, servers, hooks and approvers that a configuration adds
    work_folders/       folders for tasks, and for helpers that change files

Then: system_prompt, kept_grants, environment_secrets (secrets to mask), chosen_tools, delegated_work and
delegated_sessions (helpers), shipped_plugins and named_plugins, signals, exits (every exit code), waiting (questions
that wait for a person at another terminal).

Not here: drawing and reading keys (terminal/), the commands (app/), features (plugins/).
"""
