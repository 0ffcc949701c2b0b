"""Making text safe to show, and strict parsing of text. Nothing here opens a file.

Read `visible.py` first: all displayed text passes through it.
    look_alikes.py   warnings about deceptive characters in a command
    strict_json.py   one JSON value
    fields.py        types and checks of fields in JSON and TOML
    toml_places.py   a TOML text, and the line of each key
    amounts.py       counts, durations and sizes in words
"""
