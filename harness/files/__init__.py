"""Files of the workspace: resolving paths, reading and replacing files safely, and taking changes back.

Read these first:

    workspace.py               resolves paths: the one place that follows links
    judged_files.py            reads a judged file, with errors in the model's words
    file_changes.py            replaces a file if it is still what was judged

They rest on:

    folders.py                 a folder, opened with no link on the way
    atomic.py                  new bytes for a file: all or none
    encoding.py, diffs.py      bytes as text, and their difference
    before_images.py, undo.py  earlier contents of files, and how to restore them
    protected_places.py        files that other programs read or run, compared before and after a command; with
                               place_walk.py, place_looks.py and places_put_back.py
    tree_watch.py              changes of all files by a command: a look before it and one after; with tree_looks.py,
                               left_out.py, tree_changes.py, segments.py, git_index.py and git_contents.py
    tree_undo.py               plan to take back changes of commands; undo_run.py carries it out, with undo_journal.py,
                               path_states.py and file_calls.py
    baselines.py               files that the model has read in this session
    trees.py, repository.py    names of files below a folder, and the git settings that apply there

Not here: whether a file may be touched (policy/), and the text and meaning of a tool's call (tools/).
"""
