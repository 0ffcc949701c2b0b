"""The settings of a person. Read `declared` first: the table of all of them.

`config_file` reads their file, `settings` says what holds of flags, environment, file and presets, `provider` makes a model of
that, and `config_command` is `harness config`. No key is read from a file, and nothing in the workspace has a say.
"""
