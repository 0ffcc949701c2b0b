"""Text that is safe to show, and text that is read strictly. Nothing here opens a file.

visible.py       what is shown goes through `visible`; read it first
look_alikes.py   what in a command is not what it seems
strict_json.py   one JSON value
toml_places.py   a TOML text, and the line of each key
template.py      texts with {{variables}}
"""
