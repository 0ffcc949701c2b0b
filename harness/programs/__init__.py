"""Models of well-known programs: the files and hosts that they read, write, run and reach. Data, and no I/O.

The shell package asks `model_of(name)` (catalog.py) for the `Program` of a command and `read_command(program, argv)`
(options.py) for its `Use`: its act, the paths it reads and writes, the commands it runs, or the gap in the model. A
`Program` (program.py) lists options as a manual page does, each with the role of its value:

    "tidy": Program(options="-w|--width=TEXT -c|--config=READ -o|--output=WRITE --version:info", operands="READ...")

Functions cover the rest: `refine` gets the result of the tables, `read` the words alone, `loses` names the data that
is destroyed (losses.py). A model vouches only for words that it names. For any other word, harness asks the user.
Read program.py first, then options.py and any file of models.

To add a program, add a row to asked.py and lines on its effects to `tests/programs/asked.txt`. A program that needs
more than a row gets an entry in `PROGRAMS` in the file of its kind (parts common to several models are in shared.py),
and its name in that file's line in catalog.py. Other names that rules and the shell need are in runners.py and
variables.py; catalog.py answers questions about a program by its name alone.

No module here knows a policy, splits a command line into words, or looks at the disk.
"""
