"""Text that is safe to show, and text that is read strictly. Nothing here opens a file.

Read `visible.py` first: what is shown goes through it.
    look_alikes.py   what in a command is not what it seems
    strict_json.py   one JSON value
    fields.py        what the fields of JSON and TOML may hold, and what is wrong with a value
    toml_places.py   a TOML text, and the line of each key
    amounts.py       numbers in words: how many, how long, how large
"""
