"""The user's settings. Read `declared` first: the table of all settings.

`config_file` reads the file, `settings` combines flags, environment, file and presets, `provider` makes a model from the
result, and `config_command` is `harness config`. API keys are never read from a file, and files in the workspace do not
count.
"""
