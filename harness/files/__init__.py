"""Files of the workspace: where a path leads, how a file is read and replaced safely, and how a change is taken back.

Read first: `workspace`, the one place that follows links; then `reading` and `replacing`, which the file tools use. Below
them `opening` opens a folder with no link on the way, `atomic` gives a file its new bytes, `encoding` and `diffs` make text of
bytes. `before_images` keeps what a file held, `undo` brings it back, and `baselines` knows what the model has read. `trees`
and `repository` look at what lies in a folder: names of files, and what git would obey.

Not here: whether a file may be touched (policy/), and what a call is and says (tools/).
"""
