"""Text that is safe to show, and text that is read strictly. Nothing here opens a file.

Read first: `visible`, through which everything goes that a terminal shows; `look_alikes` says what in a command is not what
it seems. `strict_json` reads one JSON value, `toml_places` a TOML text and the lines of its keys, `template` fills variables.
"""
