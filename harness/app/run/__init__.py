"""`harness run`: one prompt, nobody to ask. Read `run_command` first: a run from its flags to its exit code.

`run_prompt` is what is asked, with what came on stdin; `run_model` is who is asked: a model, or a cassette. `answer_schema` is
what the answer must be. `run_output` is stdout; `run_end`, `report_files`, `github` and `workflow_commands` are what is told at
the end. Nothing here reads the terminal or asks a person.
"""
