"""A session: what it is made of, and what every front end needs of it.

Read these first:
    running_session.py  the last of four steps: session_place, session_rules, session_tools, and the session itself
    front.py            whoever stands in front of a session: the prompt, a run, an editor, or nobody
    state.py            the folders of the program; own_folders.py keeps them out of reach of commands
    policies.py         the policies in force; trust.py asks about those of a workspace
    advice.py           the rules that would let a refused call run; rule_subjects.py: what a rule may be about
    session_log.py      opens and closes the action log
    config/             the settings of a person
    extensions/         tools, servers, hooks and approvers that a configuration adds
    work_folders/       folders for tasks, and for helpers that change files

Then: system_prompt, kept_grants, environment_secrets (what to mask), chosen_tools, delegated_work (helpers), signals, exits
(every exit code), waiting (questions that wait for a person at another terminal).

Not here: what draws or reads keys (terminal/), the commands (app/), features (plugins/).
"""
