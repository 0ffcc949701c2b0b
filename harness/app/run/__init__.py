"""`harness run`: one prompt, without a person. Read `run_command` first: a run from its flags to its exit code.

`run_prompt` is the prompt, with the data on stdin; `run_model` is the model, or a cassette. `answer_schema` checks
the answer. `run_output` is stdout; `run_end`, `report_files`, `github` and `workflow_commands` are the reports at the
end. Nothing here reads the terminal or asks a person.
"""
