"""`harness run`: one prompt, without a user. Read `run_command` first, which runs it from the flags to the exit code.

`run_prompt` reads the prompt, with data from stdin. `run_model` returns the model, or a recorded one. `answer_schema`
checks the answer. `run_output` writes stdout. `run_end`, `report_files`, `github` and `workflow_commands` write the
reports at the end. This package neither reads the terminal nor asks a user.
"""
