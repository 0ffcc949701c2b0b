"""Files of the workspace: where a path leads, how a file is read and replaced safely, and how a change is taken back.

Read these first:
    workspace.py      where a path really lies: the one place that follows links
    judged_files.py   reads a judged file, and says in the model's words what stands in the way
    file_changes.py   puts new bytes in a file's place, if it is still what was judged

What these rest on:
    folders.py        a folder, opened with no link on the way
    atomic.py         new bytes for a file: all or none
    encoding.py, diffs.py      bytes as text, and their difference
    before_images.py, undo.py  what a file held, and how it comes back
    protected_places.py        what other programs obey, compared around a command; with place_walk.py,
                               place_looks.py and places_put_back.py
    baselines.py      what the model has read in this session
    trees.py, repository.py    names of files below a folder, and what git would obey there

Not here: whether a file may be touched (policy/), and what a tool's call is and says (tools/).
"""
